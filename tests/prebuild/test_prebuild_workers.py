"""prebuild --scheduler: a Dask scheduler and three workers on the loopback interface, one of which is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .lazy_library import ENTRIES, GFX942, Place, answers, command, write_hipcc

pytest.importorskip("distributed", reason="the extra [distributed] is not installed")

_DASK = [sys.executable, "-c", "import sys; from dask.__main__ import main; sys.argv[0] = 'dask'; main()"]
_LOOPBACK = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file"]


def _wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"no {what} after {seconds} s"
        time.sleep(0.05)


class Cluster:
    """A scheduler, and workers that have directories of their own and one thread each."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self._place = place
        self._stack = stack
        self._file = place.scratch / "scheduler.json"
        self.start(["scheduler", "--port", "0"])
        _wait_for(lambda: self._file.exists() and self._file.stat().st_size > 0, "scheduler")
        self.address = str(json.loads(self._file.read_text())["address"])

    def start(self, words: list[str], **extra: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._place.scratch / f"{words[0]}.log").open("ab"))
        env = self._place.environment(**extra)
        # Nothing of the machine that asks: no cache, and another place for temporary files.
        env.pop("CK_JIT_CACHE_DIR")
        process = subprocess.Popen(
            [*_DASK, *words, *_LOOPBACK, str(self._file)], env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        self._stack.callback(_end, process)
        return process

    def worker(self, name: str, **extra: str) -> subprocess.Popen[bytes]:
        directory = self._place.scratch / name
        (directory / "tmp").mkdir(parents=True)
        words = ["worker", "--no-nanny", "--nthreads", "1", "--name", name, "--local-directory", str(directory)]
        extra = {"TMPDIR": str(directory / "tmp"), "TEST_COMPILES": str(directory / "compiles"), **extra}
        return self.start(words, **extra)

    def wait_for_workers(self, count: int) -> None:
        log = self._place.scratch / "scheduler.log"
        _wait_for(lambda: log.read_text().count("Register worker") >= count, f"{count} workers")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(place: Place) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(place, stack)


def _compiles(directory: Path) -> list[int]:
    log = directory / "compiles"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def test_a_lost_worker_costs_its_running_tasks_only(place: Place, cluster: Cluster) -> None:
    names = ["first", "second", "third"]
    workers = {name: cluster.worker(name, TEST_SECONDS="1") for name in names}
    cluster.wait_for_workers(3)
    words = command("prebuild", "--root", place.prefix, "--all", "--scheduler", cluster.address)
    prebuild = subprocess.Popen(
        words, env=place.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # Each worker is at its second task when one of them dies.
    _wait_for(lambda: all(len(_compiles(place.scratch / name)) >= 2 for name in names), "compiles on each worker")
    doomed = _compiles(place.scratch / "second")
    workers["second"].send_signal(signal.SIGKILL)
    stdout, stderr = prebuild.communicate(timeout=90)
    assert prebuild.returncode == 0, stdout + stderr
    assert f"{ENTRIES} entries: 0 were there, {ENTRIES} compiled, 0 failed" in stdout
    assert len(place.entries()) == ENTRIES
    compiles = {name: _compiles(place.scratch / name) for name in names}
    assert compiles["second"] == doomed
    # The one that ran is repeated, and at most one whose result was not fetched yet.
    assert ENTRIES + 1 <= sum(map(len, compiles.values())) <= ENTRIES + 2
    _wait_for(lambda: not Path(f"/proc/{doomed[-1]}").exists(), "end of the lost worker's compiler")
    assert place.run("cache", "verify", "--root", place.prefix).returncode == 0
    assert place.call(*GFX942, CK_JIT_COMPILE="0") == answers(*GFX942)
    # Same compiler here: nothing is left to do, on the workers or on this machine.
    assert "11 were there" in place.prebuild("--all", "--scheduler", cluster.address).stdout
    assert "11 were there" in place.prebuild("--all").stdout
    assert place.compiles() == []


def test_what_fails_on_a_worker_is_told_here(place: Place, cluster: Cluster) -> None:
    place = place.copy()
    with (place.root / "blobs" / "d64_bf16.cpp").open("a") as stream:
        stream.write("#error broken on purpose\n")
    (place.root / "blobs" / "d64_fp16.cpp").unlink()
    cluster.worker("only")
    cluster.wait_for_workers(1)
    done = place.prebuild("d64*", "--arch", "gfx942", "--scheduler", cluster.address)
    assert done.returncode == 1, done.stderr
    assert "1 compiled, 2 failed" in done.stdout
    assert "failed: d64_fp16.cpp gfx942: cannot read the source" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("failed: d64_bf16.cpp")]
    log = line.rpartition("(log: ")[2].rstrip(")")
    assert "error: broken on purpose" in Path(log).read_text()
    assert Path(log).parent == place.cache / "log"


def test_workers_with_different_compilers_are_refused(place: Place, cluster: Cluster) -> None:
    other = write_hipcc(place.scratch / "other")
    cluster.worker("first")
    cluster.worker("second", CK_JIT_HIPCC=str(other))
    cluster.wait_for_workers(2)
    done = place.prebuild("--all", "--scheduler", cluster.address)
    assert done.returncode == 1
    assert "the workers have different compilers" in done.stderr
    assert "Traceback" not in done.stderr
    assert place.entries() == []


def test_no_worker_is_an_error(place: Place, cluster: Cluster) -> None:
    done = place.prebuild("--all", "--scheduler", cluster.address)
    assert done.returncode == 1
    assert "the scheduler has no workers" in done.stderr
