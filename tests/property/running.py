"""Writes a generated library to disk, rewrites it, and builds and runs both forms of it on the host."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ck_post_build import FixedFlags, Report, rewrite
from ck_post_build.outline import outlined_name
from ck_post_build.source import Edit, SourceFile

from .grammar import Library, unmarked

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
ROCM = HERE.parent / "golden" / "rocm"
CLANG = os.environ.get("CK_TEST_CLANG", "clang++-19")


@dataclass
class Rewritten:
    """A rewrite: its report, the files it wrote, and by API file the edits that made the rewritten text."""

    report: Report
    files: dict[str, bytes]
    edits: dict[str, list[Edit]]


def write(library: Library, directory: Path) -> Path:
    """Write header, API files and blobs below `directory`, and return it."""
    (directory / "blobs").mkdir(parents=True)
    (directory / "include").mkdir()
    (directory / "include" / "fmha.hpp").write_text(library.header)
    for name, text in library.apis.items():
        (directory / name).write_bytes(unmarked(text)[0].encode())
    for name, text in library.blobs.items():
        (directory / "blobs" / name).write_bytes(text.encode())
    return directory


def flags(source: Path) -> str:
    """Return the compiler flags of a library in `source`."""
    return f"-std=c++17 -I{source / 'include'} --offload-arch=gfx942"


def rewritten(library: Library, source: Path, output: Path, *, backwards: bool = False) -> Rewritten:
    """Rewrite in this process; `backwards` gives the API files in the other order."""
    apis = sorted((source / name for name in library.apis), reverse=backwards)
    edits: dict[str, list[Edit]] = {}
    apply = SourceFile.apply

    def recorded(self: SourceFile, wanted: Sequence[Edit]) -> str:
        edits.setdefault(self.path.name, list(wanted))
        return apply(self, wanted)

    with mock.patch.dict(os.environ, {"ROCM_PATH": str(ROCM)}), mock.patch.object(SourceFile, "apply", recorded):
        report = rewrite(apis, [source / "blobs"], output, FixedFlags(flags(source)))
    return Rewritten(report, {p.name: p.read_bytes() for p in output.iterdir()}, edits)


def _compile(words: Sequence[str | Path]) -> None:
    done = subprocess.run(
        [CLANG, "-std=c++17", "-O0", "-w", *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def _output(program: Path) -> list[str]:
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def run_both(library: Library, source: Path, output: Path, *, outlined: bool) -> tuple[list[str], list[str]]:
    """Return what the original printed, and the rewritten library with "load BLOB" lines where the runtime would load.

    Both are programs with all blobs linked in. `outlined`: compile the copies that ``build`` compiles.
    """
    blobs = [source / "blobs" / name for name in sorted(library.blobs)]
    dispatchers = "".join(f"F({name})" for name in library.dispatchers)
    driver = [f"-DDISPATCHERS={dispatchers}", HERE / "driver.cpp", f"-I{source / 'include'}"]
    shared = source / "libblobs.so"
    _compile([f"-I{source / 'include'}", "-fPIC", "-shared", *blobs, "-o", shared])
    linked = [shared, f"-Wl,-rpath,{source}"]
    _compile([*driver, *(source / name for name in library.apis), *linked, "-o", source / "original"])
    # The cut copies include the entry points by blob name, and what stubs jump to on failure.
    names = library.apis if not outlined else [outlined_name(name) for name in library.apis]
    sources = [
        *(output / name for name in names),
        *output.glob("*.S"),
        *(() if outlined else output.glob("*_ck_jit.cpp")),
    ]
    includes = [f"-I{output}", f"-I{REPOSITORY / 'ck_jit_runtime'}", "-isystem", ROCM / "include"]
    _compile([*driver, *includes, *sources, HERE / "seam.cpp", "-Wl,--no-as-needed", *linked, "-o", source / "lazy"])
    return _output(source / "original"), _output(source / "lazy")
