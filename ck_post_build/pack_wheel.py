"""A pack as a wheel: ``pip install`` puts the entries in place, ``python -m NAME`` says where, for CK_JIT_CACHE_PATH."""

from __future__ import annotations

import base64
import hashlib
import io
import keyword
import platform
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.errors import CkPostBuildError
from ck_post_build.output import write_all

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
# As PEP 440 writes versions when they are normal.
_VERSION = re.compile(
    r"(?:\d+!)?\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)
_DIRECTORY = "kernels"

_INIT = f'''\
"""Compiled attention kernels: CACHE_PATH is for the environment variable CK_JIT_CACHE_PATH."""

import os.path

CACHE_PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{_DIRECTORY}")
'''
_MAIN = """\
from . import CACHE_PATH

print(CACHE_PATH)
"""


@dataclass(frozen=True)
class WheelName:
    """The name and the version of a wheel."""

    name: str
    version: str

    @property
    def module(self) -> str:
        """The name as files and Python have it."""
        return re.sub(r"[-_.]+", "_", self.name).lower()

    @property
    def file(self) -> str:
        """The file name. The entries are programs of this processor, and of no named C library."""
        return f"{self.module}-{self.version}-{_tag()}.whl"


def parse_wheel_name(text: str) -> WheelName:
    """Read ``NAME==VERSION``. Raises CkPostBuildError when it is none, or when no Python module can have the name."""
    name, _, version = text.partition("==")
    wheel = WheelName(name, version)
    fits = _NAME.fullmatch(name) and _VERSION.fullmatch(version)
    if not fits or not wheel.module.isidentifier() or keyword.iskeyword(wheel.module):
        raise CkPostBuildError(f"{text!r} is no name and version of a wheel: write them like --wheel my-kernels==1.0")
    return wheel


def write_wheel(files: Mapping[str, bytes], wheel: WheelName, directory: Path) -> Path:
    """Write the files of a pack as a wheel into `directory` and return its path. The same files give the same bytes.

    Raises:
        CkPostBuildError: the directory cannot be written.
    """
    info = f"{wheel.module}-{wheel.version}.dist-info"
    contents = {f"{wheel.module}/__init__.py": _INIT.encode(), f"{wheel.module}/__main__.py": _MAIN.encode()}
    contents.update({f"{wheel.module}/{_DIRECTORY}/{name}": content for name, content in files.items()})
    contents[f"{info}/METADATA"] = _metadata(wheel)
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: ck-post-build\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
    )
    contents[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD")
    write_all(directory, {wheel.file: _zip(contents)})
    return directory / wheel.file


def _tag() -> str:
    return f"py3-none-linux_{platform.machine()}"


def _metadata(wheel: WheelName) -> bytes:
    return (
        f"Metadata-Version: 2.1\nName: {wheel.name}\nVersion: {wheel.version}\n"
        "Summary: Compiled attention kernels for a library of ck-post-build\nRequires-Python: >=3.8\n"
        "Description-Content-Type: text/markdown\n\n"
        f'`CK_JIT_CACHE_PATH="$(python -m {wheel.module})"` lets the library find its kernels.\n'
    ).encode()


def _record(contents: Mapping[str, bytes], name: str) -> bytes:
    lines = []
    for path, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{_quoted(path)},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{name},,\n"]).encode("utf-8", "surrogateescape")


def _quoted(path: str) -> str:
    """Return a path as a field of CSV: a blob's name may hold commas."""
    return '"' + path.replace('"', '""') + '"' if re.search(r'[",\n]', path) else path


def _zip(contents: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            item = zipfile.ZipInfo(name)  # of 1980
            item.create_system = 3  # Unix, wherever it is made
            item.external_attr = 0o100644 << 16
            archive.writestr(item, content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()
