"""Runs the tool on a fixture and renders what it wrote in a form that does not depend on the machine."""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from ck_post_build.build_info import read_build_info
from ck_post_build.names import includable
from ck_post_build.outline import outlined_name

from .fixtures import HERE, Fixture

REPOSITORY = HERE.parent.parent
ROCM = HERE / "rocm"
RUNTIME = REPOSITORY / "ck_jit_runtime"
EXPECTED = "expected"
# The lines of ck_jit_stubs.S that a fixture's kernels make.
_OWN_STUB = re.compile(rb"    (?:ck_jit_stub |\.hidden ck_jit_stub_failed_)")
# A name that a careless program trips over, for the directory that fixtures are copied to.
ODD_NAME = "dir with 'quotes\" & ünï $HOME"


def environment(**extra: str) -> dict[str, str]:
    """Return an environment with the stand-in hipcc and nothing else that the tool listens to."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CK_", "ROCM_", "HIP_", "FAKE_"))}
    return kept | {"ROCM_PATH": str(ROCM)} | extra


def command(*words: str | Path) -> list[str]:
    """Return the command line of ``ck-post-build`` with `words`."""
    return [sys.executable, "-m", "ck_post_build", *map(str, words)]


def run(*words: str | Path, cwd: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run ``ck-post-build`` with `words`; `extra` is added to the environment."""
    return subprocess.run(
        command(*words),
        env=environment(**extra),
        cwd=cwd,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=120,
        check=False,
    )


def copy_inputs(fixture: Fixture, directory: Path) -> Path:
    """Copy the fixture's input files and return the copy."""
    return Path(shutil.copytree(fixture.directory, directory, ignore=shutil.ignore_patterns(EXPECTED)))


def flags(fixture: Fixture, source: Path) -> list[str]:
    """Return the compiler flags of a fixture whose input files are in `source`."""
    own = [flag.replace("-I.", f"-I{source}") for flag in fixture.flags]
    includes = [f"-I{HERE / 'include' / name}" for name in ("ck_tile", fixture.generation)]
    return ["-std=c++17", *includes, *own, "--offload-arch=gfx942,gfx950", "-nogpuinc"]


def arguments(fixture: Fixture, source: Path) -> list[str | Path]:
    """Return the options that ``rewrite`` and ``build`` share, for input files in `source`."""
    words: list[str | Path] = []
    for api in fixture.apis:
        words += ["--api", source / api]
    for blob_dir in fixture.blob_dirs:
        words += ["--blob-dir", source / blob_dir]
    return [*words, "--flags", shlex.join(flags(fixture, source))]


def actual(fixture: Fixture, scratch: Path) -> dict[str, bytes]:
    """Run the tool on a copy of the fixture in `scratch` and return the text to compare, by file name.

    For an input that the tool refuses this is the message, under ``error.txt``.
    """
    source = copy_inputs(fixture, scratch / ODD_NAME / "in")
    output = scratch / ODD_NAME / "out"
    report = scratch / "report.json"
    done = run("rewrite", *arguments(fixture, source), "-o", output, "--report", report)
    if done.returncode != 0:
        return {"error.txt": _neutral(done.stderr, source, output).encode()}
    result = {"report.json": _neutral(_report(report), source, output).encode()}
    assert read_build_info(output).unreferenced_blobs == json.loads(report.read_bytes())["unreferenced_blobs"]
    for api in fixture.apis:
        result[f"{api}.diff"] = diff((source / api).read_bytes(), (output / api).read_bytes(), api)
        outlined = outlined_name(api)
        cuts = diff((output / api).read_bytes(), (output / outlined).read_bytes(), outlined)
        if cuts:
            result[f"{outlined}.diff"] = cuts
        for suffix in (".h", ".cpp"):
            name = f"{includable(Path(api).stem)}_ck_jit{suffix}"
            result[name] = (output / name).read_bytes()
    for copy in sorted(output.rglob("*.hpp")):
        name = copy.relative_to(output).as_posix()
        original = next(p for p in (HERE / "include" / fixture.generation / name, source / name) if p.is_file())
        result[f"{name}.diff".replace("/", "_")] = diff(original.read_bytes(), copy.read_bytes(), name)
        header = f"{copy.stem}_hpp_ck_jit.h"
        result[header] = (output / header).read_bytes()
    result["ck_jit_manifest_embedded.h"] = (output / "ck_jit_manifest_embedded.h").read_bytes()
    result["ck_jit_manifest"] = (output / "ck_jit_manifest").read_bytes().replace(b"\0", b"\0\n")
    result |= _much_alike(fixture, output)
    if fixture.ninja:
        built = output.with_name("build")
        done = run("build", *arguments(fixture, source), "-o", built, "--lib", "libgolden.so", CK_TEST_HIPCC="pretend")
        assert done.returncode == 0, done.stderr
        result["build.ninja"] = _without_runtime(_neutral((built / "build.ninja").read_text(), source, built)).encode()
    return result


