"""The library and its entries are built once per test session; each test gets a cache of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from golden.lazy import runtime_object

from .lazy_library import Place, build_library, write_hipcc


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled runtime."""
    return runtime_object(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, runtime: Path) -> tuple[Path, Path]:
    """The installed prefix, and the compiler."""
    scratch = tmp_path_factory.mktemp("small")
    return build_library(scratch, runtime), write_hipcc(scratch / "rocm")


@pytest.fixture
def place(built: tuple[Path, Path], tmp_path: Path) -> Place:
    return Place(built[0], tmp_path, built[1])


@dataclass(frozen=True)
class Entries:
    """A cache with all entries, their names, and the names of the three of ``d64*`` on gfx942."""

    cache: Path
    every: list[str]
    three: list[str]


@pytest.fixture(scope="session")
def entries(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Entries:
    place = Place(built[0], tmp_path_factory.mktemp("entries"), built[1])
    assert place.prebuild("d64*", "--arch", "gfx942").returncode == 0
    three = place.entries()
    assert place.prebuild("--all").returncode == 0
    return Entries(place.cache, place.entries(), three)
