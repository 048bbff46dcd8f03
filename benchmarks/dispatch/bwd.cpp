// SPDX-License-Identifier: MIT
#include "dispatch.h"
#include "fmha_bwd.hpp"

float call(void *function, const Problem &p, long count) {
    fmha_bwd_traits traits{};
    fmha_bwd_args args{};
    fill(traits, args, p);
    args.max_seqlen_k = 4096;
    const ck_tile::stream_config stream{};
    float result = 0;
    for (long i = 0; i < count; ++i)
        result = reinterpret_cast<decltype(&fmha_bwd<2>)>(function)(traits, args, stream);
    return result;
}
