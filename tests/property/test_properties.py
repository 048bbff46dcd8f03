"""Properties of the rewriter on generated libraries.

``CK_TEST_PROPERTIES=N python -m pytest -m full tests/property`` draws N libraries; CI draws a few.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .grammar import SITE, SITE_END, STAYS, Library, libraries, unmarked
from .running import Rewritten, rewritten, run_both, write

_MANY = int(os.environ.get("CK_TEST_PROPERTIES", "1000"))
_QUIET = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
FEW = settings(max_examples=30, derandomize=True, **_QUIET)
FEW_RUNS = settings(max_examples=8, derandomize=True, **_QUIET)
MANY = settings(max_examples=_MANY, **_QUIET)


def check_rewrite(library: Library) -> None:
    """Rewrite twice and check sites, bytes and determinism. No exception is expected: every library is a valid one."""
    with tempfile.TemporaryDirectory() as scratch:
        source = write(library, Path(scratch) / "in")
        first = rewritten(library, source, Path(scratch) / "one")
        again = rewritten(library, source, Path(scratch) / "two", backwards=True)
        assert first.files == again.files
        assert sum(entry.mode == "call" for entry in first.report.entries) == library.sites
        for name, text in library.apis.items():
            check_bytes(name, text, first)


def check_bytes(name: str, marked: str, result: Rewritten) -> None:
    """Check that undoing the edits gives the original, and that only callees and aliases were taken out."""
    original, marks = unmarked(marked.encode().decode("latin-1"))
    sites, aliases = marks.sites, marks.aliases
    after = result.files[name].decode("latin-1")
    undone, position, shift = "", 0, 0
    for edit in sorted(result.edits[name], key=lambda e: (e.start, e.end)):
        kept = after[position + shift : edit.start + shift]
        taken = original[edit.start : edit.end]
        assert after[edit.start + shift :].startswith(edit.text)
        undone += kept + taken
        position, shift = edit.end, shift + len(edit.text) - len(taken)
        if taken:
            assert in_one_of(edit.start, edit.end, sites) or only_aliases(original, edit.start, edit.end, aliases)
    assert undone + after[position + shift :] == original
    left = [span for span in sites if not any(e.start <= span[0] < e.end for e in result.edits[name])]
    discarded = {d.line for d in result.report.discarded if Path(d.file).name == name}
    assert len(left) == len(discarded)
    assert {e.line for e in result.report.entries if e.mode == "stub" and Path(e.file).name == name} == marks.stays


def in_one_of(start: int, end: int, ranges: list[tuple[int, int]]) -> bool:
    return any(a <= start and end <= b for a, b in ranges)


def only_aliases(text: str, start: int, end: int, aliases: list[tuple[int, int]]) -> bool:
    """Tell whether a range holds an alias declaration and else only blanks."""
    for a, b in aliases:
        if start <= a and b <= end:
            return not text[start:a].strip() and not text[b:end].strip()
    return False


def check_run(library: Library, outlined: bool) -> None:
    """Build and run both forms: same calls, results and texts, and each call's blob was loaded before it."""
    with tempfile.TemporaryDirectory() as scratch:
        source = write(library, Path(scratch) / "in")
        rewritten(library, source, Path(scratch) / "out")
        original, lazy = run_both(library, source, Path(scratch) / "out", outlined=outlined)
    assert [line for line in lazy if not line.startswith("load ")] == original
    loaded: set[str] = set()
    for line in lazy:
        if line.startswith("load "):
            loaded.add(line.removeprefix("load "))
        elif call := re.match(r"(.*\.cpp) \w+ \(\d+\) on stream", line):
            assert call.group(1) in loaded


@FEW
@given(libraries())
def test_rewrite_is_complete_exact_and_deterministic(library: Library) -> None:
    check_rewrite(library)


@FEW_RUNS
@given(libraries(), st.booleans())
def test_rewritten_and_original_agree(library: Library, outlined: bool) -> None:
    check_run(library, outlined)


@pytest.mark.full
@MANY
@given(libraries(), st.booleans())
def test_many_libraries(library: Library, outlined: bool) -> None:
    check_rewrite(library)
    check_run(library, outlined)


FORWARD = """#include "fmha.hpp"
float call_fwd_0(call_traits, call_args a, const ck_tile::stream_config& s)
{
    return @CALL@;
}
"""
BLOB = (
    '#include "fmha.hpp"\n@NOISE@template <> float fmha_fwd_<fmha_fwd_traits_<64, Fp16, true, Bias::none>>'
    '(const ck_tile::stream_config &s, call_args a) { return say("one.cpp", "one", s, a.seqlen); }\n'
)


@pytest.mark.parametrize(
    ("name", "between", "noise"),
    [
        ("fmha_fwd_api.cpp", " /* a comment */ ", ""),
        ("fmha_fwd_api.cpp", " // a comment\n", ""),
        ("fmha_fwd_api.cpp", "", "#define NOTE(x) \\\r\n    do { (void)(x); } while(0)\r\n"),
        ("fmha_fwd_api.cpp", "", "// continued { \\\r\n { {\r\n"),
        ("fmha_fwd_apí.cpp", "", ""),
    ],
    ids=[
        "comment before the call",
        "line comment",
        "continued macro, CRLF",
        "continued comment, CRLF",
        "letter in the name",
    ],
)
def test_what_generated_libraries_found(name: str, between: str, noise: str) -> None:
    callee = f"{SITE}fmha_fwd_<fmha_fwd_traits_<64, Fp16, true, Bias::none>>{SITE_END}"
    library = Library(
        apis={name: FORWARD.replace("@CALL@", f"{callee}{between}(s, a)")},
        blobs={"one.cpp": BLOB.replace("@NOISE@", noise)},
        dispatchers=["call_fwd_0"],
        sites=1,
    )
    check_rewrite(library)
    check_run(library, outlined=True)


TEMPLATE = """#include "fmha.hpp"
template <typename Traits> float of(Traits t, call_args a, const ck_tile::stream_config& s)
{
    if(t.hdim > 32)
        return @STAYS@LAUNCH_FWD(fmha_fwd_traits_<64, Fp16, true>);
    return @STAYS@TAKE(::fmha_fwd_<fmha_fwd_traits_<64, Fp16, true>>(s, a));
}
float call_fwd_0(call_traits t, call_args a, const ck_tile::stream_config& s) { return of(t, a, s); }
"""


def test_sites_of_macros_in_a_template_are_listed_where_they_stand() -> None:
    library = Library(
        apis={"fmha_fwd_api.cpp": TEMPLATE.replace("@STAYS@", STAYS)},
        blobs={"one.cpp": BLOB.replace("@NOISE@", "")},
        dispatchers=["call_fwd_0"],
    )
    check_rewrite(library)
    check_run(library, outlined=True)
