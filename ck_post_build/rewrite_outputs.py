"""What ``rewrite`` writes: manifest, rewritten API files with their glue, build info, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ck_post_build import glue
from ck_post_build.api_rewriter import ApiFile, include_place, reached_instances, rewrite_api
from ck_post_build.blob_index import BlobIndex
from ck_post_build.build_info import ApiInfo, BlobInfo, BuildInfo
from ck_post_build.flags import Flags, HeaderTree
from ck_post_build.kept_index import FILE_NAME as KEPT
from ck_post_build.kept_index import KeptIndex
from ck_post_build.manifest import HEADER, Manifest, manifest_header
from ck_post_build.outline import outline_edits, outlined_name
from ck_post_build.overlay import find_overlays
from ck_post_build.report import Entry, LeftOut, Report
from ck_post_build.tables import find_tables, with_tables

_MANIFEST_RECORDS = "ck_jit_manifest"


def library_outputs(manifest: Manifest, asked: dict[str, str]) -> dict[str, bytes]:
    """Return the generated files that do not depend on API files."""
    tables = manifest.tables()
    return {
        "ck_jit_dispatch.h": glue.dispatch_header(manifest).encode(),
        HEADER: manifest_header(tables).encode("utf-8", "surrogateescape"),
        _MANIFEST_RECORDS: manifest.records(),
        KEPT: msgspec.msgpack.encode(KeptIndex(tables, asked)),
    }


def api_outputs(files: Sequence[ApiFile], manifest: Manifest) -> dict[str, bytes]:
    """Return the rewritten API files with what goes with each."""
    texts = {"ck_jit_manifest.cpp": glue.manifest_source(files)}
    if _has_stubs(files):
        texts[glue.STUBS] = glue.stub_source(files, manifest)
    overlays = find_overlays(files)
    for overlay in [overlay for of_file in overlays.values() for overlay in of_file]:
        texts[overlay.entry_header_name] = glue.overlay_entry_header(overlay, manifest)
    failures = glue.stub_failures(files, manifest)
    taken: set[str] = set()
    for file in files:
        texts[file.header_name] = glue.entry_header(file, overlays[file.source.path], manifest)
        texts[file.entry_source_name] = glue.entry_source(file, manifest, failures[file.source.path], taken)
    outputs = {name: text.encode("utf-8", "surrogateescape") for name, text in texts.items()}
    for file in files:
        edits = rewrite_api(file, manifest.slots, manifest.layout_hash)
        outputs[file.source.path.name] = file.source.apply(edits).encode("latin-1")
        tables = find_tables(file, edits, manifest.slots)
        cuts = outline_edits(file, tables)
        outlined = file.source.apply(with_tables([*edits, *cuts], tables, include_place(file.source, file.start)))
        outlined += glue.include_entry_source(file)
        outputs[outlined_name(file.source.path.name)] = outlined.encode("latin-1")
    for overlay in [overlay for of_file in overlays.values() for overlay in of_file]:
        outputs[overlay.name] = overlay.text().encode("latin-1")
    return outputs


def _has_stubs(files: Sequence[ApiFile]) -> bool:
    return any(file.stub_sites for file in files)


def _neighbours(file: ApiFile) -> list[str]:
    """Return the flags with which a quoted include finds what stood beside the original, not beside the copy."""
    directories = [file.source.path, *(wrapper.source.path for wrapper in file.wrappers)]
    return [word for path in dict.fromkeys(p.absolute().parent for p in directories) for word in ("-iquote", str(path))]


def build_info(
    files: Sequence[ApiFile], api_flags: dict[Path, Flags], index: BlobIndex, manifest: Manifest, headers: HeaderTree
) -> bytes:
    """Return the build info: what later steps need, with paths of this machine."""
    symbols = index.symbols()
    info = BuildInfo(
        apis=[
            ApiInfo(
                f.source.path.name,
                f.entry_source_name,
                [*_neighbours(f), *api_flags[f.source.path].arguments],
            )
            for f in files
        ],
        blobs=[
            BlobInfo(
                name,
                str(blob.path.absolute()),
                list(manifest.flag_sets[name].arguments),
                blob.source_hash,
                manifest.flag_sets[name].headers_hash,
                symbols[name],
            )
            for name, blob in index.blobs.items()
        ],
        headers={str(path): place for path, place in headers.places.items()},
        arches=list(manifest.arches),
        manifest_records=_MANIFEST_RECORDS,
        parameters=index.traits.parameters,
        enums=index.traits.enums,
        stubs=_has_stubs(files),
        unreferenced_blobs=_unreferenced_blobs(files, index),
    )
    return msgspec.json.encode(info)


def _unreferenced_blobs(files: Sequence[ApiFile], index: BlobIndex) -> list[str]:
    reached = reached_instances(files)
    referenced = {instance.blob for instance in index.instances if id(instance) in reached}
    return [name for name in index.blobs if name not in referenced]


def report_of(files: Sequence[ApiFile], index: BlobIndex, discarded: list[LeftOut]) -> Report:
    """Return the report of a rewrite."""
    entries = [
        Entry(str(file.source.path), site.line, site.direction, list(site.symbols), list(site.blobs))
        for file in files
        for site in file.sites
    ]
    entries += [
        Entry(str(file.source.path), site.line, site.direction, list(site.symbols), list(site.blobs), "stub")
        for file in files
        for site in file.stub_sites
    ]
    return Report(
        sites=len(entries) + len(discarded),
        blobs=len(index.blobs),
        unresolved=[],
        discarded=discarded,
        unreferenced_blobs=_unreferenced_blobs(files, index),
        entries=entries,
    )
