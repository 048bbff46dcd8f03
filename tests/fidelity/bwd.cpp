// SPDX-License-Identifier: MIT
#include "call.h"

#include "fmha_bwd.hpp"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    fmha_bwd_args a{};
    distinct.pointers(a.q_ptr, a.k_ptr, a.v_ptr, a.bias_ptr, a.o_ptr, a.lse_ptr, a.do_ptr, a.d_ptr,
                      a.rand_val_ptr, a.dq_ptr, a.dk_ptr, a.dv_ptr, a.dbias_ptr, a.dq_acc_ptr);
    distinct.numbers(a.stride_q, a.stride_k, a.stride_v, a.stride_bias, a.stride_o, a.stride_randval,
                     a.stride_do, a.stride_dq_acc, a.stride_dq, a.stride_dk, a.stride_dv, a.stride_dbias,
                     a.nhead_stride_q, a.nhead_stride_k, a.nhead_stride_v, a.nhead_stride_bias,
                     a.nhead_stride_o, a.nhead_stride_randval, a.nhead_stride_do, a.nhead_stride_lsed,
                     a.nhead_stride_dq_acc, a.nhead_stride_dq, a.nhead_stride_dk, a.nhead_stride_dv,
                     a.nhead_stride_dbias);
    distinct.numbers(a.batch_stride_q, a.batch_stride_k, a.batch_stride_v, a.batch_stride_bias,
                     a.batch_stride_o, a.batch_stride_randval, a.batch_stride_do, a.batch_stride_lsed,
                     a.batch_stride_dq_acc, a.batch_stride_dq, a.batch_stride_dk, a.batch_stride_dv,
                     a.batch_stride_dbias, a.split_stride_dq_acc);
    if (call["group"])
        distinct.pointers(a.seqstart_q_ptr, a.seqstart_k_ptr);
    a.batch = call.number("batch", 2);
    a.nhead_q = call.number("heads", 6);
    a.nhead_k = call.number("heads_k", 3);
    a.seqlen_q = a.max_seqlen_q = call.number("queries", 128);
    a.seqlen_k = a.max_seqlen_k = call.number("keys", 256);
    a.hdim_q = a.hdim_v = call.number("size", 32);
    a.scale = 0.125f;
    a.window_size_left = call.number("left", -1);
    a.window_size_right = call.number("right", -1);
    a.mask_type = call["mask"];
    a.p_drop = static_cast<float>(call.real("p_drop"));
    a.p_undrop = 1 - a.p_drop;
    a.drop_seed_offset = seed(call, distinct);

    fmha_bwd_traits t{};
    t.hdim_q = t.hdim_v = a.hdim_q;
    t.data_type = call.data_type();
    t.is_group_mode = call["group"] != 0;
    t.mask_type = static_cast<mask_enum>(call["mask"]);
    t.bias_type = static_cast<bias_enum>(call["bias"]);
    t.has_dbias = call["dbias"] != 0;
    t.has_dropout = a.p_drop > 0;
    t.is_store_randval = call["store_randval"] != 0;
    t.is_deterministic = call["deterministic"] != 0;
    return fmha_bwd(t, a, stream);
}

const Direction direction("bwd", call);

} // namespace
