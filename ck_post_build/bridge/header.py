"""Reads a C header with libclang: the functions a spec names, the structs they reach and the enumerations."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from clang.cindex import Cursor, CursorKind, Type, TypeKind

from ck_post_build import libclang
from ck_post_build.bridge.ctypes_model import VOID, CType, Field, Function, Parameter, Struct
from ck_post_build.errors import CkPostBuildError

_SIGNED = {TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
_UNSIGNED = {TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG}
_FLOATS = {TypeKind.FLOAT, TypeKind.DOUBLE}
_FUNCTIONS = {TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO}


@dataclass
class Header:
    """What a header declares; `tags` are the structs that C calls ``struct name``, the others have a typedef alone."""

    path: Path
    functions: dict[str, Function] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)


@lru_cache(maxsize=1)
def compiler_headers() -> tuple[str, ...]:
    """Return the flags that let libclang find ``stddef.h``: the package brings the library without its headers."""
    for name in ("clang", "clang-19", "hipcc"):
        if compiler := shutil.which(name):
            found = subprocess.run([compiler, "-print-resource-dir"], capture_output=True, text=True, check=False)
            if found.returncode == 0 and Path(found.stdout.strip()).is_dir():
                return ("-resource-dir", found.stdout.strip())
    if compiler := shutil.which("gcc"):
        found = subprocess.run([compiler, "-print-file-name=include"], capture_output=True, text=True, check=False)
        return ("-isystem", found.stdout.strip())
    return ()


class _Reader:
    """Turns cursors into the model; `names` are the functions wanted."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        self.header = Header(path)
        self.names = set(names)

    def error(self, message: str, cursor: Cursor) -> CkPostBuildError:
        place = cursor.location
        return CkPostBuildError(message, file=place.file.name if place.file else self.header.path, line=place.line)

    def read(self, unit: Cursor) -> Header:
        for cursor in unit.get_children():
            if cursor.kind == CursorKind.ENUM_DECL and cursor.is_definition():
                values = {
                    c.spelling: c.enum_value for c in cursor.get_children() if c.kind == CursorKind.ENUM_CONSTANT_DECL
                }
                self.header.enums[_tag(cursor)] = values
            elif cursor.kind == CursorKind.TYPEDEF_DECL:
                declaration = cursor.underlying_typedef_type.get_declaration()
                if _tag(declaration) in self.header.enums:
                    self.header.enums[cursor.spelling] = self.header.enums[_tag(declaration)]
            elif cursor.kind == CursorKind.FUNCTION_DECL and cursor.spelling in self.names:
                self.header.functions[cursor.spelling] = self.function(cursor)
        return self.header

    def function(self, cursor: Cursor) -> Function:
        if cursor.type.kind == TypeKind.FUNCTIONNOPROTO:
            raise self.error(f"{cursor.spelling}() declares no parameters at all: write (void)", cursor)
        if cursor.type.is_function_variadic():
            raise self.error(
                f"{cursor.spelling} takes a variable number of arguments, which no bridge can pass on", cursor
            )
        parameters = tuple(
            Parameter(
                argument.spelling or f"argument_{number}",
                self.type(argument.type, argument),
                argument.type.get_canonical().spelling,
            )
            for number, argument in enumerate(cursor.get_arguments())
        )
        result = self.type(cursor.result_type, cursor)
        spelling = cursor.result_type.get_canonical().spelling
        comment = clean_comment(cursor.raw_comment or "")
        return Function(cursor.spelling, result, parameters, spelling, cursor.location.line, comment)

    def type(self, type_: Type, cursor: Cursor) -> CType:
        canonical = type_.get_canonical()
        kind = canonical.kind
        if kind == TypeKind.VOID:
            return VOID
        if kind == TypeKind.BOOL:
            return CType("bool", 1)
        if kind in _SIGNED | _UNSIGNED:
            return CType("integer", canonical.get_size(), kind in _SIGNED)
        if kind in _FLOATS:
            return CType("float", canonical.get_size())
        if kind == TypeKind.ENUM:
            return self.type(canonical.get_declaration().enum_type, cursor)
        if kind == TypeKind.POINTER:
            return self.pointer(canonical, cursor)
        if kind == TypeKind.CONSTANTARRAY:
            element = self.type(canonical.element_type, cursor)
            return CType("array", canonical.get_size(), target=element, count=canonical.element_count)
        if kind == TypeKind.RECORD:
            return self.struct(canonical, cursor)
        raise self.error(f"type {type_.spelling} cannot cross a bridge", cursor)

    def pointer(self, type_: Type, cursor: Cursor) -> CType:
        pointee = type_.get_pointee()
        if pointee.kind in _FUNCTIONS:
            raise self.error("a callback cannot cross a bridge: nobody could say how long it must live", cursor)
        const = pointee.is_const_qualified()
        if pointee.kind == TypeKind.RECORD and pointee.get_size() < 0:  # declared and never defined: a handle
            return CType("pointer", type_.get_size(), const=const)
        return CType("pointer", type_.get_size(), target=self.type(pointee, cursor), const=const)

    def struct(self, type_: Type, cursor: Cursor) -> CType:
        declaration = type_.get_declaration()
        name = _tag(declaration)
        if declaration.type.get_canonical().spelling.startswith("struct "):
            self.header.tags.add(name)
        result = CType("struct", type_.get_size(), name=name)
        if name in self.header.structs:
            return result
        if declaration.kind != CursorKind.STRUCT_DECL:
            raise self.error(f"{type_.spelling} is a union, which has no one layout to check", cursor)
        self.header.structs[name] = Struct(name, type_.get_size(), type_.get_align(), ())  # stops a list from recursing
        members = [c for c in declaration.get_children() if c.kind == CursorKind.FIELD_DECL]
        for member in members:
            if member.is_bitfield():
                raise self.error(f"{name}.{member.spelling} is a bit-field, which has no offset to check", member)
        fields = tuple(Field(m.spelling, self.type(m.type, m), type_.get_offset(m.spelling) // 8) for m in members)
        del self.header.structs[name]  # so that structs stand after those they hold
        self.header.structs[name] = Struct(name, type_.get_size(), type_.get_align(), fields)
        return result


def _tag(cursor: Cursor) -> str:
    return str(cursor.type.get_canonical().spelling).removeprefix("struct ").removeprefix("enum ")


def clean_comment(text: str) -> str:
    """Return a C comment's text without its marks."""
    body = re.sub(r"^/\*+[!<]?|\*+/$", "", text.strip())
    lines = [re.sub(r"^\s*(?:\*(?!\S*\*)|//[/!]?) ?", "", line).rstrip() for line in body.splitlines()]
    return "\n".join(lines).strip()


def read_header(path: Path, functions: Iterable[str], flags: Iterable[str]) -> Header:
    """Read `path` as C and return what it declares of `functions`, with every struct they reach and every enum.

    Raises:
        CkPostBuildError: the header does not compile, or declares something that a bridge cannot carry.
    """
    if not path.is_file():
        raise CkPostBuildError("the header does not exist; library.header is relative to the spec", file=path)
    clang = libclang.Clang(None, ("-x", "c", "-std=c17", "-fparse-all-comments", *compiler_headers()))
    unit = libclang.parse(clang, path, list(flags))
    if error := libclang.first_error(unit):
        place = error.location
        raise CkPostBuildError(
            f"the header does not compile as C: {error.spelling}. Add what it needs to library.flags",
            file=place.file.name if place.file else path,
            line=place.line or None,
        )
    return _Reader(path, functions).read(unit.cursor)
