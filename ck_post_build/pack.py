"""Packs: the cache entries of one library in one archive, for images, fleets and machines without a compiler.

A pack is a tar file: ``ck_jit_pack.json`` first, then the entries as they are in a cache, in order of their names. The same
entries give the same bytes. Unpacked, it is a directory for ``CK_JIT_CACHE_PATH``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ck_post_build import runtime_env
from ck_post_build.arch import arch_runs_on
from ck_post_build.blob_selection import Target
from ck_post_build.cache_dir import Kind, list_cache, read_entry, write_file
from ck_post_build.cache_entry import BadEntryError, parse_entry_name, verify_entry
from ck_post_build.cache_key import CompilerId, compiler_key, entry_stem, input_key, read_script
from ck_post_build.entry_owner import EntryOwners
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob, RootManifest, find_root_manifests, root_directory
from ck_post_build.output import write_all
from ck_post_build.runtime_env import private_dir

INDEX = "ck_jit_pack.json"
_FORMAT = 1


class PackedEntry(msgspec.Struct, frozen=True):
    """An entry of a pack: its file, what it was made for, and the SHA-256 of the file."""

    file: str
    library: str
    blob: str
    arch: str
    sha256: str


class PackedCompiler(msgspec.Struct, frozen=True):
    """A compiler by its part of the key; version and identity are empty for one that was not on the packing machine."""

    key: str
    version: str
    identity: str


class PackIndex(msgspec.Struct, frozen=True):
    """The table of contents of a pack: libraries with their manifests, compilers and entries."""

    format: int
    libraries: list[RootManifest]
    compilers: list[PackedCompiler]
    entries: list[PackedEntry]


def pack_contents(
    root: Path, cache_dir: str, arches: Sequence[str], compiler: CompilerId | None
) -> tuple[PackIndex, dict[str, bytes]]:
    """Return the table of contents, and the files, of a pack of the good entries that the cache has for libraries.

    Args:
        root: the installed prefix, or its JIT root.
        cache_dir: the cache.
        arches: take only entries for these devices; empty: all.
        compiler: this machine's compiler, if any. Where there are entries by it and by others, its own are taken.

    Raises:
        CkPostBuildError: there are no entries.
    """
    manifests = find_root_manifests(root)
    key = compiler_key(compiler.identity, read_script(root_directory(root))) if compiler else ""
    chosen = _choose(manifests, Path(cache_dir), arches, key)
    if not chosen:
        raise CkPostBuildError(
            "the cache has no entry of this library. Make them with ck-post-build prebuild, or name their place with "
            "--cache-dir, and the architectures of a library that was built for none in particular with --arch",
            file=cache_dir,
        )
    entries = [
        PackedEntry(file, target.library, target.blob.name, target.arch, hashlib.sha256(data).hexdigest())
        for file, (target, data) in chosen.items()
    ]
    by = sorted({name.compiler for file in chosen if (name := parse_entry_name(file))})
    known = {key: PackedCompiler(key, compiler.version, compiler.identity)} if compiler else {}
    index = PackIndex(_FORMAT, manifests, [known.get(k, PackedCompiler(k, "", "")) for k in by], entries)
    files = {INDEX: msgspec.json.encode(index), **{file: data for file, (_, data) in chosen.items()}}
    return index, files


def write_pack(files: dict[str, bytes], output: Path) -> None:
    """Write the archive `output`; one that ends in ``gz`` is compressed. Raises CkPostBuildError when it cannot be written."""
    write_all(output.absolute().parent, {output.name: _archive(files, compress=output.suffix in (".gz", ".tgz"))})


def _choose(
    manifests: Sequence[RootManifest], cache: Path, arches: Sequence[str], key: str
) -> dict[str, tuple[Target, bytes]]:
    """Return the good entry of each input, by file name in order."""
    owners = EntryOwners(manifests, arches)
    taken: dict[str, str] = {}
    found: dict[str, tuple[Target, bytes]] = {}
    files = [file for file in list_cache(cache) if file.kind is Kind.ENTRY and file.entry is not None]
    for file in sorted(files, key=lambda f: (f.entry is None or f.entry.compiler != key, f.path.name)):
        assert file.entry is not None
        target = owners.find(file.entry, file.path)
        if target is None or file.entry.input in taken or not _is_wanted(target.arch, arches):
            continue
        with suppress(BadEntryError, FileNotFoundError):
            found[file.path.name] = (target, read_entry(file.path, target.blob, target.arch))
            taken[file.entry.input] = file.path.name
    return dict(sorted(found.items()))


def _is_wanted(arch: str, devices: Sequence[str]) -> bool:
    return not devices or any(arch_runs_on(arch, device) for device in devices)


def _archive(files: dict[str, bytes], *, compress: bool) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            item = tarfile.TarInfo(name)  # no time, no owner
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0) if compress else stream.getvalue()


def unpack(archive: Path, output: Path, root: Path | None) -> PackIndex:
    """Unpack `archive` into the directory `output`, which is made, and return its contents. Checks every entry first.

    Raises:
        CkPostBuildError: the archive is damaged, or it is not for the libraries of `root`; nothing is written then.
    """
    files = _read_archive(archive)
    index = _read_index(archive, files)
    for entry in index.entries:
        _check_entry(archive, entry, files.get(entry.file))
    if root is not None:
        _check_libraries(archive, index, find_root_manifests(root))
    place = private_dir(runtime_env.cache_dir(output), create=True)
    try:
        for name in [*(entry.file for entry in index.entries), INDEX]:
            write_file(place / name, files[name])
    except OSError as error:
        raise CkPostBuildError(f"cannot write: {error.strerror}. Choose another -o", file=place) from error
    return index


def _read_archive(archive: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(archive, mode="r:*") as files:
            members = [(item.name, files.extractfile(item)) for item in files.getmembers()]
            return {name: content.read() for name, content in members if content is not None}
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise CkPostBuildError(
            f"this is no pack, or a damaged one: {error}. Make or fetch it again", file=archive
        ) from error
    except OSError as error:
        raise CkPostBuildError(f"cannot read the pack: {error.strerror or error}", file=archive) from error


def _read_index(archive: Path, files: dict[str, bytes]) -> PackIndex:
    try:
        index = msgspec.json.decode(files[INDEX], type=PackIndex)
    except (KeyError, msgspec.MsgspecError) as error:
        raise CkPostBuildError(
            f"this is no pack: {INDEX} is missing or of another version ({error}). Make it with ck-post-build pack",
            file=archive,
        ) from error
    if index.format != _FORMAT:
        raise CkPostBuildError(f"the pack has format {index.format}; this version reads {_FORMAT}", file=archive)
    return index


def _check_entry(archive: Path, entry: PackedEntry, data: bytes | None) -> None:
    name = parse_entry_name(entry.file)  # also keeps it from being a path to elsewhere
    if name is None or data is None or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise CkPostBuildError(f"the pack is damaged: {entry.file} is missing or has other bytes", file=archive)
    try:
        verify_entry(data, name.key, (), entry.arch)
    except BadEntryError as error:
        raise CkPostBuildError(f"the pack's entry {entry.file} {error}", file=archive) from error


def _check_libraries(archive: Path, index: PackIndex, installed: Sequence[RootManifest]) -> None:
    """Raise CkPostBuildError when an entry is of no use to the libraries that are installed, and say what differs."""
    blobs = {(manifest.library, blob.name): blob for manifest in installed for blob in manifest.blobs}
    packed = {(manifest.library, blob.name): blob for manifest in index.libraries for blob in manifest.blobs}
    names = sorted(manifest.library for manifest in installed)
    reasons: dict[str, list[str]] = {}
    for entry in index.entries:
        mine = blobs.get((entry.library, entry.blob))
        reason = ""
        if entry.library not in names:
            reason = f"is of {entry.library}, and here are {', '.join(names)}"
        elif mine is None:
            reason = "is of a blob that the installed library does not have"
        elif not entry.file.startswith(f"{entry_stem(mine.name)}.{input_key(mine, entry.arch)}"):
            reason = _difference(mine, packed.get((entry.library, entry.blob)))
        if reason:
            reasons.setdefault(reason, []).append(entry.blob)
    if reasons:
        listed = "; ".join(f"{len(found)} entries ({found[0]}, …): {reason}" for reason, found in reasons.items())
        raise CkPostBuildError(
            f"the pack is for another build of the library: of {len(index.entries)} entries, {listed}. Pack again from this "
            "build, or install the build that the pack is for",
            file=archive,
        )


def _difference(mine: RootBlob, theirs: RootBlob | None) -> str:
    if theirs is None:
        return "does not fit the pack's own manifest"
    pairs = [
        ("source", mine.source_hash, theirs.source_hash),
        ("headers", mine.headers_hash, theirs.headers_hash),
        ("flags", " ".join(mine.flags), " ".join(theirs.flags)),
    ]
    differing = [(what, a, b) for what, a, b in pairs if a != b]
    if not differing:
        return "does not fit the pack's own manifest"
    return ", ".join(f"other {what} (here {a[:200]}, in the pack {b[:200]})" for what, a, b in differing)
