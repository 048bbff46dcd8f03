"""Builds the stand-in library and the programs that load it through each generated bridge."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from ck_post_build.bridge.command import generate

STANDIN = Path(__file__).parent / "standin"
LANGUAGES = ("rust", "cpp", "python")
CARGO = """[package]
name = "standin"
version = "0.0.0"
edition = "2021"

[[bin]]
name = "standin"
path = "main.rs"
"""


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}"
    return result


def compile_library(target: Path, sources: Iterable[Path], *flags: str | Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    run("gcc", "-g", "-O1", "-std=c17", "-fPIC", "-fvisibility=hidden", "-shared", *flags, *sources, "-o", target)
    return target


@dataclass
class Programs:
    """The same program in three languages over the bridges of one spec."""

    directory: Path

    def command(self, language: str) -> list[str]:
        return {
            "rust": [str(self.directory / "target" / "debug" / "standin")],
            "cpp": [str(self.directory / "standin_cpp")],
            "python": [sys.executable, "-W", "always", str(self.directory / "main.py")],
        }[language]

    def run(self, language: str, *arguments: str, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Run a scenario and return the lines of stdout and stderr."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("STANDIN_", "LD_"))}
        result = run(*self.command(language), *arguments, env={**clean, **env})
        return result.stdout.splitlines(), result.stderr.splitlines()

    def build(self) -> None:
        for name in ("main.rs", "main.py"):
            (self.directory / name).write_text((STANDIN / name).read_text())
        (self.directory / "Cargo.toml").write_text(CARGO)
        cpp = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
        run(*cpp, f"-I{self.directory}", f"-I{STANDIN}", STANDIN / "main.cpp", "-o", self.directory / "standin_cpp")
        # clippy stops at the first warning, in the bridge as in the program.
        cargo = {**os.environ, "CARGO_TARGET_DIR": str(self.directory / "target")}
        run("cargo", "clippy", "--quiet", "--offline", "--", "-D", "warnings", cwd=self.directory, env=cargo)
        run("cargo", "build", "--quiet", "--offline", cwd=self.directory, env=cargo)


def _shared(tmp_path_factory: pytest.TempPathFactory, name: str) -> tuple[Path, FileLock]:
    """Return a directory that the workers of one test run share, and the lock to build in it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory = base / "bridge" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory, FileLock(f"{directory}.lock")


def _programs(directory: Path, lock: FileLock, spec: Path) -> Programs:
    programs = Programs(directory)
    with lock:
        if not (directory / "built").exists():
            generate(spec, directory)
            programs.build()
            (directory / "built").touch()
    return programs


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Programs over standin.toml, which requires an ABI record."""
    return _programs(*_shared(tmp_path_factory, "strict"), STANDIN / "standin.toml")


@pytest.fixture(scope="session")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Programs over a spec that lets a library without a record pass and lists a directory to look in."""
    directory, lock = _shared(tmp_path_factory, "loose")
    (directory / "libraries").mkdir(exist_ok=True)
    text = (STANDIN / "standin.toml").read_text()
    text = text.replace('record = "standin_abi"', 'record = "standin_abi"\nrequired = false')
    text = text.replace('header = "standin.h"', f'header = "{STANDIN / "standin.h"}"')
    text = text.replace("[opt_in]", f'directories = ["/nonexistent", "{directory / "libraries"}"]\n\n[opt_in]')
    spec = directory / "loose.toml"
    spec.write_text(text)
    return _programs(directory, lock, spec)


@pytest.fixture(scope="session")
def library(strict: Programs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in library as it should be."""
    target = tmp_path_factory.mktemp("good") / "libstandin.so"
    return compile_library(target, [STANDIN / "standin.c", strict.directory / "standin_abi.c"], f"-I{STANDIN}")
