// SPDX-License-Identifier: MIT
//
// The quickstart's four attention calls. Every tensor is dense and on the device:
//   q, o, d_o, dq        bf16   [batch][queries][heads][size]
//   k, v, dk, dv         bf16   [batch][keys][heads][size]
//   lse, d               float  [batch][heads][queries]; of batch_prefill [heads][batch * queries]
// They return what aiter returns: -1 when there is no kernel or it could not be had, else 0 or milliseconds.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cmath>
#include <cstddef>

struct Shape {
    int batch, heads, queries, keys, size;

    std::size_t rows() const { return std::size_t(batch) * heads * queries; }
    std::size_t query_elements() const { return rows() * size; }
    std::size_t key_elements() const { return std::size_t(batch) * heads * keys * size; }
    float scale() const { return 1.0f / std::sqrt(float(size)); }
};

// The fields of CK's stream_config that matter here.
struct CallOptions {
    hipStream_t stream = nullptr;
    bool time_kernel = false;
    int log_level = 0;
};

struct ForwardTensors {
    const void *q, *k, *v;
    void *o, *lse;
};

// aiter::mha_fwd, without a mask or with a causal one (the last query sees all keys).
float forward(const Shape &shape, const ForwardTensors &tensors, bool causal, const CallOptions &options);

// aiter::mha_fwd_splitkv. o_acc: float [splits][batch][heads][queries][size], lse_acc: the same without
// `size`.
float split_forward(const Shape &shape, const ForwardTensors &tensors, int splits, void *o_acc, void *lse_acc,
                    const CallOptions &options);

// CK's fmha_batch_prefill, with pages of one key. All of these are int32 on the device:
struct Pages {
    void *query_starts; // [batch + 1]
    void *page_starts;  // [batch + 1], into `pages`
    void *pages;        // [batch * keys], which row of k and v
};
float batch_prefill(const Shape &shape, const ForwardTensors &tensors, const Pages &pages,
                    const CallOptions &options);

struct BackwardTensors {
    const void *q, *k, *v, *o, *lse, *d_o;
    void *d, *dq, *dk, *dv;
    void *dq_acc; // float, as q, zeros
};

// aiter::mha_bwd.
float backward(const Shape &shape, const BackwardTensors &tensors, bool causal, const CallOptions &options);
