// SPDX-License-Identifier: MIT
//
// What the calls of the forward directions have in common.
#pragma once

#include "call.h"

#include "fmha_fwd.hpp"

// The arguments that all but appendkv have.
template <typename Arguments> Arguments arguments(const Call &call, Distinct &distinct) {
    Arguments a{};
    distinct.pointers(a.q_ptr, a.k_ptr, a.v_ptr, a.bias_ptr, a.lse_ptr, a.o_ptr);
    distinct.numbers(a.stride_q, a.stride_k, a.stride_v, a.stride_bias, a.stride_o, a.nhead_stride_q,
                     a.nhead_stride_k, a.nhead_stride_v, a.nhead_stride_bias, a.nhead_stride_lse,
                     a.nhead_stride_o, a.batch_stride_q, a.batch_stride_k, a.batch_stride_v,
                     a.batch_stride_bias, a.batch_stride_lse, a.batch_stride_o);
    a.batch = call.number("batch", 2);
    a.nhead_q = call.number("heads", 6);
    a.nhead_k = call.number("heads_k", 3);
    a.seqlen_q = a.max_seqlen_q = call.number("queries", 128);
    a.seqlen_k = call.number("keys", 256);
    a.hdim_q = a.hdim_v = call.number("size", 32);
    a.scale_s = 0.125f;
    a.scale_p = 1.5f;
    a.scale_o = 2.5f;
    a.logits_soft_cap = call["soft_cap"] ? 30.0f : 0.0f;
    a.window_size_left = call.number("left", -1);
    a.window_size_right = call.number("right", -1);
    a.mask_type = call["mask"];
    return a;
}

template <typename Arguments> void group(const Call &call, Distinct &distinct, Arguments &a) {
    if (call["group"])
        distinct.pointers(a.seqstart_q_ptr, a.seqstart_k_ptr);
}

template <typename Arguments> void dropout(const Call &call, Distinct &distinct, Arguments &a) {
    a.p_drop = static_cast<float>(call.real("p_drop"));
    distinct.pointers(a.rand_val_ptr);
    distinct.numbers(a.stride_randval, a.nhead_stride_randval, a.batch_stride_randval);
    a.s_randval = call["store_randval"] != 0;
    a.drop_seed_offset = seed(call, distinct);
}

template <typename Arguments> void paged(const Call &call, Distinct &distinct, Arguments &a) {
    if (!call["page_size"])
        return;
    distinct.pointers(a.block_table_ptr);
    distinct.numbers(a.batch_stride_block_table);
    a.page_block_size = call["page_size"];
}

inline fmha_fwd_traits traits(const Call &call) {
    fmha_fwd_traits t{};
    t.hdim_q = t.hdim_v = call.number("size", 32);
    t.data_type = call.data_type();
    t.is_group_mode = call["group"] != 0;
    t.is_v_rowmajor = true;
    t.has_logits_soft_cap = call["soft_cap"] != 0;
    t.mask_type = static_cast<mask_enum>(call["mask"]);
    t.bias_type = static_cast<bias_enum>(call["bias"]);
    t.has_lse = call["lse"] != 0;
    t.has_dropout = call.real("p_drop") > 0;
    t.skip_min_seqlen_q = call["skip"] != 0;
    return t;
}
