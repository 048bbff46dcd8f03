"""Sites: what each one names, where its callee stands, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_post_build.errors import CkPostBuildError
from ck_post_build.sites import Site
from ck_post_build.toolchain import Toolchain

from .parsing import Parsed, parsed


def of(directory: Path, toolchain: Toolchain, body: str) -> tuple[Parsed, list[Site]]:
    api = parsed(directory, toolchain, body)
    return api, api.sites()


def callees(api: Parsed, sites: list[Site]) -> list[str]:
    return [api.source.text[site.start : site.end] for site in sites]


def test_callee_arguments_and_symbol(tmp_path: Path, toolchain: Toolchain) -> None:
    api, sites = of(
        tmp_path,
        toolchain,
        """
        float f(args a) {
            using trait_ = traits<(4 + 4)>;
            return ::fmha_fwd_ < trait_ , gfx9 > (1, a) + fmha_fwd_<trait_>(1, a);
        }""",
    )
    assert callees(api, sites) == ["::fmha_fwd_ < trait_ , gfx9 >", "fmha_fwd_<trait_>"]
    assert [site.arguments for site in sites] == [("traits<8>", "gfx9"), ("traits<8>", "void")]
    assert sites[0].symbol == "_Z9fmha_fwd_I6traitsILi8EE4gfx9Efi4args"
    assert all(site.called and not site.stays and not site.discarded for site in sites)
    assert [alias.name for alias in sites[0].block.aliases] == ["trait_"]


def test_branches_that_the_compiler_discards(tmp_path: Path, toolchain: Toolchain) -> None:
    _, sites = of(
        tmp_path,
        toolchain,
        """
        float f(args a) {
            if constexpr(sizeof(int) == 1) return fmha_fwd_<traits<1>>(1, a);
            else if(a.n) return fmha_fwd_<traits<2>>(1, a);
            else { if constexpr(true) return fmha_fwd_<traits<3>>(1, a); else return fmha_fwd_<traits<4>>(1, a); }
        }""",
    )
    assert [site.discarded for site in sites] == [True, False, False, True]


def test_conditions_are_walked_when_a_name_stands_there(tmp_path: Path, toolchain: Toolchain) -> None:
    _, sites = of(tmp_path, toolchain, "float f(args a) { if(fmha_fwd_<traits<1>>(1, a) > 2) return 1; return 2; }\n")
    assert [site.arguments for site in sites] == [("traits<1>", "void")]


def test_functions_that_are_named_and_not_called(tmp_path: Path, toolchain: Toolchain) -> None:
    api, sites = of(
        tmp_path,
        toolchain,
        """
        using pointer = float (*)(int, args);
        struct holder { pointer in_class{fmha_fwd_<traits<1>>}; };
        pointer f() { pointer table[] = {&fmha_fwd_<traits<2>>}; return table[0]; }""",
    )
    assert callees(api, sites) == ["fmha_fwd_<traits<1>>", "fmha_fwd_<traits<2>>"]
    assert not any(site.called or site.stays for site in sites)
    assert sites[1].block is not None


def test_sites_of_macros_stay(tmp_path: Path, toolchain: Toolchain) -> None:
    api, sites = of(
        tmp_path,
        toolchain,
        """
        #define CALL(T) fmha_fwd_<T>(1, a)
        #define SAME(...) __VA_ARGS__
        #define NUMBER 3
        float f(args a) {
            if(CALL(traits<1>) > 2) return SAME(::fmha_fwd_<traits<2>>(1, a));
            return fmha_fwd_<traits<NUMBER>>(1, a);
        }""",
    )
    assert [(site.arguments[0], site.stays) for site in sites] == [
        ("traits<1>", True),
        ("traits<2>", True),
        ("traits<3>", False),
    ]
    assert [api.source.line_of(site.start) for site in sites] == [7, 7, 8]


def test_sites_in_templates_that_depend_on_nothing(tmp_path: Path, toolchain: Toolchain) -> None:
    _, sites = of(
        tmp_path,
        toolchain,
        """
        template <typename T> float f(T t, args a) {
            if(t.n) return fmha_fwd_<T>(1, a);
            return fmha_fwd_<traits<1>>(1, a);
        }""",
    )
    assert [(site.arguments, site.in_template) for site in sites] == [(("traits<1>", "void"), True)]


def test_a_wrapper_that_is_only_named_stays(tmp_path: Path, toolchain: Toolchain) -> None:
    _, sites = of(
        tmp_path,
        toolchain,
        """
        template <typename T> float wrapped(args a) { return fmha_fwd_<T>(1, a); }
        float f(args a) { auto *p = &wrapped<traits<1>>; return p(a) + wrapped<traits<2>>(a); }""",
    )
    assert [(site.arguments, site.stays) for site in sites] == [(("traits<1>",), True), (("traits<2>",), False)]


def test_names_in_comments_and_texts_are_none(tmp_path: Path, toolchain: Toolchain) -> None:
    _, sites = of(
        tmp_path,
        toolchain,
        """
        // fmha_fwd_<traits<1>>(1, a)
        const char *f() { char c = '"'; return "fmha_fwd_<traits<1>>" R"(" fmha_fwd_ )"; /* fmha_fwd_ " */ }""",
    )
    assert sites == []


def test_a_name_that_is_not_understood_is_an_error(tmp_path: Path, toolchain: Toolchain) -> None:
    with pytest.raises(CkPostBuildError, match=r"api.cpp:3: fmha_fwd_ is used in a way that is not understood"):
        of(tmp_path, toolchain, "float f(args a) {\n  return [](auto b) { return fmha_fwd_<traits<1>>(1, b); }(a); }\n")
