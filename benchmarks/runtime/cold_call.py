"""What compiling one blob costs: ck_jit_compile.sh against the plain single hipcc command, side by side in one run.

    python benchmarks/runtime/cold_call.py --hipcc PATH --blob FILE.cpp --flags "-x hip ... -I..." [--arch gfx90a]

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

SCRIPT = Path(__file__).resolve().parent.parent.parent / "ck_jit_runtime/ck_jit_compile.sh"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hipcc", required=True)
    parser.add_argument("--blob", type=Path, required=True)
    parser.add_argument("--flags", required=True, help="as a shell would read them, without the architecture")
    parser.add_argument("--arch", default="gfx90a")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    flags = [*shlex.split(options.flags), f"--offload-arch={options.arch}", "-cuid=ck_jit"]
    escaped = " ".join("".join("\\" + c if c in " \t\n\\" else c for c in flag) for flag in flags)
    blob = str(options.blob.resolve())
    with tempfile.TemporaryDirectory() as directory:
        plain_so, ours_so = Path(directory) / "plain.so", Path(directory) / "ours.so"
        plain = [options.hipcc, *flags, "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", str(plain_so), blob]
        ours = [str(SCRIPT), "--blob-source", blob, "--blob-flags", escaped]
        ours += ["--hipcc", options.hipcc, "--output", str(ours_so)]
        print("| round | hipcc s | its CPU s | ck_jit_compile.sh s | its CPU s | load |")
        print("| --- | --- | --- | --- | --- | --- |")
        walls: dict[str, list[float]] = {"plain": [], "ours": []}
        for number in range(options.rounds):
            (plain_wall, plain_cpu), (ours_wall, ours_cpu) = timed(plain), timed(ours)
            walls["plain"].append(plain_wall)
            walls["ours"].append(ours_wall)
            cells = [f"{value:.2f}" for value in (plain_wall, plain_cpu, ours_wall, ours_cpu, os.getloadavg()[0])]
            print(f"| {number + 1} | " + " | ".join(cells) + " |", flush=True)
        same = device_code(plain_so) == device_code(ours_so)
    print(f"ratio of the medians: {median(walls['ours']) / median(walls['plain']):.2f}")
    print(f"device code: {'equal' if same else 'DIFFERENT'}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
