"""Names of generated functions and files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_post_build.names import direction, entry_point, includable


@pytest.mark.parametrize(
    ("template", "entry"),
    [
        ("fmha_fwd_", "ck_jit_fwd_call"),
        ("fmha_fwd_splitkv_", "ck_jit_fwd_splitkv_call"),
        ("fmha_batch_prefill_", "ck_jit_batch_prefill_call"),
        ("fmha_bwd_", "ck_jit_bwd_call"),
        ("fmha_bwd_dq_dk_dv_dq_acc_splits_", "ck_jit_bwd_dq_acc_splits"),
        ("fmha_bwd_dq_dk_dv_needs_zero_dq_acc_", "ck_jit_bwd_needs_zero_dq_acc"),
        ("fmha_bwd_dot_do_o_oneshot_", "ck_jit_bwd_dot_do_o_oneshot_call"),
        ("something_else", "ck_jit_something_else_call"),
    ],
)
def test_entry_point_follows_the_c_abi(template: str, entry: str) -> None:
    assert entry_point(template) == entry


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("fmha_fwd_", "fwd"),
        ("fmha_fwd_splitkv_", "fwd_splitkv"),
        ("fmha_fwd_splitkv_combine_oneshot_", "fwd_splitkv"),
        ("fmha_fwd_appendkv_", "fwd_appendkv"),
        ("fmha_fwd_pagedkv_", "pagedkv_prefill"),
        ("fmha_pagedkv_prefill_", "pagedkv_prefill"),
        ("fmha_batch_prefill_", "batch_prefill"),
        ("fmha_bwd_dq_dk_dv_", "bwd"),
        ("fmha_bwd_launcher::init", "init"),
        ("ns::fmha_fwd_", "fwd"),
        ("gemm_", "gemm"),
    ],
)
def test_direction_is_read_from_the_template(template: str, name: str) -> None:
    assert direction(template) == name


def test_ordinary_stems_stay() -> None:
    assert includable("fmha_fwd_api") == "fmha_fwd_api"
    assert includable("with blank, ünï and 'quote'") == "with blank, ünï and 'quote'"


@given(st.text(), st.text())
def test_stems_that_no_include_can_name_get_distinct_ones_that_it_can(one: str, other: str) -> None:
    assert not set(includable(one)) & set('"\\<>\n\r\0')
    assert (includable(one) == includable(other)) == (one == other)
