"""What ``rewrite`` leaves for ``build``, ``install`` and ``verify`` in the output directory."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

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


class LinkInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What compiling and linking the library needs, with paths of this machine.

    Attributes:
        apis: the rewritten API files.
        headers: header directory or file → its place under the JIT root.
        arches: what ``--offload-arch`` named.
        stubs: whether there is a file of stubs to assemble.
    """

    apis: list[ApiInfo]
    headers: dict[str, str]
    arches: list[str]
    stubs: bool = False


class BuildInfo(LinkInfo, frozen=True, kw_only=True):
    """Everything that later steps need.

    Attributes:
        blobs: in order of their names.
        manifest_records: the file for ``CK_JIT_MANIFEST``.
        unreferenced_blobs: those that no site reaches.
        parameters, enums: what the kernels' template arguments are called, as in ``TraitTemplates``.
    """

    blobs: list[BlobInfo]
    manifest_records: str
    parameters: dict[str, list[str]] = {}
    enums: dict[str, dict[str, str]] = {}
    unreferenced_blobs: list[str] = []


_Part = TypeVar("_Part", bound=LinkInfo)


def read_build_info(directory: Path) -> BuildInfo:
    """Read what ``rewrite`` left in `directory`.

    Raises:
        CkPostBuildError: there is nothing, or it is of another version.
    """
    return _read(directory, BuildInfo)


def read_link_info(directory: Path) -> LinkInfo:
    """Read a part of what ``rewrite`` left in `directory`, in a tenth of the time: the blobs' symbols are most of it.

    Raises:
        CkPostBuildError: there is nothing, or it is of another version.
    """
    return _read(directory, LinkInfo)


def _read(directory: Path, part: type[_Part]) -> _Part:
    path = directory / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=part)
    except OSError as error:
        raise CkPostBuildError(
            f"no output of ck-post-build rewrite or build here: {error.strerror}. Run one of them with -o {directory}",
            file=path,
        ) from error
    except msgspec.MsgspecError as error:
        raise CkPostBuildError(
            f"damaged or of another version: {error}. Run ck-post-build rewrite again", file=path
        ) from error
