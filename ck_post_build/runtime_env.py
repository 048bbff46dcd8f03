"""The runtime's environment as Python sees it: the same directories, compiler and limits that a lazy library would use.

``docs/runtime.md`` lists the variables. Prebuilding is only useful when both sides come to the same answers.
"""

from __future__ import annotations

import math
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.errors import CkPostBuildError

DEFAULT_NAME = "ck_jit"
_DEFAULT_TIMEOUT = 1800.0


def _absolute(path: str) -> str:
    """Make `path` absolute as the runtime does: not normalised, because lock names are made from the text."""
    path = path.rstrip("/") or path[:1]
    return path if not path or path.startswith("/") else f"{Path.cwd()}/{path}"


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def temp_dir() -> str:
    """Return where scratch files go."""
    return _absolute(_variable("TMPDIR") or "/tmp")


def scratch_dir() -> str:
    """Return the user's own directory in ``temp_dir()``, where compiles work."""
    return f"{temp_dir()}/ck-jit-{os.geteuid()}"


def cache_dir(given: Path | None = None) -> str:
    """Return the writable cache: `given`, else the one that a library with the built-in name would use."""
    if given is not None:
        return _absolute(str(given))
    if chosen := _variable("CK_JIT_CACHE_DIR"):
        return _absolute(chosen)
    if cache := _variable("XDG_CACHE_HOME"):
        return _absolute(f"{cache}/{DEFAULT_NAME}")
    if home := _variable("HOME"):
        return _absolute(f"{home}/.cache/{DEFAULT_NAME}")
    return f"{temp_dir()}/{DEFAULT_NAME}-{os.geteuid()}"


def lock_dirs(cache: str) -> list[str]:
    """Return the directories for lock files, in the order in which the runtime tries them."""
    runtime = _variable("XDG_RUNTIME_DIR")
    if chosen := _variable("CK_JIT_LOCK_DIR"):
        first = _absolute(chosen)
    elif runtime and os.access(runtime, os.W_OK):
        first = _absolute(f"{runtime}/ck-jit")
    else:
        first = f"{scratch_dir()}/lock"
    return [first, f"{cache}/lock"]


def chosen_arches() -> tuple[str, ...]:
    """Return the architecture in ``CK_JIT_ARCH``; none when it is not set."""
    chosen = _variable("CK_JIT_ARCH")
    return (chosen,) if chosen else ()


def compile_timeout() -> float:
    """Return the seconds that one compile may take."""
    try:
        seconds = float(_variable("CK_JIT_COMPILE_TIMEOUT"))
    except ValueError:
        return _DEFAULT_TIMEOUT
    return min(seconds, 1e6) if math.isfinite(seconds) and seconds > 0 else _DEFAULT_TIMEOUT


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) or 1


def job_places() -> int:
    """Return how many compiles the runtime lets run at once on this machine."""
    chosen = re.match(r"\s*\+?(\d+)", _variable("CK_JIT_JOBS"))
    return min(int(chosen.group(1)), 4096) if chosen and int(chosen.group(1)) > 0 else usable_cores()


def hipcc_candidates() -> list[str]:
    """Return where the runtime looks for the compiler, in its order."""
    if chosen := _variable("CK_JIT_HIPCC"):
        return [_absolute(chosen)]
    prefixes = [prefix for name in ("ROCM_PATH", "ROCM_HOME") if (prefix := _variable(name))]
    on_path = [_absolute(place) for place in _variable("PATH").split(":") if place]
    return [
        *(_absolute(f"{prefix}/bin/hipcc") for prefix in (*prefixes, "/opt/rocm")),
        *(f"{d}/hipcc" for d in on_path),
    ]


def find_hipcc() -> str:
    """Return the compiler that the runtime would run.

    Raises:
        CkPostBuildError: there is none.
    """
    candidates = hipcc_candidates()
    for path in candidates:
        if Path(path).is_file() and os.access(path, os.X_OK):
            return path
    raise CkPostBuildError(f"no hipcc found (looked at {', '.join(candidates)}): set CK_JIT_HIPCC or ROCM_PATH")


@dataclass(frozen=True)
class _Problem:
    """What is wrong with a directory, and the remedy."""

    text: str
    remedy: str


def _owner_or_mode_problem(status: os.stat_result) -> _Problem | None:
    if status.st_uid not in (os.geteuid(), 0):
        return _Problem(f"belongs to user {status.st_uid}", "choose a directory of your own")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return _Problem("can be written by other users", "chmod go-w it, or choose another")
    return None


def why_not_ours(status: os.stat_result) -> str:
    """Return '' for a regular file that only this user (or root) can have written; otherwise what it is."""
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file"
    problem = _owner_or_mode_problem(status)
    return problem.text if problem else ""


def _private_dir_problem(path: Path) -> _Problem | None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return _Problem("is a symbolic link or no directory", "choose another")
    if problem := _owner_or_mode_problem(status):
        return problem
    for parent in path.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return _Problem(f"has a parent, {parent}, that everybody can write", "choose another")
    return None


def private_dir(path: str, *, create: bool = False) -> Path:
    """Return `path` as a directory that the runtime would trust; made with mode 0700 where asked.

    Raises:
        CkPostBuildError: it is missing, a symbolic link, another user's, or writable by others.
    """
    place = Path(path)
    try:
        if create:
            for parent in (*reversed(place.parents), place):
                if not parent.exists():
                    parent.mkdir(mode=0o700, exist_ok=True)
        problem = _private_dir_problem(place)
    except OSError as error:
        raise CkPostBuildError(
            f"cannot use the directory: {error.strerror}. Choose another with CK_JIT_CACHE_DIR or --cache-dir",
            file=path,
        ) from error
    if problem is not None:
        raise CkPostBuildError(
            f"the runtime does not trust this directory: it {problem.text}. Remedy: {problem.remedy}", file=path
        )
    return place
