"""Fixtures of the fidelity tests: the libraries are built once a session, by whichever worker comes first."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from fidelity_cases import CI_CASES, FULL_CASES
from fidelity_libraries import Case, Libraries
from filelock import FileLock


def _build(
    tmp_path_factory: pytest.TempPathFactory, prefix: Path, aiter: Path, name: str, cases: Sequence[Case]
) -> Libraries:
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory = base / "fidelity" / name
    directory.mkdir(parents=True, exist_ok=True)
    # A developer may keep the compiled kernels from one session to the next; both kinds are named after their content.
    kernels = Path(os.environ.get("CK_POST_BUILD_TEST_KERNELS", base / "fidelity" / "kernels"))
    done = directory / "libraries"
    with FileLock(f"{directory}.lock"):
        if not done.exists():
            libraries = Libraries(directory, prefix, aiter, kernels, cases).build()
            done.write_bytes(pickle.dumps(libraries))
    loaded = pickle.loads(done.read_bytes())
    assert isinstance(loaded, Libraries)
    return loaded


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory, rocm_prefix: Path, aiter_tree: Path) -> Libraries:
    return _build(tmp_path_factory, rocm_prefix, aiter_tree, "few", CI_CASES)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory, rocm_prefix: Path, aiter_tree: Path) -> Libraries:
    return _build(tmp_path_factory, rocm_prefix, aiter_tree, "many", FULL_CASES)
