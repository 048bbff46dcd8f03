// SPDX-License-Identifier: MIT
#include "forward.h"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    fmha_fwd_appendkv_args a{};
    distinct.pointers(a.q_ptr, a.k_ptr, a.knew_ptr, a.v_ptr, a.vnew_ptr, a.seqlen_k_ptr, a.rotary_cos_ptr,
                      a.rotary_sin_ptr);
    distinct.numbers(a.stride_q, a.stride_k, a.stride_knew, a.stride_v, a.stride_vnew, a.nhead_stride_q,
                     a.nhead_stride_k, a.nhead_stride_knew, a.nhead_stride_v, a.nhead_stride_vnew,
                     a.batch_stride_q, a.batch_stride_k, a.batch_stride_knew, a.batch_stride_v,
                     a.batch_stride_vnew);
    a.batch = call.number("batch", 2);
    a.nhead_q = call.number("heads", 6);
    a.nhead_k = call.number("heads_k", 3);
    a.seqlen_q = call.number("queries", 128);
    a.seqlen_knew = call.number("keys", 64);
    a.hdim_q = a.hdim_v = call.number("size", 32);
    a.rotary_dim = call["rotary"] ? a.hdim_q : 0;
    a.has_mask = call["mask"] != 0;
    paged(call, distinct, a);
    fmha_fwd_appendkv_traits t{};
    t.hdim_q = t.hdim_v = a.hdim_q;
    t.data_type = call.data_type();
    t.is_v_rowmajor = true;
    t.rope_type = static_cast<rope_enum>(call["rotary"]);
    return fmha_fwd_appendkv(t, a, stream);
}

const Direction direction("fwd_appendkv", call);

} // namespace
