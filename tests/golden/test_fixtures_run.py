"""Each fixture is built and run: the original, with its blobs linked in, and the lazy library print the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ck_post_build import verify

from . import lazy
from .fixtures import FIXTURES, Fixture
from .golden import EXPECTED, ODD_NAME, copy_inputs

RUNNABLE = [f for f in FIXTURES if not (f.directory / EXPECTED / "error.txt").exists()]


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lazy.runtime_object(tmp_path_factory.mktemp("runtime"))


@pytest.mark.parametrize("fixture", RUNNABLE, ids=lambda fixture: fixture.name)
def test_lazy_library_prints_what_the_original_prints(
    fixture: Fixture, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / ODD_NAME
    source = copy_inputs(fixture, scratch / "in")
    lazy.build_original(fixture, source, scratch / "original")
    library = lazy.build_lazy(fixture, source, scratch, runtime, scratch / "lazy")
    text = "".join((source / api).read_text() for api in fixture.apis)
    for device in ("gfx942", "gfx950") if "gfx950" in text else ("gfx942",):
        original = lazy.answers(scratch / "original", scratch, device)
        assert re.search(r"\(\d+\) on stream", original), "the driver reaches no kernel"
        assert lazy.answers(scratch / "lazy", scratch, device) == original
    monkeypatch.setenv("CK_JIT_CACHE_DIR", str(scratch / "cache"))
    assert verify(library).compiled > 0
