"""Compares a built library with the header: what it exports and, if it has debug information, every signature."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ck_post_build.bridge.ctypes_model import Function, Struct, same_type
from ck_post_build.bridge.dwarf import DwarfReader
from ck_post_build.bridge.header import Header
from ck_post_build.errors import CkPostBuildError


@dataclass
class AbiReport:
    """What was compared; a difference is an error and never gets here."""

    signatures: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # exported, but without debug information
    record: bool = False


def check_library(library: Path, header: Header, functions: list[Function], record: str | None) -> AbiReport:
    """Compare `library` with the header.

    Raises:
        CkPostBuildError: it is no shared library, lacks a symbol, or has a function or struct of another shape; the
            message shows both sides of everything that differs.
    """
    try:
        with library.open("rb") as stream:
            elf = ELFFile(stream)
            exported = _exports(elf, library)
            missing = [f.name for f in functions if f.name not in exported]
            if missing:
                raise CkPostBuildError(
                    f"the library does not export {', '.join(missing)}; the header declares them. Export them "
                    '(extern "C", default visibility) or take them out of the spec',
                    file=library,
                )
            report = AbiReport(record=record is not None and record in exported)
            if elf.has_dwarf_info():
                _compare(library, DwarfReader(elf.get_dwarf_info()), header, functions, report)
            else:
                report.unseen = [f.name for f in functions]
            return report
    except OSError as error:
        raise CkPostBuildError(f"cannot read the library: {error.strerror}", file=library) from error
    except (ELFError, DWARFError) as error:
        raise CkPostBuildError(f"not a library that pyelftools can read: {error}", file=library) from error


def _exports(elf: ELFFile, library: Path) -> set[str]:
    section = elf.get_section_by_name(".dynsym")
    if elf["e_type"] != "ET_DYN" or not isinstance(section, SymbolTableSection):
        raise CkPostBuildError("this is not a shared library: link it with -shared", file=library)
    return {
        s.name
        for s in section.iter_symbols()
        if s["st_shndx"] != "SHN_UNDEF"
        and s["st_info"]["bind"] != "STB_LOCAL"
        and s["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED")
    }


def _compare(library: Path, reader: DwarfReader, header: Header, functions: list[Function], report: AbiReport) -> None:
    found = reader.functions({f.name for f in functions})
    differences = []
    for function in functions:
        theirs = found.get(function.name)
        if theirs is None:
            report.unseen.append(function.name)
            continue
        report.signatures.append(function.name)
        if not _same_signature(function, theirs):
            place = f"{header.path.name}:{function.line}"
            differences.append(
                f"{function.name}\n  header ({place}): {function.signature()}\n  library: {theirs.signature()}"
            )
    for name, struct in header.structs.items():
        if name in reader.structs and reader.structs[name].fields:
            differences += _layout_differences(struct, reader.structs[name])
    if differences:
        raise CkPostBuildError(
            "the library does not match the header:\n" + "\n".join(differences) + "\n"
            "Rebuild the library from this header, or give the header it was built from",
            file=library,
        )


def _same_signature(ours: Function, theirs: Function) -> bool:
    if len(ours.parameters) != len(theirs.parameters):
        return False
    return all(same_type(a, b) for a, b in zip(ours.types(), theirs.types(), strict=True))


def _layout_differences(ours: Struct, theirs: Struct) -> list[str]:
    if ours.size != theirs.size:
        return [f"struct {ours.name}\n  header: {ours.size} bytes\n  library: {theirs.size} bytes"]
    left = [f"{f.name}@{f.offset} {f.type.describe()}" for f in ours.fields]
    right = [f"{f.name}@{f.offset} {f.type.describe()}" for f in theirs.fields]
    if left == right:
        return []
    return [f"struct {ours.name}\n  header: {', '.join(left)}\n  library: {', '.join(right)}"]
