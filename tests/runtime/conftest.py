"""The toy library is built once per test session, under pytest's temporary directory."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return toy.runtime_objects(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory, objects: list[Path]) -> toy.ToyLibrary:
    return toy.ToyLibrary(tmp_path_factory.mktemp("toy"), objects).build()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.compile_cpp([toy.HERE / "driver.cpp"], tmp_path_factory.mktemp("driver") / "driver")
