"""The seconds that a compile took, in the last line of its log: ``[CK-JIT] compiled in 21.3 s``."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LINE = re.compile(rb"^\[CK-JIT\] compiled in (\d+(?:[.,]\d+)?) s$", re.MULTILINE)
_LAST_BYTES = 128


def seconds_line(seconds: float) -> bytes:
    """Return the line for `seconds`."""
    return b"[CK-JIT] compiled in %.1f s\n" % seconds


def read_seconds(log: Path) -> float | None:
    """Return the seconds that the log file tells; None where it tells none or cannot be read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LAST_BYTES))
            found = _LINE.findall(stream.read())
    except OSError:
        return None
    return float(found[-1].replace(b",", b".")) if found else None  # the process may have another locale
