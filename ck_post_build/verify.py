"""Checks a build or an installed library: are the predicted kernel symbols the ones that the compiler made?"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ck_post_build.build import LIBRARY_FILE
from ck_post_build.build_info import read_build_info
from ck_post_build.elf import defined_dynamic_symbols
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import JIT_ROOT, read_root_manifest

CACHE_NAME = "ck_jit"


@dataclass(frozen=True)
class Verified:
    """How many blobs and symbols a library has, and how many compiled blobs were found and are right."""

    blobs: int
    symbols: int
    compiled: int


def cache_dir() -> Path:
    """Return the cache directory that the runtime uses with this environment."""
    named = os.environ.get("CK_JIT_CACHE_DIR")
    return Path(named) if named else platformdirs.user_cache_path(CACHE_NAME)


def verify(target: Path) -> Verified:
    """Check `target`, a build directory or an installed library, with the compiled blobs in the cache.

    Raises:
        CkPostBuildError: a compiled blob lacks a symbol that was predicted for it, or there is no library.
    """
    if target.is_dir():
        info = read_build_info(target)
        blobs = {blob.name: blob.symbols for blob in info.blobs}
        library = target / (target / LIBRARY_FILE).read_text() if (target / LIBRARY_FILE).is_file() else None
    else:
        manifest = read_root_manifest(target.absolute().parent / JIT_ROOT, target.name)
        blobs = {blob.name: blob.symbols for blob in manifest.blobs}
        library = target
    if library is not None:
        defined_dynamic_symbols(library)
    compiled = 0
    stems = {Path(name).stem: name for name in blobs}
    directory = cache_dir()
    for entry in sorted(directory.iterdir()) if directory.is_dir() else []:
        match = re.fullmatch(r"(.+)\.[0-9a-f]{16,64}\.so", entry.name)
        if match is None or match.group(1) not in stems:
            continue
        missing = set(blobs[stems[match.group(1)]]) - defined_dynamic_symbols(entry)
        if missing:
            raise CkPostBuildError(
                f"the compiled blob lacks {sorted(missing)[0]} ({len(missing)} of its symbols). Remove it with "
                "ck-post-build cache clear, and report this: the prediction was wrong",
                file=entry,
            )
        compiled += 1
    return Verified(len(blobs), sum(map(len, blobs.values())), compiled)
