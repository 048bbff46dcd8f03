"""The one exception type that a user's mistake or a broken input raises."""

from __future__ import annotations

from pathlib import Path


class CkPostBuildError(Exception):
    """A failure that is reported to the user as one message, without a traceback.

    Args:
        message: what is wrong, and what to do about it.
        file: the file concerned, where there is one.
        line: the 1-based line in it, where there is one.

    ``str()`` gives ``file:line: message``.
    """

    def __init__(self, message: str, *, file: Path | str | None = None, line: int | None = None) -> None:
        self.message = message
        self.file = file
        self.line = line
        place = "" if file is None else f"{file}:{line}: " if line is not None else f"{file}: "
        super().__init__(place + message)
