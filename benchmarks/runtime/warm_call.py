"""What a warm call costs: the reference runtime, ours, and plain function pointers, side by side in one run.

    python benchmarks/runtime/warm_call.py --reference RUNTIME.cpp.txt

Builds all of them with the same compiler and options (host pass only, -O3) against the same headers and the same
trivial blobs, and prints nanoseconds per call for each direction, with 1 and 8 threads: the best of many short rounds.
With more threads than one, that is the time on the wall divided by the calls of all threads. The last column compares
medians: the reference starts threads on each call, and what that costs depends on what else the machine does.
No GPU and no ROCm are needed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import inputs

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "ck_jit_runtime"
KINDS = ("fwd", "splitkv", "batch_prefill", "bwd")

Samples = dict[tuple[str, int, str], list[float]]  # kind, threads, variant: ns per call in each round

# Blob, function, result and argument type: all that a trivial blob needs to have the right symbol.
BLOBS = [
    ("fmha_fwd_trivial.cpp", "fmha_fwd_", "float", "fmha_fwd_args"),
    ("fmha_fwd_splitkv_trivial.cpp", "fmha_fwd_splitkv_oneshot_", "void", "fmha_fwd_splitkv_args"),
    ("fmha_fwd_splitkv_combine_trivial.cpp", "fmha_fwd_splitkv_combine_oneshot_", "void", "fmha_fwd_splitkv_args"),
    ("fmha_batch_prefill_trivial.cpp", "fmha_batch_prefill_", "float", "fmha_batch_prefill_args"),
    ("fmha_bwd_dot_do_o_trivial.cpp", "fmha_bwd_dot_do_o_", "float", "fmha_bwd_args"),
    ("fmha_bwd_dq_dk_dv_trivial.cpp", "fmha_bwd_dq_dk_dv_", "float", "fmha_bwd_args"),
    ("fmha_bwd_convert_dq_trivial.cpp", "fmha_bwd_convert_dq_", "float", "fmha_bwd_args"),
]

# The callee reads nothing, so it need not know what the arguments look like.
BLOB_TEXT = """namespace ck_tile { struct stream_config; }
struct ARGS { char bytes[8]; };
template <typename> RESULT NAME(const ck_tile::stream_config &, ARGS);
template <> RESULT NAME<int>(const ck_tile::stream_config &, ARGS) { return RESULT(1); }
"""

REFERENCE_SCRIPT = """#!/bin/bash
set -e
cd "$(dirname "$0")"
while (($#)); do
    case $1 in --blob-source) source=$2 ;; --output) output=$2 ;; esac
    shift
