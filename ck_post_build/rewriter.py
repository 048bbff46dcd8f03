"""The rewrite: from API files and blobs to rewritten API files, manifest and glue."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from clang.cindex import TranslationUnit

from ck_post_build import glue, libclang
from ck_post_build.api_rewriter import ApiFile, include_place, reached_instances, rewrite_api
from ck_post_build.blob_index import Answers, BlobIndex
from ck_post_build.blob_questions import (
    BLOB_SUFFIXES,
    BlobSource,
    Question,
    likely_templates,
    read_blobs,
    write_questions,
)
from ck_post_build.build_info import FILE_NAME, STAMP, ApiInfo, BlobInfo, BuildInfo
from ck_post_build.compile_db import FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags, HeaderTree
from ck_post_build.flat_chains import flatten
from ck_post_build.headers import combined_hash
from ck_post_build.kept import (
    Kept,
    names_to_kernels,
    raise_on_explicit_instantiation,
    templates_without_twin,
    with_hidden_sites,
)
from ck_post_build.kept_index import FILE_NAME as KEPT
from ck_post_build.kept_index import KeptIndex
from ck_post_build.macros import macros_naming, visible_macros
from ck_post_build.manifest import HEADER, FlagSet, Manifest, manifest_header
from ck_post_build.outline import outline_edits, outlined_name
from ck_post_build.output import write_all
from ck_post_build.overlay import find_overlays
from ck_post_build.report import Entry, LeftOut, Report
from ck_post_build.resolve import Unresolved, named_arguments, resolve_sites
from ck_post_build.sites import Site, find_sites
from ck_post_build.source import SourceFile, as_bytes, require_utf8
from ck_post_build.stubs import StubSite, as_stub_sites, by_line, find_stub_sites
from ck_post_build.tables import find_tables, with_tables
from ck_post_build.toolchain import Toolchain, find_toolchain
from ck_post_build.virtual_functions import FLAG
from ck_post_build.wrappers import Wrapper, find_wrappers

MANIFEST_RECORDS = "ck_jit_manifest"

Progress = Callable[[str], None]


def rewrite(
    api: Sequence[Path],
    blob_dirs: Sequence[Path],
    output: Path,
    flags: FlagSource,
    *,
    toolchain: Toolchain | None = None,
    progress: Progress = lambda message: None,
) -> Report:
    """Rewrite API files into `output`, with everything that a lazy library of them needs.

    Args:
        api: the generated ``fmha_*_api.cpp`` files of one library.
        blob_dirs: the directories with the blobs that they dispatch to.
        output: directory for the rewritten files (under their own names), the manifest header and the glue.
        flags: where compiler flags come from.
        toolchain: the HIP compiler's libclang; found in the environment by default.
        progress: is told each stage in a few words.

    Returns:
        the report.

    Raises:
        CkPostBuildError: anything wrong with the input or the output directory; nothing is written then.
    """
    toolchain = toolchain or find_toolchain()
    api = sorted(api, key=lambda path: path.name)
    with _no_garbage_collection(), ThreadPoolExecutor(max_workers=2) as pool:
        paths = list_blob_files(api, blob_dirs)
        for path in (*api, *paths):
            require_utf8(path)
        api_flags = {path: flags.of(path) for path in api}
        _check_names(api)
        libclang.load(toolchain.clang.library)
        units = {path: pool.submit(_parse_api, toolchain, path, api_flags[path]) for path in api}
        progress(f"reading {len(paths)} blob files")
        blobs, texts = read_blobs(paths, flags)
        if not blobs:
            raise CkPostBuildError(
                f"no file in {', '.join(map(str, blob_dirs))} specialises a kernel template: no blobs there"
            )
        progress(f"asking clang about {len(blobs)} blobs")
        questions = write_questions(blobs, texts)
        for question in questions:
            question.ask(toolchain.clang, pool)
        likely = likely_templates(texts)
        del texts
        scans, library = _read_as_it_comes(toolchain, api_flags, units, questions, likely, blobs, progress)
        index, manifest = library.manifest.index, library.manifest
        files: list[ApiFile] = []
        discarded: list[LeftOut] = []
        for path in api:
            progress(f"resolving {path.name}")
            scan = scans[path]
            if set(index.templates) != likely:
                scan = _find(toolchain, api_flags[path], scan.parsed, set(index.templates))
            file, left = _resolve(toolchain, scan, index)
            files.append(file)
            discarded += left
            for wrapper in scan.without_twin if file.stub_sites else ():
                place = f"{wrapper.source.path}:{wrapper.source.line_of(wrapper.problem_offset)}"
                progress(f"{place}: {wrapper.name} stays a template and is served by stubs: {wrapper.problem}")
        _make_file_local(files)
        progress("writing")
        outputs = {**library.outputs, **_api_outputs(files, manifest)}
        outputs[FILE_NAME] = _build_info(files, api_flags, index, manifest, library.headers)
    with suppress(OSError):  # write_all meets the same error, and says what to do
        (output / STAMP).unlink()
    write_all(output, outputs)
    return _report(files, index, discarded)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Millions of small objects live until the end; looking for cycles among them takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def list_blob_files(api: Sequence[Path], blob_dirs: Sequence[Path]) -> list[Path]:
    """Return the source files in the blob directories but for the API files, sorted by name."""
    own = {_identity(path) for path in api} - {None}
    found: list[Path] = []
    for directory in blob_dirs:
        try:
            entries = [entry for entry in os.scandir(directory) if entry.name.endswith(BLOB_SUFFIXES)]
        except OSError as error:
            raise CkPostBuildError(f"cannot list the blob directory: {error.strerror}", file=directory) from error
        found += [directory / entry.name for entry in entries if _identity(entry) not in own]
    return sorted(found, key=lambda path: (path.name, str(path)))


def _identity(path: Path | os.DirEntry[str]) -> tuple[int, int] | None:
    """Return what tells files apart under whatever name; None if there is no such file, as reading it will say."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_names(api: Sequence[Path]) -> None:
    seen: dict[str, Path] = {}
    for path in api:
        if path.stem in seen:
            raise CkPostBuildError(f"two API files are called {path.stem}; the other is {seen[path.stem]}", file=path)
        seen[path.stem] = path


