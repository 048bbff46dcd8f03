"""The cache directory: what is in it, publishing into it, and removing from it."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ck_post_build.cache_entry import (
    BadEntryError,
    EntryName,
    make_trailer,
    parse_entry_name,
    read_object,
    verify_entry,
)
from ck_post_build.cache_key import netstrings
from ck_post_build.compile_time import seconds_line
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob
from ck_post_build.runtime_env import private_dir, why_not_ours

LOG_DIRECTORY = "log"
_BAD_DIRECTORY = "bad"
_TEMP_PREFIX = ".tmp."
_KEPT_LOG_BYTES = 1 << 20
_numbers = itertools.count()


class Kind(Enum):
    """The kinds of files in a cache directory."""

    ENTRY = "entry"
    LOG = "log"
    BAD = "set aside"
    COMPILER = "compiler identity"
    TEMPORARY = "temporary"


@dataclass(frozen=True)
class CacheFile:
    """A file in the cache directory. `entry` is what its name says, for entries and logs."""

    path: Path
    kind: Kind
    size: int
    mtime: float
    entry: EntryName | None = None


def node_name() -> str:
    """Return what stands for the boot of this machine and the pid namespace in names of temporary files."""

    def read(path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError:
            return b""

    try:
        namespace = os.fsencode(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  (no path: "pid:[4026531836]")
    except OSError:
        namespace = b""
    names = [os.fsencode(socket.gethostname()), read("/proc/sys/kernel/random/boot_id"), namespace]
    return hashlib.sha256(netstrings(names)).hexdigest()[:12]


def private_name(prefix: str) -> str:
    """Return a file name that no other call returns, on any machine, and that tells whose it is."""
    # The letter keeps it apart from the names that a runtime in the same process makes.
    return f"{prefix}{node_name()}.{os.getpid()}.p{next(_numbers)}"


def is_left_over(name: str, prefix: str) -> bool:
    """Tell whether the file was made under a private name with `prefix` by a process of this machine that is gone."""
    match = re.match(re.escape(f"{prefix}{node_name()}.") + r"(\d+)", name)
    if match is None:
        return False
    try:
        os.kill(int(match.group(1)), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def list_cache(directory: Path) -> list[CacheFile]:
    """Return what a runtime or this tool has put into a cache directory, in order of the names. Other files are left out.

    Raises:
        CkPostBuildError: the directory cannot be read.
    """
    try:
        return sorted(_list_cache(directory), key=lambda file: (file.kind.value, file.path.name))
    except OSError as error:
        raise CkPostBuildError(f"cannot read the cache directory: {error.strerror}", file=error.filename) from error


def _list_cache(directory: Path) -> Iterator[CacheFile]:
    for item in _files(directory):
        if entry := parse_entry_name(item.name):
            yield _cache_file(item, Kind.ENTRY, entry)
        elif item.name.startswith(_TEMP_PREFIX):
            yield _cache_file(item, Kind.TEMPORARY)
    for item in _files(directory / LOG_DIRECTORY):
        if item.suffix == ".log" and (entry := parse_entry_name(f"{item.stem}.so")):
            yield _cache_file(item, Kind.LOG, entry)
    for item in _files(directory / _BAD_DIRECTORY):
        yield _cache_file(item, Kind.BAD)
    for item in _files(directory / "compiler"):
        if re.fullmatch(r"[0-9a-f]{32}", item.name):
            yield _cache_file(item, Kind.COMPILER)
        elif item.name.startswith(_TEMP_PREFIX):
            yield _cache_file(item, Kind.TEMPORARY)


def _files(directory: Path) -> list[Path]:
    """Return the entries of `directory`; none when it is missing or a symbolic link."""
    return list(directory.iterdir()) if directory.is_dir() and not directory.is_symlink() else []


def _cache_file(path: Path, kind: Kind, entry: EntryName | None = None) -> CacheFile:
    try:
        status = path.lstat()
    except FileNotFoundError:  # removed since it was listed
        return CacheFile(path, kind, 0, 0.0, entry)
    return CacheFile(path, kind, status.st_size, status.st_mtime, entry)


def read_entry(path: Path, blob: RootBlob | None = None, arch: str | None = None) -> bytes:
    """Return the bytes of a good entry.

    Args:
        path: an entry's file.
        blob: whose functions it must define, if known.
        arch: what its device code must be for, if known.

    Raises:
        FileNotFoundError: there is none.
        BadEntryError: it is no good, with the reason.
    """
    entry = parse_entry_name(path.name)
    if entry is None:
        raise BadEntryError("has no entry's name")
    try:
        with os.fdopen(_open(path), "rb") as stream:
            if problem := why_not_ours(os.fstat(stream.fileno())):
                raise BadEntryError(problem)
            data = stream.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadEntryError(f"cannot be read: {error.strerror}") from error
    verify_entry(data, entry.key, blob.symbols if blob else (), arch)
    return data


def _open(path: Path) -> int:
    """Open an entry without following a link, waiting for a fifo, or, where that can be had, making it look used."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:  # another user's file
        return os.open(path, flags)


