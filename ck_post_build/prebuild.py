"""Fills the cache ahead of time, on this machine."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ck_post_build.blob_selection import Target
from ck_post_build.cache_dir import is_good, publish, remove_left_overs, write_log
from ck_post_build.cache_entry import EntryName
from ck_post_build.compile_blob import Compiled, Compiler
from ck_post_build.errors import CkPostBuildError
from ck_post_build.machine_lock import entry_lock, job_place
from ck_post_build.runtime_env import job_places


class State(Enum):
    """What became of a target."""

    PRESENT = "was there"
    COMPILED = "compiled"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """What became of a target, how long its compile took, and for a failure why and where the compiler's output is."""

    target: Target
    state: State
    seconds: float = 0.0
    problem: str = ""
    log: Path | None = None


def keep(cache: Path, target: Target, entry: EntryName, compiled: Compiled) -> Outcome:
    """Publish what was compiled, write its log, and return the outcome."""
    log = write_log(cache, entry, compiled.log, None if compiled.data is None else compiled.seconds)
    if compiled.data is None:
        return Outcome(target, State.FAILED, compiled.seconds, compiled.problem, log)
    try:
        publish(cache, entry, compiled.data)
    except CkPostBuildError as error:
        return Outcome(target, State.FAILED, compiled.seconds, str(error), log)
    return Outcome(target, State.COMPILED, compiled.seconds)


def prebuild(
    targets: Sequence[Target], cache_dir: str, compiler: Compiler, jobs: int
) -> Generator[Outcome, None, None]:
    """Compile the `targets` that the cache lacks, `jobs` at once, and yield what became of each, as it is known.

    One compile per entry runs on this machine, as the runtime's locks have it. A failure does not end the others. What runs
    is ended when the iterator is closed.

    `cache_dir` is as ``runtime_env.cache_dir`` gives it, because the names of locks are made from that text.
    """
    cache = Path(cache_dir)
    # Programs that compile at the same time count too, unless more are asked for here than they know of.
    places = max(jobs, job_places())
    remove_left_overs(cache)

    def make(target: Target) -> Outcome:
        entry = target.entry(compiler.key)
        path = cache / entry.file
        if is_good(path, target.blob, target.arch):
            return Outcome(target, State.PRESENT)
        with entry_lock(cache_dir, entry.name):
            if is_good(path, target.blob, target.arch):
                return Outcome(target, State.PRESENT)
            with job_place(cache_dir, places, lambda: compiler.stopped):
                return keep(cache, target, entry, compiler.compile(target.blob, target.arch))

    pool = ThreadPoolExecutor(jobs)
    try:
        pending: set[Future[Outcome]] = {pool.submit(make, target) for target in targets}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        compiler.stop()
        pool.shutdown(cancel_futures=True)
