"""Forward and backward numbers of the real kernels, against attention in float64 on the host.

The tests marked ``gpu`` have not been run: no machine with an AMD GPU was at hand. What they rest on has: the reference
is tested here, check.cpp is compiled here, and its calls are those of the quickstart.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
QUICKSTART = REPOSITORY / "examples/quickstart"
WARNINGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror")


def execute(*command: str | Path, timeout: float = 300, **environment: str | Path) -> str:
    words = [str(word) for word in command]
    env = os.environ | {name: str(value) for name, value in environment.items()}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def compile_check(rocm: Path, target: Path) -> Path:
    execute(
        *("g++", *WARNINGS, "-D__HIP_PLATFORM_AMD__", "-isystem", rocm / "include", f"-I{QUICKSTART}"),
        *("-c", HERE / "check.cpp", "-o", target),
    )
    return target


def test_the_reference_solves_a_case_and_has_the_gradients_of_finite_differences(tmp_path: Path) -> None:
    execute("g++", *WARNINGS, HERE / "reference_test.cpp", "-o", tmp_path / "reference_test")
    execute(tmp_path / "reference_test")


@pytest.mark.real_ck
def test_the_check_of_numbers_compiles(tmp_path: Path, rocm_prefix: Path) -> None:
    assert compile_check(rocm_prefix, tmp_path / "check.o").stat().st_size > 0


@pytest.mark.gpu
@pytest.mark.real_ck
@pytest.mark.timeout(7200)
def test_forward_and_backward_numbers_on_the_gpu(tmp_path: Path) -> None:
    """Run quickstart.sh, which builds both libraries for this GPU, and then check.cpp with the same calls."""
    execute(REPOSITORY / "scripts/gpu_arch.sh")
    work = REPOSITORY / "build/quickstart"
    execute(REPOSITORY / "quickstart.sh", work, timeout=7000, CK_JIT_CACHE_DIR=work / "cache")
    rocm = Path(execute(REPOSITORY / "scripts/rocm_prefix.sh").strip())
    objects: list[str | Path] = [compile_check(rocm, tmp_path / "check.o"), work / "forward.o", work / "backward.o"]
    prefix = work / "prefix"
    libraries: list[str | Path] = [prefix / "libmha_fwd.so", prefix / "libmha_bwd.so", f"-Wl,-rpath,{prefix}"]
    execute(rocm / "bin/hipcc", *objects, *libraries, "-o", tmp_path / "check")
    print(execute(tmp_path / "check", timeout=7000, CK_JIT_CACHE_DIR=work / "cache"))
