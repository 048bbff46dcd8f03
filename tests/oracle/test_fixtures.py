"""The oracle on dispatchers of our own: shapes that the CK at hand has not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.golden.fixtures import FIXTURES, Fixture
from tests.golden.golden import copy_inputs, flags

from .run import Oracle

pytestmark = [pytest.mark.real_ck, pytest.mark.timeout(600)]
LAUNCHER = Path(__file__).with_name("launcher.cpp")
# Sites that no input is known to reach: their conditions are a switch's.
CI = {
    "bwd_launcher_2026a": 0,
    "bwd_launcher_2026b": 0,
    "bwd_launcher_2026c": 0,
    "fwd_stubs": 0,
    "pagedkv_prefill": 0,
    "splitkv_stubs": 1,
}
# fwd_footer and two_dispatchers have more than one function to call, and fwd_rows divides by zero.
FULL = {f.name for f in FIXTURES} - CI.keys() - {"fwd_footer", "two_dispatchers", "fwd_rows"}


def _named(names: set[str]) -> list[Fixture]:
    return [fixture for fixture in FIXTURES if fixture.name in names]


def _oracle(fixture: Fixture, rocm: Path, tmp: Path, patch: pytest.MonkeyPatch) -> Oracle:
    patch.setenv("ROCM_PATH", str(rocm))
    source = copy_inputs(fixture, tmp / "in")
    words = [*flags(fixture, source), "-std=c++20"]
    is_launcher = fixture.driver == "launcher.cpp"
    if is_launcher:
        words += [f"-D{define}" for define in fixture.defines]
    (blobs, *_), (api, *_) = fixture.blob_dirs, fixture.apis
    oracle = Oracle(source / api, source / blobs, shlex.join(words), tmp / "out", LAUNCHER if is_launcher else None)
    oracle.build(seed=1)
    return oracle


@pytest.mark.parametrize("fixture", _named(set(CI)), ids=lambda fixture: fixture.name)
def test_launchers_stubs_and_references_do_what_the_original_does(
    fixture: Fixture, rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _oracle(fixture, rocm_prefix, tmp_path, monkeypatch).drive(2000, 1, ("gfx942", "gfx950"))
    assert (result.different, result.differences) == (0, [])
    assert result.inputs > 4000
    assert len(result.unreached) == CI[fixture.name]


def test_a_wrong_slot_in_a_stub_is_seen(rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = _oracle(*_named({"fwd_stubs"}), rocm_prefix, tmp_path, monkeypatch)
    (stubs,) = oracle.lazy.glob("*.S")
    text = stubs.read_text()
    stubs.write_text(text.replace(", 5, 0 //", ", 4, 0 //"))
    assert stubs.read_text() != text
    oracle.build_rewritten()
    assert oracle.drive(2000, 1, ("gfx942",)).different > 0


@pytest.mark.full
@pytest.mark.parametrize("fixture", _named(FULL), ids=lambda fixture: fixture.name)
def test_every_other_shape_does_what_the_original_does(
    fixture: Fixture, rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _oracle(fixture, rocm_prefix, tmp_path, monkeypatch).drive(100_000, 1, ("gfx942", "gfx950"))
    assert (result.different, result.differences) == (0, [])
