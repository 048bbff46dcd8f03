// A scalar baseline for docs/gdn.md, not part of the library: the recurrence token by token in fp32, without tensor
// cores. A thread owns one column of the state, kd = 128 numbers in registers; a block owns 32 columns of one head and
// shares k and q of each token.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int kDim = 128;
constexpr int kColumns = 32;
constexpr int kStage = 16; // tokens loaded at a time

struct Arguments {
    const __nv_bfloat16 *qkv;
    const float *gate_beta;
    __nv_bfloat16 *output;
    float *h_state;
    float scale;
    int tokens, nk, nv, conv_dim, gb_stride;
};

__global__ void __launch_bounds__(kColumns) scalar_gdn(Arguments a) {
    __shared__ float q[kStage][kDim], k[kStage][kDim], alpha[kStage], beta[kStage];
    const int head = blockIdx.x, key_head = head / (a.nv / a.nk);
    const int column = blockIdx.y * kColumns + threadIdx.x;
    float state[kDim];
    for (int i = 0; i < kDim; ++i)
        state[i] = a.h_state[(head * kDim + i) * kDim + column];
    for (int start = 0; start < a.tokens; start += kStage) {
        const int count = min(kStage, a.tokens - start);
        __syncwarp();
        for (int t = 0; t < count; ++t) {
            const __nv_bfloat16 *row = a.qkv + size_t(start + t) * a.conv_dim + key_head * kDim;
            for (int i = threadIdx.x; i < kDim; i += kColumns) {
                q[t][i] = __bfloat162float(row[i]);
                k[t][i] = __bfloat162float(row[a.nk * kDim + i]);
            }
        }
        if (threadIdx.x < count) {
            const float *row = a.gate_beta + size_t(start + threadIdx.x) * a.gb_stride + head;
            alpha[threadIdx.x] = row[0];
            beta[threadIdx.x] = row[a.nv];
        }
        __syncwarp();
        for (int t = 0; t < count; ++t) {
            const size_t token = start + t;
            const float v = __bfloat162float(a.qkv[token * a.conv_dim + (2 * a.nk + head) * kDim + column]);
            float known[4] = {}, result[4] = {}; // four sums, so that additions do not wait for one another
#pragma unroll
            for (int i = 0; i < kDim; ++i)
                known[i % 4] = fmaf(state[i] *= alpha[t], k[t][i], known[i % 4]);
            const float step = beta[t] * (v - (known[0] + known[1] + known[2] + known[3]));
#pragma unroll
            for (int i = 0; i < kDim; ++i)
                result[i % 4] = fmaf(state[i] = fmaf(k[t][i], step, state[i]), q[t][i], result[i % 4]);
            a.output[(token * a.nv + head) * kDim + column] =
                __float2bfloat16(a.scale * (result[0] + result[1] + result[2] + result[3]));
        }
    }
    for (int i = 0; i < kDim; ++i)
        a.h_state[(head * kDim + i) * kDim + column] = state[i];
}

} // namespace

extern "C" __attribute__((visibility("default"))) int scalar_gdn_prefill(void *qkv, void *gate_beta, void *output,
                                                                         void *h_state, float scale, int tokens,
                                                                         int nk, int nv, int conv_dim, int gb_stride,
                                                                         void *stream) {
    Arguments a{static_cast<const __nv_bfloat16 *>(qkv), static_cast<const float *>(gate_beta),
                static_cast<__nv_bfloat16 *>(output), static_cast<float *>(h_state), scale, tokens, nk, nv, conv_dim,
                gb_stride};
    void *arguments[] = {&a};
    return cudaLaunchKernel(reinterpret_cast<const void *>(scalar_gdn), dim3(nv, kDim / kColumns), dim3(kColumns),
                            arguments, 0, static_cast<cudaStream_t>(stream));
}
