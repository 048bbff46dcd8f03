"""What the benchmarks work on, found by the scripts that the tests use too: a HIP compiler, CK, and its generated sources."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TARGETS = ("gfx942", "gfx950")
DIRECTIONS = ("fwd", "fwd_splitkv", "batch_prefill", "bwd")


def _answer(script: str, *words: str) -> Path:
    command = [str(REPOSITORY / "scripts" / script), *words]
    return Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


@cache
def rocm() -> Path:
    """Return a ROCm: one assembled from Debian's clang and HIP 7.1's headers."""
    return _answer("rocm_prefix.sh", "--standin", "--assemble")


@cache
def aiter() -> Path:
    """Return the unpacked amd-aiter wheel."""
    return _answer("fetch_ck.sh")


def ck() -> Path:
    """Return the composable_kernel directory in it."""
    return aiter() / "aiter_meta/3rdparty/composable_kernel"


def flags() -> list[str]:
    """Return flags with which CK's attention compiles, without architectures."""
    defines = ["-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3", "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"]
    includes = [f"-I{ck() / 'include'}", f"-I{ck() / 'example/ck_tile/01_fmha'}"]
    return ["-x", "hip", "-std=c++20", "-O3", "-fPIC", *defines, *includes]


def generate(direction: str, output: Path, *words: str, targets: tuple[str, ...] = TARGETS) -> Path:
    """Run CK's generator for a direction, receipt 600, into `output`; return the API file."""
    script = ck() / "example/ck_tile/01_fmha/generate.py"
    command = [sys.executable, script, "--direction", direction, "--receipt", "600", "--targets", ",".join(targets)]
    subprocess.run([*command, "--output_dir", output, *words], check=True, stdout=subprocess.DEVNULL)
    return next(output.glob("fmha_*_api.cpp"))
