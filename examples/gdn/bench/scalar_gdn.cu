// The recurrence token by token, without tensor cores. Not part of the library: in fp32 it is the scalar baseline of
// docs/gdn.md, in double the reference that results are compared with. A thread owns one column of the state, kd = 128
// numbers (in fp32 they stay in registers); a block owns 32 columns of one head and shares k and q of each token.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int kDim = 128;
constexpr int kColumns = 32;
constexpr int kStage = 16; // tokens loaded at a time

struct Arguments {
    const __nv_bfloat16 *qkv;
    const float *gate_beta;
    void *output;
    void *h_state;
    float scale;
    int tokens, nk, nv, conv_dim, gb_stride;
};

template <class Real, class Output> __global__ void __launch_bounds__(kColumns) scalar_gdn(Arguments a) {
    __shared__ Real q[kStage][kDim], k[kStage][kDim], alpha[kStage], beta[kStage];
    auto *h_state = static_cast<Real *>(a.h_state);
    auto *output = static_cast<Output *>(a.output);
    const int head = blockIdx.x, key_head = head / (a.nv / a.nk);
    const int column = blockIdx.y * kColumns + threadIdx.x;
    Real state[kDim];
    for (int i = 0; i < kDim; ++i)
        state[i] = h_state[(head * kDim + i) * kDim + column];
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
            const Real v = __bfloat162float(a.qkv[token * a.conv_dim + (2 * a.nk + head) * kDim + column]);
            Real known[4] = {}, result[4] = {}; // four sums, so that additions do not wait for one another
#pragma unroll
            for (int i = 0; i < kDim; ++i)
                known[i % 4] = fma(state[i] *= alpha[t], k[t][i], known[i % 4]);
            const Real step = beta[t] * (v - (known[0] + known[1] + known[2] + known[3]));
#pragma unroll
            for (int i = 0; i < kDim; ++i)
                result[i % 4] = fma(state[i] = fma(k[t][i], step, state[i]), q[t][i], result[i % 4]);
            output[(token * a.nv + head) * kDim + column] =
                static_cast<Output>(a.scale * (result[0] + result[1] + result[2] + result[3]));
        }
    }
    for (int i = 0; i < kDim; ++i)
        h_state[(head * kDim + i) * kDim + column] = state[i];
}

int launch(void (*kernel)(Arguments), Arguments a, void *stream) {
    void *arguments[] = {&a};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(a.nv, kDim / kColumns), dim3(kColumns),
                            arguments, 0, static_cast<cudaStream_t>(stream));
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// bf16 outputs, fp32 state.
EXPORT int scalar_gdn_prefill(const void *qkv, const void *gate_beta, void *output, void *h_state, float scale,
                              int tokens, int nk, int nv, int conv_dim, int gb_stride, void *stream) {
    const Arguments a{static_cast<const __nv_bfloat16 *>(qkv), static_cast<const float *>(gate_beta), output, h_state,
                      scale, tokens, nk, nv, conv_dim, gb_stride};
    return launch(scalar_gdn<float, __nv_bfloat16>, a, stream);
}

// The same with outputs and state in double.
EXPORT int reference_gdn_prefill(const void *qkv, const void *gate_beta, void *output, void *h_state, float scale,
                                 int tokens, int nk, int nv, int conv_dim, int gb_stride, void *stream) {
    const Arguments a{static_cast<const __nv_bfloat16 *>(qkv), static_cast<const float *>(gate_beta), output, h_state,
                      scale, tokens, nk, nv, conv_dim, gb_stride};
    return launch(scalar_gdn<double, double>, a, stream);
}
