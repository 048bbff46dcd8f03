"""``python -m tests.oracle.other_ck flash_attn fwd -o DIR``: the oracle on CK as source distributions on PyPI carry it.

They are downloaded and unpacked, not built: their ``setup.py`` asks for torch.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from filelock import FileLock

from .__main__ import report
from .run import ARCHES, Oracle


@dataclass(frozen=True)
class OtherCk:
    """A source distribution with CK in it, and how many sites its generator's receipt 0 makes of each direction."""

    requirement: str
    sha256: str
    directory: str
    flags: tuple[str, ...]
    sites: dict[str, int]


# HIP's `warpSize` is no constant any more; later CKs have their own.
_WARP_SIZE = "namespace ck_tile { static constexpr int warpSize = 64; }\n"
CKS = {
    "flash_attn": OtherCk(
        "flash_attn==2.8.3",
        "1e71dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d",
        "csrc/composable_kernel",
        ("-Wno-invalid-constexpr",),
        {
            "fwd": 5016,
            "fwd_splitkv": 3864,  # and 24 in discarded branches
            "fwd_appendkv": 195,
            "batch_prefill": 768,
            "pagedkv_prefill": 384,
            "bwd": 16896,
        },
    ),
    "xformers": OtherCk(
        "xformers==0.0.31",
        "3fccb159c6327c13fc1b08f8b963c2779ca526e2e50755dee9bcc1bac67d20c6",
        "third_party/flash-attention/csrc/composable_kernel",
        ("-Wno-invalid-constexpr", "-include", "warp_size.h"),
        {"fwd": 1386, "fwd_splitkv": 2322, "bwd": 10752},  # split-KV: and 18 in discarded branches
    ),
}


def fetch(name: str) -> Path:
    """Return CK's tree in the source distribution, downloaded once.

    Raises:
        SystemExit: it cannot be had, or is another file.
    """
    ck = CKS[name]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ck-post-build-inputs"
    tree = cache / ck.requirement.replace("==", "-")
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "other_ck.lock"):
        if not tree.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _unpacked(ck, Path(scratch)).rename(tree)
    return tree / ck.directory


def _unpacked(ck: OtherCk, scratch: Path) -> Path:
    words = [sys.executable, "-m", "unearth", "--no-binary", "--download", scratch, ck.requirement]
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)
    (archive,) = scratch.glob("*.tar.gz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != ck.sha256:
        raise SystemExit(f"{archive.name}: the SHA-256 is {digest}, expected {ck.sha256}")
    with tarfile.open(archive) as tar:
        tar.extractall(scratch / "unpacked", filter="data")
    (tree,) = (scratch / "unpacked").iterdir()
    return tree


def oracle(name: str, direction: str, output: Path) -> Oracle:
    """Generate the direction with that CK's own generator, and return an oracle that is not built yet."""
    ck = fetch(name)
    fmha = ck / "example" / "ck_tile" / "01_fmha"
    generated = output / "generated"
    words = [sys.executable, fmha / "generate.py", "-d", direction, "--receipt", "0", "--output_dir", generated]
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)
    (output / "warp_size.h").write_text(_WARP_SIZE)
    own = [str(output / flag) if flag == "warp_size.h" else flag for flag in CKS[name].flags]
    flags = ["-std=c++20", "-fPIC", *own, f"-I{ck / 'include'}", f"-I{fmha}", "--offload-arch=gfx942"]
    (path,) = generated.glob("fmha_*_api.cpp")
    return Oracle(path, generated, shlex.join(flags), output / "oracle")


@click.command()
@click.argument("name", type=click.Choice(sorted(CKS)))
@click.argument("direction")
@click.option("--random", "random_inputs", default=1_000_000, help="Random inputs for each architecture.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Directory to build in.")
def main(name: str, direction: str, random_inputs: int, output: Path) -> None:
    """Compare the original and the rewritten dispatcher of one direction. Exit status 1: they differ."""
    checked = oracle(name, direction, output)
    checked.build(seed=1)
    result = checked.drive(random_inputs, 1, ARCHES)
    report(f"{name} {direction}", result, list_unreached=True)
    sys.exit(1 if result.differences else 0)


if __name__ == "__main__":
    main()
