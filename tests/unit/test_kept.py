"""Definitions that stay: which of them hide sites, and which may not be instantiated explicitly."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_post_build.errors import CkPostBuildError
from ck_post_build.kept import Kept, names_to_kernels, raise_on_explicit_instantiation, with_hidden_sites
from ck_post_build.toolchain import Toolchain

from .parsing import parsed

NAMING = names_to_kernels(["fmha_fwd_"], ["ck::w"], {"CALL"})


def test_names_behind_which_a_kernel_may_be() -> None:
    assert [name for name in ("fmha_fwd_", "w", "CALL", "ck", "fmha_fwd_x", "xw") if NAMING.fullmatch(name)] == [
        "fmha_fwd_",
        "w",
        "CALL",
    ]


@pytest.mark.parametrize(
    ("more", "hidden"),
    [
        ("", False),
        ('/* fmha_fwd_ */ log("w");', False),
        ("fmha_fwd_<T>(1, a);", True),
        ("w(t);", True),
        ("CALL(T);", True),
    ],
)
def test_a_definition_hides_what_is_no_site(tmp_path: Path, toolchain: Toolchain, more: str, hidden: bool) -> None:
    definition = f"template <typename T> float f(T t, args a) {{ {more} return fmha_fwd_<traits<1>>(1, a); }}"
    names = "void log(const char *); template <typename T> void w(T);\n#define CALL(T) w(T{})\n"
    api = parsed(tmp_path, toolchain, f"{names}{definition}\n")
    kept = [Kept("f", api.source.text.index(definition), definition)]
    assert with_hidden_sites(kept, api.sites(), NAMING) == (kept if hidden else [])
    of_a_header = [Kept("f", None, definition)]
    assert with_hidden_sites(of_a_header, api.sites(), NAMING) == of_a_header


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("template float f<int>(int);", True),
        ("namespace n { template std::vector<int> n::f<int>(int); }", True),
        ("template struct f<int>;", True),
        ("template <> float f<int>(int);", False),
        ("// template float f<int>(int);", False),
        ("int x = a.template f<int>();", False),
        ("template float other<f>(int);", False),
    ],
)
def test_explicit_instantiations(tmp_path: Path, toolchain: Toolchain, text: str, refused: bool) -> None:
    source = parsed(tmp_path, toolchain, "").source
    source.text = f"\n{text}\n"
    if refused:
        with pytest.raises(CkPostBuildError, match=r"api.cpp:2: f is instantiated explicitly here"):
            raise_on_explicit_instantiation(source, [Kept("f", 0, "")])
    else:
        raise_on_explicit_instantiation(source, [Kept("f", 0, "")])
