"""What shared objects export, against nm; files that are none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ck_post_build.elf import defined_dynamic_symbols
from ck_post_build.errors import CkPostBuildError


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("elf")
    (directory / "a.cpp").write_text(
        '#include <cstdio>\ntemplate <int> void f_() { std::puts(""); }\ntemplate <> void f_<3>() {}\ntemplate void f_<4>();\n'
        '__attribute__((visibility("hidden"))) int hidden() { return 1; }\nstatic int local = hidden();\nint variable = local;\n'
    )
    path = directory / "liba.so"
    subprocess.run(
        ["clang++-19", "-shared", "-fPIC", "-Wl,--build-id=sha1", directory / "a.cpp", "-o", path],
        check=True,
        timeout=120,
    )
    return path


def test_exported_symbols_are_those_of_nm(library: Path) -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", "--without-symbol-versions", library], capture_output=True, text=True, check=True
    )
    expected = {line.split()[-1] for line in listed.stdout.splitlines()}
    found = defined_dynamic_symbols(library)
    assert found == expected
    assert {"_Z2f_ILi3EEvv", "_Z2f_ILi4EEvv", "variable"} <= found
    assert not {"_Z6hiddenv", "puts"} & found


def test_every_truncation_is_an_error_that_names_the_file(library: Path, tmp_path: Path) -> None:
    whole = library.read_bytes()
    cut = tmp_path / "cut.so"
    for size in [*range(0, 128, 3), *range(128, len(whole) - 1, len(whole) // 97)]:
        cut.write_bytes(whole[:size])
        with pytest.raises(CkPostBuildError, match=r"cut\.so: this is no whole ELF file.*Delete it"):
            defined_dynamic_symbols(cut)


def test_every_damaged_header_byte_is_an_error_or_read(library: Path, tmp_path: Path) -> None:
    whole = bytearray(library.read_bytes())
    damaged = tmp_path / "damaged.so"
    for position in range(64):
        for value in (0, 0xFF):
            content = bytearray(whole)
            content[position] = value
            damaged.write_bytes(content)
            try:
                defined_dynamic_symbols(damaged)
            except CkPostBuildError as error:
                assert "damaged.so" in str(error)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"!<arch>\n"])
def test_other_files_are_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.so").write_bytes(content)
    with pytest.raises(CkPostBuildError, match=r"x\.so: this is no whole ELF file"):
        defined_dynamic_symbols(tmp_path / "x.so")


def test_objects_and_missing_files_are_errors(library: Path, tmp_path: Path) -> None:
    subprocess.run(["clang++-19", "-c", library.parent / "a.cpp", "-o", tmp_path / "a.o"], check=True, timeout=120)
    with pytest.raises(CkPostBuildError, match="no dynamic symbols: it is no shared object"):
        defined_dynamic_symbols(tmp_path / "a.o")
    with pytest.raises(CkPostBuildError, match=r"none\.so: cannot read the file: No such file"):
        defined_dynamic_symbols(tmp_path / "none.so")
