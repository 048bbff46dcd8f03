"""Blobs with real device code, compiled by a clang that knows HIP. No HIP headers, libraries or GPU are needed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import toy
from elftools.elf.elffile import ELFFile

FLAGS = "-x hip -nogpuinc -nogpulib -O2"


@pytest.fixture
def hip_library(objects: list[Path], tmp_path: Path) -> toy.ToyLibrary:
    text = (toy.HERE / "hip_blob.cpp.in").read_text()
    blobs = [toy.ToyBlob(n, flags=FLAGS, text=text.replace("@N@", str(n))) for n in (1, 2)]
    blobs.append(toy.ToyBlob(3, flags=FLAGS + " -cuid=ck_jit", text=text.replace("@N@", "3")))
    blobs.append(toy.ToyBlob(4, flags=FLAGS, text=text.replace("@N@", "4").replace("*p =", "*p = wrong +")))
    return toy.ToyLibrary(tmp_path, objects, blobs=blobs).build()


def device_code(tmp_path: Path, cache: str) -> bytes:
    (entry,) = (tmp_path / cache).glob("*.so")
    section = ELFFile(io.BytesIO(entry.read_bytes())).get_section_by_name(".hip_fatbin")
    assert section
    return bytes(section.data())


def env(tmp_path: Path, hipcc: Path, **extra: str) -> dict[str, str]:
    return toy.environment(tmp_path, CK_JIT_HIPCC=str(hipcc), **extra)


def test_the_two_halves_side_by_side(hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path) -> None:
    result = toy.drive(driver, hip_library, env(tmp_path, hipcc), "i:0")
    assert result.values == {"i:0": 1001}, result.stderr
    commands = (tmp_path / "commands").read_text()
    assert commands.count("--cuda-device-only") == commands.count("--cuda-host-only") == 1
    assert len(commands.splitlines()) == 4, "two halves, an object with the device code, the link"
    assert b"__CLANG_OFFLOAD_BUNDLE__" in device_code(tmp_path, "cache")


def test_the_device_code_is_that_of_one_command(
    hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path
) -> None:
    split = env(tmp_path, hipcc, CK_JIT_CACHE_DIR=str(tmp_path / "split"))
    whole = env(tmp_path, hipcc, CK_JIT_CACHE_DIR=str(tmp_path / "whole"), CK_JIT_SPLIT="0")
    assert toy.drive(driver, hip_library, split, "i:2").values == {"i:2": 1003}
    (tmp_path / "commands").unlink()
    assert toy.drive(driver, hip_library, whole, "i:2").values == {"i:2": 1003}
    assert len((tmp_path / "commands").read_text().splitlines()) == 1
    assert device_code(tmp_path, "split") == device_code(tmp_path, "whole")


@pytest.mark.parametrize("split", ["0", "1"])
def test_device_code_for_another_arch_is_refused(
    split: str, hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path
) -> None:
    result = toy.drive(driver, hip_library, env(tmp_path, hipcc, WRONG_ARCH="gfx942", CK_JIT_SPLIT=split), "i:0")
    assert result.values == {"i:0": -1}
    assert "it has device code for gfx942, not for gfx90a" in result.error
    assert list((tmp_path / "cache").glob("*.so")) == []


@pytest.mark.parametrize("split", ["0", "1"])
def test_an_error_in_the_source_is_quoted_once(
    split: str, hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path
) -> None:
    result = toy.drive(driver, hip_library, env(tmp_path, hipcc, CK_JIT_SPLIT=split), "i:3")
    assert result.values == {"i:3": -1}
    assert "error: use of undeclared identifier 'wrong'" in result.error
    (log,) = (tmp_path / "cache/log").iterdir()
    assert log.read_text().count("undeclared identifier") == 1


def test_a_compiler_that_cannot_do_it_in_halves_does_it_whole(
    hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path
) -> None:
    hipcc.write_text(hipcc.read_text().replace("#!/bin/bash", "#!/bin/bash\n[[ $* != *assembler* ]] || exit 1"))
    result = toy.drive(driver, hip_library, env(tmp_path, hipcc), "i:1")
    assert result.values == {"i:1": 1002}, result.stderr
    assert "-shared" in (tmp_path / "commands").read_text().splitlines()[-1]
