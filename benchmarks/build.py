"""What a build costs: from CK's generated sources to both linked libraries, a build without changes, a changed blob.

    python benchmarks/build.py [--direction batch_prefill]... [-j N]

The baseline is the part that the best other way cannot do without: to catch the compile commands of all blobs, the build
system starts one Python interpreter for each in the compiler's place. 100 starts are timed here and scaled to all blobs;
nothing else of that way is counted. Prints Markdown. Memory is that of the largest process.
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

import inputs

from ck_post_build.library_size import library_size

LIBRARIES = {"libmha_fwd.so": ("fwd", "fwd_splitkv", "batch_prefill"), "libmha_bwd.so": ("bwd",)}
STARTS = 100


class Bench:
    """The generated sources of some directions, and the libraries made of them, in a directory."""

    def __init__(self, directory: Path, directions: list[str], jobs: int | None) -> None:
        self.directory = directory
        self.jobs = ["-j", str(jobs)] if jobs else []
        self.apis = {name: inputs.generate(name, directory / name) for name in directions}
        chosen = {library: [d for d in wanted if d in directions] for library, wanted in LIBRARIES.items()}
        self.libraries = {library: wanted for library, wanted in chosen.items() if wanted}

    def blobs(self) -> int:
        """The number of generated blobs."""
        return sum(len(list(api.parent.glob("*.cpp"))) - 1 for api in self.apis.values())

    def build(self, library: str) -> float:
        """Build a library and return the seconds."""
        arches = [f"--offload-arch={arch}" for arch in inputs.TARGETS]
        command = [sys.executable, "-m", "ck_post_build", "build", "--lib", library, *self.jobs]
        command += ["-o", str(self.directory / f"{library}.build"), "--flags", shlex.join([*inputs.flags(), *arches])]
        for direction in self.libraries[library]:
            command += ["--api", str(self.apis[direction]), "--blob-dir", str(self.apis[direction].parent)]
        started = time.monotonic()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "ROCM_PATH": str(inputs.rocm())}
        )
        return time.monotonic() - started

    def build_all(self) -> float:
        """Build all libraries, one after another."""
        return sum(self.build(library) for library in self.libraries)

    def change_a_blob(self) -> str:
        """Change the source of one blob, and return the library that it belongs to."""
        library, (direction, *_) = next(iter(self.libraries.items()))
        blob = min(path for path in self.apis[direction].parent.glob("*.cpp") if path != self.apis[direction])
        blob.write_text(blob.read_text() + "// changed\n")
        return library


def interpreter_start() -> float:
    """Return the seconds that one start of Python takes: the mean, since all of them are paid."""
    started = time.monotonic()
    for _ in range(STARTS):
        subprocess.run([sys.executable, "-c", "import json, subprocess, sys"], check=True)
    return (time.monotonic() - started) / STARTS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--direction", action="append", choices=inputs.DIRECTIONS, help="repeats; default: all four")
    parser.add_argument("-j", dest="jobs", type=int, help="compiles at once; default: ninja's choice")
    options = parser.parse_args()
    inputs.rocm()
    with tempfile.TemporaryDirectory(prefix="ck-post-build-bench-") as directory:
        bench = Bench(Path(directory), options.direction or list(inputs.DIRECTIONS), options.jobs)
        blobs, start = bench.blobs(), interpreter_start()
        print(f"{', '.join(bench.apis)}: {blobs} blobs; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        print("| what | s |\n| --- | --- |", flush=True)
        print(f"| baseline: {blobs} interpreter starts, from {STARTS} | {start * blobs:.0f} |", flush=True)
        full = bench.build_all()
        print(f"| build | {full:.1f} |", flush=True)
        print(f"| build again, nothing changed | {bench.build_all():.2f} |", flush=True)
        changed = bench.change_a_blob()
        print(f"| build {changed} again, one blob changed | {bench.build(changed):.2f} |")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(f"\nbuild / baseline: {full / (start * blobs):.2f}; largest process: {peak:.2f} GiB\n")
        print("| library | KiB | of it manifest |\n| --- | --- | --- |")
        for library in bench.libraries:
            sizes = library_size(Path(directory) / f"{library}.build" / library)
            print(f"| {library} | {sizes.file / 1024:.0f} | {100 * sizes.manifest / sizes.file:.0f} % |")


if __name__ == "__main__":
    main()
