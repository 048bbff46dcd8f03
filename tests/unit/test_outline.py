"""Cuts of a dispatcher: where they are, and that what they cut out still returns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ck_post_build.api_rewriter import ApiFile
from ck_post_build.outline import SITES_IN_A_FUNCTION, outline_edits, outlined_name
from ck_post_build.toolchain import Toolchain

from .parsing import IndexMaker, parsed


def chain(sites: int, result: str = "float", last: str = "") -> str:
    links = [f"if(a.n == {n}) {{ return fmha_fwd_<traits<{n}>>(1, a); }}" for n in range(sites)]
    return f"{result} f(args a) {{\n    if(a.n >= 0) {{\n{' else '.join(links)}\n{last}}}\n    return {{}};\n}}\n"


def api(directory: Path, toolchain: Toolchain, body: str, sites: int) -> ApiFile:
    blobs = IndexMaker()
    for number in range(sites):
        blobs.add(f"{number}.cpp", f"traits<{number}>", "void")
    return parsed(directory, toolchain, body).api(blobs.done())


@pytest.mark.parametrize(("name", "copy"), [("a.cpp", "a.outlined.cpp"), ("a b.c.cpp", "a b.c.outlined.cpp")])
def test_name_of_the_cut_copy(name: str, copy: str) -> None:
    assert outlined_name(name) == copy


def test_a_short_dispatcher_stays_in_one_piece(tmp_path: Path, toolchain: Toolchain) -> None:
    assert outline_edits(api(tmp_path, toolchain, chain(15), 15), []) == []


def test_a_block_and_its_long_chain_are_cut(tmp_path: Path, toolchain: Toolchain) -> None:
    sites = SITES_IN_A_FUNCTION * 2 + 30
    file = api(tmp_path, toolchain, chain(sites), sites)
    edits = outline_edits(file, [])
    assert all(edit.start == edit.end for edit in edits), "cuts are insertions"
    opening = [edit for edit in edits if "[&]() __attribute__((noinline)) -> ck_jit::Part<float>" in edit.text]
    # One for the block; one behind the first function's worth of links, and one behind the second's.
    assert len(opening) == 3
    assert len(edits) == 6
    starts = sorted(site.site.start for site in file.sites)
    assert [sum(start < edit.start for start in starts) for edit in sorted(opening)] == [
        0,
        SITES_IN_A_FUNCTION + 1,
        2 * SITES_IN_A_FUNCTION + 1,
    ]


def test_the_cut_text_compiles_and_returns_the_same(tmp_path: Path, toolchain: Toolchain) -> None:
    sites = SITES_IN_A_FUNCTION + 40
    file = api(tmp_path, toolchain, chain(sites), sites)
    part = "namespace ck_jit { template <typename R> struct Part { Part() = default; Part(R r) : r(r), left(true) {} "
    part += "explicit operator bool() const { return left; } R result() const { return r; } R r{}; bool left = false; }; }\n"
    call = "template <int N> float fmha(traits<N>) { return N; }\ntemplate <typename T, typename A> float fmha_fwd_(int, args) { return fmha(T()); }\n"  # noqa: E501
    main = (
        f"int main() {{ for(int n = 0; n < {sites}; ++n) if(f({{n}}) != n) return 1; return f({{{sites}}}) != 0; }}\n"
    )
    program = tmp_path / "program.cpp"
    cut = file.source.apply(outline_edits(file, []))
    program.write_text(cut.replace('#include "ck.hpp"\n', f'#include "ck.hpp"\n{part}{call}') + main)
    subprocess.run(["clang++-19", "-std=c++17", program, "-o", tmp_path / "program"], check=True, timeout=60)
    subprocess.run([tmp_path / "program"], check=True, timeout=10)


@pytest.mark.parametrize(
    ("result", "last"), [("args", ""), ("float", "goto end; end: ;")], ids=["another result", "goto"]
)
def test_what_cannot_be_cut_stays(tmp_path: Path, toolchain: Toolchain, result: str, last: str) -> None:
    body = chain(40, "float", last)
    if result != "float":
        body = body.replace("float f(", "args f(").replace("return fmha_fwd_", "fmha_fwd_")
    assert outline_edits(api(tmp_path, toolchain, body, 40), []) == []
