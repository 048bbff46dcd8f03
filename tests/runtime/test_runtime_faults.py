"""The fault matrix under pytest. `python tests/runtime/fault_matrix.py` prints the same cases as a table."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy
from fault_cases import CASES, Case
from fault_lab import Built, Lab, Skip


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, library: toy.ToyLibrary, driver: Path) -> Built:
    return Built.with_faults(library, driver, tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=[pytest.mark.full] if case.full else []) for case in CASES]
)
def test_fault(case: Case, built: Built, tmp_path: Path) -> None:
    try:
        outcome = case.run(Lab(built, tmp_path))
    except Skip as reason:
        pytest.skip(str(reason))
    assert outcome.call
    assert outcome.cache
