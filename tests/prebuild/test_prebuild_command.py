"""prebuild, through the command line, against the real runtime."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Entries
from .lazy_library import BLOBS, ENTRIES, GFX942, Place, answers, command


def _running(pids: list[int], seconds: float = 20) -> list[int]:
    """Return which of the processes still run after `seconds`; sooner when none does. A killed one may linger a moment."""
    limit = time.monotonic() + seconds
    while (left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]) and time.monotonic() < limit:
        time.sleep(0.05)
    return left


def test_a_prebuilt_cache_serves_a_program_that_may_not_compile(place: Place) -> None:
    done = place.prebuild("--all", "--arch", "gfx942")
    assert done.returncode == 0, done.stderr
    assert "5 compiled, 0 failed" in done.stdout
    assert place.call(*GFX942, CK_JIT_COMPILE="0") == answers(*GFX942)
    # The same key as the runtime's with this compiler: it would compile again otherwise.
    assert place.call(*GFX942) == answers(*GFX942)
    assert len(place.compiles()) == 5
    assert not (place.cache / "bad").exists()


def test_the_runtime_and_prebuild_give_an_entry_the_same_name(place: Place) -> None:
    place.call("d64_bf16", "d128_fp16")
    made_by_runtime = place.entries()
    assert len(made_by_runtime) == 2
    done = place.prebuild("d64_bf16", "d128_fp16", "--arch", "gfx942")
    assert "2 were there, 0 compiled" in done.stdout
    for path in place.cache.glob("*.so"):
        path.unlink()
    assert place.prebuild("d64_bf16", "d128_fp16", "--arch", "gfx942").returncode == 0
    assert place.entries() == made_by_runtime


def test_a_run_is_resumed(place: Place, entries: Entries) -> None:
    place.fill(entries.cache, entries.three)
    done = place.prebuild("--all", "--arch", "gfx942")
    assert "5 entries: 3 were there, 2 compiled" in done.stdout
    assert len(place.compiles()) == 2


def test_all_architectures_that_the_library_was_built_for_are_the_default(place: Place, entries: Entries) -> None:
    assert len(entries.every) == ENTRIES
    place.fill(entries.cache, entries.every)
    assert place.call("d128_bf16_fast", CK_TEST_DEVICE="gfx950", CK_JIT_COMPILE="0") == answers("d128_bf16_fast")


def test_a_device_with_features_means_the_architecture_that_runs_on_it(place: Place) -> None:
    done = place.prebuild("d64_fp16", "--arch", "gfx942:sramecc+:xnack-", "--list")
    assert done.stdout.startswith("d64_fp16.cpp gfx942 ")
    done = place.prebuild("d64_fp16", "--arch", "gfx90a")
    assert done.returncode == 1
    assert "built for gfx942, gfx950, not for gfx90a" in done.stderr
    assert place.prebuild("d64_fp16", "--list", CK_JIT_ARCH="gfx950").stdout.startswith("d64_fp16.cpp gfx950 ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["d64_fp16.cpp"], {"d64_fp16"}),
        (["d64_fp16"], {"d64_fp16"}),
        (["d64_*", "d128_fp16"], {"d64_fp16", "d64_fp16_mask", "d64_bf16", "d128_fp16"}),
        (["--where", "hdim=128 and dtype=bf16"], {"d128_bf16"}),
        (["--where", "mask"], {"d64_fp16_mask"}),
        (["--where", "not mask and hdim<100"], {"d64_fp16", "d64_bf16"}),
        (["--where", "dtype in (bf16, fp8) and bias=alibi and direction=fwd"], {"d64_bf16", "d128_bf16"}),
        (["d64_*", "--where", "dtype!=fp16"], {"d64_bf16"}),
        (["--all"], GFX942),
    ],
)
def test_blobs_are_chosen_by_name_glob_and_traits(place: Place, words: list[str], expected: set[str]) -> None:
    done = place.prebuild(*words, "--arch", "gfx942", "--list")
    assert done.returncode == 0, done.stderr
    assert {line.split(".cpp")[0] for line in done.stdout.splitlines()} == expected


def test_what_a_program_recorded_is_prebuilt(place: Place) -> None:
    record = place.scratch / "used"
    place.call("d64_bf16", "d128_bf16", CK_JIT_RECORD=str(record))
    record.write_text("# a comment\n\n" + record.read_text())
    for path in place.cache.glob("*.so"):
        path.unlink()
    done = place.prebuild("--from", record, "--arch", "gfx942")
    assert done.returncode == 0, done.stderr
    assert place.call("d64_bf16", "d128_bf16", CK_JIT_COMPILE="0") == answers("d64_bf16", "d128_bf16")


def test_shards_are_disjoint_and_complete(place: Place) -> None:
    lists = [place.prebuild("--all", "--list", "--shard", f"{i}/3").stdout.splitlines() for i in (1, 2, 3)]
    assert sorted(line for part in lists for line in part) == sorted(
        place.prebuild("--all", "--list").stdout.splitlines()
    )
    # By the name alone: both architectures of a blob are in one shard.
    names = [{line.split()[0] for line in part} for part in lists]
    assert sum(map(len, names)) == len(BLOBS)
    assert place.prebuild("--all", "--shard", "4/3").returncode == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing is selected"),
        (["d64_fp61"], "no blob is called 'd64_fp61' in this JIT root. Did you mean d64_fp16"),
        (["--where", "hdmi=64"], "no blob has a trait called hdmi; did you mean hdim?"),
        (["--where", "hdim=64 and"], "cannot be read"),
        (["--where", "__import__('os')"], "neither a comparison nor a trait"),
        (["--from", "/nonexistent"], "/nonexistent: cannot read the list of blobs"),
        (["--all", "--scheduler", "tcp://127.0.0.1:1"], "cannot reach a Dask scheduler at tcp://127.0.0.1:1"),
    ],
)
def test_a_mistake_is_one_message(place: Place, words: list[str], message: str) -> None:
    quickly = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    done = place.run_process("prebuild", "--root", place.prefix, *words, **quickly)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_failures_are_listed_with_their_logs_and_the_others_are_made(place: Place) -> None:
    place = place.copy()
    for name in ("d64_bf16", "d128_fp16"):
        with (place.root / "blobs" / f"{name}.cpp").open("a") as stream:
            stream.write("#error broken on purpose\n")
    done = place.prebuild("--all", "--arch", "gfx942")
    assert done.returncode == 1
    assert "3 compiled, 2 failed" in done.stdout
    failures = [line for line in done.stdout.splitlines() if line.startswith("failed: ")]
    assert [line.split()[1] for line in failures] == ["d128_fp16.cpp", "d64_bf16.cpp"]
    for line in failures:
        assert "error: broken on purpose" in line
        log = re.search(r"\(log: (.+)\)$", line)
        assert log is not None
        assert "broken on purpose" in Path(log.group(1)).read_text()
    assert len(place.entries()) == 3


def test_a_damaged_entry_is_made_again(place: Place, entries: Entries) -> None:
    place.fill(entries.cache, entries.three)
    (entry,) = place.cache.glob("d64_fp16.*.so")
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(data)
    assert "1 compiled" in place.prebuild("d64_fp16", "--arch", "gfx942").stdout
    assert place.run("cache", "verify", "--root", place.prefix).returncode == 0


def test_a_directory_under_an_entrys_name_is_set_aside(place: Place, entries: Entries) -> None:
    place.fill(entries.cache, entries.three)
    (entry,) = place.cache.glob("d64_fp16.*.so")
    entry.unlink()
    entry.mkdir()
    assert place.prebuild("d64_fp16", "--arch", "gfx942").returncode == 0
    assert entry.is_file()
    assert len(list((place.cache / "bad").iterdir())) == 1


def test_runs_at_the_same_time_compile_each_blob_once(place: Place) -> None:
    words = command("prebuild", "--root", place.prefix, "--all", "--arch", "gfx942", "-j", "2")
    env = place.environment(TEST_SECONDS="0.2")
    runs = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
    used = place.call("d64_fp16", "d128_bf16", TEST_SECONDS="0.2")
    assert [run.wait(timeout=100) for run in runs] == [0, 0]
    for run in runs:
        assert run.stdout is not None
        run.stdout.close()
    assert used == answers("d64_fp16", "d128_bf16")
    assert len(place.compiles()) == 5


def test_a_compile_that_hangs_is_ended(place: Place) -> None:
    started = time.monotonic()
    done = place.prebuild("d64_fp16", "--arch", "gfx942", TEST_SECONDS="100", CK_JIT_COMPILE_TIMEOUT="1")
    assert done.returncode == 1
    assert "stopped after 1 s, the limit in CK_JIT_COMPILE_TIMEOUT" in done.stdout
    assert time.monotonic() - started < 60
    assert len(place.compiles()) == 1
    assert _running(place.compiles()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_compiler_and_no_file(place: Place, how: signal.Signals) -> None:
    words = command("prebuild", "--root", place.prefix, "--all", "--arch", "gfx942", "-j", "2")
    env = place.environment(TEST_SECONDS="100")
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while len(place.compiles()) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(how)
    assert process.wait(timeout=30) != 0
    # After SIGKILL it is the script that notices: its stdin has ended.
    assert _running(place.compiles()) == []
    assert place.entries() == []
    done = place.prebuild("--all", "--arch", "gfx942")
    assert done.returncode == 0, done.stdout
    assert [path.name for path in place.cache.iterdir() if path.name.startswith(".tmp.")] == []
    assert list((place.scratch / "tmp" / f"ck-jit-{os.geteuid()}").glob("work.*")) == []


def test_a_cache_that_others_can_write_is_refused(place: Place) -> None:
    place.cache.mkdir()
    place.cache.chmod(0o777)
    done = place.prebuild("d64_fp16", "--arch", "gfx942")
    assert done.returncode == 1
    assert "can be written by other users" in done.stderr
    assert place.entries() == []


def test_a_terminal_shows_a_bar_with_counts_rate_and_time_left(place: Place) -> None:
    ours, theirs = pty.openpty()
    words = command("prebuild", "--root", place.prefix, "--all", "--arch", "gfx942")
    env = place.environment(TERM="xterm", COLUMNS="160")
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait(timeout=60) == 0
    os.close(ours)
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode()
    assert re.search(r"5/5 5 compiled, 0 there, 0 failed, \d+\.\d a minute, 0:00:00 left", text), text
