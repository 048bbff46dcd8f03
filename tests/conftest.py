"""Fixtures of all tests that use real CK."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from ck_post_build import libclang
from ck_post_build.toolchain import Toolchain, find_toolchain

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def _answer(*command: str | Path) -> Path:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def rocm_prefix() -> Path:
    """A ROCm-like prefix whose HIP library records launches. The machine's own ROCm is not looked for."""
    return _answer(SCRIPTS / "rocm_prefix.sh", "--assemble", "--standin")


@pytest.fixture(scope="session")
def toolchain(rocm_prefix: Path) -> Toolchain:
    """The prefix's."""
    with mock.patch.dict(os.environ, {"ROCM_PATH": str(rocm_prefix)}):
        return find_toolchain()


@pytest.fixture(scope="session", autouse=True)
def _one_libclang(toolchain: Toolchain) -> None:
    """A process can load one libclang only: all tests that parse in their own process get the same, whichever is first."""
    libclang.load(toolchain.clang.library)


@pytest.fixture(scope="session")
def aiter_tree() -> Path:
    """The unpacked amd-aiter wheel, with CK in it."""
    return _answer(SCRIPTS / "fetch_ck.sh")
