"""What a dispatch costs, and what it costs to compile: CK's dispatcher at -O3 against the copy that ``build`` compiles at -O1.

    python benchmarks/dispatch.py [--direction bwd]

Both are compiled for the host alone and linked with kernels that do nothing; the call asks the device for its name, as CK's
does, and finds its kernel. Prints Markdown. Compiling CK's backward dispatcher at -O3 takes 15 to 33 minutes of processor time
and 5 to 7 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import inputs

from ck_post_build.outline import outlined_name
from ck_post_build.resources import resource_dir

HERE = Path(__file__).resolve().parent / "dispatch"
# The dispatcher's parameters are part of its name; CK's backward one is a specialisation.
FUNCTIONS = {"fwd": "fmha_fwd(", "bwd": "fmha_bwd<2>("}
ROUNDS, CALLS = "30", "20000"


class Bench:
    """One direction, compiled in `directory`."""

    def __init__(self, direction: str, directory: Path) -> None:
        self.direction = direction
        self.directory = directory
        os.environ["ROCM_PATH"] = str(inputs.rocm())
        self.hipcc = inputs.rocm() / "bin/hipcc"
        self.api = inputs.generate(direction, directory / "generated")
        self.lazy = directory / "lazy"
        arches = [f"--offload-arch={arch}" for arch in inputs.TARGETS]
        command = [sys.executable, "-m", "ck_post_build", "rewrite", "--api", self.api, "--blob-dir", self.api.parent]
        command += ["--flags", shlex.join([*inputs.flags(), *arches]), "-o", self.lazy]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def compile(self, source: Path, name: str, *words: str | Path) -> tuple[Path, float, float]:
        """Compile for the host; return the object, the CPU seconds and the largest memory in GiB."""
        output = self.directory / f"{name}.o"
        flags = [flag for flag in inputs.flags() if flag != "-O3"]
        includes = [f"-I{path}" for path in (self.api.parent, self.lazy, resource_dir("ck_jit_runtime"), HERE)]
        command = [self.hipcc, "--cuda-host-only", f"--offload-arch={inputs.TARGETS[0]}", *flags, *includes, *words]
        process = subprocess.Popen([*command, "-w", "-Xclang", f"-cuid={name}", "-c", source, "-o", output])
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"cannot compile {source}")
        return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20

    def link(self, name: str, objects: Sequence[Path]) -> Path:
        output = self.directory / f"lib{name}.so"
        subprocess.run([self.hipcc, "-shared", "-fPIC", *objects, "-o", output], check=True)
        return output

    def kernels(self, dispatcher: Path) -> Path:
        """Assemble one function with the names of all kernels that the original dispatcher refers to."""
        undefined = subprocess.run(["nm", "-u", dispatcher], stdout=subprocess.PIPE, text=True, check=True).stdout
        names = [name for name in (line.split()[-1] for line in undefined.splitlines()) if "fmha_" in name]
        text = "".join(f".globl {name}\n{name}:\n" for name in [*names, "bench_kernel"])
        source = self.directory / "kernels.s"
        source.write_text(f'.text\n{text}xorps %xmm0, %xmm0\nret\n.section .note.GNU-stack,"",@progbits\n')
        output = self.directory / "kernels.o"
        subprocess.run(["as", source, "-o", output], check=True)
        return output

    def symbol(self, dispatcher: Path) -> str:
        """Return the mangled name of the dispatcher."""
        listed = [
            subprocess.run(["nm", "--defined-only", *words, dispatcher], stdout=subprocess.PIPE, text=True, check=True)
            for words in ([], ["-C"])
        ]
        plain, readable = (done.stdout.splitlines() for done in listed)
        wanted = FUNCTIONS[self.direction]
        return next(p.split()[-1] for p, r in zip(plain, readable, strict=True) if f" {wanted}" in r)

    def run(self) -> None:
        """Compile, measure and print."""
        original = self.compile(self.api, "original", "-O3")
        ours = self.compile(self.lazy / outlined_name(self.api.name), "ours", "-O1")
        kernels = self.kernels(original[0])
        seams = [
            self.compile(HERE / "seam.cpp", f"seam{n}", "-O2", *words)[0]
            for n, words in ((0, []), (1, ["-DBENCH_OURS"]))
        ]
        manifest = self.compile(self.lazy / "ck_jit_manifest.cpp", "manifest", "-O1")[0]
        libraries = [
            self.link("original", [original[0], kernels, seams[0]]),
            self.link("ours", [ours[0], kernels, seams[1], manifest]),
        ]
        driver = self.directory / "driver"
        parts = [self.compile(HERE / f"{name}.cpp", f"part_{name}", "-O2")[0] for name in (self.direction, "driver")]
        subprocess.run([inputs.rocm() / "bin/amdclang++", *parts, "-ldl", "-o", driver], check=True)
        command = [driver, ROUNDS, CALLS, self.symbol(original[0]), *libraries]
        measured = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

        print(f"\n{self.direction}: {self.api.name}, load {os.getloadavg()[0]:.1f}\n")
        print("| | CK's at -O3 | ours | ours / CK's |\n| --- | --- | --- | --- |")
        print(f"| compile, CPU s | {original[1]:.1f} | {ours[1]:.1f} | {ours[1] / original[1]:.3f} |")
        print(f"| compile, GiB | {original[2]:.2f} | {ours[2]:.2f} | {ours[2] / original[2]:.2f} |")
        for line in measured.splitlines():
            name, before, after = line.split("\t")
            print(f"| call, ns: {name} | {before} | {after} | {float(after) / float(before):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--direction", choices=sorted(FUNCTIONS), default="fwd")
    options = parser.parse_args()
    # The original's deep chains of conditions want more than the usual stack.
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    with tempfile.TemporaryDirectory(prefix="ck-post-build-bench-") as directory:
        Bench(options.direction, Path(directory)).run()


if __name__ == "__main__":
    main()
