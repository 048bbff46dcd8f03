"""The runtime's locks between the processes of one user on one machine, taken from Python.

filelock uses ``flock`` on the same files, so that a prebuild and running programs compile each entry once.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from ck_post_build.cache_key import netstrings, to_bytes
from ck_post_build.errors import CkPostBuildError
from ck_post_build.runtime_env import lock_dirs, private_dir

_LONGEST_PAUSE = 0.05


def lock_directory(cache: str) -> Path | None:
    """Return where the runtime keeps its lock files; None where it would lock nothing."""
    for place in lock_dirs(cache):
        with contextlib.suppress(CkPostBuildError):
            return private_dir(place, create=True)
    return None


@contextlib.contextmanager
def entry_lock(cache: str, entry: str) -> Iterator[None]:
    """Hold the lock of an entry (its name without ``.so``): nobody else on this machine compiles it meanwhile."""
    directory = lock_directory(cache)
    if directory is None:
        yield
        return
    name = hashlib.sha256(netstrings([to_bytes(cache), to_bytes(entry)])).hexdigest()
    path = directory / name
    with FileLock(path, mode=0o600):
        yield
        path.unlink(missing_ok=True)  # while it is held: who waits for it sees that, and takes a new file


@contextlib.contextmanager
def job_place(cache: str, places: int, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Hold one of the machine's places for compiles, of the first `places`. Waits until one is free or `cancelled`."""
    directory = lock_directory(cache)
    if directory is None:
        yield
        return
    pause = 0.002
    while not cancelled():
        for number in range(places):
            lock = FileLock(directory / f"job.{number}", mode=0o600)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            try:
                yield
            finally:
                lock.release()
            return
        time.sleep(pause)  # no call waits for any of several locks
        pause = min(2 * pause, _LONGEST_PAUSE)
    yield
