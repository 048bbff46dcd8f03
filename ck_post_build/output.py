"""Writes output files: whole or not at all, and only when they change."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ck_post_build.errors import CkPostBuildError


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` (path relative to `directory` → content). A file with the same content keeps its time stamp.

    All are written beside their places first and renamed then, so that a failure leaves the old ones.

    Raises:
        CkPostBuildError: the directory cannot be made or written.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            target = directory / name
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            if target.is_file() and target.read_bytes() == content:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".ck-post-build-", dir=target.parent)
            staged.append((Path(temporary), target))
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).chmod(0o644)
        for temporary_path, target in staged:
            temporary_path.replace(target)
    except OSError as error:
        raise CkPostBuildError(
            f"cannot write: {error.strerror}. Choose another output directory with -o", file=error.filename or directory
        ) from error
    finally:
        for temporary_path, _ in staged:
            temporary_path.unlink(missing_ok=True)
