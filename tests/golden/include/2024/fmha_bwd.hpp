// The backward direction as CK declared it in 2024: no architecture tag, always three kernels.
#pragma once

#include "ck_tile/core.hpp"

struct FmhaBwdFp16 {};
struct FmhaBwdBf16 {};

struct fmha_bwd_args {
    int seqlen_q = 0;
    int seqlen_k = 0;
};

struct fmha_bwd_traits {
    int hdim_q = 0;
    std::string data_type;
    bool is_group_mode = false;
    bool has_mask = false;
    bool is_deterministic = false;
};

template <ck_tile::index_t HDim, typename DataType, bool IsGroup>
struct fmha_bwd_dot_do_o_traits_ {};

template <ck_tile::index_t HDim, typename DataType, bool IsGroup, bool HasMask, bool Deterministic>
struct fmha_bwd_dq_dk_dv_traits_ {};

template <ck_tile::index_t HDim, typename DataType, bool IsGroup>
struct fmha_bwd_convert_dq_traits_ {};

template <typename Traits>
void fmha_bwd_dot_do_o_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits>
std::string fmha_bwd_dot_do_o_get_name_();

template <typename Traits>
void fmha_bwd_dq_dk_dv_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits>
std::string fmha_bwd_dq_dk_dv_get_name_();

template <typename Traits>
void fmha_bwd_convert_dq_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits>
std::string fmha_bwd_convert_dq_get_name_();

float fmha_bwd(fmha_bwd_traits, fmha_bwd_args, const ck_tile::stream_config &);
