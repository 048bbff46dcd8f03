#include "state_kernels.hpp"

#include <type_traits>

namespace atlas_gdn {
namespace {

constexpr int kDim = 128;
constexpr int kTile = 32;
constexpr int kTileRows = 8;
constexpr int kScanRows = 16;

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

// Rows of S^T do not mix, so a block carries its 16 rows through the whole chain; a thread owns one column.
__global__ void __launch_bounds__(kDim) scan_kernel(const float *direct, const float *locals,
                                                    const float *transitions, float *next, int middles) {
    __shared__ float rows[kScanRows][kDim];
    const int column = threadIdx.x;
    const size_t slot = size_t{gridDim.x} * kStateFloats;
    const size_t mine = size_t{blockIdx.x} * kStateFloats + size_t{blockIdx.y} * kScanRows * kDim + column;
    const float *transition = transitions + size_t{blockIdx.x} * kStateFloats + column;
    for (int r = 0; r < kScanRows; ++r) {
        rows[r][column] = direct[mine + r * kDim];
        next[mine + r * kDim] = rows[r][column];
    }
    for (int segment = 0; segment < middles; ++segment) {
        __syncthreads();
        float sum[kScanRows];
        for (int r = 0; r < kScanRows; ++r)
            sum[r] = locals[segment * slot + mine + r * kDim];
#pragma unroll 2
        for (int j = 0; j < kDim; j += 8) {
            float factor[8];
            for (int i = 0; i < 8; ++i)
                factor[i] = transition[segment * slot + (j + i) * kDim];
            for (int r = 0; r < kScanRows; ++r)
                for (int i = 0; i < 8; ++i)
                    sum[r] = fmaf(rows[r][j + i], factor[i], sum[r]);
        }
        __syncthreads();
        for (int r = 0; r < kScanRows; ++r) {
            rows[r][column] = sum[r];
            next[(segment + 1) * slot + mine + r * kDim] = sum[r];
        }
    }
}

} // namespace

cudaError_t transpose_states(const float *in, float *out, int count, cudaStream_t stream) {
    return launch(transpose_kernel, dim3(kDim / kTile, kDim / kTile, count), dim3(kTile, kTileRows), stream, in, out);
}

cudaError_t fill_start_states(float *states, int nv, int zeros, int identities, cudaStream_t stream) {
    if (zeros + identities == 0)
        return cudaSuccess;
    return launch(fill_kernel, dim3((zeros + identities) * nv), dim3(256), stream, states, nv, zeros);
}

cudaError_t scan_states(const float *direct, const float *locals, const float *transitions, float *next, int nv,
                        int middles, cudaStream_t stream) {
    return launch(scan_kernel, dim3(nv, kDim / kScanRows), dim3(kDim), stream, direct, locals, transitions, next,
                  middles);
}

} // namespace atlas_gdn
