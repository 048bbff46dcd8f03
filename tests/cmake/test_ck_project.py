"""The example project on real CK: generated at build time, built, built again, changed, installed, run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import ninja
import pytest
from golden.golden import REPOSITORY

HERE = Path(__file__).parent
COMMAND = Path(sys.executable).with_name("ck-post-build")


def run(*words: str | Path, **extra: str) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CK_", "ROCM_", "HIP_"))} | extra
    done = subprocess.run([*map(str, words)], env=env, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.real_ck
@pytest.mark.timeout(1200)
def test_the_example_project(tmp_path: Path, aiter_tree: Path, rocm_prefix: Path) -> None:
    build, ck = tmp_path / "build", aiter_tree / "aiter_meta" / "3rdparty" / "composable_kernel"
    cmake_dir = run(COMMAND, "--cmake-dir").strip()
    run(
        *("cmake", "-G", "Ninja", "-S", HERE / "ck", "-B", build, f"-DCMAKE_MAKE_PROGRAM={ninja.BIN_DIR}/ninja"),
        *("-DCMAKE_CXX_COMPILER=clang++-19", f"-DPython3_EXECUTABLE={sys.executable}", f"-DCK_DIR={ck}"),
        *(f"-DCK_POST_BUILD_CMAKE_DIR={cmake_dir}", f"-DCK_POST_BUILD_EXECUTABLE={COMMAND}"),
        f"-DCK_POST_BUILD_ROCM_PATH={rocm_prefix}",
    )
    assert not (build / "generated").exists()
    first = run("cmake", "--build", build)
    assert "Generating CK's forward dispatcher" in first
    blobs = sorted((build / "generated").glob("*_gfx9.cpp"))
    assert blobs
    assert "no work to do" in run("cmake", "--build", build)

    time.sleep(0.02)
    os.utime(blobs[0])
    again = run("cmake", "--build", build)
    assert "Building lazy library libmha_fwd.so" in again
    assert "Linking CXX executable" not in again
    assert "Generating" not in again
    assert "no work to do" in run("cmake", "--build", build)

    with blobs[0].open("a") as stream:
        stream.write("// another source hash\n")
    assert "Linking CXX executable" in run("cmake", "--build", build)
    assert run(build / "ask", CK_JIT_CACHE_DIR=str(tmp_path / "cache")) == "0 kernels compiled\n"

    run("cmake", "--install", build, "--prefix", tmp_path / "dist")
    library = next((tmp_path / "dist").glob("lib*/libmha_fwd.so"))
    assert {path.name for path in (library.parent / "ck_jit" / "blobs").iterdir()} == {blob.name for blob in blobs}
    assert f"{len(blobs)} blobs, {len(blobs)} symbols predicted" in run(COMMAND, "verify", library)
    exported = run("nm", "-DC", "--defined-only", library)
    assert "fmha_fwd(fmha_fwd_traits, fmha_fwd_args, ck_tile::stream_config const&)" in exported
    assert REPOSITORY.name not in run("sh", "-c", f"strings '{library}' | grep -F '{build}' || true")
