"""The tool on real CK: recorded facts, untouched bytes, and output that depends on the input alone."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from .ck import ALL, FACTS, Generated, facts, generate, rewrite

pytestmark = pytest.mark.real_ck

# design.md's counts; the recorded facts have to agree with them.
COUNTS = {
    "fwd_splitkv_receipt_600": {"sites": 1920, "blobs": 1080, "discarded": 0},
    "batch_prefill_receipt_600": {"sites": 128, "blobs": 128, "discarded": 0},
    "fwd_appendkv_receipt_0": {"sites": 99, "discarded": 0},
    "pagedkv_prefill_receipt_0": {"sites": 120, "discarded": 0},
    "fwd_splitkv_receipt_0": {"sites": 2016, "discarded": 48},
    "fwd_receipt_600": {"sites": 5480, "blobs": 5480, "symbols": 5480, "discarded": 0},
    "bwd_receipt_600": {"sites": 22080, "blobs": 15156, "symbols": 60252, "discarded": 0},
}

_SLOT = r"(?:ck_jit::slots \+ \d+ /\* [^*]* \*/|nullptr)"
_LAZY_CALL = re.compile(rf"\bck_jit_\w+_call\({_SLOT}(?:, {_SLOT})*(?:, )?")
_CALL = re.compile(r"\bfmha_\w+_<.*>\((?=s, a\))")
_ALIAS = re.compile(r"\s*using \w+ = .*;")


def marked(generated: Generated) -> object:
    return pytest.param(generated, id=generated.name, marks=[pytest.mark.full] if generated.full else [])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("generated", [marked(generated) for generated in ALL])
def test_facts_are_the_recorded_ones_and_nothing_else_changes(generated: Generated, tmp_path: Path) -> None:
    source, output, report = tmp_path / "generated", tmp_path / "out", tmp_path / "report.json"
    api = generate(generated, source)
    rewrite([api], [source], output, "--report", report)
    found = facts(output, report)
    assert found == json.loads(FACTS.read_text())[generated.name]
    assert {key: found[key] for key in COUNTS[generated.name]} == COUNTS[generated.name]
    assert found["unresolved"] == []
    sites = json.loads(report.read_bytes())["entries"]
    check_untouched(api.read_bytes().decode("latin-1"), (output / api.name).read_bytes().decode("latin-1"), len(sites))


def check_untouched(before: str, after: str, sites: int) -> None:
    """Walk both texts by line: but for sites, their aliases and the insertions, they are the same."""
    old, new = iter(before.splitlines(keepends=True)), _without_insertions(after.splitlines(keepends=True))
    calls = 0
    for line in new:
        original = next(old)
        if line == original:
            continue
        while original != line and _ALIAS.match(original):
            original = next(old)
        if line != original:
            assert _LAZY_CALL.search(line), (original, line)
            assert _LAZY_CALL.sub("?(", line) == _CALL.sub("?(", original)
            calls += 1
    assert list(old) == []
    assert calls == sites


def _without_insertions(lines: list[str]) -> list[str]:
    """Drop the include, the check of the manifest, and the twins, each of which an empty line precedes."""
    kept: list[str] = []
    in_twin = False
    for line in lines:
        if in_twin:
            in_twin = not line.startswith("}")
        elif re.match(r"(?:float|void) ck_jit_\w+_call\(ck_jit::Slot", line):
            in_twin = True
            assert kept.pop() == "\n"
        elif not re.match(r'#include "fmha_\w+_ck_jit\.h"|static_assert\(ck_jit::kManifestHash', line):
            kept.append(line)
    assert len(lines) - len(kept) >= 2
    return kept


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.timeout(600)
def test_output_depends_on_the_input_alone(tmp_path: Path) -> None:
    """Not on the order of files, the working directory, the locale, the hash seed, the output directory, or earlier runs."""
    inputs = [
        generate(Generated("batch_prefill", 600), tmp_path / "a"),
        generate(Generated("pagedkv_prefill", 0), tmp_path / "b"),
    ]
    dirs = [api.parent for api in inputs]
    rewrite(inputs, dirs, tmp_path / "first", PYTHONHASHSEED="0", LC_ALL="C.UTF-8")
    expected = tree(tmp_path / "first")
    assert len(expected) > 8
    (tmp_path / "elsewhere").mkdir()
    rewrite(
        inputs[::-1],
        dirs[::-1],
        tmp_path / "second",
        cwd=tmp_path / "elsewhere",
        PYTHONHASHSEED="1",
        LC_ALL="C",
        PYTHONUTF8="0",
    )
    found = tree(tmp_path / "second")
    assert [name for name in sorted({*found, *expected}) if found.get(name) != expected.get(name)] == []
    stamps = {p: p.stat().st_mtime_ns for p in (tmp_path / "first").rglob("*")}
    rewrite(inputs, dirs, tmp_path / "first")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "first").rglob("*") if p.is_file()} == {
        p: stamp for p, stamp in stamps.items() if p.is_file()
    }


def test_the_reversal_notices_changes() -> None:
    before = 'a\n#include "x"\n{\n  using t = u<1>;\n  return fmha_fwd_<t, g>(s, a);\n}\nb\n'
    head = '#include "fmha_fwd_api_ck_jit.h"\nstatic_assert(ck_jit::kManifestHash == 1);\n'
    after = f'a\n#include "x"\n{head}{{\n  return ck_jit_fwd_call(ck_jit::slots + 3 /* b.cpp */, s, a);\n}}\nb\n'
    check_untouched(before, after, 1)
    wrong = [
        after.replace(*pair)
        for pair in (("a\n#", "a \n#"), ("}\nb\n", "}\n"), ("  return", " return"), (", s, a", ", a, s"))
    ]
    for text in itertools.chain(wrong, [after + "c\n"]):
        with pytest.raises((AssertionError, StopIteration)):
            check_untouched(before, text, 1)
    with pytest.raises(AssertionError):
        check_untouched(before, after, 2)
