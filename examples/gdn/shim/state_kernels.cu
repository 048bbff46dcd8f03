#include "state_kernels.hpp"

#include <type_traits>

namespace atlas_gdn {
namespace {

constexpr int kDim = 128;
constexpr int kTile = 32;
constexpr int kTileRows = 8;
constexpr int kVectors = kDim / 4; // float4 in a row, and threads in a warp
constexpr int kScanRows = 16;      // of a block
constexpr int kRowsPerThread = 4;
constexpr int kScanThreads = kScanRows / kRowsPerThread * kVectors;
constexpr int kAhead = 8;

__device__ float4 multiply_add(float a, float4 b, float4 c) {
    return {fmaf(a, b.x, c.x), fmaf(a, b.y, c.y), fmaf(a, b.z, c.z), fmaf(a, b.w, c.w)};
}

template <class... T>
cudaError_t launch(void (*kernel)(T...), dim3 grid, dim3 block, cudaStream_t stream,
                   std::type_identity_t<T>... argument) {
    void *arguments[] = {&argument...};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), grid, block, arguments, 0, stream);
}

__global__ void transpose_kernel(const float *in, float *out) {
    __shared__ float tile[kTile][kTile + 1]; // the odd row length keeps columns in different banks
    const size_t base = size_t{blockIdx.z} * kStateFloats;
    const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
    for (int row = threadIdx.y; row < kTile; row += kTileRows)
        tile[row][threadIdx.x] = in[base + size_t(y + row) * kDim + x + threadIdx.x];
    __syncthreads();
    for (int row = threadIdx.y; row < kTile; row += kTileRows)
        out[base + size_t(x + row) * kDim + y + threadIdx.x] = tile[threadIdx.x][row];
}

__global__ void fill_kernel(float *states, int nv, int zeros) {
    const int slot = 1 + blockIdx.x / nv;
    float *state = states + (size_t{blockIdx.x} + nv) * kStateFloats;
    for (int i = threadIdx.x; i < kStateFloats; i += blockDim.x)
        state[i] = slot > zeros && i / kDim == i % kDim ? 1.f : 0.f;
}

// Multiplies the thread's rows by one transition. Its loads do not depend on the rows, so the next eight are
// on their way while these eight are used.
__device__ void apply(const float4 *transition, const float (*rows)[kDim], float4 *sum) {
    float4 factor[2][kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
        factor[0][i] = transition[i * kVectors];
#pragma unroll 2
    for (int block = 0; block < kDim / kAhead; ++block) {
        const float4 *now = factor[block % 2];
        float4 *later = factor[(block + 1) % 2];
        if (block + 1 < kDim / kAhead)
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
                later[i] = transition[((block + 1) * kAhead + i) * kVectors];
#pragma unroll
        for (int r = 0; r < kRowsPerThread; ++r)
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
                sum[r] = multiply_add(rows[r][block * kAhead + i], now[i], sum[r]);
    }
}

// Rows of S^T do not mix, so a warp carries its rows through the whole chain without waiting for another. A
// thread owns four columns of them.
__global__ void __launch_bounds__(kScanThreads)
    scan_kernel(const float *direct, const float *locals, const float *transitions, float *next,
                int middles) {
    __shared__ alignas(16) float rows[kScanRows][kDim];
    const int column = threadIdx.x % kVectors, row = threadIdx.x / kVectors * kRowsPerThread;
    const size_t slot = size_t{gridDim.x} * kStateFloats / 4; // in float4, like every offset here
    const size_t state = size_t{blockIdx.x} * kStateFloats / 4 + column;
    const size_t mine = state + (size_t{blockIdx.y} * kScanRows + row) * kVectors;
    const auto *start = reinterpret_cast<const float4 *>(direct) + mine;
    const auto *local = reinterpret_cast<const float4 *>(locals) + mine;
    const auto *transition = reinterpret_cast<const float4 *>(transitions) + state;
    auto *out = reinterpret_cast<float4 *>(next) + mine;

    float4 sum[kRowsPerThread];
    for (int r = 0; r < kRowsPerThread; ++r)
        sum[r] = start[r * kVectors];
    for (int segment = 0;; ++segment) {
        for (int r = 0; r < kRowsPerThread; ++r) {
            reinterpret_cast<float4 *>(rows[row + r])[column] = sum[r];
            out[segment * slot + r * kVectors] = sum[r];
        }
        if (segment == middles)
            return;
        for (int r = 0; r < kRowsPerThread; ++r)
            sum[r] = local[segment * slot + r * kVectors];
        __syncwarp();
        apply(transition + segment * slot, rows + row, sum);
        __syncwarp();
    }
}

} // namespace

cudaError_t transpose_states(const float *in, float *out, int count, cudaStream_t stream) {
    return launch(transpose_kernel, dim3(kDim / kTile, kDim / kTile, count), dim3(kTile, kTileRows), stream,
                  in, out);
}

cudaError_t fill_start_states(float *states, int nv, int zeros, int identities, cudaStream_t stream) {
    if (zeros + identities == 0)
        return cudaSuccess;
    return launch(fill_kernel, dim3((zeros + identities) * nv), dim3(256), stream, states, nv, zeros);
}

cudaError_t scan_states(const float *direct, const float *locals, const float *transitions, float *next,
                        int nv, int middles, cudaStream_t stream) {
    return launch(scan_kernel, dim3(nv, kDim / kScanRows), dim3(kScanThreads), stream, direct, locals,
                  transitions, next, middles);
}

} // namespace atlas_gdn
