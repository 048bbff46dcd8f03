"""A library with stubs whose kernels cannot be had: the runtime's errors, and the results that entry points give."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from golden import lazy
from golden.fixtures import FIXTURES
from golden.golden import arguments, copy_inputs, environment

from ck_post_build import api_resolve
from ck_post_build.cli import main


@pytest.mark.parametrize("name", ["fwd_stubs", "splitkv_stubs"])
def test_kernels_that_cannot_be_had(tmp_path: Path, name: str) -> None:
    fixture = next(fixture for fixture in FIXTURES if fixture.name == name)
    source = copy_inputs(fixture, tmp_path / "in")
    lazy.build_lazy(fixture, source, tmp_path, lazy.runtime_object(tmp_path), tmp_path / "program")
    done = subprocess.run(
        [tmp_path / "program"],
        env=environment(CK_JIT_COMPILE="0", CK_JIT_CACHE_DIR=str(tmp_path / "cache")),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "on stream" not in done.stdout
    if name == "fwd_stubs":
        blobs = {blob.name for blob in (source / "blobs").iterdir()}
        # Two kernels are called for some traits, and both give -1.
        assert {line.rpartition(" ")[2] for line in done.stdout.splitlines()} == {"-1", "-2"}
    else:
        blobs = {"splitkv_gfx9.cpp", "splitkv_gfx950.cpp", "combine_gfx9.cpp", "combine_gfx950.cpp"}
        assert ", ,\n" in done.stdout, "a name that cannot be had is empty"
    for blob in blobs:
        assert f"blob not resolved: {blob}: " in done.stderr


@pytest.mark.parametrize("name", ["bwd", "bwd_launcher_2026b", "wrapper_of_wrapper", "fwd_places"])
def test_files_without_such_templates_are_not_parsed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fixture = next(fixture for fixture in FIXTURES if fixture.name == name)
    words = [str(word) for word in arguments(fixture, fixture.directory)]

    def unexpected(*_: object) -> None:
        raise AssertionError("looked for stubs")

    monkeypatch.setattr(api_resolve, "find_stub_sites", unexpected)
    main(["rewrite", *words, "-o", str(tmp_path)], standalone_mode=False)
    assert not (tmp_path / "ck_jit_stubs.S").exists()
