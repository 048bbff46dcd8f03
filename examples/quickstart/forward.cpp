// SPDX-License-Identifier: MIT
#include "attention.h"

#include "mha_fwd.h"

#include <utility>

namespace {

ck_tile::stream_config stream_config(const CallOptions &options) {
    ck_tile::stream_config config{};
    config.stream_id_ = options.stream;
    config.time_kernel_ = options.time_kernel;
    config.log_level_ = options.log_level;
    return config;
}

// What the argument structs of the three directions have in common.
template <typename Arguments> Arguments arguments(const Shape &shape, const ForwardTensors &tensors) {
    Arguments args{};
    args.q_ptr = tensors.q;
    args.k_ptr = tensors.k;
    args.v_ptr = tensors.v;
    args.o_ptr = tensors.o;
    args.lse_ptr = tensors.lse;
    args.seqlen_q = args.max_seqlen_q = shape.queries;
    args.seqlen_k = shape.keys;
    args.batch = shape.batch;
    args.hdim_q = args.hdim_v = shape.size;
    args.nhead_q = args.nhead_k = shape.heads;
    args.scale_s = shape.scale();
    args.scale_p = args.scale_o = 1;
    args.stride_q = args.stride_k = args.stride_v = args.stride_o = shape.heads * shape.size;
    args.nhead_stride_q = args.nhead_stride_k = args.nhead_stride_v = args.nhead_stride_o = shape.size;
    args.nhead_stride_lse = shape.queries;
    args.batch_stride_q = args.batch_stride_o = shape.queries * shape.heads * shape.size;
    args.batch_stride_k = args.batch_stride_v = shape.keys * shape.heads * shape.size;
    args.batch_stride_lse = shape.heads * shape.queries;
    args.window_size_left = args.window_size_right = -1;
    args.mask_type = static_cast<int>(mask_enum::no_mask);
    return args;
}

} // namespace

float forward(const Shape &shape, const ForwardTensors &tensors, bool causal, const CallOptions &options) {
    auto args = arguments<aiter::mha_fwd_args>(shape, tensors);
    args.drop_seed_offset = std::make_pair(std::uint64_t{0}, std::uint64_t{0});
    const mask_enum mask = causal ? mask_enum::mask_bottom_right : mask_enum::no_mask;
    args.mask_type = static_cast<int>(mask);
    if (causal)
        args.window_size_right = 0;
    return aiter::mha_fwd(args, stream_config(options), "bf16", false, mask, bias_enum::no_bias, true, false);
}

float split_forward(const Shape &shape, const ForwardTensors &tensors, int splits, void *o_acc, void *lse_acc,
                    const CallOptions &options) {
    auto args = arguments<aiter::mha_fwd_splitkv_args>(shape, tensors);
    args.num_splits = splits;
    args.o_acc_ptr = o_acc;
    args.lse_acc_ptr = lse_acc;
    args.nhead_stride_lse_acc = shape.queries;
    args.batch_stride_lse_acc = shape.heads * args.nhead_stride_lse_acc;
    args.split_stride_lse_acc = shape.batch * args.batch_stride_lse_acc;
    args.stride_o_acc = shape.size;
    args.nhead_stride_o_acc = shape.queries * shape.size;
    args.batch_stride_o_acc = shape.heads * args.nhead_stride_o_acc;
    args.split_stride_o_acc = shape.batch * args.batch_stride_o_acc;
    return aiter::mha_fwd_splitkv(args, stream_config(options), "bf16", false, mask_enum::no_mask,
                                  bias_enum::no_bias, true);
}

float batch_prefill(const Shape &shape, const ForwardTensors &tensors, const Pages &pages,
                    const CallOptions &options) {
    auto args = arguments<fmha_batch_prefill_args>(shape, tensors);
    args.drop_seed_offset = std::make_pair(std::uint64_t{0}, std::uint64_t{0});
    args.seqstart_q_ptr = pages.query_starts;
    args.num_total_pages = shape.batch * shape.keys;
    args.kv_indptr = pages.page_starts;
    args.kv_page_indices = pages.pages;
    args.nhead_stride_lse = shape.batch * shape.queries;
    args.batch_stride_q = args.batch_stride_k = args.batch_stride_v = 0;
    args.batch_stride_o = args.batch_stride_lse = 0;
    // aiter's own mha_batch_prefill is generated as a file of its own, which repeats helpers of mha_fwd.cpp:
    // no library can hold both. CK's function beneath it is in the library.
    const aiter::mha_fwd_traits traits(shape.size, shape.size, "bf16", true, false, mask_enum::no_mask,
                                       bias_enum::no_bias, true, false, false, 0, false);
    return fmha_batch_prefill(traits, args, stream_config(options));
}
