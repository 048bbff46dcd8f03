"""The parameters of an API function, flattened to fields that a generated driver can set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clang.cindex import AccessSpecifier, Cursor, CursorKind, Type, TypeKind

from ck_post_build import libclang

from .conditions import Value

_INTEGERS = range(TypeKind.CHAR_U.value, TypeKind.INT128.value + 1)
_FLOATS = (TypeKind.FLOAT, TypeKind.DOUBLE)
OTHER_TEXT = "no such type"


@dataclass(frozen=True)
class Field:
    """One field: its path from the parameter on (``t.hdim_q``), the number of the parameter, and what it holds.

    Attributes:
        kind: "bool", "enum", "number", "fraction", "pointer" or "text".
        enumerators: values of an enum.
    """

    path: str
    parameter: int
    kind: str
    enumerators: tuple[int, ...] = ()

    def values(self, found: Iterable[Value], *, nonzero: bool) -> list[Value]:
        """Return what to try, given the values that conditions compare the field with."""
        if self.kind == "bool":
            return [0, 1]
        if self.kind == "pointer":
            return [0, 4096]
        if self.kind == "text":
            return sorted({str(value) for value in found if isinstance(value, str)} | {OTHER_TEXT})
        numbers = {value for value in found if isinstance(value, int)} | set(self.enumerators)
        if self.kind == "enum":
            return sorted(self.enumerators)
        return sorted(n for n in numbers or {0, 1} if n or not nonzero)


def fields_of_parameters(function: Cursor) -> list[Field]:
    """Return the fields of all parameters of class type, in the order of declaration."""
    found: list[Field] = []
    for number, parameter in enumerate(function.get_arguments()):
        type_ = parameter.type.get_canonical()
        if type_.kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):
            type_ = type_.get_pointee()
        found += _fields(type_, parameter.spelling, number)
    return found


def _fields(type_: Type, path: str, parameter: int) -> Iterator[Field]:
    kind = type_.get_canonical().kind
    if kind == TypeKind.BOOL:
        yield Field(path, parameter, "bool")
    elif kind == TypeKind.ENUM:
        declaration = type_.get_canonical().get_declaration()
        members = libclang.children(declaration)
        values = tuple(m.enum_value for m in members if m.kind == CursorKind.ENUM_CONSTANT_DECL)
        yield Field(path, parameter, "enum", values)
    elif kind.value in _INTEGERS:
        yield Field(path, parameter, "number")
    elif kind in _FLOATS:
        yield Field(path, parameter, "fraction")
    elif kind == TypeKind.POINTER:
        yield Field(path, parameter, "pointer")
    elif kind == TypeKind.RECORD:
        declaration = type_.get_canonical().get_declaration()
        if declaration.spelling == "basic_string":
            yield Field(path, parameter, "text")
        else:
            yield from _members(declaration, path, parameter)


def _members(record: Cursor, path: str, parameter: int) -> Iterator[Field]:
    for member in libclang.children(record):
        if member.kind == CursorKind.CXX_BASE_SPECIFIER:
            yield from _members(member.type.get_canonical().get_declaration(), path, parameter)
        elif member.kind == CursorKind.FIELD_DECL and member.access_specifier == AccessSpecifier.PUBLIC:
            yield from _fields(member.type, f"{path}.{member.spelling}", parameter)
