"""CK's own generator, and the tool on what it writes."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FACTS = Path(__file__).with_name("facts.json")
TARGETS = "gfx942,gfx950"


@dataclass(frozen=True)
class Generated:
    """A direction as generate.py writes it for a receipt. `full`: too large for CI."""

    direction: str
    receipt: int
    full: bool = False

    @property
    def name(self) -> str:
        return f"{self.direction}_receipt_{self.receipt}"


ALL = (
    Generated("fwd_splitkv", 600),
    Generated("batch_prefill", 600),
    Generated("fwd_appendkv", 0),
    Generated("pagedkv_prefill", 0),
    Generated("fwd_splitkv", 0, full=True),
    Generated("fwd", 600, full=True),
    Generated("bwd", 600, full=True),
)


@functools.cache
def ck() -> Path:
    """Return CK's source tree, downloaded once."""
    tree = _answer(REPOSITORY / "scripts" / "fetch_ck.sh")
    return Path(tree) / "aiter_meta" / "3rdparty" / "composable_kernel"


@functools.cache
def rocm() -> str:
    """Return a ROCm prefix, the machine's or an assembled one."""
    return _answer(REPOSITORY / "scripts" / "rocm_prefix.sh", "--assemble", "--standin")


def _answer(*words: str | Path) -> str:
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, timeout=1800, check=True)
    return done.stdout.strip()


def generate(generated: Generated, output: Path, script: str = "generate.py") -> Path:
    """Run CK's generator into `output` and return the API file."""
    fmha = ck() / "example" / "ck_tile" / "01_fmha"
    words = ["--direction", generated.direction, "--receipt", str(generated.receipt), "--targets", TARGETS]
    subprocess.run(
        [sys.executable, fmha / script, *words, "--output_dir", output],
        check=True,
        timeout=600,
        stdout=subprocess.DEVNULL,
    )
    return next(output.glob("fmha_*_api.cpp"))


def flags() -> str:
    """Return flags with which CK's headers compile."""
    fmha = ck() / "example" / "ck_tile" / "01_fmha"
    arches = [f"--offload-arch={target}" for target in TARGETS.split(",")]
    defines = ["-DCK_TILE_FMHA_FWD_FAST_EXP2=1", "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3"]
    return shlex.join(["-std=c++20", "-O3", "-fPIC", *defines, f"-I{ck() / 'include'}", f"-I{fmha}", *arches])


def rewrite(
    apis: list[Path], blob_dirs: list[Path], output: Path, *options: str | Path, cwd: Path | None = None, **extra: str
) -> None:
    """Run ``ck-post-build rewrite``; `extra` is added to the environment."""
    words: list[str | Path] = [
        sys.executable,
        "-m",
        "ck_post_build",
        "rewrite",
        "--flags",
        flags(),
        "-o",
        output,
        *options,
    ]
    for api in apis:
        words += ["--api", api]
    for blob_dir in blob_dirs:
        words += ["--blob-dir", blob_dir]
    env = {key: value for key, value in os.environ.items() if not key.startswith("CK_")} | {"ROCM_PATH": rocm()} | extra
    done = subprocess.run(
        [*map(str, words)], env=env, cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr


def facts(output: Path, report: Path) -> dict[str, object]:
    """Return what is recorded of a rewrite."""
    found = json.loads(report.read_bytes())
    blobs = json.loads((output / "ck_post_build.json").read_bytes())["blobs"]
    symbols = sorted({symbol for blob in blobs for symbol in blob["symbols"]})
    reached = {symbol for entry in found["entries"] for symbol in entry["symbols"]}
    return {
        "sites": found["sites"],
        "unresolved": found["unresolved"],
        "discarded": len(found["discarded"]),
        "blobs": found["blobs"],
        "unreferenced_blobs": len(found["unreferenced_blobs"]),
        "symbols": len(symbols),
        "symbols_sha256": hashlib.sha256("\n".join(symbols).encode()).hexdigest(),
        "reached_symbols_sha256": hashlib.sha256("\n".join(sorted(reached)).encode()).hexdigest(),
        "sites_sha256": hashlib.sha256(
            "\n".join(f"{e['line']} {e['direction']} {e['blobs']}" for e in found["entries"]).encode()
        ).hexdigest(),
    }
