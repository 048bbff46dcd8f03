"""Files whose chains clang reads flat: the result is that of the true text, and where it would not be, that is noticed."""

from __future__ import annotations

import shlex
from pathlib import Path
from unittest import mock

import pytest
from golden.fixtures import FIXTURES, Fixture
from golden.golden import copy_inputs, flags

from ck_post_build import api_scan, rewriter
from ck_post_build.compile_db import FixedFlags
from ck_post_build.flat_chains import FlatText, flatten
from ck_post_build.toolchain import Toolchain

FWD = next(fixture for fixture in FIXTURES if fixture.name == "fwd_rows")


def outputs(fixture: Fixture, source: Path, output: Path, toolchain: Toolchain) -> dict[str, bytes]:
    rewriter.rewrite(
        [source / api for api in fixture.apis],
        [source / directory for directory in fixture.blob_dirs],
        output,
        FixedFlags(shlex.join(flags(fixture, source))),
        toolchain=toolchain,
    )
    return {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}


def test_an_else_is_taken_out_between_a_brace_and_an_if_only() -> None:
    text = "if(a) {}\n else  if(b) {} else { } if(c) d; else if(e) {} else\tif (f) {} elseif"
    flat = flatten(text)
    assert flat.text == "if(a) {}\n       if(b) {} else { } if(c) d; else if(e) {}     \tif (f) {} elseif"
    assert {text[place - 1] for place in flat.continued} == {"}"}
    assert {text[start : start + 2] for start in flat.continued.values()} == {"if"}
    assert len(flat.continued) == 2


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_every_fixture_gives_what_its_true_text_gives(fixture: Fixture, tmp_path: Path, toolchain: Toolchain) -> None:
    source = copy_inputs(fixture, tmp_path / "in")
    found = outputs(fixture, source, tmp_path / "flat", toolchain)
    with mock.patch.object(api_scan, "flatten", lambda text: FlatText(text, {})):
        assert found == outputs(fixture, source, tmp_path / "true", toolchain)


def parses(source: Path, tmp_path: Path, toolchain: Toolchain) -> int:
    """Rewrite, check against the true text, and return how often the true text was parsed."""
    true_text = mock.Mock(wraps=api_scan._parse_true_text)
    with mock.patch.object(api_scan, "_parse_true_text", true_text):
        found = outputs(FWD, source, tmp_path / "flat", toolchain)
    with mock.patch.object(api_scan, "flatten", lambda text: FlatText(text, {})):
        assert found == outputs(FWD, source, tmp_path / "true", toolchain)
    return true_text.call_count


SITE = "fmha_fwd_<trait_, ck_tile::gfx9_t>(s, a)"
FRAME = """#include "fmha_fwd.hpp"
float fmha_fwd(fmha_fwd_traits t, fmha_fwd_args a, const ck_tile::stream_config& s)
{
    float r = -1;
    using trait_ = fmha_fwd_traits_<64, FmhaFwdFp16, false, false, false>;
    BODY
    return fmha_fwd_<fmha_fwd_traits_<32, FmhaFwdFp16, false, false, false>, ck_tile::gfx9_t>(s, a) + r;
}
"""


@pytest.mark.parametrize(
    ("times", "body"),
    [
        pytest.param(0, "if(t.hdim_q == 1) { } else if(t.hdim_q == 2) { return SITE; }", id="plain"),
        pytest.param(0, "if(t.hdim_q == 1) { } else if(t.hdim_q == 2) { } else { return SITE; }", id="else at the end"),
        pytest.param(1, "if(int q = t.hdim_q; q == 1) { return SITE; }", id="no chain"),
        pytest.param(1, "if(int q = t.hdim_q) { } else if(q == 2) { return SITE; }", id="declared and used"),
        pytest.param(1, "const int q = 1; if(int q = t.hdim_q) { } else if(q == 2) { return SITE; }", id="shadowed"),
        pytest.param(1, "if(const int q = 1; q) { } else if(q == 2) { return SITE; }", id="init"),
        pytest.param(1, "if constexpr(false) { } else if(t.hdim_q) { return SITE; }", id="constexpr"),
        pytest.param(1, "if constexpr(true) { } else if(t.hdim_q) { return SITE; }", id="constexpr that discards"),
        pytest.param(1, "for(int q = 0; q < 1; ++q) if(q == 7) { } else if(q == 0) { return SITE; }", id="for"),
        pytest.param(1, "if(t.hdim_q) if(a.seqlen_q) { } else if(a.seqlen_k) { return SITE; }", id="if in if"),
        pytest.param(
            1, "if(t.hdim_q) r = 0; else if(a.seqlen_k) { } else if(a.seqlen_q) { return SITE; }", id="no brace"
        ),
        pytest.param(
            1, "switch(t.hdim_q) { case 1: if(a.seqlen_q) { } else if(a.seqlen_k) { return SITE; } }", id="case"
        ),
        pytest.param(
            1, "again: if(a.seqlen_q) { } else if(a.seqlen_k) { return SITE; } if(r == 7) goto again;", id="label"
        ),
        pytest.param(1, 'if(t.hdim_q) { } else if("} else if(x)"[0] == a.seqlen_k) { return SITE; }', id="literal"),
        pytest.param(1, "/* } else if(x) */ if(t.hdim_q) { return SITE; }", id="comment"),
        pytest.param(1, "if(t.hdim_q) { } /**/ else if(a.seqlen_k) { return SITE; }", id="comment between"),
        pytest.param(
            0,
            "auto f = [&](int n) { if(n) { } else if(n > 1) { } return n; }; if(f(1)) { return SITE; }",
            id="in a lambda",
        ),
    ],
)
def test_the_true_text_is_parsed_where_the_flat_one_means_something_else(
    body: str, times: int, tmp_path: Path, toolchain: Toolchain
) -> None:
    source = copy_inputs(FWD, tmp_path / "in")
    api = source / "fmha_fwd_api.cpp"
    api.write_text(FRAME.replace("BODY", body).replace("SITE", SITE))
    assert parses(source, tmp_path, toolchain) == times
