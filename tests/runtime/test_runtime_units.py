"""Runs unit_tests.cpp, one pytest case for each of its tests."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
import toy

NAMES = [
    "which_code_runs_on_which_device",
    "stems_of_entries",
    "netstrings_tell_lists_apart",
    "last_error_is_cut_not_overrun",
    "sha256_of_known_texts",
    "sha256_in_pieces",
    "damaged_libraries_are_refused_calmly",
    "damaged_bundles_are_refused_calmly",
    "every_changed_bit_of_an_entry_is_noticed",
    "what_a_command_prints_and_how_it_ends",
]


def toy_object(directory: Path) -> Path:
    """A compiled toy blob number 1 for gfx90a."""
    source = directory / "toy_1.cpp"
    source.write_text(toy.ToyBlob(1).text)
    flags = ["-shared", "-fPIC", '-DTOY_ARCH="gfx90a"', "-Wl,--build-id=sha1"]
    return toy.compile_cpp([source], directory / "toy_1.so", flags)


@pytest.fixture(scope="session")
def unit_tests(tmp_path_factory: pytest.TempPathFactory, objects: list[Path]) -> Path:
    directory = tmp_path_factory.mktemp("units")
    glue = directory / "glue.cpp"
    glue.write_text(toy.ToyLibrary(directory, objects).glue())
    return toy.compile_cpp([toy.HERE / "unit_tests.cpp", glue, *objects], directory / "unit_tests")


@pytest.mark.parametrize("name", NAMES)
def test_unit(name: str, unit_tests: Path, tmp_path: Path) -> None:
    command = [str(unit_tests), name, str(toy_object(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    if name == "sha256_in_pieces":
        for line in done.stdout.splitlines():
            text, digest = line.split()
            assert hashlib.sha256(bytes.fromhex(text.strip("-"))).hexdigest() == digest


def test_the_list_above_has_every_test(unit_tests: Path) -> None:
    done = subprocess.run([str(unit_tests)], capture_output=True, text=True)
    assert sorted(done.stdout.split()) == sorted(NAMES)
