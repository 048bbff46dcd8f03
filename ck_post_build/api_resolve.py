"""Which instances the sites of an API file need, and what of the file stays or goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build import libclang
from ck_post_build.api_rewriter import ApiFile
from ck_post_build.api_scan import Scan
from ck_post_build.blob_index import BlobIndex
from ck_post_build.errors import CkPostBuildError
from ck_post_build.kept import Kept, raise_on_explicit_instantiation, with_hidden_sites
from ck_post_build.report import LeftOut
from ck_post_build.resolve import Unresolved, named_arguments, resolve_sites
from ck_post_build.sites import Site
from ck_post_build.source import as_bytes
from ck_post_build.stubs import StubSite, as_stub_sites, by_line, find_stub_sites
from ck_post_build.toolchain import Toolchain
from ck_post_build.virtual_functions import FLAG
from ck_post_build.wrappers import Wrapper


def resolve_api(toolchain: Toolchain, scan: Scan, index: BlobIndex) -> tuple[ApiFile, list[LeftOut]]:
    """Return the file with its sites resolved, and the sites that are left out because their blobs do not exist.

    Raises:
        CkPostBuildError: it has no site, or one whose blob does not exist though it is needed.
    """
    source, wrappers, sites = scan.parsed.source, scan.wrappers, scan.sites
    path = source.path
    resolved, unresolved = resolve_sites(sites, source, index, wrappers)
    # A template's instances tell whether they need what it names.
    open_sites = {
        id(left_out.site) for left_out in unresolved if left_out.site is not None and left_out.site.in_template
    }
    known = [site for site in sites if id(site) not in open_sites]
    stay = with_hidden_sites(scan.stay, known, scan.naming)
    stub_sites, without_blob = _stub_sites(toolchain, scan, stay, known, index) if stay else ([], [])
    if not sites and not stub_sites and not without_blob:
        raise CkPostBuildError(
            "this is no API file: it calls no kernel template of the given blobs. Give a generated fmha_*_api.cpp with --api, "
            "and the blobs of the same direction with --blob-dir",
            file=path,
        )
    needed = [site for site in unresolved if not site.may_be_left_out]
    _raise_unresolved(path, [*needed, *without_blob])
    calls = [site for site in resolved if not site.site.stays]
    stub_sites = by_line([*stub_sites, *as_stub_sites([site for site in resolved if site.site.stays])])
    used = _used_wrappers({site.site.template for site in calls}, wrappers)
    left = [
        LeftOut(str(path), left_out.line, left_out.site.template, list(named_arguments(left_out.site)))
        for left_out in unresolved
        if left_out.site is not None
    ]
    return ApiFile(source, calls, used, stub_sites, scan.macro_words), left


def _stub_sites(
    toolchain: Toolchain, scan: Scan, stay: Sequence[Kept], known: Sequence[Site], index: BlobIndex
) -> tuple[list[StubSite], list[Unresolved]]:
    """Parse the file again, with templates instantiated this time, and return the sites that are not known but behind `stay`."""
    source = scan.parsed.source
    raise_on_explicit_instantiation(source, stay)
    unit = libclang.parse(toolchain.clang, source.path, scan.arguments)
    libclang.raise_on_errors(unit)

    def parse_with(more: str) -> TranslationUnit:
        text = f"{source.text}\n{as_bytes(more)}"
        return libclang.parse(toolchain.clang, source.path, [*scan.arguments, FLAG], text=text)

    return find_stub_sites(unit, source, index, known, parse_with, scan.naming)


def _used_wrappers(names: set[str], wrappers: dict[str, Wrapper]) -> list[Wrapper]:
    """Return the wrappers among `names` and those that these call, in the order in which they stand."""
    pending = [name for name in names if name in wrappers]
    used: dict[str, Wrapper] = {}
    while pending:
        name = pending.pop()
        if name not in used:
            used[name] = wrappers[name]
            pending += wrappers[name].calls
    return sorted(used.values(), key=lambda wrapper: (str(wrapper.source.path), wrapper.start))


def _raise_unresolved(path: Path, unresolved: list[Unresolved]) -> None:
    if unresolved:
        first = unresolved[0]
        more = f" ({len(unresolved) - 1} more sites lack their blobs too)" if len(unresolved) > 1 else ""
        raise CkPostBuildError(first.message() + more, file=path, line=first.line)


def make_file_local(files: Sequence[ApiFile]) -> None:
    """Give twins internal linkage whose names stand in several API files: each file calls its own."""
    wrappers = [wrapper for file in files for wrapper in file.own_wrappers]
    names = Counter(wrapper.qualified_entry for wrapper in wrappers)
    for wrapper in wrappers:
        wrapper.file_local = names[wrapper.qualified_entry] > 1
