// SPDX-License-Identifier: MIT
//
// Our runtime behind bench_calls, with entry points as ck-post-build generates them. -DBY_NAME=1: the ones
// that take names.
#include "calls.h"
#include "ck_jit_by_name.h"
#include "ck_jit_slot.h"
#include "ck_jit_tables.h"

#include <iterator>

namespace ck_jit {

namespace {
constexpr BlobEntry kEntries[] = {
#define ENTRY(name, number) {name, "blobs/" name, "", "", "", number, 1}
    ENTRY(BLOB_BATCH_PREFILL, 0), ENTRY(BLOB_CONVERT_DQ, 1), ENTRY(BLOB_DOT_DO_O, 2), ENTRY(BLOB_DQ_DK_DV, 3),
    ENTRY(BLOB_COMBINE, 4),       ENTRY(BLOB_SPLITKV, 5),    ENTRY(BLOB_FWD, 6),
};
constexpr InstanceEntry kInstances[] = {{0, 0, 1, "i"}, {1, 1, 1, "i"}, {2, 2, 1, "i"}, {3, 3, 1, "i"},
                                        {4, 4, 1, "i"}, {5, 5, 1, "i"}, {6, 6, 1, "i"}};
constexpr KernelSymbol kSymbols[] = {{0, 0}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 3}};
constexpr KernelTemplate kKernels[] = {
    {"fmha_batch_prefill_", "_Z19fmha_batch_prefill_I"},
    {"fmha_bwd_convert_dq_", "_Z20fmha_bwd_convert_dq_I"},
    {"fmha_bwd_dot_do_o_", "_Z18fmha_bwd_dot_do_o_I"},
    {"fmha_bwd_dq_dk_dv_", "_Z18fmha_bwd_dq_dk_dv_I"},
    {"fmha_fwd_splitkv_combine_oneshot_", "_Z33fmha_fwd_splitkv_combine_oneshot_I"},
    {"fmha_fwd_splitkv_oneshot_", "_Z25fmha_fwd_splitkv_oneshot_I"},
    {"fmha_fwd_", "_Z9fmha_fwd_I"},
};
constexpr const char *kSuffixes[] = {
    "EfRKN7ck_tile13stream_configE23fmha_batch_prefill_args",
    "EfRKN7ck_tile13stream_configE13fmha_bwd_args",
    "EvRKN7ck_tile13stream_configE21fmha_fwd_splitkv_args",
    "EfRKN7ck_tile13stream_configE13fmha_fwd_args",
};
Slot slots[std::size(kInstances)];
const Manifest kManifest{kEntries,
                         std::size(kEntries),
                         kInstances,
                         std::size(kInstances),
                         kSymbols,
                         kKernels,
                         std::size(kKernels),
                         kSuffixes,
                         nullptr,
                         0,
                         "",
                         "bench",
                         "ck_jit",
                         slots};

ENTRY_POINT float fwd(Slot *slot, const Stream &s, fmha_fwd_args a) {
    if (!ready(slot))
        return -1;
    return kernel<FwdFunction, 6>(slot)(s, a);
}

ENTRY_POINT float batch_prefill(Slot *slot, const Stream &s, fmha_batch_prefill_args a) {
    if (!ready(slot))
        return -1;
    return kernel<BatchPrefillFunction, 0>(slot)(s, a);
}

ENTRY_POINT float splitkv(Slot *split, Slot *combine, const Stream &s, fmha_fwd_splitkv_args a) {
    if (!ready(split, combine))
        return -1;
    return ck_tile::launch_kernel(
        s, [=](const Stream &s_) { kernel<SplitKvFunction, 5>(split)(s_, a); },
        [=](const Stream &s_) { kernel<SplitKvFunction, 4>(combine)(s_, a); });
}

ENTRY_POINT float bwd(Slot *dot, Slot *dq, Slot *convert, const Stream &s, fmha_bwd_args a) {
    if (!ready(dot, dq, convert))
        return -1;
    return ck_tile::launch_kernel(
        s, [=](const Stream &s_) { kernel<BwdFunction, 2>(dot)(s_, a); },
        [=](const Stream &s_) { kernel<BwdFunction, 3>(dq)(s_, a); },
        [=](const Stream &s_) { kernel<BwdFunction, 1>(convert)(s_, a); });
}

// As a dispatcher names its slots: by number, or in the by-name entry points by name.
inline Slot *find(const char *name, std::size_t number) {
#if BY_NAME
    return slot_by_name(name, number); // kernel templates and blobs have the same numbers here
#else
    (void)name;
    return &slots[number];
#endif
}

} // namespace

const Manifest &manifest() noexcept { return kManifest; }

std::string device_arch() { return "gfx90a"; }

} // namespace ck_jit

using namespace ck_jit;

bool bench_calls(int kind, long calls) {
    if (kind == kFwd)
        return repeat<fmha_fwd_args>(
            calls, [](const Stream &s, const fmha_fwd_args &a) { return fwd(find(BLOB_FWD, 6), s, a); });
    if (kind == kSplitKv)
        return repeat<fmha_fwd_splitkv_args>(calls, [](const Stream &s, const fmha_fwd_splitkv_args &a) {
            return splitkv(find(BLOB_SPLITKV, 5), find(BLOB_COMBINE, 4), s, a);
        });
    if (kind == kBatchPrefill)
        return repeat<fmha_batch_prefill_args>(calls, [](const Stream &s, const fmha_batch_prefill_args &a) {
            return batch_prefill(find(BLOB_BATCH_PREFILL, 0), s, a);
        });
    return repeat<fmha_bwd_args>(calls, [](const Stream &s, const fmha_bwd_args &a) {
        return bwd(find(BLOB_DOT_DO_O, 2), find(BLOB_DQ_DK_DV, 3), find(BLOB_CONVERT_DQ, 1), s, a);
    });
}
