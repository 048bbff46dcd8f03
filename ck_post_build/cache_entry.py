"""The file of a cache entry: its trailer, and the checks that the runtime makes too, here with pyelftools."""

from __future__ import annotations

import hashlib
import io
import platform
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from elftools.common.exceptions import ELFError, ELFParseError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from ck_post_build.arch import arch_runs_on
from ck_post_build.cache_key import KEY_PART_DIGITS

TRAILER_BYTES = 128

_START, _END = b"CK-JIT-ENTRY-001", b"CK-JIT-ENTRY-END"
_BUILD_ID_BYTES = 20
_BUNDLE, _COMPRESSED_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_AMDGPU = 224
_NAME = re.compile(
    rf"(?P<stem>[^./][^/]*)\.(?P<input>[0-9a-f]{{{KEY_PART_DIGITS}}})(?P<compiler>[0-9a-f]{{{KEY_PART_DIGITS}}})\.so"
)


class BadEntryError(Exception):
    """What is wrong with the file of an entry, or with a compiler's output; the text continues "it …"."""


@dataclass(frozen=True)
class EntryName:
    """The file name of an entry, in its parts."""

    stem: str
    input: str
    compiler: str

    @property
    def key(self) -> str:
        """The whole key."""
        return self.input + self.compiler

    @property
    def name(self) -> str:
        """The name without extension, which logs and locks are called after."""
        return f"{self.stem}.{self.key}"

    @property
    def file(self) -> str:
        """The file name."""
        return f"{self.name}.so"


def parse_entry_name(file: str) -> EntryName | None:
    """Return the parts of an entry's file name; None for a file of another kind."""
    match = _NAME.fullmatch(file)
    return EntryName(match["stem"], match["input"], match["compiler"]) if match else None


@dataclass(frozen=True)
class SharedObject:
    """What counts in a compiled blob: its functions, its build id, and its device code by architecture.

    `device_code` is None where there is none, or where it is compressed and cannot be told.
    """

    functions: frozenset[str]
    build_id: bytes
    device_code: dict[str, bytes] | None


def read_object(data: bytes) -> SharedObject:
    """Read a shared object that may be damaged.

    Raises:
        BadEntryError: it is no whole shared object for this processor.
    """
    try:
        return _read_object(data)
    except (
        ELFError,
        ELFParseError,
        ConstructError,
        struct.error,
        UnicodeError,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise BadEntryError(f"is no whole ELF file: {error}") from error
    except (AttributeError, IndexError, OverflowError, AssertionError) as error:  # pyelftools trusts what it reads
        raise BadEntryError("is no whole ELF file") from error


def _read_object(data: bytes) -> SharedObject:
    if data[:4] != b"\x7fELF":
        raise BadEntryError("is no ELF file")
    elf = ELFFile(io.BytesIO(data))
    if elf.elfclass != 64 or not elf.little_endian:
        raise BadEntryError("is no 64-bit little-endian file")
    if elf["e_machine"] != _MACHINES[platform.machine()]:
        raise BadEntryError(f"is made for another processor ({elf['e_machine']})")
    if elf["e_type"] != "ET_DYN":
        raise BadEntryError("is no shared object")
    for segment in elf.iter_segments():
        if segment["p_offset"] + segment["p_filesz"] > len(data):
            raise BadEntryError("is cut off: it refers to bytes beyond its end")
    sections = {section.name: section for section in elf.iter_sections()}
    for section in sections.values():
        if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + section["sh_size"] > len(data):
            raise BadEntryError("is cut off: it refers to bytes beyond its end")
    symbols = sections.get(".dynsym")
    if not isinstance(symbols, SymbolTableSection):
        raise BadEntryError("has no .dynsym")
    functions = frozenset(
        symbol.name
        for symbol in symbols.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
    )
    fatbin = sections[".hip_fatbin"].data() if ".hip_fatbin" in sections else b""
    return SharedObject(functions, _build_id(sections.get(".note.gnu.build-id")), _device_code(fatbin))


def _build_id(section: object) -> bytes:
    if isinstance(section, NoteSection):
        for note in section.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return bytes.fromhex(note["n_desc"])
    return b""


def _device_code(fatbin: bytes) -> dict[str, bytes] | None:
    if not fatbin or fatbin.startswith(_COMPRESSED_BUNDLE):
        return None
    if not fatbin.startswith(_BUNDLE):
        raise BadEntryError("has a .hip_fatbin that holds no bundle of device code")
    return dict(_bundled(fatbin))


def _bundled(fatbin: bytes) -> Iterator[tuple[str, bytes]]:
    position = len(_BUNDLE) + 8
    for _ in range(struct.unpack_from("<Q", fatbin, len(_BUNDLE))[0]):
        offset, size, length = struct.unpack_from("<QQQ", fatbin, position)
        position += 24
        target = fatbin[position : position + length]
        position += length
        if position > len(fatbin) or offset + size > len(fatbin):
            raise BadEntryError("has device code that is cut off")
        if target.startswith(b"hip") and b"--" in target:
            yield target.rpartition(b"--")[2].decode("ascii", "replace"), fatbin[offset : offset + size]


def verify_output(data: bytes, symbols: Iterable[str], arch: str | None) -> SharedObject:
    """Check the compiler's output as the runtime does: the functions `symbols`, and device code for `arch` (None: any).

    Raises:
        BadEntryError: it is no such shared object.
    """
    found = read_object(data)
    missing = sorted(set(symbols) - found.functions)
    if missing:
        raise BadEntryError(f"does not define the function {missing[0]} ({len(missing)} are missing)")
    if arch is not None and found.device_code is not None:
        fitting = [code for target, code in found.device_code.items() if arch_runs_on(target, arch)]
        if not fitting:
            targets = ", ".join(found.device_code) or "no GPU"
            raise BadEntryError(f"has device code for {targets}, not for {arch}")
        code = fitting[0]
        if code[:4] != b"\x7fELF" or len(code) < 64 or struct.unpack_from("<H", code, 18)[0] != _AMDGPU:
            raise BadEntryError("has device code that is no ELF file for an AMD GPU")
    return found


def make_trailer(data: bytes, key: str, build_id: bytes) -> bytes:
    """Return the 128 bytes that bind the shared object `data` to its key."""
    build_id = build_id[:_BUILD_ID_BYTES]
    return b"".join(
        [
            _START,
            bytes.fromhex(key),
            hashlib.sha256(data).digest(),
            struct.pack("<Q", len(data)),
            build_id.ljust(_BUILD_ID_BYTES, b"\0"),
            struct.pack("<I", len(build_id)),
            _END,
        ]
    )


def verify_entry(data: bytes, key: str, symbols: Iterable[str] = (), arch: str | None = None) -> SharedObject:
    """Check all bytes of an entry's file, as the runtime does when it opens one.

    Raises:
        BadEntryError: it is not the undamaged entry for that key.
    """
    if len(data) <= TRAILER_BYTES:
        raise BadEntryError("is too short for a cache entry")
    content, trailer = data[:-TRAILER_BYTES], data[-TRAILER_BYTES:]
    if not trailer.startswith(_START) or not trailer.endswith(_END):
        raise BadEntryError("has no trailer: it is no cache entry, or cut off")
    if trailer[16:48].hex() != key:
        raise BadEntryError("is the entry of another key")
    if trailer[48:80] != hashlib.sha256(content).digest():
        raise BadEntryError("has other bytes than when it was written")
    found = verify_output(content, symbols, arch)
    if trailer != make_trailer(content, key, found.build_id):
        raise BadEntryError("has other bytes than when it was written")
    return found
