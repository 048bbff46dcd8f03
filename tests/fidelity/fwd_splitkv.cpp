// SPDX-License-Identifier: MIT
#include "forward.h"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    auto a = arguments<fmha_fwd_splitkv_args>(call, distinct);
    group(call, distinct, a);
    paged(call, distinct, a);
    distinct.pointers(a.lse_acc_ptr, a.o_acc_ptr);
    distinct.numbers(a.stride_o_acc, a.nhead_stride_lse_acc, a.nhead_stride_o_acc, a.batch_stride_lse_acc,
                     a.batch_stride_o_acc, a.split_stride_lse_acc, a.split_stride_o_acc);
    a.num_splits = call.number("splits", 3);
    const fmha_fwd_traits common = traits(call);
    return fmha_fwd_splitkv({common.hdim_q, common.hdim_v, common.data_type, common.is_group_mode, true,
                             common.has_logits_soft_cap, common.mask_type, common.bias_type, common.has_lse,
                             false},
                            a, stream);
}

const Direction direction("fwd_splitkv", call);

} // namespace
