"""The sources of the runtime as such: warnings, format."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import toy

COMPILERS = ["g++", "clang++-19"]


def needs(program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"no {program} here")


@pytest.mark.parametrize("cxx", COMPILERS)
def test_no_warnings_as_one_translation_unit(cxx: str, tmp_path: Path) -> None:
    needs(cxx)
    toy.runtime_objects(tmp_path, ["-O2"] if cxx == "g++" else [], cxx)


@pytest.mark.full
@pytest.mark.parametrize("cxx", COMPILERS)
@pytest.mark.parametrize("source", sorted(toy.RUNTIME.glob("*.cpp")), ids=lambda path: path.name)
def test_each_file_compiles_alone(source: Path, cxx: str, tmp_path: Path) -> None:
    needs(cxx)
    toy.compile_cpp([source], tmp_path / "a.o", ["-c"], cxx)


@pytest.mark.parametrize("header", sorted(toy.RUNTIME.glob("*.h")), ids=lambda path: path.name)
def test_each_header_compiles_alone(header: Path, tmp_path: Path) -> None:
    command = [
        "g++",
        *toy.WARNINGS,
        "-fsyntax-only",
        f"-I{toy.RUNTIME}",
        "-include",
        str(header),
        "-x",
        "c++",
        "/dev/null",
    ]
    subprocess.run(command, check=True)


def test_the_public_header_is_plain_c(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text('#include "ck_jit.h"\nint main(void) { struct ck_jit_stats_t s; return ck_jit_stats(&s); }\n')
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{toy.RUNTIME}", "-fsyntax-only"]
    subprocess.run([*command, str(source)], check=True)


def test_the_sources_are_formatted() -> None:
    needs("clang-format-19")
    files = [*toy.RUNTIME.glob("*.cpp"), *toy.RUNTIME.glob("*.h"), *toy.HERE.glob("*.cpp")]
    subprocess.run(["clang-format-19", "--dry-run", "-Werror", *map(str, sorted(files))], check=True)
