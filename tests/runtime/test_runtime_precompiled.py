"""The precompiled header of the device half: made once, used by the next blob, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import toy

# The pair is what HIP's headers have: functions that differ in nothing but the side they are for.
SHARED = """#pragma once
__attribute__((host)) inline int side() { return 1; }
__attribute__((device)) inline int side() { return 2; }
template <int N> struct Answer {
    __attribute__((device)) int operator()() const { return N + side(); }
};
"""
PROLOGUE = """#include "shared.h"
#if defined(__HIP_DEVICE_COMPILE__)
__attribute__((device)) inline int example() { return Answer<1>{}(); }
#endif
"""
FLAGS = "-x hip -nogpuinc -nogpulib -O2 -std=c++20 -I@CK_JIT_ROOT@/include"


@pytest.fixture(params=["plain", "odd '\"$x\n%s\\ ü"])
def hip_library(objects: list[Path], tmp_path: Path, request: pytest.FixtureRequest) -> toy.ToyLibrary:
    (tmp_path / request.param).mkdir()
    text = '#include "shared.h"\n' + (toy.HERE / "hip_blob.cpp.in").read_text().replace(
        "*p = @N@", "*p = Answer<@N@>{}()"
    )
    blobs = [toy.ToyBlob(number, flags=FLAGS, text=text.replace("@N@", str(number))) for number in (1, 2)]
    library = toy.ToyLibrary(tmp_path / request.param, objects, blobs=blobs).build()
    (library.root_dir / "include").mkdir()
    (library.root_dir / "include/shared.h").write_text(SHARED)
    (library.root_dir / "precompile").mkdir()
    (library.root_dir / "precompile/toy.cpp").write_text(PROLOGUE)
    (library.root_dir / "toy.precompile").write_text("".join(f"{blob.name}\tprecompile/toy.cpp\0" for blob in blobs))
    return library


Script = Callable[..., bytes]


@pytest.fixture
def script(hip_library: toy.ToyLibrary, hipcc: Path, tmp_path: Path) -> Script:
    """Compiles toy_1.cpp as the runtime does, and returns the shared object's bytes."""

    def compile_blob(flags: str = "--offload-arch=gfx90a", **extra: str) -> bytes:
        output = tmp_path / "out.so"
        output.unlink(missing_ok=True)
        (tmp_path / "commands").unlink(missing_ok=True)
        env = toy.environment(tmp_path, CK_JIT_PRECOMPILED=str(tmp_path / "precompiled/compiler"), **extra)
        done = subprocess.run(
            words(hip_library, hipcc, output, flags), env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert "module" not in done.stderr
        return output.read_bytes()

    return compile_blob


def words(library: toy.ToyLibrary, hipcc: Path, output: Path, flags: str) -> list[str]:
    command = [str(library.root_dir / "ck_jit_compile.sh"), "--blob-source", "blobs/toy_1.cpp"]
    return [*command, "--blob-flags", f"{FLAGS} {flags}", "--output", str(output), "--hipcc", str(hipcc)]


def header(tmp_path: Path) -> Path | None:
    return next((tmp_path / "precompiled/compiler").glob("*.pch"), None)


def made_header(tmp_path: Path) -> Path:
    """Wait for the header that is made in the background."""
    wait_for(lambda: header(tmp_path) is not None)
    made = header(tmp_path)
    assert made is not None
    return made


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def uses(tmp_path: Path) -> int:
    return (tmp_path / "commands").read_text().count("-include-pch")


def test_the_first_blob_leaves_a_header_for_the_next_and_nothing_else_changes(script: Script, tmp_path: Path) -> None:
    plain = script(CK_JIT_PRECOMPILE="0")
    assert header(tmp_path) is None
    first = script()
    assert uses(tmp_path) == 0
    assert made_header(tmp_path).stat().st_size > 0
    assert script() == first == plain
    assert uses(tmp_path) == 1
    assert made_header(tmp_path).stat().st_size > 0, "clang could read it"


def test_first_makes_it_before_and_uses_it_at_once(script: Script, tmp_path: Path) -> None:
    script(CK_JIT_PRECOMPILE="first")
    assert uses(tmp_path) == 1
    assert made_header(tmp_path).stat().st_size > 0, "clang could read it"
    script(CK_JIT_PRECOMPILE="first")
    assert (tmp_path / "commands").read_text().count("-emit-pch") == 0


def test_a_damaged_header_is_made_again(script: Script, tmp_path: Path) -> None:
    plain = script(CK_JIT_PRECOMPILE="first")
    made = made_header(tmp_path)
    data = bytearray(made.read_bytes())
    data[len(data) // 2] ^= 1
    made.write_bytes(data)
    assert script() == plain
    assert script(CK_JIT_PRECOMPILE="first") == plain
    assert made.stat().st_size == len(data)


def test_a_header_that_no_longer_fits_is_not_tried_again(
    script: Script, hip_library: toy.ToyLibrary, tmp_path: Path
) -> None:
    script(CK_JIT_PRECOMPILE="first")
    shared = hip_library.root_dir / "include/shared.h"
    shared.write_text(shared.read_text() + "// another\n")
    plain = script(CK_JIT_PRECOMPILE="0")
    assert script() == plain
    assert made_header(tmp_path).stat().st_size == 0
    assert script() == plain
    assert uses(tmp_path) == 0


def test_a_header_that_does_not_compile_costs_one_try(
    script: Script, hip_library: toy.ToyLibrary, tmp_path: Path
) -> None:
    plain = script(CK_JIT_PRECOMPILE="0")
    (hip_library.root_dir / "precompile/toy.cpp").write_text("#error no\n")
    assert script(CK_JIT_PRECOMPILE="first") == plain
    assert made_header(tmp_path).stat().st_size == 0
    assert script(CK_JIT_PRECOMPILE="first") == plain
    assert (tmp_path / "commands").read_text().count("-emit-pch") == 0


def test_an_error_in_the_blob_is_quoted_once_and_the_header_stays(
    script: Script, hip_library: toy.ToyLibrary, hipcc: Path, tmp_path: Path
) -> None:
    script(CK_JIT_PRECOMPILE="first")
    blob = hip_library.root_dir / "blobs/toy_1.cpp"
    blob.write_text(blob.read_text().replace("*p =", "*p = wrong +"))
    env = toy.environment(tmp_path, CK_JIT_PRECOMPILED=str(tmp_path / "precompiled/compiler"))
    command = words(hip_library, hipcc, tmp_path / "wrong.so", "--offload-arch=gfx90a")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.count("use of undeclared identifier 'wrong'") == 1
    assert made_header(tmp_path).stat().st_size > 0


def test_processes_that_start_together_make_one(
    script: Script, hip_library: toy.ToyLibrary, hipcc: Path, tmp_path: Path
) -> None:
    env = toy.environment(
        tmp_path, CK_JIT_PRECOMPILED=str(tmp_path / "precompiled/compiler"), CK_JIT_PRECOMPILE="first"
    )
    commands = [words(hip_library, hipcc, tmp_path / f"{n}.so", "--offload-arch=gfx90a") for n in range(4)]
    running = [subprocess.Popen(command, env=env) for command in commands]
    assert [process.wait(120) for process in running] == [0] * 4
    assert (tmp_path / "commands").read_text().count("-emit-pch") == 1
    assert len({(tmp_path / f"{n}.so").read_bytes() for n in range(4)}) == 1


@pytest.mark.parametrize("mode", ["", "first"])
def test_without_a_place_for_it_the_blob_is_compiled_all_the_same(script: Script, tmp_path: Path, mode: str) -> None:
    plain = script(CK_JIT_PRECOMPILE="0")
    (tmp_path / "precompiled").write_text("no directory")
    assert script(CK_JIT_PRECOMPILE=mode) == plain


def test_without_the_records_the_blob_is_compiled_all_the_same(
    script: Script, hip_library: toy.ToyLibrary, tmp_path: Path
) -> None:
    (hip_library.root_dir / "toy.precompile").unlink()
    script(CK_JIT_PRECOMPILE="first")
    assert header(tmp_path) is None


@pytest.mark.parametrize("flags", ["--offload-arch=gfx90a --offload-arch=gfx942", "--offload-arch=gfx90a,gfx942"])
def test_device_code_for_two_architectures_has_no_common_header(script: Script, tmp_path: Path, flags: str) -> None:
    script(flags, CK_JIT_PRECOMPILE="first")
    assert header(tmp_path) is None


def test_a_header_reinstalled_or_other_flags_get_another_one(
    script: Script, hip_library: toy.ToyLibrary, tmp_path: Path
) -> None:
    script(CK_JIT_PRECOMPILE="first")
    script("--offload-arch=gfx90a -DOTHER", CK_JIT_PRECOMPILE="first")
    os.utime(hip_library.root_dir / "precompile/toy.cpp", (0, 0))
    script(CK_JIT_PRECOMPILE="first")
    assert len(list((tmp_path / "precompiled/compiler").glob("*.pch"))) == 3


def test_what_nobody_used_for_a_week_is_removed(script: Script, tmp_path: Path) -> None:
    script(CK_JIT_PRECOMPILE="first")
    made = made_header(tmp_path)
    week_ago = time.time() - 8 * 24 * 3600
    os.utime(made, (week_ago, week_ago))
    script("--offload-arch=gfx90a -DOTHER", CK_JIT_PRECOMPILE="first")
    assert not made.exists()


def test_the_runtime_says_where(hip_library: toy.ToyLibrary, driver: Path, hipcc: Path, tmp_path: Path) -> None:
    env = toy.environment(tmp_path, CK_JIT_HIPCC=str(hipcc), CK_JIT_PRECOMPILE="first")
    assert toy.drive(driver, hip_library, env, "i:0", "i:1").values == {"i:0": 1001, "i:1": 1002}
    assert uses(tmp_path) == 2
    assert len(list((tmp_path / f"tmp/ck-jit-{os.geteuid()}/precompiled").glob("*/*.pch"))) == 1


def test_the_maker_ends_with_the_process_that_wanted_the_blob(
    hip_library: toy.ToyLibrary, hipcc: Path, tmp_path: Path
) -> None:
    hipcc.write_text(
        hipcc.read_text().replace("#!/bin/bash", "#!/bin/bash\n[[ $* != *-emit-pch* ]] || exec sleep 4321")
    )
    env = toy.environment(tmp_path, CK_JIT_PRECOMPILED=str(tmp_path / "precompiled/compiler"))
    command = words(hip_library, hipcc, tmp_path / "out.so", "--offload-arch=gfx90a")
    wait = "import subprocess, sys, time; subprocess.run(sys.argv[1:], check=True); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", wait, *command], env=env, stdout=subprocess.PIPE) as wanting:
        assert wanting.stdout is not None
        try:
            assert wanting.stdout.readline() == b"\n", "the blob is there while its header is still being made"
            wait_for(lambda: running(env) == 1)
        finally:
            wanting.kill()
    wait_for(lambda: running(env) == 0)


def running(env: Mapping[str, str]) -> int:
    """How many of the sleeping compilers with this test's environment are alive."""
    own = f"CK_JIT_PRECOMPILED={env['CK_JIT_PRECOMPILED']}".encode()
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            sleeping = (process / "cmdline").read_bytes() == b"sleep\x004321\x00"
            found += sleeping and own in (process / "environ").read_bytes()
        except OSError:
            continue
    return found
