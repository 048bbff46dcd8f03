// SPDX-License-Identifier: MIT
#include "dispatch.h"
#include "fmha_fwd.hpp"

float call(void *function, const Problem &p, long count) {
    fmha_fwd_traits traits{};
    traits.hdim_q = traits.hdim_v = p.head_size;
    traits.data_type = p.data_type;
    traits.is_group_mode = p.group;
    traits.is_v_rowmajor = true;
    traits.mask_type = static_cast<mask_enum>(p.mask);
    traits.bias_type = static_cast<bias_enum>(p.bias);
    traits.has_lse = true;
    traits.has_dropout = p.dropout;
    fmha_fwd_args args{};
    args.seqlen_q = args.seqlen_k = args.max_seqlen_q = 4096;
    args.batch = 4;
    args.nhead_q = args.nhead_k = 32;
    args.hdim_q = args.hdim_v = p.head_size;
    const ck_tile::stream_config stream{};
    float result = 0;
    for (long i = 0; i < count; ++i)
        result = reinterpret_cast<decltype(&fmha_fwd)>(function)(traits, args, stream);
    return result;
}
