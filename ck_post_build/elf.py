"""What is read from ELF files."""

from __future__ import annotations

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ck_post_build.errors import CkPostBuildError


def defined_dynamic_symbols(path: Path) -> set[str]:
    """Return the names that the shared object exports (its defined ``.dynsym`` entries).

    Raises:
        CkPostBuildError: it cannot be read, or is no ELF file with dynamic symbols.
    """
    try:
        with path.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(section, SymbolTableSection):
                raise CkPostBuildError("the file has no dynamic symbols: it is no shared object", file=path)
            return {symbol.name for symbol in section.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"}
    except OSError as error:
        raise CkPostBuildError(f"cannot read the file: {error.strerror}", file=path) from error
    except ELFError as error:
        raise CkPostBuildError(
            f"this is no whole ELF file: {error}. Delete it, so that it is compiled again", file=path
        ) from error
