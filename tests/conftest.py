"""Fixtures of all tests that use real CK."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

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
def aiter_tree() -> Path:
    """The unpacked amd-aiter wheel, with CK in it."""
    return _answer(SCRIPTS / "fetch_ck.sh")
