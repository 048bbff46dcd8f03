// SPDX-License-Identifier: MIT
//
// The floor: the same bodies with plain function pointers, loaded from the same blobs before the clock runs.
#include "calls.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

namespace {

template <typename Function> Function load(const char *blob, const char *symbol) {
    const std::string path = std::string(std::getenv("BENCH_BLOBS")) + "/" + blob + ".so";
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *address = handle ? dlsym(handle, symbol) : nullptr;
    if (!address)
        std::abort();
    return reinterpret_cast<Function>(address);
}

#define STREAM "RKN7ck_tile13stream_configE"
FwdFunction fwd_pointer = load<FwdFunction>(BLOB_FWD, "_Z9fmha_fwd_IiEf" STREAM "13fmha_fwd_args");
SplitKvFunction split_pointer =
    load<SplitKvFunction>(BLOB_SPLITKV, "_Z25fmha_fwd_splitkv_oneshot_IiEv" STREAM "21fmha_fwd_splitkv_args");
SplitKvFunction combine_pointer = load<SplitKvFunction>(
    BLOB_COMBINE, "_Z33fmha_fwd_splitkv_combine_oneshot_IiEv" STREAM "21fmha_fwd_splitkv_args");
BatchPrefillFunction batch_prefill_pointer = load<BatchPrefillFunction>(
    BLOB_BATCH_PREFILL, "_Z19fmha_batch_prefill_IiEf" STREAM "23fmha_batch_prefill_args");
BwdFunction dot_pointer =
    load<BwdFunction>(BLOB_DOT_DO_O, "_Z18fmha_bwd_dot_do_o_IiEf" STREAM "13fmha_bwd_args");
BwdFunction dq_pointer =
    load<BwdFunction>(BLOB_DQ_DK_DV, "_Z18fmha_bwd_dq_dk_dv_IiEf" STREAM "13fmha_bwd_args");
BwdFunction convert_pointer =
    load<BwdFunction>(BLOB_CONVERT_DQ, "_Z20fmha_bwd_convert_dq_IiEf" STREAM "13fmha_bwd_args");

ENTRY_POINT float fwd(const Stream &s, fmha_fwd_args a) { return fwd_pointer(s, a); }
ENTRY_POINT float batch_prefill(const Stream &s, fmha_batch_prefill_args a) {
    return batch_prefill_pointer(s, a);
}
ENTRY_POINT float splitkv(const Stream &s, fmha_fwd_splitkv_args a) {
    return ck_tile::launch_kernel(
        s, [=](const Stream &s_) { split_pointer(s_, a); },
        [=](const Stream &s_) { combine_pointer(s_, a); });
}
ENTRY_POINT float bwd(const Stream &s, fmha_bwd_args a) {
    return ck_tile::launch_kernel(
        s, [=](const Stream &s_) { dot_pointer(s_, a); }, [=](const Stream &s_) { dq_pointer(s_, a); },
        [=](const Stream &s_) { convert_pointer(s_, a); });
}

} // namespace

bool bench_calls(int kind, long calls) {
    if (kind == kFwd)
        return repeat<fmha_fwd_args>(calls,
                                     [](const Stream &s, const fmha_fwd_args &a) { return fwd(s, a); });
    if (kind == kSplitKv)
        return repeat<fmha_fwd_splitkv_args>(
            calls, [](const Stream &s, const fmha_fwd_splitkv_args &a) { return splitkv(s, a); });
    if (kind == kBatchPrefill)
        return repeat<fmha_batch_prefill_args>(
            calls, [](const Stream &s, const fmha_batch_prefill_args &a) { return batch_prefill(s, a); });
    return repeat<fmha_bwd_args>(calls, [](const Stream &s, const fmha_bwd_args &a) { return bwd(s, a); });
}