@dataclass(frozen=True)
class _ParsedApi:
    """An API file and its parse; where that is of its FlatText, ``FlatText.continued``."""

    source: SourceFile
    unit: TranslationUnit
    continued: dict[int, int] | None


def _parse_api(toolchain: Toolchain, path: Path, flags: Flags) -> _ParsedApi:
    source = SourceFile(path)
    flat = flatten(source.text)
    if flat.continued:
        unit = _parse(toolchain, path, flags, flat.text)
        if libclang.first_error(unit) is None:
            return _ParsedApi(source, unit, flat.continued)
    return _parse_true_text(toolchain, source, flags)


def _parse_true_text(toolchain: Toolchain, source: SourceFile, flags: Flags) -> _ParsedApi:
    unit = _parse(toolchain, source.path, flags)
    libclang.raise_on_errors(unit)
    return _ParsedApi(source, unit, None)


def _parse(toolchain: Toolchain, path: Path, flags: Flags, text: str | None = None, more: int = 0) -> TranslationUnit:
    arguments = [*flags.arguments, *_arch_flags(flags)]
    return libclang.parse(toolchain.clang, path, arguments, options=libclang.INCOMPLETE | more, text=text)


def _arch_flags(flags: Flags) -> list[str]:
    return [f"--offload-arch={flags.arches[0]}"] if flags.arches else []


@dataclass(frozen=True)
class _Library:
    """What is known once clang has answered: the manifest, the headers that flags name, and the files made of those."""

    manifest: Manifest
    headers: HeaderTree
    outputs: dict[str, bytes]


def _read_as_it_comes(
    toolchain: Toolchain,
    api_flags: dict[Path, Flags],
    units: dict[Path, Future[_ParsedApi]],
    questions: Sequence[Question],
    likely: set[str],
    blobs: dict[str, BlobSource],
    progress: Progress,
) -> tuple[dict[Path, _Scan], _Library]:
    """Work on what clang has parsed, whichever comes first: it parses the rest meanwhile.

    Raises:
        CkPostBuildError: of several the one that comes first in a fixed order, API files before blobs.
    """
    scans: dict[Path, _Scan] = {}
    errors: dict[int, CkPostBuildError] = {}
    answers = Answers(blobs)
    paths = {future: path for path, future in units.items()}
    unread = list(questions)
    order: list[Future[Any]] = [*paths, *(question.asked for question in questions)]

    def find(parsed: Future[_ParsedApi]) -> None:
        path = paths[parsed]
        progress(f"finding the sites of {path.name}")
        scans[path] = _find(toolchain, api_flags[path], parsed.result(), likely)

    def read_answer() -> None:
        progress(f"reading clang's answers, {len(unread)} left")
        answers.read(unread.pop(0))

    for done in as_completed(order):
        ready: list[tuple[int, Callable[[], None]]] = []
        if done in paths:
            ready.append((order.index(done), functools.partial(find, done)))
        # Only one after another, so that a message about two of them always names the same one.
        for question in itertools.takewhile(lambda question: question.asked.done(), list(unread)):
            ready.append((order.index(question.asked), read_answer))
        for number, work in ready:
            try:
                work()
            except CkPostBuildError as error:
                errors[number] = error
    if errors:
        raise errors[min(errors)]
    return scans, _library(toolchain, api_flags, questions, answers.index())


def _library(
    toolchain: Toolchain, api_flags: dict[Path, Flags], questions: Sequence[Question], index: BlobIndex
) -> _Library:
    headers = HeaderTree(toolchain.rocm)
    arches = _arches([*api_flags.values(), *(blob.flags for blob in index.blobs.values())])
    manifest = Manifest(index, _flag_sets(index, headers), arches)
    asked = {name: digest for question in questions for name, digest in question.digests.items()}
    return _Library(manifest, headers, _library_outputs(manifest, asked))