def is_good(path: Path, blob: RootBlob, arch: str) -> bool:
    """Tell whether there is a good entry at `path`."""
    try:
        read_entry(path, blob, arch)
    except (FileNotFoundError, BadEntryError):
        return False
    return True


def publish(directory: Path, entry: EntryName, data: bytes) -> Path:
    """Put the verified shared object `data` into the cache: complete under its final name, or not at all.

    A file under that name is replaced; anything else goes to ``bad/``. Returns the entry's path.

    Raises:
        CkPostBuildError: the directory cannot be written.
    """
    content = data + make_trailer(data, entry.key, read_object(data).build_id)
    target = directory / entry.file
    try:
        _set_aside(target)
        write_file(target, content)
    except OSError as error:
        raise CkPostBuildError(f"cannot write into the cache: {error.strerror}", file=target) from error
    return target


def write_file(target: Path, content: bytes) -> None:
    """Write `target` under a temporary name, make sure that it is on the disk, and rename it."""
    temporary = target.with_name(private_name(_TEMP_PREFIX))
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _set_aside(target: Path) -> None:
    """Move a directory or another thing that a rename cannot replace; a file is replaced as it is."""
    try:
        status = target.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        bad = target.parent / _BAD_DIRECTORY
        bad.mkdir(mode=0o700, exist_ok=True)
        target.rename(bad / private_name(f"{target.name[:64]}."))


def write_log(directory: Path, entry: EntryName, output: bytes, seconds: float | None) -> Path | None:
    """Write what the compiler printed, as the runtime does, and return where; None when there is nothing to write.

    `seconds` is how long a compile that went well took: the last line.
    """
    path = directory / LOG_DIRECTORY / f"{entry.name}.log"
    with suppress(OSError):  # a build without a log is better than no build
        content = output[:_KEPT_LOG_BYTES] + (seconds_line(seconds) if seconds is not None else b"")
        if not content:
            path.unlink(missing_ok=True)
            return None
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_file(path, content)
        return path
    return None


def remove_left_overs(directory: Path) -> None:
    """Remove temporary files of this machine's dead processes."""
    for place in (directory, directory / LOG_DIRECTORY):
        for item in _files(place):
            if is_left_over(item.name, _TEMP_PREFIX):
                with suppress(OSError):
                    item.unlink()


def open_cache(directory: str) -> Path:
    """Return the writable cache directory, made where it is missing.

    Raises:
        CkPostBuildError: it cannot be made, or the runtime would not trust it.
    """
    place = private_dir(directory, create=True)
    if not os.access(place, os.W_OK | os.X_OK):
        raise CkPostBuildError("the cache directory cannot be written. Choose another with --cache-dir", file=place)
    return place
