"""The headers that blobs can see: which they are, and their hash."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ck_post_build.errors import CkPostBuildError

# What is copied to the JIT root and hashed. A header of another suffix would be missing there, and the compiler says so.
_SUFFIXES = frozenset({"", ".h", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".inl", ".ipp", ".tpp", ".cuh", ".def"})


@functools.lru_cache(maxsize=256)
def header_files(place: Path) -> tuple[Path, ...]:
    """Return the headers at or below `place`, sorted.

    Raises:
        CkPostBuildError: it does not exist, or cannot be listed.
    """
    if place.is_file():
        return (place,)
    if not place.is_dir():
        raise CkPostBuildError("the flags name this header directory, and it does not exist", file=place)
    try:
        return tuple(sorted(_walk(place, frozenset())))
    except OSError as error:
        raise CkPostBuildError(f"cannot list the header directory: {error.strerror}", file=error.filename) from error


def _walk(directory: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Yield the headers below `directory`; links back to a directory `above` are left out."""
    above |= {directory.resolve()}
    for entry in directory.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if not (entry.is_symlink() and entry.resolve() in above):
                yield from _walk(entry, above)
        elif entry.suffix in _SUFFIXES and entry.is_file():
            yield entry


@functools.lru_cache(maxsize=256)
def tree_hash(place: Path) -> str:
    """Return the SHA-256 over the relative names and contents of the headers at `place`, hexadecimal."""
    digest = hashlib.sha256()
    for file in header_files(place):
        name = file.name if place.is_file() else file.relative_to(place).as_posix()
        try:
            content = hashlib.sha256(file.read_bytes()).digest()
        except OSError as error:
            raise CkPostBuildError(f"cannot read the header: {error.strerror}", file=file) from error
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + content)
    return digest.hexdigest()


def header_place(place: Path) -> str:
    """Return the path under the JIT root of the headers at `place`.

    By content, so that libraries that share a prefix agree, and builds in two directories give the same bytes.
    """
    return f"include/{place.name}_{tree_hash(place)[:8]}"


def combined_hash(places: Sequence[Path]) -> str:
    """Return one hash, 32 hexadecimal digits, over the headers at several places in their order."""
    return hashlib.sha256("".join(map(tree_hash, places)).encode()).hexdigest()[:32]