def _much_alike(fixture: Fixture, output: Path) -> dict[str, bytes]:
    """Return generated files that differ in little: whole for one fixture each, of the others what differs in substance."""
    result = {}
    if fixture.name == "fwd":
        result["ck_jit_dispatch.h"] = (output / "ck_jit_dispatch.h").read_bytes()
    stubs = output / "ck_jit_stubs.S"
    if fixture.name == "fwd_stubs":
        result[stubs.name] = stubs.read_bytes()
    elif stubs.exists():
        lines = stubs.read_bytes().splitlines(keepends=True)
        result[f"{stubs.name}.lines"] = b"".join(line for line in lines if _OWN_STUB.match(line))
    return result


def diff(before: bytes, after: bytes, name: str) -> bytes:
    """Return the unified diff of two files, byte for byte."""
    lines = difflib.diff_bytes(
        difflib.unified_diff,
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{name}".encode(),
        f"b/{name}".encode(),
        lineterm=b"\n",
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _report(path: Path) -> str:
    return json.dumps(json.loads(path.read_bytes()), indent=1, ensure_ascii=False) + "\n"


def _neutral(text: str, source: Path, output: Path) -> str:
    """Put names for the machine's paths, in each spelling that generated files use for them."""
    for path, name in ((source, "SOURCE"), (output, "OUTPUT"), (ROCM, "ROCM"), (RUNTIME, "RUNTIME"), (HERE, "GOLDEN")):
        backslashed = re.sub(r"([^\w+=./,:@%^-])", r"\\\1", str(path), flags=re.ASCII)
        backslashed = re.sub(r"\\([^\x00-\x7f])", r"\1", backslashed)
        in_ninja = backslashed.replace("$", "$$")
        as_path = str(path).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
        in_json = json.dumps(str(path), ensure_ascii=False)[1:-1]
        for spelling in sorted({str(path), backslashed, in_ninja, as_path, in_json}, key=len, reverse=True):
            text = text.replace(spelling, f"@{name}@")
    return text


def _without_runtime(text: str) -> str:
    """Leave out the edges of the runtime's sources, which are not the fixture's matter."""
    text = re.sub(r"build obj/runtime_.*\n(?: .*\n)+", "", text)
    return re.sub(r"(?: obj/runtime_\S+)+", " @RUNTIME_OBJECTS@", text)


def expected(fixture: Fixture) -> dict[str, bytes]:
    """Return the recorded text of a fixture, by file name."""
    directory = fixture.directory / EXPECTED
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())} if directory.is_dir() else {}


def difference(recorded: dict[str, bytes], found: dict[str, bytes]) -> str:
    """Return the differences as a unified diff; empty when there are none."""
    pieces = []
    for name in sorted({*recorded, *found}):
        if recorded.get(name) != found.get(name):
            text = diff(recorded.get(name, b""), found.get(name, b""), name)
            pieces.append(text.decode("utf-8", "backslashreplace") or f"{name}: an empty file came or went\n")
    return "".join(pieces)
