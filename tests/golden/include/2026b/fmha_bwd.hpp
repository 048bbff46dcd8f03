// The backward direction of 2026: the launcher's init, in this header, stores lambdas with and without captures.
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

#include <functional>

template <typename Traits, typename Arch = void>
void fmha_bwd_dot_do_o_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits, typename Arch = void>
std::string fmha_bwd_dot_do_o_get_name_();

template <typename Traits, typename Arch = void>
void fmha_bwd_dq_dk_dv_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits, typename Arch = void>
std::string fmha_bwd_dq_dk_dv_get_name_();

template <typename Traits, typename Arch = void>
void fmha_bwd_convert_dq_oneshot_(const ck_tile::stream_config &, fmha_bwd_args);
template <typename Traits, typename Arch = void>
std::string fmha_bwd_convert_dq_get_name_();

template <typename Traits, typename Arch = void>
std::size_t fmha_bwd_dq_dk_dv_dq_ws_host_size_(int batch);
template <typename Traits, typename Arch = void>
std::size_t fmha_bwd_dq_dk_dv_dq_ws_device_upper_bound_(int batch, int seqlen);
template <typename Traits, typename Arch = void>
std::size_t fmha_bwd_dq_dk_dv_dq_prepare_ws_host_(void *workspace, int batch);
template <typename Traits, typename Arch = void>
bool fmha_bwd_dq_dk_dv_needs_zero_dq_acc_();

template <typename DotDoO, typename DqDkDv, typename ConvertDq, typename Arch>
float fmha_bwd_(const ck_tile::stream_config &s, fmha_bwd_args a) {
    if constexpr (!std::is_same_v<ConvertDq, void>) {
        if (s.log_level_ > 0)
            std::printf(", %s@%s@%s", fmha_bwd_dot_do_o_get_name_<DotDoO, Arch>().c_str(),
                        fmha_bwd_dq_dk_dv_get_name_<DqDkDv, Arch>().c_str(),
                        fmha_bwd_convert_dq_get_name_<ConvertDq, Arch>().c_str());
        return ck_tile::launch_kernel(
            s,
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dot_do_o_oneshot_<DotDoO, Arch>(s_, a); },
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dq_dk_dv_oneshot_<DqDkDv, Arch>(s_, a); },
            [=](const ck_tile::stream_config &s_) { fmha_bwd_convert_dq_oneshot_<ConvertDq, Arch>(s_, a); });
    } else {
        return ck_tile::launch_kernel(
            s,
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dot_do_o_oneshot_<DotDoO, Arch>(s_, a); },
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dq_dk_dv_oneshot_<DqDkDv, Arch>(s_, a); });
    }
}

struct fmha_bwd_launcher {
    std::function<float(fmha_bwd_args, const ck_tile::stream_config &)> run;
    std::function<std::size_t(void *)> prepare_workspace;
    std::size_t host_size = 0;
    std::size_t device_upper_bound = 0;
    bool needs_zero_dq_acc = true;

    explicit fmha_bwd_launcher(const fmha_bwd_traits &);
    float operator()(fmha_bwd_args a, const ck_tile::stream_config &s) const { return run ? run(a, s) : -1.f; }

private:
    template <typename DotDoO, typename DqDkDv, typename ConvertDq, typename Arch>
    void init(const fmha_bwd_traits &t) {
        run = [](fmha_bwd_args a, const ck_tile::stream_config &s) {
            return fmha_bwd_<DotDoO, DqDkDv, ConvertDq, Arch>(s, a);
        };
        const int batch = t.is_group_mode ? 3 : 1;
        host_size = fmha_bwd_dq_dk_dv_dq_ws_host_size_<DqDkDv, Arch>(batch);
        device_upper_bound = fmha_bwd_dq_dk_dv_dq_ws_device_upper_bound_<DqDkDv, Arch>(batch, t.hdim_q);
        prepare_workspace = [batch](void *workspace) {
            return fmha_bwd_dq_dk_dv_dq_prepare_ws_host_<DqDkDv, Arch>(workspace, batch);
        };
        needs_zero_dq_acc = fmha_bwd_dq_dk_dv_needs_zero_dq_acc_<DqDkDv, Arch>();
    }
};
