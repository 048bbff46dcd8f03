"""The runtime and its tests once more under ThreadSanitizer and under AddressSanitizer with UBSan."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import toy
from test_runtime_units import NAMES, toy_object

HERE = Path(__file__).resolve().parent

OPTIONS = {
    # glibc's loader frees an ended thread's block of thread-locals with its own locks, which the sanitizer does not see.
    "thread": {"TSAN_OPTIONS": f"halt_on_error=1 exitcode=66 suppressions={HERE / 'tsan_suppressions.txt'}"},
    "address,undefined": {
        "ASAN_OPTIONS": "detect_leaks=1 exitcode=66",
        "UBSAN_OPTIONS": "halt_on_error=1 exitcode=66 print_stacktrace=1",
    },
}


@dataclass
class Sanitized:
    library: toy.ToyLibrary
    other: toy.ToyLibrary
    driver: Path
    processes: Path
    units: Path
    options: dict[str, str]


@pytest.fixture(scope="session", params=sorted(OPTIONS))
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    directory = tmp_path_factory.mktemp("sanitized")
    flags = [f"-fsanitize={request.param}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    objects = toy.runtime_objects(directory / "runtime", flags)
    library = toy.ToyLibrary(directory, objects, flags=flags).build()
    programs = [
        toy.compile_cpp([toy.HERE / f"{name}.cpp"], directory / name, flags) for name in ("driver", "process_tests")
    ]
    glue = directory / "toy_glue.cpp"
    units = toy.compile_cpp([toy.HERE / "unit_tests.cpp", glue, *objects], directory / "units", flags)
    other = toy.ToyLibrary(directory / "other", objects, name="other", flags=flags).build()
    return Sanitized(library, other, programs[0], programs[1], units, OPTIONS[request.param])


def run(command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Sanitizer" not in done.stderr
    return done.stdout


def test_calls_of_many_threads(sanitized: Sanitized, tmp_path: Path) -> None:
    for extra in (
        {},
        {"CK_JIT_HIPCC": "/nowhere"},
        {"FAKE_HIPCC_MODE": "fail", "CK_JIT_CACHE_DIR": str(tmp_path / "b")},
    ):
        env = toy.environment(tmp_path, **sanitized.options, **extra)
        calls = ["--threads", "8", "t:1,2,3", "n:toy_4.cpp", "p:toy_5.cpp", "i:5", "n:unknown.cpp", "i:1"]
        stdout = run([str(sanitized.driver), str(sanitized.library.path), *calls], env)
        assert "different=0" in stdout
        assert ("i:1 1001" in stdout) == ("FAKE_HIPCC_MODE" not in extra)


def test_a_damaged_cache(sanitized: Sanitized, tmp_path: Path) -> None:
    env = toy.environment(tmp_path, **sanitized.options)
    for damage in (slice(None), slice(0), slice(100), slice(-1)):
        assert "i:1 1001" in run([str(sanitized.driver), str(sanitized.library.path), "--threads", "4", "i:1"], env)
        for entry in (tmp_path / "cache").glob("*.so"):
            entry.write_bytes(entry.read_bytes()[damage])


def _difficult(test: str, sanitized: Sanitized, tmp_path: Path, **extra: str) -> None:
    env = toy.environment(tmp_path, **(sanitized.options | extra), FAKE_HIPCC_MODE="slow", FAKE_HIPCC_SECONDS="0.1")
    run([str(sanitized.processes), test, str(sanitized.library.path), str(sanitized.other.path)], env)


@pytest.mark.parametrize("test", ["sigchld", "reaper", "two", "unload"])
def test_difficult_processes(test: str, sanitized: Sanitized, tmp_path: Path) -> None:
    _difficult(test, sanitized, tmp_path)


# Not under ThreadSanitizer: its allocator's locks stay as they were at the fork, and now and then a child hangs in them.
@pytest.mark.parametrize("sanitized", ["address,undefined"], indirect=True)
def test_fork(sanitized: Sanitized, tmp_path: Path) -> None:
    # What the vanished threads of a forked child had is lost, not leaked.
    _difficult("fork", sanitized, tmp_path, ASAN_OPTIONS="detect_leaks=0 exitcode=66")


def test_exit_while_a_compile_runs(sanitized: Sanitized, tmp_path: Path) -> None:
    env = toy.environment(tmp_path, **sanitized.options, FAKE_HIPCC_MODE="hang")
    run([str(sanitized.driver), str(sanitized.library.path), "p:toy_1.cpp", "p:toy_2.cpp", "s:0.3"], env)


@pytest.mark.parametrize("name", NAMES)
def test_units(name: str, sanitized: Sanitized, tmp_path: Path) -> None:
    if "TSAN_OPTIONS" in sanitized.options and name != "what_a_command_prints_and_how_it_ends":
        pytest.skip("has only one thread")
    run([str(sanitized.units), name, str(toy_object(tmp_path))], toy.environment(tmp_path, **sanitized.options))
