// SPDX-License-Identifier: MIT
//
// The reference runtime as it stands (-DREFERENCE=path of its text), behind bench_calls. With CK_JIT_IS_FWD=1
// or 0.
#include "calls.h"

#include REFERENCE

bool bench_calls(int kind, long calls) {
#if CK_JIT_IS_FWD
    if (kind == kFwd)
        return repeat<fmha_fwd_args>(
            calls, [](const Stream &s, const fmha_fwd_args &a) { return ck_jit_fwd_call(BLOB_FWD, s, a); });
    if (kind == kSplitKv)
        return repeat<fmha_fwd_splitkv_args>(calls, [](const Stream &s, const fmha_fwd_splitkv_args &a) {
            return ck_jit_fwd_splitkv_call(BLOB_SPLITKV, BLOB_COMBINE, s, a);
        });
    if (kind == kBatchPrefill)
        return repeat<fmha_batch_prefill_args>(calls, [](const Stream &s, const fmha_batch_prefill_args &a) {
            return ck_jit_batch_prefill_call(BLOB_BATCH_PREFILL, s, a);
        });
#else
    if (kind == kBwd)
        return repeat<fmha_bwd_args>(calls, [](const Stream &s, const fmha_bwd_args &a) {
            return ck_jit_bwd_call(BLOB_DOT_DO_O, BLOB_DQ_DK_DV, BLOB_CONVERT_DQ, s, a);
        });
#endif
    return false;
}
