"""How large a lazy library is, and how much of that its manifest is."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section, SymbolTableSection

from ck_post_build.errors import CkPostBuildError

# The tables of ck_jit_manifest_embedded.h as the linker knows them.
_TABLES = ("kKernels", "kSuffixes", "kArches", "kEntries", "kSymbols", "kInstances")
_RELOCATION_BYTES = 24


@dataclass(frozen=True)
class LibrarySize:
    """Bytes of a library's file, and of the tables, texts and relocations of its manifest (-1: it is stripped)."""

    file: int
    manifest: int


def library_size(path: Path) -> LibrarySize:
    """Measure the library at `path`.

    Raises:
        CkPostBuildError: it cannot be read, or is no ELF file.
    """
    try:
        with path.open("rb") as stream:
            return LibrarySize(path.stat().st_size, _manifest_bytes(ELFFile(stream)))
    except OSError as error:
        raise CkPostBuildError(f"cannot read the library: {error.strerror}. Build it again", file=path) from error
    except ELFError as error:
        raise CkPostBuildError(f"this is no library: {error}. Build it again", file=path) from error


def _manifest_bytes(elf: ELFFile) -> int:
    tables = list(_tables(elf))
    if not tables:
        return -1
    targets = [target for place, target in _relocations(elf) if any(place in table for table in tables)]
    return sum(map(len, tables)) + _RELOCATION_BYTES * len(targets) + _text_bytes(elf, targets)


def _tables(elf: ELFFile) -> Iterator[range]:
    """Yield the addresses of the manifest's tables."""
    names = {f"_ZN6ck_jit{len(name)}{name}E" for name in _TABLES}
    section = elf.get_section_by_name(".symtab")
    if isinstance(section, SymbolTableSection):
        for symbol in section.iter_symbols():
            if symbol.name in names and symbol["st_size"]:
                yield range(symbol["st_value"], symbol["st_value"] + symbol["st_size"])


def _relocations(elf: ELFFile) -> Iterator[tuple[int, int]]:
    """Yield where the loader writes an address, and which."""
    section = elf.get_section_by_name(".rela.dyn")
    for place, _, target in struct.iter_unpack("<QQq", section.data() if section is not None else b""):
        yield place, target


def _text_bytes(elf: ELFFile, targets: list[int]) -> int:
    """Return the size of the strings at the addresses `targets`, each byte once: a name may be the end of a path."""
    section: Section | None = elf.get_section_by_name(".rodata")
    if section is None:
        return 0
    data, base = section.data(), section["sh_addr"]
    starts: dict[int, int] = {}
    for target in targets:
        start = target - base
        if 0 <= start < len(data):
            end = data.index(0, start) + 1
            starts[end] = min(start, starts.get(end, start))
    return sum(end - start for end, start in starts.items())
