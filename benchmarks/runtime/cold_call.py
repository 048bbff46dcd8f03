"""What compiling one blob costs: ck_jit_compile.sh against the plain single hipcc command, side by side in one run.

    python benchmarks/runtime/cold_call.py [--hipcc PATH] [--blob FILE.cpp --flags "-x hip ... -I..."] [--arch gfx90a]

Without --blob, three real ones are generated and compiled with an assembled HIP compiler: forward, split-KV, backward.
That takes about a quarter of an hour.

The two take turns; the table has seconds on the wall and of processor time for each round, and the ratio of the medians.
The device code of the two is compared byte by byte (both get the same -cuid; without one, clang makes it up from the
output's name). Use a quiet machine: with all cores busy, compiling two halves side by side wins nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from elftools.elf.elffile import ELFFile

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import inputs

SCRIPT = Path(__file__).resolve().parent.parent.parent / "ck_jit_runtime/ck_jit_compile.sh"

# A direction and the blobs of it to choose from: a common head size and type, without the inline assembly of the asynchronous
# pipelines, which clang 19 refuses.
GENERATED = {
    "fwd": "fmha_fwd_d128_bf16_*_qr_vr_*.cpp",
    "fwd_splitkv": "fmha_fwd_splitkv_d128_bf16_*_qr_vr_*.cpp",
    "bwd": "fmha_bwd_d64_bf16_*.cpp",
}


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds on the wall and of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def device_code(path: Path) -> bytes:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".hip_fatbin")
        return bytes(section.data()) if section else b""


def generated_blobs(directory: Path, arch: str) -> list[Path]:
    """Generate CK's sources for `arch` and return one blob each of forward, split-KV and backward."""
    found = []
    for direction, pattern in GENERATED.items():
        api = inputs.generate(direction, directory / direction, targets=(arch,))
        found.append(min(path for path in api.parent.glob(pattern) if path != api))
    return found


def compare(blob: Path, options: argparse.Namespace, directory: Path) -> tuple[float, bool]:
    """Print a table of rounds; return the ratio of the medians and whether the device code is equal."""
    flags = [*options.flags, f"--offload-arch={options.arch}", "-cuid=ck_jit"]
    escaped = " ".join("".join("\\" + c if c in " \t\n\\" else c for c in flag) for flag in flags)
    plain_so, ours_so = directory / "plain.so", directory / "ours.so"
    plain = [options.hipcc, *flags, "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", str(plain_so), str(blob)]
    ours = [str(SCRIPT), "--blob-source", str(blob), "--blob-flags", escaped]
    ours += ["--hipcc", options.hipcc, "--output", str(ours_so)]
    print(f"{blob.name}\n\n| round | hipcc s | its CPU s | ck_jit_compile.sh s | its CPU s | load |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    walls: dict[str, list[float]] = {"plain": [], "ours": []}
    for number in range(options.rounds):
        (plain_wall, plain_cpu), (ours_wall, ours_cpu) = timed(plain), timed(ours)
        walls["plain"].append(plain_wall)
        walls["ours"].append(ours_wall)
        cells = [f"{value:.2f}" for value in (plain_wall, plain_cpu, ours_wall, ours_cpu, os.getloadavg()[0])]
        print(f"| {number + 1} | " + " | ".join(cells) + " |", flush=True)
    ratio = median(walls["ours"]) / median(walls["plain"])
    same = device_code(plain_so) == device_code(ours_so)
    print(f"\nratio of the medians: {ratio:.2f}; device code: {'equal' if same else 'DIFFERENT'}\n", flush=True)
    return ratio, same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hipcc", help="default: that of an assembled prefix")
    parser.add_argument("--blob", type=lambda text: Path(text).resolve(), action="append", help="repeats")
    parser.add_argument("--flags", type=shlex.split, help="as a shell would read them, without the architecture")
    parser.add_argument("--arch", default="gfx90a")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.hipcc = options.hipcc or str(inputs.rocm() / "bin/hipcc")
    options.flags = options.flags or inputs.flags()
    with tempfile.TemporaryDirectory(prefix="ck-jit-bench-") as directory:
        blobs = options.blob or generated_blobs(Path(directory), options.arch)
        results = [compare(blob, options, Path(directory)) for blob in blobs]
    print(f"median ratio of {len(results)} blobs: {median(ratio for ratio, _ in results):.2f}")
    sys.exit(0 if all(same for _, same in results) else 1)


if __name__ == "__main__":
    main()
