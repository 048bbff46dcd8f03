"""The toy library is built once per test session, under pytest's temporary directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import toy

CLANG = shutil.which("clang++-19") or shutil.which("clang++-18") or shutil.which("clang++")


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return toy.runtime_objects(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, objects: list[Path]) -> toy.ToyLibrary:
    return toy.ToyLibrary(tmp_path_factory.mktemp("toy"), objects).build()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.compile_cpp([toy.HERE / "driver.cpp"], tmp_path_factory.mktemp("driver") / "driver")


@pytest.fixture
def hipcc(tmp_path: Path) -> Path:
    """A compiler that passes for ROCm's and notes its commands, one a line, in `tmp_path`/commands."""
    if not CLANG or not shutil.which("lld-19"):
        pytest.skip("no clang with lld here")
    path = tmp_path / "hipcc"
    path.write_text(
        f"#!/bin/bash\n[[ $1 != --version ]] || exec '{CLANG}' --version\n"
        f"printf '%s ' \"$@\" >>'{tmp_path}/commands'; echo >>'{tmp_path}/commands'\n"
        f"exec '{CLANG}' \"${{@/--offload-arch=gfx90a/--offload-arch=${{WRONG_ARCH-gfx90a}}}}\"\n"
    )
    path.chmod(0o755)
    (tmp_path / "hipconfig").symlink_to("/bin/true")  # what the script knows ROCm's hipcc by
    return path