@dataclass(frozen=True)
class _Scan:
    """An API file with what was found in it.

    Attributes:
        wrappers: those that have a twin.
        stay: definitions without one; sites may hide behind them.
        naming: matches what a kernel may be behind.
        without_twin: the wrappers among them.
        macro_words: the words in the definitions of macros.
    """

    parsed: _ParsedApi
    arguments: list[str]
    wrappers: dict[str, Wrapper]
    sites: list[Site]
    stay: list[Kept]
    naming: re.Pattern[str]
    without_twin: list[Wrapper]
    macro_words: frozenset[str]


def _find(toolchain: Toolchain, flags: Flags, parsed: _ParsedApi, templates: set[str]) -> _Scan:
    source, unit = parsed.source, parsed.unit

    def skipped_ranges() -> list[tuple[int, int]]:
        return libclang.skipped_ranges(
            _parse(toolchain, source.path, flags, more=libclang.DETAILED_PREPROCESSING_RECORD)
        )

    def parse_text(text: str) -> TranslationUnit:
        return _parse(toolchain, source.path, flags, text)

    macros = visible_macros(unit, source.text)
    wrappers = find_wrappers(unit, source, templates)
    # Not those of members: macros of all kinds have an ``init`` in them.
    functions = [*templates, *(name for name, wrapper in wrappers.items() if not wrapper.member_of)]
    naming = macros_naming(macros, {name.rpartition("::")[2] for name in functions})
    left = templates_without_twin(unit, source, templates, wrappers, naming)
    twins = {name: wrapper for name, wrapper in wrappers.items() if wrapper.problem is None}
    without = [wrapper for wrapper in wrappers.values() if wrapper.problem is not None]
    sites = find_sites(unit, source, templates, twins, naming, skipped_ranges, parse_text, parsed.continued)
    if sites is None:
        return _find(toolchain, flags, _parse_true_text(toolchain, source, flags), templates)
    arguments = [*flags.arguments, *_arch_flags(flags)]
    words: frozenset[str] = frozenset().union(*macros.values())
    names = names_to_kernels(templates, wrappers, naming)
    return _Scan(parsed, arguments, twins, sites, left, names, without, words)


def _resolve(toolchain: Toolchain, scan: _Scan, index: BlobIndex) -> tuple[ApiFile, list[LeftOut]]:
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
    toolchain: Toolchain, scan: _Scan, stay: Sequence[Kept], known: Sequence[Site], index: BlobIndex
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


def _make_file_local(files: Sequence[ApiFile]) -> None:
    """Give twins internal linkage whose names stand in several API files: each file calls its own."""
    wrappers = [wrapper for file in files for wrapper in file.own_wrappers]
    names = Counter(wrapper.qualified_entry for wrapper in wrappers)
    for wrapper in wrappers:
        wrapper.file_local = names[wrapper.qualified_entry] > 1


def _raise_unresolved(path: Path, unresolved: list[Unresolved]) -> None:
    if unresolved:
        first = unresolved[0]
        more = f" ({len(unresolved) - 1} more sites lack their blobs too)" if len(unresolved) > 1 else ""
        raise CkPostBuildError(first.message() + more, file=path, line=first.line)


def _arches(flags: Sequence[Flags]) -> list[str]:
    return list(dict.fromkeys(arch for f in flags for arch in f.arches))


def _flag_sets(index: BlobIndex, headers: HeaderTree) -> dict[str, FlagSet]:
    """Return the flags of each blob as they travel; fills `headers` with the directories that they name."""
    known: dict[tuple[str, ...], FlagSet] = {}
    for blob in index.blobs.values():
        arguments = blob.flags.arguments
        if arguments not in known:
            relocated, places = headers.relocate(arguments)
            known[arguments] = FlagSet(relocated, combined_hash(places))
    return {name: known[blob.flags.arguments] for name, blob in index.blobs.items()}


def _library_outputs(manifest: Manifest, asked: dict[str, str]) -> dict[str, bytes]:
    """Return the generated files that do not depend on API files."""
    tables = manifest.tables()
    return {
        "ck_jit_dispatch.h": glue.dispatch_header(manifest).encode(),
        HEADER: manifest_header(tables).encode("utf-8", "surrogateescape"),
        MANIFEST_RECORDS: manifest.records(),
        KEPT: msgspec.msgpack.encode(KeptIndex(tables, asked)),
    }


def _api_outputs(files: Sequence[ApiFile], manifest: Manifest) -> dict[str, bytes]:
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


def _build_info(
    files: Sequence[ApiFile], api_flags: dict[Path, Flags], index: BlobIndex, manifest: Manifest, headers: HeaderTree
) -> bytes:
    symbols: dict[str, list[str]] = {name: [] for name in index.blobs}
    for instance in index.instances:
        symbols[instance.blob] += [kernel.symbol for kernel in instance.kernels]
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
                sorted(symbols[name]),
            )
            for name, blob in index.blobs.items()
        ],
        headers={str(path): place for path, place in headers.places.items()},
        arches=list(manifest.arches),
        manifest_records=MANIFEST_RECORDS,
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


def _report(files: Sequence[ApiFile], index: BlobIndex, discarded: list[LeftOut]) -> Report:
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
