"""Source files as bytes that edits address by offset.

Text is decoded as Latin-1, so that one character is one byte: offsets from libclang index it directly, and whatever the
encoding, line ends or byte order mark of a file, its untouched bytes come out as they went in.
"""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.errors import CkPostBuildError

# In UTF-8, as it reads in Latin-1.
BYTE_ORDER_MARK = "\xef\xbb\xbf"

# A regular expression (with DOTALL) for what stands between tokens: white space and comments.
BLANK = r"(?:\s+|//(?:[^\n\\]|\\(?:\r\n|.))*|/\*.*?\*/)*"

# The same for comments and for literals of text, in which brackets and names mean nothing. Every branch starts with a literal
# character, which makes the search fast.
COMMENT_OR_TEXT = (
    r"//(?:[^\n\\]|\\(?:\r\n|.))*|/\*.*?\*/|R\"(?P<raw>[^\s()\\]{0,16})\(.*?\)(?P=raw)\"|\"(?:[^\"\\\n]|\\(?:\r\n|.))*\""
    r"|'(?:(?<=[0-9A-Fa-f]')(?=[0-9A-Fa-f])|(?:[^'\\\n]|\\.)+')"
)

_LINE_END = re.compile(r"\n")
_COMMENT_OR_TEXT = re.compile(COMMENT_OR_TEXT, re.DOTALL)


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters ``[start, end)`` of a file by `text`; an empty range inserts."""

    start: int
    end: int
    text: str


class SourceFile:
    """A file, its text (one character a byte) and its line starts.

    Raises:
        CkPostBuildError: the file cannot be read, or is empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = read_text(path)
        if not self.text.strip():
            raise CkPostBuildError("the file is empty: was its generation interrupted? Generate it again", file=path)

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in _LINE_END.finditer(self.text))]

    def line_of(self, offset: int) -> int:
        """Return the 1-based line that holds the character at `offset`."""
        return bisect.bisect_right(self._line_starts, offset)

    def line_start(self, offset: int) -> int:
        """Return the offset of the first character of the line that holds `offset`."""
        return self._line_starts[self.line_of(offset) - 1]

    def newline(self) -> str:
        r"""Return the line end that the file uses, ``"\r\n"`` or ``"\n"``."""
        return "\r\n" if "\r\n" in self.text[:4096] else "\n"

    def apply(self, edits: list[Edit]) -> str:
        """Return the text with `edits` made. Insertions at one place keep their order in the list.

        Raises:
            ValueError: two edits overlap.
        """
        pieces: list[str] = []
        position = 0
        for edit in sorted(edits, key=lambda e: (e.start, e.end)):
            if edit.start < position:
                raise ValueError(f"overlapping edits at offset {edit.start} of {self.path}")
            pieces += (self.text[position : edit.start], edit.text)
            position = edit.end
        pieces.append(self.text[position:])
        return "".join(pieces)


def blanked(text: str) -> str:
    """Return `text` with a blank for each character of a comment or a literal of text."""
    return _COMMENT_OR_TEXT.sub(lambda match: " " * len(match.group()), text)


def as_bytes(text: str) -> str:
    """Return the bytes of `text` in UTF-8, one character each, as the text of a SourceFile has them."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def from_bytes(text: str) -> str:
    """Undo :func:`as_bytes`."""
    return text.encode("latin-1").decode("utf-8", "surrogateescape")


def require_utf8(text: str | Path) -> None:
    """Raise CkPostBuildError when a path or an argument is not valid UTF-8, which libclang and JSON want."""
    try:
        str(text).encode()
    except UnicodeEncodeError as error:
        raise CkPostBuildError("this is not valid UTF-8, and has to be: rename it", file=text) from error


def read_text(path: Path) -> str:
    """Return the bytes of `path`, one character each. Raises CkPostBuildError when it cannot be read."""
    try:
        return path.read_bytes().decode("latin-1")
    except OSError as error:
        raise CkPostBuildError(f"cannot read the file: {error.strerror}", file=path) from error