done
mkdir -p "$(dirname "$output")"
cp "../blobs/$(basename "$source").so" "$output"
"""

REFERENCE_MANIFEST = """#pragma once
namespace ck_jit {
struct BlobEntry { const char *name, *source, *flags; };
inline constexpr BlobEntry kEntries[] = {
%s};
}
"""


class Bench:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.directory = directory
        self.flags = [
            *("-x", "hip", "--cuda-host-only", "--offload-arch=gfx90a", "-nogpulib", "--rocm-path=/usr", "-std=c++20"),
            *("-O3", "-fPIC", "-fvisibility=hidden", "-w", "-D__HIP_PLATFORM_AMD__=1"),
            *(f"-I{path}" for path in (options.hip_include, options.ck / "include")),
            *(f"-I{path}" for path in (options.ck / "example/ck_tile/01_fmha", options.aiter_include, RUNTIME)),
        ]

    def run(self, *command: str | Path, env: dict[str, str] | None = None) -> str:
        done = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True, timeout=900)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def blobs(self) -> None:
        """Sources for the compile scripts, and the compiled ones for the direct calls and the reference's script."""
        (self.directory / "blobs").mkdir()
        for name, function, result, args in BLOBS:
            source = self.directory / "blobs" / name
            text = BLOB_TEXT.replace("ARGS", args).replace("NAME", function).replace("RESULT", result)
            source.write_text(text)
            self.run("g++", "-O2", "-shared", "-fPIC", source, "-o", f"{source}.so")

    def reference_sources(self) -> Path:
        """The reference as it stands, but for its title line, and a manifest in the form it wants."""
        lines = self.options.reference.read_text().splitlines(keepends=True)
        text = self.directory / "reference_runtime.inc"
        text.write_text("".join(lines[1:] if lines[0].startswith("ck_jit_runtime") else lines))
        entries = "".join(f'    {{"{name}", "{name}", ""}},\n' for name in sorted(blob[0] for blob in BLOBS))
        (self.directory / "ck_jit_manifest_embedded.h").write_text(REFERENCE_MANIFEST % entries)
        script = self.directory / "reference_root/ck_jit_compile.sh"
        script.parent.mkdir()
        script.write_text(REFERENCE_SCRIPT)
        script.chmod(0o755)
        return text

    def library(self, name: str, source: str, *extra: str | Path, link: list[Path] | None = None) -> Path:
        objects = self.directory / f"{name}.o"
        self.run(self.options.cxx, *self.flags, *extra, "-c", HERE / source, "-o", objects)
        output = self.directory / f"lib{name}.so"
        libraries: list[str | Path] = [*(link or []), self.directory / "libhip.so", "-ldl", "-pthread"]
        self.run(self.options.cxx, "-shared", "-o", output, objects, *libraries)
        return output

    def runtime_object(self) -> Path:
        unit = self.directory / "runtime.cpp"
        unit.write_text("".join(f'#include "{path}"\n' for path in sorted(RUNTIME.glob("*.cpp"))))
        output = self.directory / "runtime.o"
        self.run("g++", "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", f"-I{RUNTIME}", "-c", unit, "-o", output)
        return output

    def build(self) -> list[str]:
        """The variants as the harness wants them."""
        self.blobs()
        text = self.reference_sources()
        self.run("g++", "-shared", "-fPIC", HERE / "hip_stub.cpp", "-o", self.directory / "libhip.so")
        runtime = self.runtime_object()
        reference = [f'-DREFERENCE="{text}"', '-DCK_JIT_ROOT="reference_root"', f"-I{self.directory}"]
        with ThreadPoolExecutor(2) as pool:
            fwd = pool.submit(self.library, "reference_fwd", "reference.cpp", "-DCK_JIT_IS_FWD=1", *reference)
            bwd = pool.submit(self.library, "reference_bwd", "reference.cpp", "-DCK_JIT_IS_FWD=0", *reference)
            ours = pool.submit(self.library, "ours", "ours.cpp", link=[runtime])
            by_name = pool.submit(self.library, "by_name", "ours.cpp", "-DBY_NAME=1", link=[runtime])
            direct = pool.submit(self.library, "direct", "direct.cpp")
            pairs = {
                "direct": (direct.result(), direct.result()),
                "ours": (ours.result(), ours.result()),
                "by_name": (by_name.result(), by_name.result()),
                "reference": (fwd.result(), bwd.result()),
            }
        self.run("g++", "-O2", "-std=c++17", HERE / "harness.cpp", "-o", self.directory / "harness", "-ldl", "-pthread")
        return [f"{name}={fwd},{bwd}" for name, (fwd, bwd) in pairs.items()]

    def measure(self, variants: list[str]) -> Samples:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("CK_JIT_", "XDG_"))}
        env |= {"HOME": str(self.directory / "home"), "BENCH_BLOBS": str(self.directory / "blobs")}
        # Ours has the root ck_jit beside the library, the reference the root reference_root.
        root = self.directory / "ck_jit"
        root.mkdir()
        (root / "blobs").symlink_to(self.directory / "blobs")
        (root / "ck_jit_compile.sh").write_bytes((RUNTIME / "ck_jit_compile.sh").read_bytes())
        (root / "ck_jit_compile.sh").chmod(0o755)
        fake = self.directory / "hipcc"
        fake.write_text('#!/bin/bash\n[[ $1 == --version ]] && exec echo bench\nexec g++ "${@/--offload-arch=*/-O2}"\n')
        fake.chmod(0o755)
        env["CK_JIT_HIPCC"] = str(fake)
        env["LD_LIBRARY_PATH"] = str(self.directory)
        out = self.run(
            self.directory / "harness", str(self.options.rounds), str(self.options.seconds), *variants, env=env
        )
        samples: Samples = defaultdict(list)
        for line in out.splitlines():
            kind, threads, name, ns = line.split()
            samples[kind, int(threads), name].append(float(ns))
        return samples


def ratio(
    samples: Samples, of: Callable[[list[float]], float], kind: str, threads: int, over: str, under: str
) -> float:
    return of(samples[kind, threads, over]) / of(samples[kind, threads, under])


def table(samples: Samples) -> str:
    names = ("direct", "ours", "by_name", "reference")
    ratios = ("ours/direct (best)", "reference/ours (best)", "reference/ours (median)")
    head = ("kind", "threads", *(f"{name} ns" for name in names), *ratios)
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for kind in KINDS:
        for threads in (1, 8):
            cells = [kind, str(threads), *(f"{min(samples[kind, threads, name]):.1f}" for name in names)]
            cells.append(f"{ratio(samples, min, kind, threads, 'ours', 'direct'):.2f}")
            cells.append(f"{ratio(samples, min, kind, threads, 'reference', 'ours'):.0f}")
            cells.append(f"{ratio(samples, median, kind, threads, 'reference', 'ours'):.0f}")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, required=True, help="text of the reference runtime")
    parser.add_argument("--ck", type=Path, help="composable_kernel directory of the amd-aiter wheel; default: fetched")
    parser.add_argument("--aiter-include", type=Path, help="aiter_meta/csrc/include of that wheel; default: fetched")
    parser.add_argument(
        "--hip-include", type=Path, help="HIP headers, 7.1 or so; default: those of an assembled prefix"
    )
    parser.add_argument("--cxx", default="clang++-19", help="a clang with HIP support")
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--seconds", type=float, default=0.005, help="length of one measurement")
    options = parser.parse_args()
    options.ck = options.ck or inputs.ck()
    options.aiter_include = options.aiter_include or inputs.aiter() / "aiter_meta/csrc/include"
    options.hip_include = options.hip_include or inputs.rocm() / "include"
    with tempfile.TemporaryDirectory(prefix="ck-jit-bench-") as directory:
        bench = Bench(options, Path(directory))
        print(table(bench.measure(bench.build())))


if __name__ == "__main__":
    main()
