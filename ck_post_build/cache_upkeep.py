"""Listing, checking and pruning a cache directory."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from ck_post_build import runtime_env
from ck_post_build.cache_dir import CacheFile, Kind, is_left_over, list_cache, read_entry
from ck_post_build.cache_entry import BadEntryError, EntryName
from ck_post_build.cache_key import compiler_id, compiler_key, read_script
from ck_post_build.entry_owner import EntryOwners
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import find_root_manifests, root_directory
from ck_post_build.runtime_env import private_dir

_DAY = 86400.0
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_AGES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": _DAY}


def parse_size(text: str) -> int:
    """Return the bytes in a size such as ``20G``. Raises CkPostBuildError when it is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise CkPostBuildError(f"{text!r} is no size: write it like 500M or 20G")
    return int(float(match.group(1)) * _SIZES[match.group(2).upper()])


def parse_age(text: str) -> float:
    """Return the seconds in an age such as ``90d``. Raises CkPostBuildError when it is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if match is None:
        raise CkPostBuildError(f"{text!r} is no age: write it like 12h or 90d")
    return float(match.group(1)) * _AGES[match.group(2)]


@dataclass(frozen=True)
class Entry:
    """An entry with its size and the time since it was last read or written."""

    path: Path
    name: EntryName
    size: int
    seconds_unused: float

    @property
    def days_unused(self) -> float:
        """The same time in days."""
        return self.seconds_unused / _DAY


@dataclass(frozen=True)
class Limits:
    """Which entries ``prune`` takes."""

    max_size: int | None = None
    max_age: float | None = None
    stale: bool = False
    orphans: bool = False
    bad: bool = False


class Upkeep:
    """A cache directory, and perhaps the libraries that it serves."""

    def __init__(self, directory: Path, files: list[CacheFile], owners: EntryOwners | None, compiler: str) -> None:
        self.directory = directory
        self._files = files
        self._owners = owners
        self._compiler = compiler

    @classmethod
    def open(cls, cache_dir: Path | None, root: Path | None) -> Upkeep:
        """List the cache `cache_dir` (None: the runtime's). With `root`, entries can be told from stale ones.

        Raises:
            CkPostBuildError: the directory is another user's, or there is no library in `root`.
        """
        directory = Path(runtime_env.cache_dir(cache_dir))
        if directory.exists() or directory.is_symlink():
            private_dir(str(directory))
        owners, key = None, ""
        if root is not None:
            owners = EntryOwners(find_root_manifests(root), runtime_env.chosen_arches())
            with contextlib.suppress(CkPostBuildError):  # no compiler: entries by any are as good
                by = compiler_id(runtime_env.find_hipcc())
                key = compiler_key(by.identity, read_script(root_directory(root)))
        return cls(directory, list_cache(directory), owners, key)

    def entries(self) -> list[Entry]:
        """Return the entries, in order of their names."""
        now = time.time()
        found = []
        for file in self._files:
            if file.kind is Kind.ENTRY and file.entry is not None:
                with contextlib.suppress(FileNotFoundError):
                    status = file.path.lstat()
                    unused = max(0.0, now - max(status.st_atime, status.st_mtime))
                    found.append(Entry(file.path, file.entry, status.st_size, unused))
        return found

    def totals(self) -> str:
        """Return one line: entries and their bytes, and how many other files of each kind there are."""
        entries = self.entries()
        others = [
            f"{count} {kind.value}" for kind in Kind if kind is not Kind.ENTRY and (count := self._count(kind)) > 0
        ]
        return ", ".join([f"{len(entries)} entries", f"{sum(e.size for e in entries):,} bytes", *others])

    def _count(self, kind: Kind) -> int:
        return sum(file.kind is kind for file in self._files)

    def state(self, entry: Entry) -> str:
        """Return ``current``, ``stale (why)``, ``orphan`` or ``unknown (why)`` for an entry, by the given libraries."""
        assert self._owners is not None
        if not self._owners.has_blob(entry.name):
            return "orphan"
        if self._owners.find(entry.name, entry.path) is None:
            if self._owners.cannot_tell(entry.name, entry.path):
                return "unknown (its architecture cannot be told: set CK_JIT_ARCH)"
            return "stale (another source, headers, flags or architecture)"
        if self._compiler not in ("", entry.name.compiler):
            return "stale (another compiler)"
        return "current"

    def problems(self) -> list[tuple[Path, str]]:
        """Return the entries that are no good, each with the reason."""
        found = []
        for entry in self.entries():
            owner = self._owners.find(entry.name, entry.path) if self._owners else None
            try:
                read_entry(entry.path, owner.blob if owner else None, owner.arch if owner else None)
            except BadEntryError as error:
                found.append((entry.path, str(error)))
            except FileNotFoundError:
                continue
        return found

    def prunable(self, limits: Limits) -> list[tuple[Path, str]]:
        """Return what to remove under `limits`, each with the reason."""
        doomed = dict(self._left_overs())
        if limits.bad:
            doomed.update(self.problems())
        kept: list[Entry] = []
        for entry in self.entries():
            if reason := self._reason(entry, limits):
                doomed.setdefault(entry.path, reason)
            if entry.path not in doomed:
                kept.append(entry)
        if limits.max_size is not None:
            size = sum(entry.size for entry in kept)
            for entry in sorted(kept, key=lambda entry: (-entry.seconds_unused, entry.path)):
                if size <= limits.max_size:
                    break
                size -= entry.size
                doomed[entry.path] = "the cache is larger than --max-size"
        return sorted(doomed.items())

    def _reason(self, entry: Entry, limits: Limits) -> str:
        if limits.max_age is not None and entry.seconds_unused > limits.max_age:
            return f"unused for {entry.days_unused:.1f} days"
        if limits.stale or limits.orphans:
            state = self.state(entry)
            if (limits.orphans and state == "orphan") or (limits.stale and state.startswith("stale")):
                return state
        return ""

    def _left_overs(self) -> list[tuple[Path, str]]:
        stems = {entry.name.name for entry in self.entries()}
        now = time.time()
        found = []
        for file in self._files:
            if file.kind is Kind.TEMPORARY and is_left_over(file.path.name, ".tmp."):
                found.append((file.path, "its process is gone"))
            elif file.kind is Kind.TEMPORARY and now - file.mtime > _DAY:
                # Of another machine: nobody writes one file for so long.
                found.append((file.path, "left for a day"))
            elif file.kind is Kind.BAD:
                found.append((file.path, "set aside"))
            elif file.kind is Kind.LOG and file.entry and file.entry.name not in stems and now - file.mtime > _DAY:
                found.append((file.path, "log without an entry"))
        return found

    def everything(self) -> list[tuple[Path, str]]:
        """Return all files that a runtime or this tool made, but temporary ones that may be in use."""
        alive = {
            file.path
            for file in self._files
            if file.kind is Kind.TEMPORARY and not is_left_over(file.path.name, ".tmp.")
        }
        return [(file.path, file.kind.value) for file in self._files if file.path not in alive]


def remove(path: Path) -> None:
    """Remove a file, or a directory that stands under an entry's name. Raises CkPostBuildError when that fails."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise CkPostBuildError(f"cannot remove it: {error.strerror}", file=path) from error
