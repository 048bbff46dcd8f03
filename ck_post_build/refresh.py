"""Brings an output directory up to date when nothing changed but the text of some blobs, without looking at the others.

The text of a blob goes into the manifest as a hash. What else is known of it, its kernels' symbols, changes only when what
clang was asked about it changes; then clang is asked again, about the changed blobs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ck_post_build import libclang
from ck_post_build.blob_index import Answers
from ck_post_build.blob_questions import BlobSource, read_blobs, write_questions
from ck_post_build.build_info import FILE_NAME as BUILD_INFO
from ck_post_build.build_info import BlobInfo, read_build_info
from ck_post_build.compile_db import FlagSource
from ck_post_build.declarations import BlobText
from ck_post_build.kept_index import FILE_NAME, KeptIndex, read_kept_index
from ck_post_build.manifest import HEADER, manifest_header
from ck_post_build.output import write_all
from ck_post_build.toolchain import Toolchain


def refresh(output: Path, changed: Sequence[Path], flags: FlagSource, toolchain: Toolchain) -> bool:
    """Note the new texts of the `changed` files in `output`. Returns False, with nothing written, if that does not do.

    Raises:
        CkPostBuildError: a file cannot be read or is truncated, or clang rejects it.
    """
    kept, info = read_kept_index(output), read_build_info(output)
    if kept is None:
        return False
    blobs, texts = read_blobs(changed, flags)
    numbers = {blob.name: number for number, blob in enumerate(info.blobs)}
    known = {Path(blob.source) for blob in info.blobs}
    were_blobs = {path.name for path in changed if path.absolute() in known}
    if blobs.keys() != were_blobs:
        return False
    if not _mean_the_same(blobs, texts, kept, {name: info.blobs[numbers[name]] for name in blobs}, toolchain):
        return False
    for name, blob in blobs.items():
        info.blobs[numbers[name]] = msgspec.structs.replace(info.blobs[numbers[name]], source_hash=blob.source_hash)
        kept.tables["blobs"][numbers[name]]["hash"] = blob.source_hash[:32]
    outputs = {
        HEADER: manifest_header(kept.tables).encode("utf-8", "surrogateescape"),
        BUILD_INFO: msgspec.json.encode(info),
        FILE_NAME: msgspec.msgpack.encode(kept),
    }
    write_all(output, outputs)
    return True


def _mean_the_same(
    blobs: dict[str, BlobSource],
    texts: dict[str, BlobText],
    kept: KeptIndex,
    known: dict[str, BlobInfo],
    toolchain: Toolchain,
) -> bool:
    """Tell whether the blobs define what they did, asking clang about those whose declarations read differently."""
    digests = {name: digest for question in write_questions(blobs, texts) for name, digest in question.digests.items()}
    doubtful = {name: blob for name, blob in blobs.items() if kept.asked.get(name) != digests[name]}
    if not doubtful:
        return True
    libclang.load(toolchain.clang.library)
    questions = write_questions(doubtful, texts)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for question in questions:
            question.ask(toolchain.clang, pool)
        answers = Answers(doubtful)
        for question in questions:
            answers.read(question)
    kept.asked |= {name: digests[name] for name in doubtful}
    return answers.index().symbols() == {name: known[name].symbols for name in doubtful}
