// The forward directions as CK declares them since 2025: with a tag for the architecture.
#pragma once

#include "ck_tile/core.hpp"

struct FmhaFwdFp16 {};
struct FmhaFwdBf16 {};

struct fmha_fwd_args {
    int seqlen_q = 0;
    int seqlen_k = 0;
};
using fmha_fwd_splitkv_args = fmha_fwd_args;
using fmha_fwd_appendkv_args = fmha_fwd_args;
using fmha_fwd_pagedkv_args = fmha_fwd_args;
using fmha_batch_prefill_args = fmha_fwd_args;

struct fmha_fwd_traits {
    int hdim_q = 0;
    std::string data_type;
    bool is_group_mode = false;
    bool has_mask = false;
    bool has_lse = false;
};
using fmha_fwd_splitkv_traits = fmha_fwd_traits;
using fmha_fwd_appendkv_traits = fmha_fwd_traits;
using fmha_fwd_pagedkv_traits = fmha_fwd_traits;
using fmha_batch_prefill_traits = fmha_fwd_traits;

template <ck_tile::index_t HDim, typename DataType, bool IsGroup, bool HasMask, bool HasLse = false>
struct fmha_fwd_traits_ {};

template <ck_tile::index_t HDim, typename DataType, bool IsGroup, typename Mask, ck_tile::BiasEnum Bias, bool HasLse>
struct fmha_fwd_splitkv_traits_ {};

template <ck_tile::index_t HDim, typename DataType, bool IsGroup, bool HasLse>
struct fmha_fwd_splitkv_combine_traits_ {};

template <ck_tile::index_t HDim, typename DataType>
struct fmha_fwd_appendkv_traits_ {};

template <typename Traits, typename Arch = void>
float fmha_fwd_(const ck_tile::stream_config &, fmha_fwd_args);

template <typename Traits, typename Arch = void>
void fmha_fwd_splitkv_oneshot_(const ck_tile::stream_config &, fmha_fwd_splitkv_args);
template <typename Traits, typename Arch = void>
std::string fmha_fwd_splitkv_get_name_();
template <typename Traits, typename Arch = void>
void fmha_fwd_splitkv_combine_oneshot_(const ck_tile::stream_config &, fmha_fwd_splitkv_args);
template <typename Traits, typename Arch = void>
std::string fmha_fwd_splitkv_combine_get_name_();

template <typename Traits, typename Arch = void>
float fmha_fwd_appendkv_(const ck_tile::stream_config &, fmha_fwd_appendkv_args);

template <typename Traits, typename Arch = void>
float fmha_fwd_pagedkv_(const ck_tile::stream_config &, fmha_fwd_pagedkv_args &);

template <typename Traits, typename Arch = void>
float fmha_batch_prefill_(const ck_tile::stream_config &, fmha_batch_prefill_args);

float fmha_fwd(fmha_fwd_traits, fmha_fwd_args, const ck_tile::stream_config &);
float fmha_fwd_splitkv(fmha_fwd_splitkv_traits, fmha_fwd_splitkv_args, const ck_tile::stream_config &);
float fmha_fwd_appendkv(fmha_fwd_appendkv_traits, fmha_fwd_appendkv_args, const ck_tile::stream_config &);
float fmha_fwd_pagedkv(fmha_fwd_pagedkv_traits &, fmha_fwd_pagedkv_args &, const ck_tile::stream_config &);
float fmha_batch_prefill(fmha_batch_prefill_traits, fmha_batch_prefill_args, const ck_tile::stream_config &);
