"""The key of a cache entry and the compiler's identity, as ``docs/runtime.md`` defines them and the runtime computes them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ck_post_build import flags as flag_text
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob

KEY_PART_DIGITS = 32
SCRIPT = "ck_jit_compile.sh"

_HASH_DIGITS = 32  # of a source's hash that are in the library's manifest
_STEM_BYTES = 160
_VERSION_BYTES = 65536
_VERSION_TIMEOUT = 120


def to_bytes(text: str) -> bytes:
    """Return the bytes of a name or path; the inverse of how Python decodes them."""
    return text.encode("utf-8", "surrogateescape")


def netstrings(texts: Iterable[bytes]) -> bytes:
    """Return each text as ``<length>:<bytes>,``, one after another: no two lists give the same bytes."""
    return b"".join(b"%d:%s," % (len(text), text) for text in texts)


def input_key(blob: RootBlob, arch: str) -> str:
    """Return the first half of the key: what is compiled."""
    fields = (
        "ck-jit-input-1",
        blob.name,
        blob.source_hash[:_HASH_DIGITS],
        blob.headers_hash,
        flag_text.join(blob.flags),
        arch,
    )
    return hashlib.sha256(netstrings(map(to_bytes, fields))).hexdigest()[:KEY_PART_DIGITS]


def entry_stem(name: str) -> str:
    """Return the blob's name as the start of a file name."""
    stem = to_bytes(re.sub(r"[/\\]", "_", name))
    for extension in (b".cpp", b".cu"):
        if len(stem) > len(extension) and stem.endswith(extension):
            stem = stem.removesuffix(extension)
            break
    if stem.startswith(b"."):
        stem = b"_" + stem[1:]  # names with a dot are the runtime's own
    return stem[:_STEM_BYTES].decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class CompilerId:
    """A compiler: its path, what ``--version`` says first, and the identity that goes into keys."""

    hipcc: str
    version: str
    identity: str


def compiler_key(identity: str, script: bytes) -> str:
    """Return the second half of the key: by what it is compiled. `script` is the contents of ``ck_jit_compile.sh``."""
    fields = (b"ck-jit-compiler-1", identity.encode(), hashlib.sha256(script).hexdigest().encode())
    return hashlib.sha256(netstrings(fields)).hexdigest()[:KEY_PART_DIGITS]


def read_script(root: Path) -> bytes:
    """Return the contents of the compile script in the JIT root `root`.

    Raises:
        CkPostBuildError: there is none.
    """
    try:
        return (root / SCRIPT).read_bytes()
    except OSError as error:
        raise CkPostBuildError(
            f"cannot read the compile script: {error.strerror}. Install the library again", file=root / SCRIPT
        ) from error


def compiler_id(hipcc: str) -> CompilerId:
    """Ask `hipcc` who it is, and hash it, its clang and its device libraries.

    Raises:
        CkPostBuildError: it does not run, or a file of it cannot be read.
    """
    real = Path(hipcc).resolve()
    version = _version(hipcc)
    try:
        clang = _clang(version)
        fields = [
            b"ck-jit-compiler-identity-1",
            os.fsencode(real),
            _file_hash(real),
            version,
            _file_hash(clang) if clang is not None else b"",
        ]
        text = netstrings(fields)
        for library in _device_libraries(hipcc, real):
            text += netstrings([os.fsencode(library.name), _file_hash(library)])
    except OSError as error:
        raise CkPostBuildError(
            f"cannot read this file of the compiler: {error.strerror}", file=error.filename
        ) from error
    first = version.decode("utf-8", "replace").strip().partition("\n")[0]
    return CompilerId(hipcc, first, hashlib.sha256(text).hexdigest())


def _version(hipcc: str) -> bytes:
    try:
        done = subprocess.run(
            [hipcc, "--version"],
            cwd="/",
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_VERSION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CkPostBuildError(
            f"cannot run the compiler: {error}. Set CK_JIT_HIPCC or ROCM_PATH", file=hipcc
        ) from error
    if done.returncode != 0:
        raise CkPostBuildError(f"--version fails with exit status {done.returncode}. Set CK_JIT_HIPCC", file=hipcc)
    return done.stdout[:_VERSION_BYTES]


def _clang(version: bytes) -> Path | None:
    """Return the clang that hipcc, a script or a small program, starts."""
    match = re.search(rb"InstalledDir: ([^\n]*)", version)
    clang = Path(os.fsdecode(match.group(1))) / "clang" if match else None
    return clang.resolve() if clang is not None and clang.exists() else None


def _device_libraries(hipcc: str, real: Path) -> list[Path]:
    chosen = os.environ.get("HIP_DEVICE_LIB_PATH", "")
    prefixes = [Path(hipcc).parent.parent, real.parent.parent]
    places = [*([Path(chosen)] if chosen else []), *(prefix / "amdgcn" / "bitcode" for prefix in prefixes)]
    directory = next((place for place in places if place.is_dir()), None)
    if directory is None:
        return []
    return sorted((path for path in directory.iterdir() if path.suffix == ".bc"), key=os.fsencode)


def _file_hash(path: Path) -> bytes:
    with path.open("rb") as stream:
        digest = hashlib.sha256()
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest().encode()
