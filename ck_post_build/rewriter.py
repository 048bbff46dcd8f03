"""The rewrite: from API files and blobs to rewritten API files, manifest and glue."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_post_build import libclang
from ck_post_build.api_resolve import make_file_local, resolve_api
from ck_post_build.api_rewriter import ApiFile
from ck_post_build.api_scan import ParsedApi, Scan, parse_api, scan_api
from ck_post_build.blob_index import Answers, BlobIndex
from ck_post_build.blob_questions import (
    BLOB_SUFFIXES,
    BlobSource,
    Question,
    likely_templates,
    read_blobs,
    write_questions,
)
from ck_post_build.build_info import FILE_NAME, STAMP
from ck_post_build.compile_db import FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags, HeaderTree
from ck_post_build.headers import combined_hash
from ck_post_build.manifest import FlagSet, Manifest
from ck_post_build.output import write_all
from ck_post_build.report import LeftOut, Report
from ck_post_build.rewrite_outputs import api_outputs, build_info, library_outputs, report_of
from ck_post_build.source import require_utf8
from ck_post_build.toolchain import Toolchain, find_toolchain

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
        units = {path: pool.submit(parse_api, toolchain, path, api_flags[path]) for path in api}
        progress(f"reading {len(paths)} blob files")
        blobs, texts = read_blobs(paths, flags)
        if not blobs:
            raise CkPostBuildError(
                f"no file in {', '.join(map(str, blob_dirs))} specialises a kernel template: no blobs there"
            )
        progress(f"asking clang about {len(blobs)} blobs")
        questions = write_questions(blobs, texts)
        likely = likely_templates(texts)
        del texts
        scans, library = _read_as_it_comes(toolchain, api_flags, units, questions, likely, blobs, pool, progress)
        index, manifest = library.manifest.index, library.manifest
        files: list[ApiFile] = []
        discarded: list[LeftOut] = []
        for path in api:
            progress(f"resolving {path.name}")
            scan = scans[path]
            if set(index.templates) != likely:
                scan = scan_api(toolchain, api_flags[path], scan.parsed, set(index.templates))
            file, left = resolve_api(toolchain, scan, index)
            files.append(file)
            discarded += left
            for wrapper in scan.without_twin if file.stub_sites else ():
                place = f"{wrapper.source.path}:{wrapper.source.line_of(wrapper.problem_offset)}"
                progress(f"{place}: {wrapper.name} stays a template and is served by stubs: {wrapper.problem}")
        make_file_local(files)
        progress("writing")
        outputs = {**library.outputs, **api_outputs(files, manifest)}
        outputs[FILE_NAME] = build_info(files, api_flags, index, manifest, library.headers)
    with suppress(OSError):  # write_all meets the same error, and says what to do
        (output / STAMP).unlink()
    write_all(output, outputs)
    return report_of(files, index, discarded)


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
class _Library:
    """What is known once clang has answered: the manifest, the headers that flags name, and the files made of those."""

    manifest: Manifest
    headers: HeaderTree
    outputs: dict[str, bytes]


def _read_as_it_comes(
    toolchain: Toolchain,
    api_flags: dict[Path, Flags],
    units: dict[Path, Future[ParsedApi]],
    questions: Sequence[Question],
    likely: set[str],
    blobs: dict[str, BlobSource],
    pool: Executor,
    progress: Progress,
) -> tuple[dict[Path, Scan], _Library]:
    """Work on what clang has parsed, whichever comes first: `pool` parses the rest meanwhile.

    A question is asked once the one before is read and dropped, so that only one takes memory.

    Raises:
        CkPostBuildError: of several the one that comes first in a fixed order, API files before blobs.
    """
    scans: dict[Path, Scan] = {}
    errors: dict[int, CkPostBuildError] = {}
    answers = Answers(blobs)
    unread = list(questions)
    paths = list(units)
    waiting: dict[Future[Any], int] = {future: number for number, future in enumerate(units.values())}

    def ask() -> None:
        unread[0].ask(toolchain.clang, pool)
        waiting[unread[0].asked] = len(paths)

    def read_answer() -> None:
        progress(f"reading clang's answers, {len(unread)} left")
        answers.read(unread.pop(0))
        if unread:
            ask()

    def find(path: Path, parsed: Future[ParsedApi]) -> None:
        progress(f"finding the sites of {path.name}")
        scans[path] = scan_api(toolchain, api_flags[path], parsed.result(), likely)

    ask()
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        future = max(done, key=waiting.__getitem__)  # answers first: that makes room
        number = waiting.pop(future)
        try:
            if number < len(paths):
                find(paths[number], future)
            else:
                read_answer()
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
    return _Library(manifest, headers, library_outputs(manifest, asked))


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
