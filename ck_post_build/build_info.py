"""What ``rewrite`` leaves for ``build``, ``install`` and ``verify`` in the output directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ck_post_build.errors import CkPostBuildError

FILE_NAME = "ck_post_build.json"
# Of build: tells what the directory was made of.
STAMP = "ck_post_build.stamp"


class ApiInfo(msgspec.Struct, frozen=True):
    """A rewritten API file: its name, the generated files that go with it, and its compiler flags."""

    name: str
    entry_source: str
    flags: list[str]


class BlobInfo(msgspec.Struct, frozen=True):
    """A blob: where its source is, its flags as they travel, the hashes in the manifest, and its kernel symbols."""

    name: str
    source: str
    flags: list[str]
    source_hash: str
    headers_hash: str
    symbols: list[str]


class BuildInfo(msgspec.Struct, frozen=True):
    """Everything that later steps need, with paths of this machine.

    Attributes:
        apis: the rewritten API files.
        blobs: in order of their names.
        headers: header directory or file → its place under the JIT root.
        arches: what ``--offload-arch`` named.
        manifest_records: the file for ``CK_JIT_MANIFEST``.
        stubs: whether there is a file of stubs to assemble.
        unreferenced_blobs: those that no site reaches.
        parameters, enums: what the kernels' template arguments are called, as in ``TraitTemplates``.
    """

    apis: list[ApiInfo]
    blobs: list[BlobInfo]
    headers: dict[str, str]
    arches: list[str]
    manifest_records: str
    parameters: dict[str, list[str]] = {}
    enums: dict[str, dict[str, str]] = {}
    stubs: bool = False
    unreferenced_blobs: list[str] = []


def read_build_info(directory: Path) -> BuildInfo:
    """Read what ``rewrite`` left in `directory`.

    Raises:
        CkPostBuildError: there is nothing, or it is of another version.
    """
    path = directory / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=BuildInfo)
    except OSError as error:
        raise CkPostBuildError(
            f"no output of ck-post-build rewrite or build here: {error.strerror}. Run one of them with -o {directory}",
            file=path,
        ) from error
    except msgspec.MsgspecError as error:
        raise CkPostBuildError(
            f"damaged or of another version: {error}. Run ck-post-build rewrite again", file=path
        ) from error


class _HeaderPlaces(msgspec.Struct):
    """The one part of BuildInfo that tells whether anything is to be done: the blobs' symbols take long to read."""

    headers: dict[str, str]


def read_header_places(directory: Path) -> list[str]:
    """Return the header directories and files that the ``rewrite`` into `directory` noted; none if there was no such."""
    try:
        return list(msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=_HeaderPlaces).headers)
    except (OSError, msgspec.MsgspecError):
        return []
