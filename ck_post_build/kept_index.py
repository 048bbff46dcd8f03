"""What ``rewrite`` leaves in the output directory so that a change of some blobs need not read all of them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

FILE_NAME = "ck_post_build.kept"


class KeptIndex(msgspec.Struct):
    """What is known of all blobs.

    Attributes:
        tables: what stands in the manifest header, as ``Manifest.tables`` returns it.
        asked: for each blob's name a hash of what clang was asked about it.
    """

    tables: dict[str, Any]
    asked: dict[str, str]


def read_kept_index(directory: Path) -> KeptIndex | None:
    """Return what the ``rewrite`` into `directory` left, if it can be read."""
    try:
        return msgspec.msgpack.decode((directory / FILE_NAME).read_bytes(), type=KeptIndex)
    except (OSError, msgspec.MsgspecError):
        return None
