"""What the cases of the fault matrix share: a fresh set of directories, the driver, and the check of the cache."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import toy
from entry_format import problem_with_entry


@dataclass
class Built:
    """What is built once for all cases."""

    library: toy.ToyLibrary
    driver: Path
    faults: Path

    @classmethod
    def build(cls, directory: Path) -> Built:
        directory.mkdir(parents=True, exist_ok=True)
        library = toy.ToyLibrary(directory / "toy", toy.runtime_objects(directory / "runtime")).build()
        return cls.with_faults(library, toy.compile_cpp([toy.HERE / "driver.cpp"], directory / "driver"), directory)

    @classmethod
    def with_faults(cls, library: toy.ToyLibrary, driver: Path, directory: Path) -> Built:
        faults = toy.compile_cpp([toy.HERE / "fault.cpp"], directory / "fault.so", ["-shared", "-fPIC"])
        return cls(library, driver, faults)


class Skip(Exception):
    """The machine lacks what the case needs."""


@dataclass
class Lab:
    built: Built
    tmp: Path

    @property
    def cache(self) -> Path:
        return self.tmp / "cache"

    def env(self, fault: str = "", **extra: str) -> dict[str, str]:
        env = toy.environment(self.tmp, **extra)
        if fault:
            env |= {"FAULT": fault, "LD_PRELOAD": str(self.built.faults)}
        return env

    def start(self, *calls: str, fault: str = "", **extra: str) -> subprocess.Popen[str]:
        return toy.start(self.built.driver, self.built.library, self.env(fault, **extra), *calls)

    def run(self, *calls: str, fault: str = "", **extra: str) -> toy.Result:
        return toy.finish(self.start(*calls, fault=fault, **extra))

    def compiles(self) -> int:
        return toy.compiles(self.tmp)

    def wait_for_orphans(self) -> None:
        """Wait until no process runs any more that was started with this lab's environment."""
        mark = os.fsencode(f"{self.tmp}/")

        def is_of_this_lab(process: Path) -> bool:
            try:
                return mark in (process / "environ").read_bytes()
            except OSError:  # it is gone, or another user's
                return False

        wait_for(lambda: not any(is_of_this_lab(process) for process in Path("/proc").glob("[0-9]*")))

    def entries(self) -> list[Path]:
        return sorted(self.cache.glob("*.so")) if self.cache.is_dir() else []

    def entry(self, blob: int = 1) -> Path:
        """The only entry of a blob, made if there is none yet."""
        if not list(self.cache.glob(f"toy_{blob}.*.so")):
            assert self.run(f"i:{blob}").values == {f"i:{blob}": 1000 + blob}
        (entry,) = self.cache.glob(f"toy_{blob}.*.so")
        return entry

    def check_whole(self, *blobs: int) -> str:
        """Every file under a final name is whole; a clean run gets these blobs right and leaves nothing behind."""
        for path in self.entries():
            assert problem_with_entry(path) == "", f"{path.name}: {problem_with_entry(path)}"
        calls = [f"i:{blob}" for blob in blobs]
        before = self.compiles()
        # One more blob, so that something is published and left-overs are looked for.
        result = self.run(*calls, "i:7")
        assert result.values == {f"i:{blob}": 1000 + blob for blob in (*blobs, 7)}, result
        assert self.compiles() <= before + len(blobs) + 1
        for path in self.entries():
            assert problem_with_entry(path) == "", path
        hidden = [path.name for path in self.cache.iterdir() if path.name.startswith(".")]
        assert not hidden, hidden
        work = [path.name for path in (self.tmp / "tmp").glob("ck-jit-*/work.*")]
        assert not work, work
        return f"whole, {len(self.entries())} entries"


def wait_for(condition: object, seconds: float = 30) -> None:
    """Waits until the callable is true. The limit is only there to end a broken test."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


@contextmanager
def mounted_tmpfs(path: Path, options: str) -> Iterator[None]:
    """A small file system of its own at `path`."""
    path.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        raise Skip("needs the right to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def remount_read_only(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)


def fresh(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
