"""Which blob of which library an entry in a cache belongs to, from its name and where need be its device code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ck_post_build.arch import processor
from ck_post_build.blob_selection import Target
from ck_post_build.cache_entry import TRAILER_BYTES, BadEntryError, EntryName, read_object
from ck_post_build.cache_key import entry_stem, input_key
from ck_post_build.jit_root import RootBlob, RootManifest


class EntryOwners:
    """Finds the blob and the architecture that an entry was made for.

    Args:
        manifests: the libraries.
        arches: devices' architectures to expect beside those that the libraries were built for.
    """

    def __init__(self, manifests: Iterable[RootManifest], arches: Sequence[str] = ()) -> None:
        self._by_stem: dict[str, list[tuple[RootManifest, RootBlob]]] = {}
        for manifest in manifests:
            for blob in manifest.blobs:
                self._by_stem.setdefault(entry_stem(blob.name), []).append((manifest, blob))
        self._arches = tuple(arches)

    def has_blob(self, entry: EntryName) -> bool:
        """Tell whether one of the libraries has a blob with the entry's name."""
        return entry.stem in self._by_stem

    def find(self, entry: EntryName, path: Path) -> Target | None:
        """Return what the entry at `path` was made for; None when no library would use it."""
        candidates = self._by_stem.get(entry.stem, [])
        for manifest, blob in candidates:
            for arch in (*manifest.arches, *self._arches, *map(processor, self._arches)):
                if input_key(blob, arch) == entry.input:
                    return Target(manifest.library, blob, arch, entry.input)
        unbound = self._unbound(entry)
        for arch in _device_code(path) if unbound else ():
            for manifest, blob in unbound:
                if input_key(blob, arch) == entry.input:
                    return Target(manifest.library, blob, arch, entry.input)
        return None

    def cannot_tell(self, entry: EntryName, path: Path) -> bool:
        """Tell whether ``find`` may have missed the owner: no manifest names architectures, and the file does not tell."""
        return bool(self._unbound(entry)) and not _device_code(path)

    def _unbound(self, entry: EntryName) -> list[tuple[RootManifest, RootBlob]]:
        """Return the blobs of that name in libraries that were built for no architecture in particular."""
        return [(manifest, blob) for manifest, blob in self._by_stem.get(entry.stem, []) if not manifest.arches]


def _device_code(path: Path) -> list[str]:
    try:
        found = read_object(path.read_bytes()[:-TRAILER_BYTES])
    except (OSError, BadEntryError):
        return []
    return [processor(target) for target in found.device_code or ()]
