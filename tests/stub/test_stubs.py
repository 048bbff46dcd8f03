"""The generated stubs, called with every kind of argument and result, on x86-64 and aarch64."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from ck_post_build.resources import template_environment

HERE = Path(__file__).parent
CLANG = os.environ.get("CK_TEST_CLANG", "clang++-19")
SYMBOLS = ("stub_mixed", "stub_string", "stub_big", "stub_pair", "stub_throws")
# Debian's cross packages, of scripts/install_packages.sh.
AARCH64 = ("--target=aarch64-linux-gnu", "-fuse-ld=lld", "-static")


def stub_file(directory: Path) -> Path:
    """Write stubs for the program's kernels: each has a slot of its own."""
    stubs = [{"symbol": s, "slot": n + 1, "kernel": n, "blob": f"blob {n}"} for n, s in enumerate(SYMBOLS)]
    template = template_environment().get_template("ck_jit_stubs.S.j2")
    path = directory / "stubs.S"
    path.write_text(template.render(stubs=stubs, kernels=range(len(stubs)), slots="_ZN6ck_jit5slotsE"))
    return path


def build(directory: Path, *words: str) -> Path:
    """Link the program with its stubs; calls are not inlined and arguments are passed as the ABI says."""
    program = directory / "program"
    command = [CLANG, "-std=c++17", "-O1", "-fPIE", "-Wall", "-Wextra", "-Werror", "-pthread", *words]
    subprocess.run([*command, HERE / "abi.cpp", stub_file(directory), "-o", program], check=True, timeout=120)
    return program


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="stubs are for x86-64 and aarch64")
def test_stubs_pass_everything_on(tmp_path: Path) -> None:
    program = build(tmp_path)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "as called directly\n"), done.stderr


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="needs scripts/install_packages.sh cross")
def test_stubs_pass_everything_on_under_qemu_on_aarch64(tmp_path: Path) -> None:
    program = build(tmp_path, *AARCH64)
    done = subprocess.run(["qemu-aarch64", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "as called directly\n"), done.stderr


@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_stubs_are_hidden_functions_with_unwind_tables(tmp_path: Path, target: str) -> None:
    source, output = stub_file(tmp_path), tmp_path / "stubs.o"
    subprocess.run([CLANG, f"--target={target}", "-c", source, "-o", output], check=True, timeout=60)
    with output.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = {symbol.name: symbol for symbol in elf.get_section_by_name(".symtab").iter_symbols()}
        for name in SYMBOLS:
            assert symbols[name]["st_info"]["type"] == "STT_FUNC"
            assert symbols[name]["st_other"]["visibility"] == "STV_HIDDEN"
            assert symbols[name]["st_size"] > 0
        undefined = {name for name, symbol in symbols.items() if name and symbol["st_shndx"] == "SHN_UNDEF"}
        failures = {f"ck_jit_stub_failed_{number}" for number in range(len(SYMBOLS))}
        assert undefined == {"ck_jit_stub_kernels", "_ZN6ck_jit5slotsE"} | failures
        assert elf.get_section_by_name(".note.GNU-stack")["sh_flags"] == 0
        entries = elf.get_dwarf_info().EH_CFI_entries()
        assert sum(isinstance(entry, FDE) for entry in entries) == len(SYMBOLS) + 1
