"""The key and the file format of cache entries once more, from docs/runtime.md, to check what the runtime writes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

START, END = b"CK-JIT-ENTRY-001", b"CK-JIT-ENTRY-END"


def netstrings(texts: Iterable[bytes]) -> bytes:
    return b"".join(b"%d:%s," % (len(text), text) for text in texts)


def input_key(name: bytes, source_hash: bytes, headers_hash: bytes, flags: bytes, arch: bytes) -> str:
    fields = [b"ck-jit-input-1", name, source_hash, headers_hash, flags, arch]
    return hashlib.sha256(netstrings(fields)).hexdigest()[:32]


def compiler_identity(hipcc: Path, version: bytes, clang: Path | None, libraries: Iterable[Path]) -> str:
    real = hipcc.resolve()
    clang_hash = hashlib.sha256(clang.read_bytes()).hexdigest().encode() if clang else b""
    hipcc_hash = hashlib.sha256(real.read_bytes()).hexdigest().encode()
    text = netstrings([b"ck-jit-compiler-identity-1", bytes(real), hipcc_hash, version, clang_hash])
    for library in sorted(libraries, key=lambda path: bytes(path)):
        text += netstrings([library.name.encode(), hashlib.sha256(library.read_bytes()).hexdigest().encode()])
    return hashlib.sha256(text).hexdigest()


def compiler_key(identity: str, script: Path) -> str:
    script_hash = hashlib.sha256(script.read_bytes()).hexdigest()
    fields = [b"ck-jit-compiler-1", identity.encode(), script_hash.encode()]
    return hashlib.sha256(netstrings(fields)).hexdigest()[:32]


def problem_with_entry(path: Path) -> str:
    """'' for a whole entry; otherwise what is wrong with it."""
    data = path.read_bytes()
    body, trailer = data[:-128], data[-128:]
    build_id = b""
    if len(trailer) != 128 or trailer[:16] != START or trailer[112:] != END:
        return "no trailer"
    if trailer[16:48].hex() != path.name.removesuffix(".so")[-64:]:
        return "another key"
    if trailer[48:80] != hashlib.sha256(body).digest() or int.from_bytes(trailer[80:88], "little") != len(body):
        return "other contents"
    section = ELFFile(io.BytesIO(body)).get_section_by_name(".note.gnu.build-id")
    if isinstance(section, NoteSection):
        build_id = bytes.fromhex(next(section.iter_notes())["n_desc"])
    if trailer[88:108] != build_id.ljust(20, b"\0") or int.from_bytes(trailer[108:112], "little") != len(build_id):
        return "another build id"
    return ""
