"""Which blobs of a JIT root, for which architectures: by name, glob, list, condition and shard."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.arch import choose_arch, processor
from ck_post_build.blob_traits import Traits, blob_traits
from ck_post_build.cache_entry import EntryName
from ck_post_build.cache_key import entry_stem, input_key, to_bytes
from ck_post_build.condition import Condition
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob, RootManifest

_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Selection:
    """What to select.

    Attributes:
        patterns: blob names (with or without suffix) and globs.
        list_file: a file of such names, one a line, as ``CK_JIT_RECORD`` writes it.
        where: a condition on traits, for what the others select; for all blobs when there are no others.
        everything: all blobs.
        shard: (i, n): the i-th of n parts, from 1; a blob's part depends on its name alone.
    """

    patterns: Sequence[str] = ()
    list_file: Path | None = None
    where: str | None = None
    everything: bool = False
    shard: tuple[int, int] | None = None


@dataclass(frozen=True)
class Target:
    """One entry to make: a blob for an architecture."""

    library: str
    blob: RootBlob
    arch: str
    input: str

    def entry(self, compiler: str) -> EntryName:
        """Return the name of its entry, made by the compiler with the key `compiler`."""
        return EntryName(entry_stem(self.blob.name), self.input, compiler)

    @property
    def label(self) -> str:
        """What to call it in messages."""
        return f"{self.blob.name} {self.arch}"


def select(manifests: Sequence[RootManifest], selection: Selection, arches: Sequence[str]) -> list[Target]:
    """Return the entries to make, in order of blob name and architecture, each once.

    `arches` are devices' architectures; empty: all that a library was built for. A kernel that carries an architecture's
    tag (``ck_tile::gfx950_t``) is not made for others, which never call it.

    Raises:
        CkPostBuildError: nothing is selected, a name or trait is unknown, or no architecture is known.
    """
    wanted = _wanted(manifests, selection)
    condition = Condition(selection.where) if selection.where is not None else None
    known: set[str] = set()
    targets: dict[tuple[str, str], Target] = {}
    for manifest in manifests:
        chosen = chosen_arches(manifest, arches)
        for blob in manifest.blobs:
            if wanted is not None and blob.name not in wanted:
                continue
            if selection.shard is not None and shard_of(blob.name, selection.shard[1]) != selection.shard[0]:
                continue
            traits = blob_traits(manifest, blob)
            known |= traits.keys()
            if condition is not None and not condition(traits):
                continue
            for arch in chosen:
                if runs_on(traits, arch):
                    target = Target(manifest.library, blob, arch, input_key(blob, arch))
                    targets.setdefault((blob.name, target.input), target)
    if condition is not None and known:
        condition.check_names(known)
    return sorted(targets.values(), key=lambda target: (to_bytes(target.blob.name), target.arch, target.input))


def shard_of(name: str, count: int) -> int:
    """Return which of `count` shards, from 1, the blob belongs to."""
    return int.from_bytes(hashlib.sha256(to_bytes(name)).digest()[:8], "big") % count + 1


def runs_on(traits: Traits, arch: str) -> bool:
    """Tell whether a blob with these traits is made for `arch`: a kernel's tag may name others."""
    return all(processor(arch).startswith(str(tag)) for tag in traits.get("arch", ()))


def chosen_arches(manifest: RootManifest, devices: Sequence[str]) -> list[str]:
    """Return the architectures to compile a library's blobs for on `devices`; on none in particular, all it was built for.

    Raises:
        CkPostBuildError: it was built for none in particular.
    """
    if devices:
        return list(dict.fromkeys(choose_arch(device, manifest.arches) for device in devices))
    if not manifest.arches:
        raise CkPostBuildError(
            f"{manifest.library} was built for no architecture in particular: name those to compile for with --arch"
        )
    return manifest.arches


def _wanted(manifests: Sequence[RootManifest], selection: Selection) -> set[str] | None:
    """Return the names that patterns and list select; None: all."""
    names = {blob.name for manifest in manifests for blob in manifest.blobs}
    patterns = [*selection.patterns, *(read_list(selection.list_file) if selection.list_file else ())]
    if selection.everything or (not patterns and selection.where is not None):
        return None
    if not patterns:
        raise CkPostBuildError("nothing is selected: name blobs, or give --from, --where or --all")
    by_stem = {Path(name).stem: name for name in names}
    wanted: set[str] = set()
    for pattern in patterns:
        found = set(_matching(pattern, names, by_stem))
        if not found:
            near = difflib.get_close_matches(pattern, names, n=1)
            hint = f"Did you mean {near[0]}?" if near else "ck-post-build prebuild --list --all lists them."
            raise CkPostBuildError(f"no blob is called {pattern!r} in this JIT root. {hint}")
        wanted |= found
    return wanted


def _matching(pattern: str, names: set[str], by_stem: dict[str, str]) -> Iterator[str]:
    if pattern in names:
        yield pattern
    elif pattern in by_stem:
        yield by_stem[pattern]
    elif _GLOB.search(pattern):
        yield from fnmatch.filter(names, pattern)


def read_list(path: Path) -> list[str]:
    """Return the blob names of a list, one a line. Raises CkPostBuildError when it cannot be read or names none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError as error:
        raise CkPostBuildError(f"cannot read the list of blobs: {error.strerror}", file=path) from error
    names = [line.strip() for line in lines]
    found = [name for name in dict.fromkeys(names) if name and not name.startswith("#")]
    if not found:
        raise CkPostBuildError("the list names no blob", file=path)
    return found
