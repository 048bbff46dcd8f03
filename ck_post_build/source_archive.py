"""The JIT root without its blobs, as one archive that travels to other machines once, named by its hash."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.cache_key import SCRIPT
from ck_post_build.errors import CkPostBuildError
from ck_post_build.precompile import DIRECTORY as PRECOMPILE
from ck_post_build.precompile import records_name

_HEADERS = "include"


@dataclass(frozen=True)
class SourceArchive:
    """Compile script and headers of a JIT root; `digest` is the SHA-256 of `data`, a gzipped tar."""

    digest: str
    data: bytes


def pack_sources(root: Path) -> SourceArchive:
    """Return the archive of the JIT root `root`. The same files give the same archive.

    Raises:
        CkPostBuildError: a file cannot be read.
    """
    headers = [path for name in (_HEADERS, PRECOMPILE) for path in (root / name).rglob("*") if path.is_file()]
    files = [root / SCRIPT, *sorted((*headers, *root.glob(records_name("*"))))]
    stream = io.BytesIO()
    try:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path in files:
                content = path.read_bytes()
                item = tarfile.TarInfo(str(path.relative_to(root)))
                item.size, item.mode = len(content), 0o755 if path.name == SCRIPT else 0o644
                archive.addfile(item, io.BytesIO(content))
    except OSError as error:
        raise CkPostBuildError(
            f"cannot read the file: {error.strerror}. Install the library again", file=error.filename
        ) from error
    data = gzip.compress(stream.getvalue(), mtime=0)
    return SourceArchive(hashlib.sha256(data).hexdigest(), data)


def unpack_sources(archive: SourceArchive, directory: Path) -> None:
    """Unpack the archive into `directory`.

    Raises:
        CkPostBuildError: it was damaged on its way.
    """
    if hashlib.sha256(archive.data).hexdigest() != archive.digest:
        raise CkPostBuildError("the archive of headers was damaged on its way")
    with tarfile.open(fileobj=io.BytesIO(archive.data), mode="r:gz") as files:
        for item in files.getmembers():
            target = (directory / item.name).resolve()
            content = files.extractfile(item)
            if not target.is_relative_to(directory.resolve()) or content is None:
                raise CkPostBuildError(f"the archive of headers has a strange member, {item.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            target.chmod(item.mode & 0o755)
