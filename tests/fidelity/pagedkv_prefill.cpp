// SPDX-License-Identifier: MIT
#include "forward.h"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    auto a = arguments<fmha_fwd_pagedkv_args>(call, distinct);
    group(call, distinct, a);
    paged(call, distinct, a);
    const fmha_fwd_traits common = traits(call);
    fmha_fwd_pagedkv_traits t{};
    t.hdim_q = t.hdim_v = common.hdim_q;
    t.data_type = common.data_type;
    t.is_group_mode = common.is_group_mode;
    t.is_v_rowmajor = true;
    t.has_logits_soft_cap = common.has_logits_soft_cap;
    t.mask_type = common.mask_type;
    t.bias_type = common.bias_type;
    t.has_lse = common.has_lse;
    return fmha_fwd_pagedkv(t, a, stream);
}

const Direction direction("pagedkv_prefill", call);

} // namespace
