"""Runs process_tests.cpp: forks, strange signal settings, two libraries in one process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import toy


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.compile_cpp([toy.HERE / "process_tests.cpp"], tmp_path_factory.mktemp("processes") / "process_tests")


Run = Callable[..., None]


@pytest.fixture
def run(program: Path, library: toy.ToyLibrary, tmp_path: Path) -> Run:
    """Runs one of the tests with the toy library, in an environment below tmp_path."""

    def run_test(test: str, *others: toy.ToyLibrary, **extra: str) -> None:
        command = [str(program), test, str(library.path), *(str(other.path) for other in others)]
        env = toy.environment(tmp_path, **extra)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"

    return run_test


def test_a_child_forked_while_threads_compile_can_compile(run: Run, tmp_path: Path) -> None:
    run("fork", FAKE_HIPCC_MODE="slow", FAKE_HIPCC_SECONDS="0.2")
    assert toy.compiles(tmp_path) == 6, "three of the parent and three of the children, each once"


def test_an_ignored_sigchld_does_not_lose_the_result(run: Run) -> None:
    run("sigchld")


def test_a_thread_that_reaps_every_child_does_not_lose_the_result(run: Run) -> None:
    run("reaper")


def test_two_libraries_in_one_process_share_compiles_but_no_symbols(
    run: Run, library: toy.ToyLibrary, tmp_path: Path
) -> None:
    other = toy.ToyLibrary(tmp_path / "other", library.objects, name="other").build()
    run("two", other)
    assert toy.compiles(tmp_path) == 2, "the second library takes the first one's entries"


def test_of_the_runtime_only_the_c_functions_are_exported(library: toy.ToyLibrary) -> None:
    command = ["nm", "-D", "--defined-only", str(library.path)]
    names = [line.split()[-1] for line in subprocess.check_output(command, text=True).splitlines()]
    assert not [name for name in names if name.startswith(("_ZN6ck_jit", "_ZNK6ck_jit"))]
    exported = {"ck_jit_set_cache_dir", "ck_jit_last_error", "ck_jit_prefetch", "ck_jit_stats"}
    assert {name for name in names if name.startswith("ck_jit")} == exported


def test_the_headers_hide_the_runtime_whatever_the_compiler_option(tmp_path: Path) -> None:
    toy.compile_cpp([toy.RUNTIME / "resolve.cpp"], tmp_path / "resolve.o", ["-c", "-fvisibility=default"])
    command = ["readelf", "--syms", "--wide", str(tmp_path / "resolve.o")]
    symbols = [line.split() for line in subprocess.check_output(command, text=True).splitlines()]
    ours = [line for line in symbols if len(line) == 8 and line[7].startswith("_ZN6ck_jit") and line[4] != "LOCAL"]
    assert any("resolve" in line[7] for line in ours)
    assert {line[5] for line in ours} == {"HIDDEN"}


def test_closed_standard_descriptors(run: Run) -> None:
    run("closed")


def test_the_compiler_gets_no_descriptors_and_default_signals(run: Run, tmp_path: Path) -> None:
    spy = tmp_path / "hipcc"
    spy.write_text(
        f"#!/bin/bash\n[[ $1 == --version ]] || {{ ls /proc/self/fd; grep Sig /proc/self/status; }} >'{tmp_path}/seen'\n"
        f"exec '{toy.FAKE_HIPCC}' \"$@\"\n"
    )
    spy.chmod(0o755)
    run("descriptors", CK_JIT_HIPCC=str(spy))
    descriptors, _, signals = (tmp_path / "seen").read_text().partition("Sig")
    assert descriptors.split() == ["0", "1", "2", "3"], "3 is the directory that ls reads"
    status = dict(line.split(":\t") for line in ("Sig" + signals).splitlines())
    assert int(status["SigBlk"], 16) == 0
    ignored = int(status["SigIgn"], 16) & 0x7FFFFFFF  # without 32 and 33, which glibc keeps for itself
    assert ignored == 0


def test_dlclose_while_a_compile_runs(run: Run) -> None:
    run("unload", FAKE_HIPCC_MODE="slow", FAKE_HIPCC_SECONDS="0.3")
