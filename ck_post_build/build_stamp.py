"""What a build depends on: is the output directory up to date, and if not, is it just for some blobs?

Files count by size and time stamp, API files by content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ck_post_build.build_info import STAMP, read_link_info
from ck_post_build.compile_db import FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags
from ck_post_build.headers import header_files
from ck_post_build.resources import resource_dir
from ck_post_build.rewriter import list_blob_files
from ck_post_build.source import read_text
from ck_post_build.toolchain import Toolchain


class Stamp(msgspec.Struct):
    """The state of all that a rewrite reads.

    Attributes:
        rest: a hash over everything else: API files, headers, all flags, the tool itself.
        files: for each source file in the blob directories its size and time stamp.
    """

    rest: str
    files: dict[str, str]

    def changed(self, other: Stamp) -> list[Path] | None:
        """Return the source files that are not as they were in `other`; None if there is any other difference."""
        if self.rest != other.rest or self.files.keys() != other.files.keys():
            return None
        return [Path(path) for path, state in self.files.items() if other.files[path] != state]


def read_stamp(output: Path) -> Stamp | None:
    """Return the stamp that the last build left in `output`, if there is one that can be read."""
    try:
        return msgspec.json.decode((output / STAMP).read_bytes(), type=Stamp)
    except (OSError, msgspec.MsgspecError):
        return None


def take_stamp(
    api: Sequence[Path], blob_dirs: Sequence[Path], flags: FlagSource, output: Path, toolchain: Toolchain
) -> Stamp:
    """Return the stamp of now. Which headers count is known from the last build into `output`.

    Raises:
        CkPostBuildError: a file is gone, or a directory cannot be listed.
    """
    flags_state = _FlagsState(flags)
    rest = hashlib.sha256(repr(toolchain).encode())
    sources = list_blob_files(api, blob_dirs)
    # By content: CK's generator writes it again, with the same text, whenever it runs.
    pieces = [f"{path} {hashlib.sha256(read_text(path).encode('latin-1')).hexdigest()}" for path in api]
    pieces += [flags_state.of(path) for path in (*api, *sources)]
    headers = [header for place in header_places(output) for header in header_files(place)]
    pieces += [f"{path} {_state(path)}" for path in (*tool_files(), *headers)]
    for piece in pieces:
        rest.update(piece.encode("utf-8", "surrogateescape") + b"\0")
    return Stamp(rest.hexdigest(), {str(path): _state(path) for path in sources})


def tool_files() -> list[Path]:
    """Return the files of this package that its output depends on."""
    return sorted([*Path(__file__).parent.glob("*.py"), *resource_dir("templates").glob("*.j2")])


def header_places(output: Path) -> list[Path]:
    """Return the header directories and files that the last build into `output` noted and that are still there."""
    try:
        places = read_link_info(output).headers
    except CkPostBuildError:
        return []
    return [Path(place) for place in places if Path(place).exists()]


class _FlagsState:
    """Short texts that stand for flags, which most files share."""

    def __init__(self, flags: FlagSource) -> None:
        self._flags = flags
        self._known: dict[Flags, str] = {}

    def of(self, path: Path) -> str:
        """Return the text for the flags of a file, which need not have any when it is no blob."""
        try:
            flags = self._flags.of(path)
        except CkPostBuildError:
            return "none"
        if flags not in self._known:
            digest = hashlib.sha256(repr(flags).encode("utf-8", "surrogateescape")).hexdigest()
            self._known[flags] = digest[:16]
        return self._known[flags]


def _state(path: Path) -> str:
    try:
        status = path.stat()
    except OSError as error:
        raise CkPostBuildError(f"cannot read the file: {error.strerror}", file=path) from error
    return f"{status.st_size} {status.st_mtime_ns}"
