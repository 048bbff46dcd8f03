"""Resolution: which instance each slot of a site gets, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

from ck_post_build.resolve import named_arguments
from ck_post_build.toolchain import Toolchain

from .parsing import IndexMaker, parsed

WRAPPER = """
template <typename T0, typename T1, typename Arch = void> float w(args a)
{
    if constexpr(!std::is_same_v<T1, void>)
        fmha_fwd_get_name_<T1, Arch>();
    return fmha_fwd_<T0, Arch>(1, a);
}
"""


def test_a_kernel_is_resolved_by_its_symbol(tmp_path: Path, toolchain: Toolchain) -> None:
    blobs = IndexMaker()
    blobs.add("a.cpp", "traits<1>", "void")
    wanted = blobs.add("b.cpp", "traits<1>", "gfx9")
    body = "\nfloat f(args a) { return fmha_fwd_<traits<1>, gfx9>(1, a); }\n"
    resolved, unresolved = parsed(tmp_path, toolchain, body).resolved(blobs.done())
    assert unresolved == []
    assert [site.instances for site in resolved] == [(wanted,)]
    assert (resolved[0].line, resolved[0].direction, resolved[0].blobs) == (3, "fwd", ("b.cpp",))
    assert resolved[0].symbols == ("_Z9fmha_fwd_I6traitsILi1EE4gfx9Efi4args",)


def test_a_wrapper_is_resolved_slot_by_slot(tmp_path: Path, toolchain: Toolchain) -> None:
    blobs = IndexMaker()
    first, second = blobs.add("a.cpp", "traits<1>", "void"), blobs.add("b.cpp", "traits<2>", "void")
    body = WRAPPER + "float f(args a) { return w<traits<1>, traits<2>>(a) + w<traits<2>, void>(a); }\n"
    resolved, unresolved = parsed(tmp_path, toolchain, body).resolved(blobs.done())
    assert unresolved == []
    assert [site.instances for site in resolved] == [(first, second), (second, None)]
    assert [site.symbols for site in resolved] == [
        ("_Z18fmha_fwd_get_name_I6traitsILi2EEvEPKcv", "_Z9fmha_fwd_I6traitsILi1EEvEfi4args"),
        ("_Z9fmha_fwd_I6traitsILi2EEvEfi4args",),
    ]


def test_what_lacks_its_blob_names_kernel_and_site(tmp_path: Path, toolchain: Toolchain) -> None:
    blobs = IndexMaker()
    blobs.add("a.cpp", "traits<1>", "void")
    body = WRAPPER + "float f(args a) {\n  if constexpr(false) return w<traits<1>, traits<3>>(a);\n  return 1;\n}\n"
    resolved, (lacking,) = parsed(tmp_path, toolchain, body).resolved(blobs.done())
    assert resolved == []
    assert (lacking.template, lacking.arguments) == ("fmha_fwd_get_name_", ("traits<3>", "void"))
    assert lacking.message().startswith("no blob defines fmha_fwd_get_name_<traits<3>, void>. Give every directory")
    assert lacking.site is not None
    assert (lacking.site.template, named_arguments(lacking.site)) == ("w", ("traits<1>", "traits<3>", "void"))
    assert lacking.may_be_left_out


def test_what_an_ordinary_function_lacks_may_not_be_left_out(tmp_path: Path, toolchain: Toolchain) -> None:
    body = """
    template <typename T> float f(T, args a) { return fmha_fwd_<traits<1>>(1, a); }
    float f(args a) { return fmha_fwd_<traits<1>>(1, a); }
    """
    _, unresolved = parsed(tmp_path, toolchain, body).resolved(IndexMaker().done())
    assert [lacking.may_be_left_out for lacking in unresolved] == [True, False]
