// SPDX-License-Identifier: MIT
#include "forward.h"

namespace {

float call(const Call &call, const ck_tile::stream_config &stream) {
    Distinct distinct;
    auto a = arguments<fmha_batch_prefill_args>(call, distinct);
    dropout(call, distinct, a);
    distinct.pointers(a.seqstart_q_ptr, a.kv_indptr, a.kv_page_indices);
    a.num_total_pages = a.batch * a.seqlen_k;
    return fmha_batch_prefill(traits(call), a, stream);
}

const Direction direction("batch_prefill", call);

} // namespace
