"""Builds a fixture twice, with its blobs linked in and lazily, and runs both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ck_post_build.outline import outlined_name

from .fixtures import HERE, Fixture
from .golden import RUNTIME, arguments, environment, flags, run

CLANG = os.environ.get("CK_TEST_CLANG", "clang++-19")
LIBRARY = "libgolden.so"
_COMMON = ("-std=c++17", "-O0", "-fPIC", "-Qunused-arguments")

_WARNINGS = ("-Wall", "-Werror")


def compile_cpp(words: Sequence[str | Path], **extra: str) -> None:
    """Run clang with `words`; a failure shows its output."""
    done = subprocess.run(
        [CLANG, *_COMMON, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | extra,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def runtime_object(directory: Path) -> Path:
    """Compile the whole runtime as one object: reading the standard headers once takes a quarter of the time."""
    unit = directory / "runtime.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sorted(RUNTIME.glob("*.cpp"))))
    compile_cpp([f"-I{RUNTIME}", "-fvisibility=hidden", "-c", unit, "-o", directory / "runtime.o"])
    return directory / "runtime.o"


def driver_words(fixture: Fixture, source: Path) -> list[str | Path]:
    """Return the words that compile the fixture's driver."""
    return [*flags(fixture, source), *(f"-D{define}" for define in fixture.defines), HERE / "drivers" / fixture.driver]


def build_original(fixture: Fixture, source: Path, program: Path) -> None:
    """Compile driver, API files and those blobs that CK's own build would compile."""
    blobs = [blob for directory in fixture.blob_dirs for blob in sorted((source / directory).iterdir())]
    apis = [source / api for api in fixture.apis]
    compile_cpp([*driver_words(fixture, source), *apis, *blobs, "-o", program])


def build_lazy(fixture: Fixture, source: Path, scratch: Path, runtime: Path, program: Path) -> Path:
    """Rewrite, compile, install and link the fixture lazily; returns the installed library."""
    output, prefix = scratch / "lazy out", scratch / "prefix"
    done = run("rewrite", *arguments(fixture, source), "-o", output)
    assert done.returncode == 0, done.stderr
    rewritten = [output / outlined_name(api) for api in fixture.apis]
    glue = [output / "ck_jit_manifest.cpp", *output.glob("*.S")]
    includes = [f"-I{output}", f"-I{RUNTIME}", "-isystem", HERE / "rocm" / "include"]
    link = ["-shared", "-Wl,--no-undefined", f"-Wl,-soname,{LIBRARY}", "-o", output / LIBRARY, "-ldl", "-lpthread"]
    plain = [output / api for api in fixture.apis]
    compile_cpp([*flags(fixture, source), *includes, *_WARNINGS, "-fsyntax-only", *plain])
    compile_cpp([*flags(fixture, source), *includes, *_WARNINGS, *rewritten, *glue, runtime, *link])
    (output / "ck_post_build_library").write_text(LIBRARY)
    done = run("install", "--build-dir", output, "--prefix", prefix)
    assert done.returncode == 0, done.stderr
    library = prefix / LIBRARY
    compile_cpp([*driver_words(fixture, source), library, f"-Wl,-rpath,{prefix}", "-o", program])
    return library


def answers(program: Path, scratch: Path, device: str) -> str:
    """Run a program on `device` and return what it printed."""
    done = subprocess.run(
        [program],
        env=environment(CK_TEST_DEVICE=device, CK_JIT_CACHE_DIR=str(scratch / "cache")),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
