// SPDX-License-Identifier: MIT
//
// One variant (reference, ours by slot, ours by name, direct pointers) of one library, as the harness loads
// it. The bodies are what a rewritten dispatcher does: for split-KV and backward CK's launch_kernel over the
// kernels.
#pragma once

// Both headers define FmhaMasks; the reference runtime renames one in the same way.
#include "mha_bwd.h"
#define FmhaMasks FmhaMasks_fwd_detail_
#include "mha_fwd.h"
#undef FmhaMasks

// Makes `calls` calls of kind number `kind`; false if one did not return what the blob returns.
extern "C" __attribute__((visibility("default"))) bool bench_calls(int kind, long calls);

enum Kind { kFwd, kSplitKv, kBatchPrefill, kBwd };

using Stream = ck_tile::stream_config;

// In a library the dispatcher that calls an entry point has the arguments by value already. Inlined into the
// loop below, one variant could save a copy of 280 bytes that another cannot, and the copies would be what is
// measured.
#define ENTRY_POINT __attribute__((noinline))

// What the trivial blobs are called. The suffix stands for the template arguments of a real one.
#define BLOB_FWD "fmha_fwd_trivial.cpp"
#define BLOB_SPLITKV "fmha_fwd_splitkv_trivial.cpp"
#define BLOB_COMBINE "fmha_fwd_splitkv_combine_trivial.cpp"
#define BLOB_BATCH_PREFILL "fmha_batch_prefill_trivial.cpp"
#define BLOB_DOT_DO_O "fmha_bwd_dot_do_o_trivial.cpp"
#define BLOB_DQ_DK_DV "fmha_bwd_dq_dk_dv_trivial.cpp"
#define BLOB_CONVERT_DQ "fmha_bwd_convert_dq_trivial.cpp"

using FwdFunction = float (*)(const Stream &, fmha_fwd_args);
using SplitKvFunction = void (*)(const Stream &, fmha_fwd_splitkv_args);
using BatchPrefillFunction = float (*)(const Stream &, fmha_batch_prefill_args);
using BwdFunction = void (*)(const Stream &, fmha_bwd_args);

template <typename Args, typename Call> bool repeat(long calls, Call call) {
    const Stream stream{};
    Args args{};
    bool good = true;
    for (long i = 0; i < calls; ++i) {
        asm volatile("" : : "r"(&stream), "r"(&args) : "memory"); // they may have changed: nothing is hoisted
        good &= call(stream, args) >= 0;
    }
    return good;
}
