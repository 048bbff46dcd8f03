// The recurrence token by token, without tensor cores. Not part of the library: in fp32 it is the scalar
// baseline of docs/gdn.md, in double the reference that results are compared with. Four neighbouring threads
// own one column of the state, every fourth row each, in registers; a block owns 32 columns of one head and
// shares q, k and v of 16 tokens.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace {

constexpr int kDim = 128;
constexpr int kColumns = 32; // of a block
constexpr int kParts = 4;    // threads of a column
constexpr int kRows = kDim / kParts;
constexpr int kThreads = kColumns * kParts;
constexpr int kStage = 16; // tokens loaded at a time

struct Arguments {
    const __nv_bfloat16 *qkv;
    const float *gate_beta;
    void *output;
    void *h_state;
    float scale;
    int tokens, nk, nv, conv_dim, gb_stride;
};

template <class Real> __device__ Real sum_of_parts(Real x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

template <class Real> struct Stage {
    Real q[kStage][kDim], k[kStage][kDim], v[kStage][kColumns], alpha[kStage], beta[kStage];

    __device__ void load(const Arguments &a, int start, int count, int head) {
        const int key_head = head / (a.nv / a.nk), thread = threadIdx.x;
        for (int t = 0; t < count; ++t) {
            const __nv_bfloat16 *row = a.qkv + size_t(start + t) * a.conv_dim;
            q[t][thread] = __bfloat162float(row[key_head * kDim + thread]);
            k[t][thread] = __bfloat162float(row[(a.nk + key_head) * kDim + thread]);
            if (thread < kColumns)
                v[t][thread] =
                    __bfloat162float(row[(2 * a.nk + head) * kDim + blockIdx.y * kColumns + thread]);
        }
        if (thread < count) {
            const float *row = a.gate_beta + size_t(start + thread) * a.gb_stride + head;
            alpha[thread] = row[0];
            beta[thread] = row[a.nv];
        }
    }
};
static_assert(kThreads == kDim);

template <class Real, class Output> __global__ void __launch_bounds__(kThreads) scalar_gdn(Arguments a) {
    __shared__ Stage<Real> stage;
    const int head = blockIdx.x, part = threadIdx.x % kParts, local = threadIdx.x / kParts;
    const int column = blockIdx.y * kColumns + local;
    auto *h_state = static_cast<Real *>(a.h_state) + (size_t(head) * kDim + part) * kDim + column;
    Real state[kRows];
    for (int i = 0; i < kRows; ++i)
        state[i] = h_state[i * kParts * kDim];
    for (int start = 0; start < a.tokens; start += kStage) {
        const int count = min(kStage, a.tokens - start);
        __syncthreads();
        stage.load(a, start, count, head);
        __syncthreads();
        for (int t = 0; t < count; ++t) {
            Real known[2] = {}, result[2] = {}; // two sums, so that additions do not all wait for one another
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                known[i % 2] = fma(state[i] *= stage.alpha[t], stage.k[t][i * kParts + part], known[i % 2]);
            const Real step = stage.beta[t] * (stage.v[t][local] - sum_of_parts(known[0] + known[1]));
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                state[i] = fma(stage.k[t][i * kParts + part], step, state[i]);
                result[i % 2] = fma(state[i], stage.q[t][i * kParts + part], result[i % 2]);
            }
            const Real value = a.scale * sum_of_parts(result[0] + result[1]);
            if (part == 0)
                static_cast<Output *>(a.output)[(size_t(start + t) * a.nv + head) * kDim + column] =
                    static_cast<Output>(value);
        }
    }
    for (int i = 0; i < kRows; ++i)
        h_state[i * kParts * kDim] = state[i];
}

int launch(void (*kernel)(Arguments), Arguments a, void *stream) {
    void *arguments[] = {&a};
    return cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(a.nv, kDim / kColumns),
                            dim3(kThreads), arguments, 0, static_cast<cudaStream_t>(stream));
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// bf16 outputs, fp32 state.
EXPORT int scalar_gdn_prefill(const void *qkv, const void *gate_beta, void *output, void *h_state,
                              float scale, int tokens, int nk, int nv, int conv_dim, int gb_stride,
                              void *stream) {
    const Arguments a{static_cast<const __nv_bfloat16 *>(qkv),
                      static_cast<const float *>(gate_beta),
                      output,
                      h_state,
                      scale,
                      tokens,
                      nk,
                      nv,
                      conv_dim,
                      gb_stride};
    return launch(scalar_gdn<float, __nv_bfloat16>, a, stream);
}

// The same with outputs and state in double.
EXPORT int reference_gdn_prefill(const void *qkv, const void *gate_beta, void *output, void *h_state,
                                 float scale, int tokens, int nk, int nv, int conv_dim, int gb_stride,
                                 void *stream) {
    const Arguments a{static_cast<const __nv_bfloat16 *>(qkv),
                      static_cast<const float *>(gate_beta),
                      output,
                      h_state,
                      scale,
                      tokens,
                      nk,
                      nv,
                      conv_dim,
                      gb_stride};
    return launch(scalar_gdn<double, double>, a, stream);
}
