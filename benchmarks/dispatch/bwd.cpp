// SPDX-License-Identifier: MIT
#include "dispatch.h"
#include "fmha_bwd.hpp"

float call(void *function, const Problem &p, long count) {
    fmha_bwd_traits traits{};
    traits.hdim_q = traits.hdim_v = p.head_size;
    traits.data_type = p.data_type;
    traits.is_group_mode = p.group;
    traits.mask_type = static_cast<mask_enum>(p.mask);
    traits.bias_type = static_cast<bias_enum>(p.bias);
    traits.has_dropout = p.dropout;
    fmha_bwd_args args{};
    args.seqlen_q = args.seqlen_k = args.max_seqlen_q = args.max_seqlen_k = 4096;
    args.batch = 4;
    args.nhead_q = args.nhead_k = 32;
    args.hdim_q = args.hdim_v = p.head_size;
    const ck_tile::stream_config stream{};
    float result = 0;
    for (long i = 0; i < count; ++i)
        result = reinterpret_cast<decltype(&fmha_bwd<2>)>(function)(traits, args, stream);
    return result;
}
