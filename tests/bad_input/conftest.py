from __future__ import annotations

from pathlib import Path

import pytest

from .refusal import SPLITKV, Case


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.fixture
def splitkv(tmp_path: Path) -> Case:
    return Case(tmp_path, SPLITKV)
