// SPDX-License-Identifier: MIT
#include "forward.h"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    auto a = arguments<fmha_fwd_args>(call, distinct);
    group(call, distinct, a);
    dropout(call, distinct, a);
    a.min_seqlen_q = call["skip"];
    return fmha_fwd(traits(call), a, stream);
}

const Direction direction("fwd", call);

} // namespace
