"""The calls that both libraries make: few enough to compile, and different in what the dispatchers do with them."""

from __future__ import annotations

from fidelity_libraries import Case

# Two kernels of one site through a wrapper, and three: these five blobs are what every run of the tests compiles.
CI_CASES = [
    Case(
        "fwd_splitkv",
        "queries=100 lse=1",
        ("splitkv_d32_bf16_batch", "splitkv_combine_d32_bf16_batch_b32_unused_ps_lse"),
    ),
    Case(
        "bwd",
        "",
        (
            "bwd_dot_do_o_d32_bf16_b64_batch_o2_npad",
            "_nmask_ndropout_ndeterministic",
            "bwd_convert_dq_d32_bf16_b64x0_batch",
        ),
    ),
]

FULL_CASES = [
    *CI_CASES,
    Case("fwd", "bias=1 mask=2 right=0 lse=1", ("_qr_vr_npad_nlogits_bias_mask_lse_ndropout_nskip",)),
    Case(
        "fwd",
        "group=1 bias=2 lse=1 p_drop=0.25 seed_on_device=1",
        (
            "group_b128x64x16x32x32x32_r4x1x1_r4x1x1_w32x32x16_w32x32x16_qr_async_vr_psskddv_nlogits_alibi_nmask_lse_dropout",
        ),
    ),
    Case(
        "fwd_splitkv",
        "queries=100 lse=1 page_size=64",
        ("_nlogits_nbias_nmask_lse_nsquant_pagedkv", "splitkv_combine_d32_bf16_batch_b32_unused_ps_lse"),
    ),
    Case("fwd_appendkv", "rotary=1", ("appendkv_d32_bf16_b64x64x32x32_vr_pskd_inter_gfx9",)),
    Case(
        "fwd_appendkv", "rotary=2 page_size=16 queries=30", ("appendkv_d32_bf16_b64x64x32x32_vr_psskddv_half_pagedkv",)
    ),
    Case("batch_prefill", "size=128 group=1", ("batch_prefill_d128_bf16_group_b64x128x64",)),
    Case("pagedkv_prefill", "size=128 page_size=128", ("fwd_pagedkv_d128_bf16_batch",)),
    Case(
        "bwd",
        "deterministic=1",
        (
            "bwd_dot_do_o_d32_bf16_b64_batch_o2_npad",
            "_nmask_ndropout_deterministic",
            "bwd_convert_dq_d32_bf16_b64x128_batch",
        ),
    ),
]
