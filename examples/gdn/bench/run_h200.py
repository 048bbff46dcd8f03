"""Checks and times libatlasgdn.so on a Hopper GPU and writes results.json and results.md.

Everything is built beforehand by examples/gdn/build.py; this needs PyTorch, Triton and flash-linear-attention's wheel.

    python examples/gdn/bench/run_h200.py --build build/gdn --results DIR
"""

from __future__ import annotations

import argparse
import datetime
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PATIENCE_S = 45
STRESS_S = 20
SHAPES = [(t, 16, 32) for t in (1024, 2048, 4096, 8192, 16384, 32768)] + [(16384, 16, 16), (16384, 16, 64)]


class Results:
    """What was found so far, written to disk after every step: a run that is cut short leaves what it has."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.values: dict[str, Any] = {}
        self.start = time.monotonic()

    def add(self, name: str, value: Any) -> None:
        self.values[name] = value
        (self.directory / "results.json").write_text(json.dumps(self.values, indent=1))
        print(f"[{time.monotonic() - self.start:6.1f} s] {name}", flush=True)


def machine(torch: Any) -> dict[str, str]:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"]
    import triton

    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "gpu": subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }


def sanitizer_commands(program: str) -> list[list[str]]:
    """Each tool on an even and an odd number of chunks, whole and partial, and on a split sequence."""
    shapes = (["128", "2", "2", "1"], ["130", "2", "2", "1"], ["330", "2", "2", "3"])  # tokens, nk, nv, slots
    tools = ("memcheck", "initcheck", "racecheck", "synccheck")
    command = ["compute-sanitizer", "--error-exitcode", "9", "--print-limit", "1000", "--tool"]
    return [[*command, tool, program, *shape] for tool in tools for shape in shapes]


def programs(build: Path, library: Path) -> list[dict[str, Any]]:
    """Run the Rust and the C++ program, each with and without a split; the C++ one under compute-sanitizer too."""
    env = {**os.environ, "ATLAS_GDN_FLASHINFER": "1", "ATLAS_GDN_LIB": str(library)}
    shapes = (["300", "2", "4", "1"], ["700", "2", "4", "3"])
    commands = [[str(build / program), *shape] for program in ("smoke_rust", "smoke_cpp") for shape in shapes]
    rows = []
    for command in [*commands, *sanitizer_commands(str(build / "smoke_cpp"))]:
        name = " ".join(Path(word).name for word in command)
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=90, check=False)
            output, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired:
            output, code = "took over 90 s", -1
        lines = output.strip().splitlines()
        rows.append({"command": name, "code": code, "output": [*lines[:12], *lines[-3:]], "ok": code == 0})
        print(f"{'ok  ' if code == 0 else 'FAIL'} {name}: {lines[-1] if lines else ''}", flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the timings as a Markdown table, in microseconds."""
    columns = {
        "library_graph": "library, graph",
        "library_eager": "eager",
        "library_unsplit_graph": "unsplit, graph",
        "fla_graph": "FLA, graph",
        "fla_eager": "FLA eager",
        "fla_packed_eager": "FLA eager, packed",
        "scalar_graph": "scalar, graph",
    }
    head = f"| T | heads | {' | '.join(columns.values())} | FLA graph / library graph | scalar / library |"
    lines = [head, "| ---: | --- |" + " ---: |" * (len(columns) + 2)]
    for row in rows:
        cells = " | ".join(f"{row[key]:,.0f}" for key in columns)
        ratios = " | ".join(f"{row[key] / row['library_graph']:.2f}" for key in ("fla_graph", "scalar_graph"))
        lines.append(f"| {row['tokens']} | {row['nk']}/{row['nv']} | {cells} | {ratios} |")
    return lines


class Run:
    """The parts of a run, each a method of its name."""

    def __init__(self, build: Path, library: Path, results: Results) -> None:
        import gdn
        import torch
        from cases import ScalarLibrary

        self.gdn, self.torch = gdn, torch
        self.build, self.library, self.results = build, library, results
        self.scalar = ScalarLibrary(str(build / "libscalar_gdn.so"))
        self.timing: Any = None

    def checks(self) -> None:
        from checks import Checks, guarded

        def log(row: dict[str, Any]) -> None:
            print(f"[{time.monotonic() - self.results.start:6.1f} s] {row}", flush=True)
            faulthandler.dump_traceback_later(PATIENCE_S, exit=True)  # a check that hangs ends the run and says where

        rows = guarded(Checks(self.gdn, self.scalar).all(str(self.library)), log)
        faulthandler.cancel_dump_traceback_later()
        self.results.add("checks", rows)

    def stress(self) -> None:
        from checks import Case, Checks

        rows = []
        for case in (Case(1000, state=True), Case(8192, state=True)):
            faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
            rows.append(Checks(self.gdn, self.scalar).stress(case, 4, STRESS_S))
            print(rows[-1], flush=True)
        faulthandler.cancel_dump_traceback_later()
        self.results.add("stress", rows)

    def programs(self) -> None:
        self.results.add("programs", programs(self.build, self.library))

    def prepare_timings(self) -> Any:
        from timings import Timings

        self.timing = self.timing or Timings(self.gdn, self.scalar)
        return self.timing

    def timings(self) -> None:
        timing = self.prepare_timings()
        self.results.add("fla", timing.fla.version)
        self.results.add("errors", timing.errors())
        self.results.add("kernels", {t: timing.kernels(t) for t in (1024, 16384)})
        rows: list[dict[str, Any]] = []
        for shape in SHAPES:
            rows.append(timing.row(*shape))
            self.results.add("timings", rows)
            (self.results.directory / "results.md").write_text("\n".join(table(rows)) + "\n")
        print("\n".join(table(rows)))

    def slots(self) -> None:
        timing = self.prepare_timings()
        shapes = [(t, 16, 32) for t in (512, 1024, 2048, 3072, 4096, 8192, 16384)]
        shapes += [(t, 16, nv) for nv in (16, 64) for t in (1024, 4096, 16384)]
        rows = [timing.slots(*shape) for shape in shapes]
        self.results.add("slots", rows)
        for row in rows:
            print({key: round(value, 1) for key, value in row.items()})


def unpack(build: Path) -> str:
    """Unpack FLA's wheel: Triton reads the sources of its kernels, which it cannot do inside a zip file."""
    directory = tempfile.mkdtemp()
    with zipfile.ZipFile(next((build / "wheels").glob("fla_core-*.whl"))) as wheel:
        wheel.extractall(directory)
    return directory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="what build.py --bench wrote")
    parser.add_argument("--results", type=Path, required=True, help="where results.json and results.md go")
    parser.add_argument("--parts", default="checks,timings,slots,programs,stress", help="what to run, in this order")
    arguments = parser.parse_args()
    build, library = arguments.build.resolve(), arguments.build.resolve() / "libatlasgdn.so"
    os.environ |= {"ATLAS_GDN_FLASHINFER": "1", "ATLAS_GDN_LIB": str(library)}
    sys.path[:0] = [str(HERE), str(build / "bridge"), unpack(build)]

    results = Results(arguments.results)
    run = Run(build, library, results)
    if not run.gdn.available():
        return 1  # the bridge has said why
    results.add("machine", machine(run.torch))
    with run.torch.inference_mode():
        for part in arguments.parts.split(","):
            getattr(run, part)()
    bad = [row for part in ("checks", "programs", "stress") for row in results.values.get(part, []) if not row["ok"]]
    print(f"{len(bad)} failures")
    for row in bad:
        print("FAILED", row)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
