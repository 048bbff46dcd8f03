"""A lazy library does what the original does: the same launches with the same bytes, the same text, the same results.

Real CK, real gfx90a kernels, and the stand-in HIP library that records launches. ``pytest tests/fidelity`` compiles
every blob of two calls; ``pytest -m full tests/fidelity`` those of ten calls in all six directions (half an hour on two cores).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fidelity_cases import CI_CASES, FULL_CASES
from fidelity_libraries import ARCH, Case, Libraries, Run

pytestmark = [pytest.mark.real_ck, pytest.mark.timeout(7200)]

MODES = [
    "log_level=0 time_kernel=0",
    "log_level=0 time_kernel=1",
    "log_level=1 time_kernel=0",
    "log_level=1 time_kernel=1",
]


def by_name(case: Case) -> str:
    return case.name.replace(" ", ",")


@pytest.mark.parametrize("case", CI_CASES, ids=by_name)
def test_the_lazy_library_launches_and_prints_what_the_original_does(case: Case, few: Libraries) -> None:
    assert_same(case, few)


@pytest.mark.full
@pytest.mark.parametrize("case", FULL_CASES, ids=by_name)
def test_the_lazy_library_does_so_in_every_direction(case: Case, many: Libraries) -> None:
    assert_same(case, many)


def test_predicted_symbols_are_what_nm_shows(few: Libraries) -> None:
    assert_symbols(few)


@pytest.mark.full
def test_predicted_symbols_are_what_nm_shows_in_every_direction(many: Libraries) -> None:
    assert len({blob for run in many.cold.values() for blob in run.blobs}) >= 12
    assert_symbols(many)


def test_a_precompiled_header_changes_no_byte_of_a_kernel(few: Libraries, tmp_path: Path) -> None:
    """Of one that is no example in a header: the last convert_dq of many."""
    name = max(blob for blob in few.predicted() if blob.startswith("fmha_bwd_convert_dq_"))
    entries = []
    for mode in ("0", "first"):
        env = os.environ | {"ROCM_PATH": str(few.rocm), "CK_JIT_PRECOMPILE": mode, "TMPDIR": str(tmp_path)}
        words = ["prebuild", "--root", few.lazy.parent, name, "--arch", ARCH, "--cache-dir", tmp_path / mode]
        command = [sys.executable, "-m", "ck_post_build", *map(str, words)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        entries += [path.read_bytes() for path in (tmp_path / mode).glob("*.so")]
    (header,) = tmp_path.glob("ck-jit-*/precompiled/*/*.pch")
    assert header.stat().st_size > 0, "clang could read it"
    assert len(entries) == 2 and entries[0] == entries[1]


def test_a_lazy_library_exports_its_api_and_four_functions(few: Libraries) -> None:
    names = nm(few.lazy, "--demangle")
    ours = sorted(name for name in names if "ck_jit" in name)
    assert ours == ["ck_jit_last_error", "ck_jit_prefetch", "ck_jit_set_cache_dir", "ck_jit_stats"]
    for function in ("fmha_fwd_splitkv(", "fmha_bwd<2>("):
        assert [name for name in names if function in name], function


def assert_same(case: Case, libraries: Libraries) -> None:
    original = libraries.run(case, libraries.original)
    assert original.blobs == [], "the original library is a lazy one"
    check_original(original)

    cold, warm = libraries.cold[case.name], libraries.run(case, libraries.lazy)
    assert len(cold.blobs) == len(case.blobs)
    for piece in case.blobs:
        assert [blob for blob in cold.blobs if piece in blob], f"{piece} is in none of {cold.blobs}"
    assert warm.blobs == cold.blobs
    for lazy in (cold, warm):
        assert lazy.printed == original.printed
        assert libraries.comparable(lazy) == libraries.comparable(original)
    assert warm.errors == original.errors


def check_original(run: Run) -> None:
    """The comparison is worth something: each way of calling launched, returned a result and printed when told to."""
    assert re.findall(r"\[(log_level=. time_kernel=.) returned", run.printed) == MODES
    silent, silent_timed, named, named_timed = re.split(r"\[.*returned .*\]\n", run.printed)[:4]
    assert (silent.strip(), silent_timed.strip()) == ("", "")
    assert named.strip() == named_timed.strip()
    assert "_bf16_" in named
    results = [float.fromhex(text) for text in re.findall(r"returned (\S+)\]", run.printed)]
    assert results[0] == results[2] >= 0
    assert results[1] == results[3] > 0
    # 1 call and 2 + 3 timed ones, twice.
    assert len(run.launches) % 12 == 0
    assert all(
        argument["bytes"] for launch in run.launches for argument in launch["args"] if argument["kind"] == "by_value"
    )


def assert_symbols(libraries: Libraries) -> None:
    predicted = libraries.predicted()
    blobs = {blob for run in libraries.cold.values() for blob in run.blobs}
    assert blobs
    for blob in sorted(blobs):
        # Explicit specialisations are strong symbols; what the compiler instantiates besides is weak.
        assert nm(libraries.compiled(blob), kinds="T") == sorted(predicted[blob]), blob
    command = [sys.executable, "-m", "ck_post_build", "verify", str(libraries.directory / "build")]
    environment = os.environ | {"CK_JIT_CACHE_DIR": str(libraries.cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (compiled,) = re.findall(r"(\d+) compiled blobs hold theirs", done.stdout)
    assert int(compiled) >= len(blobs)


def nm(library: Path, *options: str, kinds: str = "TWVBDR") -> list[str]:
    command = ["nm", "-D", "--defined-only", *options, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(name for kind, name in (line.split(" ", 2)[1:] for line in done.stdout.splitlines()) if kind in kinds)
