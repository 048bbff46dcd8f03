"""Checks a build or an installed library: are the predicted kernel symbols the ones that the compiler made?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ck_post_build.build import LIBRARY_FILE
from ck_post_build.build_info import BuildInfo, read_build_info
from ck_post_build.cache_entry import parse_entry_name
from ck_post_build.cache_key import input_key
from ck_post_build.elf import defined_dynamic_symbols
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import JIT_ROOT, RootBlob, RootManifest, read_root_manifest
from ck_post_build.library_size import LibrarySize, library_size
from ck_post_build.manifest import SOURCE_DIRECTORY

CACHE_NAME = "ck_jit"


@dataclass(frozen=True)
class Verified:
    """How many blobs and symbols a library has, how many compiled blobs were found and are right, and its size if it is built."""

    blobs: int
    symbols: int
    compiled: int
    size: LibrarySize | None


def cache_dir() -> Path:
    """Return the cache directory that the runtime uses with this environment."""
    named = os.environ.get("CK_JIT_CACHE_DIR")
    return Path(named) if named else platformdirs.user_cache_path(CACHE_NAME)


def verify(target: Path) -> Verified:
    """Check `target`, a build directory or an installed library, with the compiled blobs in the cache.

    Raises:
        CkPostBuildError: a compiled blob lacks a symbol that was predicted for it, or there is no library.
    """
    library, arches, blobs = _contents(target)
    size = library_size(library) if library is not None else None
    # By key and not by name: names of entries are cut, and the cache may hold the same blob of another CK.
    by_key = {input_key(blob, arch): blob for blob in blobs for arch in arches}
    compiled = 0
    directory = cache_dir()
    for entry in sorted(directory.iterdir()) if directory.is_dir() else []:
        name = parse_entry_name(entry.name)
        blob = by_key.get(name.input) if name is not None else None
        if blob is None:
            continue
        missing = set(blob.symbols) - defined_dynamic_symbols(entry)
        if missing:
            raise CkPostBuildError(
                f"the compiled blob lacks {sorted(missing)[0]} ({len(missing)} of its symbols). Remove it with "
                "ck-post-build cache clear, and report this: the prediction was wrong",
                file=entry,
            )
        compiled += 1
    return Verified(len(blobs), sum(len(blob.symbols) for blob in blobs), compiled, size)


def _contents(target: Path) -> tuple[Path | None, list[str], list[RootBlob]]:
    """Return the library (if there is one yet), the architectures it is for, and its blobs."""
    if not target.is_dir():
        manifest = read_root_manifest(target.absolute().parent / JIT_ROOT, target.name)
        return target, manifest.arches, manifest.blobs
    info = read_build_info(target)
    name = target / LIBRARY_FILE
    blobs = as_root_manifest(info, target.name).blobs
    return target / name.read_text() if name.is_file() else None, info.arches, blobs


def as_root_manifest(info: BuildInfo, library: str) -> RootManifest:
    """Return what the manifest of `library` says once it is installed."""
    return RootManifest(
        library=library,
        arches=info.arches,
        blobs=[
            RootBlob(b.name, SOURCE_DIRECTORY + b.name, b.flags, b.source_hash, b.headers_hash, b.symbols)
            for b in info.blobs
        ],
        parameters=info.parameters,
        enums=info.enums,
        unreferenced_blobs=info.unreferenced_blobs,
    )
