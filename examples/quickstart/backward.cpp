// SPDX-License-Identifier: MIT
//
// A file of its own: mha_fwd.h and mha_bwd.h each define FmhaMasks.
#include "attention.h"

#include "mha_bwd.h"

#include <utility>

float backward(const Shape &shape, const BackwardTensors &tensors, bool causal, const CallOptions &options) {
    const int stride = shape.heads * shape.size;
    aiter::mha_bwd_args args{};
    args.q_ptr = tensors.q;
    args.k_ptr = tensors.k;
    args.v_ptr = tensors.v;
    args.o_ptr = tensors.o;
    args.lse_ptr = tensors.lse;
    args.do_ptr = tensors.d_o;
    args.d_ptr = tensors.d;
    args.dq_ptr = tensors.dq;
    args.dk_ptr = tensors.dk;
    args.dv_ptr = tensors.dv;
    args.dq_acc_ptr = tensors.dq_acc;
    args.seqlen_q = args.max_seqlen_q = shape.queries;
    args.seqlen_k = args.max_seqlen_k = shape.keys;
    args.batch = shape.batch;
    args.hdim_q = args.hdim_v = shape.size;
    args.nhead_q = args.nhead_k = shape.heads;
    args.scale = shape.scale();
    args.stride_q = args.stride_o = args.stride_do = args.stride_dq = args.stride_dq_acc = stride;
    args.stride_k = args.stride_v = args.stride_dk = args.stride_dv = stride;
    args.nhead_stride_q = args.nhead_stride_o = args.nhead_stride_do = args.nhead_stride_dq = shape.size;
    args.nhead_stride_k = args.nhead_stride_v = args.nhead_stride_dk = args.nhead_stride_dv = shape.size;
    args.nhead_stride_dq_acc = shape.size;
    args.nhead_stride_lsed = shape.queries;
    args.batch_stride_q = args.batch_stride_o = args.batch_stride_do = shape.queries * stride;
    args.batch_stride_dq = args.batch_stride_dq_acc = shape.queries * stride;
    args.batch_stride_k = args.batch_stride_v = shape.keys * stride;
    args.batch_stride_dk = args.batch_stride_dv = shape.keys * stride;
    args.batch_stride_lsed = shape.heads * shape.queries;
    args.split_stride_dq_acc = shape.batch * args.batch_stride_dq_acc;
    args.window_size_left = -1;
    args.window_size_right = causal ? 0 : -1;
    args.p_undrop = 1;
    args.drop_seed_offset = std::make_pair(std::uint64_t{0}, std::uint64_t{0});
    const mask_enum mask = causal ? mask_enum::mask_bottom_right : mask_enum::no_mask;
    args.mask_type = static_cast<int>(mask);

    ck_tile::stream_config config{};
    config.stream_id_ = options.stream;
    config.time_kernel_ = options.time_kernel;
    config.log_level_ = options.log_level;
    return aiter::mha_bwd(args, config, "bf16", false, mask, bias_enum::no_bias, false, false, false, false,
                          false, 0);
}
