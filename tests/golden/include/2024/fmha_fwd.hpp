// The forward directions as CK declared them in 2024: no architecture tag, the trait alone selects the kernel.
#pragma once

#include "ck_tile/core.hpp"

struct FmhaFwdFp16 {};
struct FmhaFwdBf16 {};

struct fmha_fwd_args {
    int seqlen_q = 0;
    int seqlen_k = 0;
};
using fmha_batch_prefill_args = fmha_fwd_args;

struct fmha_fwd_traits {
    int hdim_q = 0;
    std::string data_type;
    bool is_group_mode = false;
    bool has_mask = false;
    bool has_lse = false;
};
using fmha_batch_prefill_traits = fmha_fwd_traits;

template <ck_tile::index_t HDim, typename DataType, bool IsGroup, bool HasMask, bool HasLse = false>
struct fmha_fwd_traits_ {};

template <typename Traits>
float fmha_fwd_(const ck_tile::stream_config &, fmha_fwd_args);

template <typename Traits>
float fmha_batch_prefill_(const ck_tile::stream_config &, fmha_batch_prefill_args);

float fmha_fwd(fmha_fwd_traits, fmha_fwd_args, const ck_tile::stream_config &);
float fmha_batch_prefill(fmha_batch_prefill_traits, fmha_batch_prefill_args, const ck_tile::stream_config &);
