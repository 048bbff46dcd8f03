"""Names of traits, their values, and conditions on them."""

from __future__ import annotations

import pytest

from ck_post_build.blob_traits import Traits, trait_name, trait_value
from ck_post_build.condition import Condition
from ck_post_build.demangle import function_name
from ck_post_build.errors import CkPostBuildError


@pytest.mark.parametrize(
    ("parameter", "name"),
    [
        ("HDim_", "hdim"),
        ("HDim", "hdim"),
        ("DataType_", "dtype"),
        ("kIsGroupMode_", "is_group_mode"),
        ("kM0_", "m0"),
        ("kPadSK_", "pad_sk"),
        ("FmhaPipelineEnum_", "pipeline"),
        ("BiasEnum_", "bias"),
        ("FmhaMask_", "mask"),
        ("kStoreLse_", "store_lse"),
        ("k", "k"),
    ],
)
def test_a_trait_is_called_after_the_parameter(parameter: str, name: str) -> None:
    assert trait_name(parameter) == name


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("128", 128),
        ("-1", -1),
        ("4ul", 4),
        ("true", "true"),
        ("FmhaFwdBf16", "bf16"),
        ("FmhaFwdFp8Bf16", "fp8bf16"),
        ("FmhaBwdFp16", "fp16"),
        ("(ck_tile::Bias)2", "alibi"),
        ("(ck_tile::Other)2", "2"),
        ("ck_tile::GenericMask<true, false>", "genericmask<true, false>"),
    ],
)
def test_a_value_is_what_a_user_would_write(argument: str, value: int | str) -> None:
    assert trait_value(argument, {"ck_tile::Bias": {"2": "ALIBI"}}) == value


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("std::vector<int> ns::f<a<1, 2>, b>(int)", "ns::f", ("a<1, 2>", "b")),
        ("void (anonymous namespace)::g<x>(y)", "g", ("x",)),
        ("std::string f<t<(e)1>, u>[abi:cxx11]()", "f", ("t<(e)1>", "u")),
        ("plain(int)", "plain", ()),
    ],
)
def test_function_names_in_demangled_symbols(text: str, name: str, arguments: tuple[str, ...]) -> None:
    assert function_name(text) == (name, arguments)


TRAITS: Traits = {
    "hdim": frozenset([128]),
    "dtype": frozenset(["bf16"]),
    "mask": frozenset(["true", "genericmask<true>"]),
    "lse": frozenset(["false"]),
    "arch": frozenset(["gfx9", "gfx950"]),
}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("hdim=128", True),
        ("hdim==128", True),
        ("hdim = 64", False),
        ("hdim!=64", True),
        ("hdim!=128", False),
        ("hdim<=128 and hdim>=128", True),
        ("64 < hdim < 128", False),
        ("64 <= hdim <= 128", True),
        ("256 > hdim", True),
        ("dtype=bf16", True),
        ("dtype=BF16", True),
        ("dtype='bf16'", True),
        ("dtype in (fp16, bf16)", True),
        ("dtype not in (fp16, bf16)", False),
        ("mask", True),
        ("not mask", False),
        ("mask=true", True),
        ("mask=True", True),
        ('mask="GenericMask<true>"', True),
        ("mask!=false", True),
        ("lse", False),
        ("lse=false", True),
        ("arch=gfx950", True),
        ("arch!=gfx950", False),
        ("hdim=64 or (dtype=bf16 and not lse)", True),
        ("missing=1", False),
        ("missing!=1", False),
        ("not missing", True),
    ],
)
def test_conditions(condition: str, holds: bool) -> None:
    assert Condition(condition)(TRAITS) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hdim=",
        "1=1",
        "f(hdim)",
        "hdim+1=2",
        "hdim is 3",
        "dtype<bf16",
        "hdim=1.5",
        "(lambda: 1)()",
        "hdim;",
        "x = y.z",
    ],
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(CkPostBuildError, match="the condition"):
        Condition(text)


def test_a_misspelt_trait_is_an_error_that_names_the_right_one() -> None:
    with pytest.raises(CkPostBuildError, match="no blob has a trait called dtpye; did you mean dtype"):
        Condition("hdim=1 and dtpye=bf16").check_names(TRAITS)
    Condition("hdim=1 and dtype=bf16").check_names(TRAITS)
