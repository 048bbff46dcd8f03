// SPDX-License-Identifier: MIT
#include "dispatch.h"
#include "fmha_fwd.hpp"

float call(void *function, const Problem &p, long count) {
    fmha_fwd_traits traits{};
    fmha_fwd_args args{};
    fill(traits, args, p);
    traits.is_v_rowmajor = true;
    traits.has_lse = true;
    const ck_tile::stream_config stream{};
    float result = 0;
    for (long i = 0; i < count; ++i)
        result = reinterpret_cast<decltype(&fmha_fwd)>(function)(traits, args, stream);
    return result;
}
