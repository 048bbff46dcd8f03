"""What the report page shows: every kernel of some libraries with its traits, and what is known of it.

Nothing is compiled and no entry's bytes are checked here: an entry counts by its key, ``cache verify`` checks the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.blob_selection import chosen_arches, read_list, runs_on
from ck_post_build.blob_traits import Traits, blob_traits
from ck_post_build.build import LIBRARY_FILE
from ck_post_build.build_info import FILE_NAME, read_build_info
from ck_post_build.cache_dir import Kind, list_cache
from ck_post_build.cache_key import entry_stem, input_key, to_bytes
from ck_post_build.compile_time import read_seconds
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootManifest, find_root_manifests, root_directory
from ck_post_build.verify import as_root_manifest


@dataclass(frozen=True)
class Kernel:
    """A blob for one architecture.

    Attributes:
        arch: what it is compiled for.
        size: bytes of its cache entry; None where there is none.
        seconds: how long its compile took; None where that is not known.
    """

    library: str
    blob: str
    arch: str
    size: int | None
    seconds: float | None


@dataclass(frozen=True)
class ReportData:
    """The contents of a report.

    Attributes:
        libraries: name → its file, None where it is not linked yet.
        traits: blob → its traits.
        kernels: in order of blob names and architectures.
        used: blobs that recorded runs used; None without a record.
        unreached: blobs that no dispatch site reaches.
    """

    libraries: dict[str, Path | None]
    traits: dict[str, Traits]
    kernels: list[Kernel]
    used: frozenset[str] | None
    unreached: frozenset[str]


def collect(
    targets: Sequence[Path],
    cache: Path | None,
    used: Sequence[Path] = (),
    arches: Sequence[str] = (),
) -> ReportData:
    """Collect what a report shows.

    Args:
        targets: build directories, installed prefixes, and caches.
        cache: the cache to look into where `targets` name none.
        used: lists of blobs as ``CK_JIT_RECORD`` writes them.
        arches: devices to show; empty: all that the libraries were built for.

    Raises:
        CkPostBuildError: a target is none, or no target says which kernels there are.
    """
    manifests: list[RootManifest] = []
    libraries: dict[str, Path | None] = {}
    caches: list[Path] = []
    for target in targets:
        if found := _manifests(target):
            manifests += [manifest for manifest, _ in found]
            libraries.update({manifest.library: file for manifest, file in found})
        elif target.is_dir():
            caches.append(target)
        else:
            raise CkPostBuildError("no such directory. Name what ck-post-build build or install wrote", file=target)
    if not manifests:
        raise CkPostBuildError(
            "a cache alone does not say which kernels there are. Name the build directory or the installed prefix too",
            file=targets[0],
        )
    entries = _Entries(caches or [path for path in [cache] if path is not None and path.is_dir()])
    traits = {blob.name: blob_traits(manifest, blob) for manifest in manifests for blob in manifest.blobs}
    return ReportData(
        libraries,
        traits,
        _kernels(manifests, traits, entries, arches),
        frozenset(name for path in used for name in read_list(path)) if used else None,
        frozenset(name for manifest in manifests for name in manifest.unreferenced_blobs),
    )


def _manifests(target: Path) -> list[tuple[RootManifest, Path | None]]:
    """Return the manifests of a build directory or an installed prefix with their libraries; none for another directory."""
    if (target / FILE_NAME).is_file():
        info = read_build_info(target)
        name_file = target / LIBRARY_FILE
        name = name_file.read_text() if name_file.is_file() else target.absolute().name
        return [(as_root_manifest(info, name), _file(target / name))]
    root = root_directory(target)
    if not any(root.glob("*.manifest.json")):
        return []
    return [(manifest, _file(root.parent / manifest.library)) for manifest in find_root_manifests(root)]


def _file(path: Path) -> Path | None:
    return path if path.is_file() else None


class _Entries:
    """The entries of some caches by what they were made from; of several for the same, the first in byte order."""

    def __init__(self, caches: Iterable[Path]) -> None:
        self._found: dict[tuple[str, str], tuple[int, float | None]] = {}
        for cache in caches:
            files = list_cache(cache)
            logs = {file.entry.name: file.path for file in files if file.kind is Kind.LOG and file.entry}
            for file in files:
                if file.kind is Kind.ENTRY and file.entry:
                    log = logs.get(file.entry.name)
                    facts = (file.size, read_seconds(log) if log else None)
                    self._found.setdefault((file.entry.stem, file.entry.input), facts)

    def find(self, stem: str, key: str) -> tuple[int | None, float | None]:
        """Return size and compile seconds of an entry; None for what is not known."""
        return self._found.get((stem, key), (None, None))


def _kernels(
    manifests: Sequence[RootManifest], traits: dict[str, Traits], entries: _Entries, arches: Sequence[str]
) -> list[Kernel]:
    kernels: dict[tuple[str, str], Kernel] = {}
    for manifest in manifests:
        devices = chosen_arches(manifest, arches)
        for blob in manifest.blobs:
            for arch in devices:
                if runs_on(traits[blob.name], arch):
                    size, seconds = entries.find(entry_stem(blob.name), input_key(blob, arch))
                    kernel = Kernel(manifest.library, blob.name, arch, size, seconds)
                    kernels.setdefault((blob.name, arch), kernel)
    return sorted(kernels.values(), key=lambda kernel: (to_bytes(kernel.blob), kernel.arch))
