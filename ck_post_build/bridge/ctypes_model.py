"""The part of C's type system that crosses a bridge, the same for the header's side and the library's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["void", "bool", "integer", "float", "pointer", "struct", "array"]


@dataclass(frozen=True)
class CType:
    """A type, as far as the ABI knows it: typedefs and enumerations are gone.

    Attributes:
        size: in bytes.
        signed: of an integer.
        name: the tag of a struct.
        target: what a pointer points to, or an array holds; None: a type that nobody looks into.
        const: whether a pointer's target is const.
        count: the length of an array.
    """

    kind: Kind
    size: int = 0
    signed: bool = False
    name: str = ""
    target: CType | None = None
    const: bool = False
    count: int = 0

    def describe(self) -> str:
        """Return the type in words that do not depend on a language, for messages and for the signature's hash."""
        if self.kind == "integer":
            return f"{'int' if self.signed else 'uint'}{8 * self.size}"
        if self.kind == "float":
            return f"float{8 * self.size}"
        if self.kind == "struct":
            return f"struct {self.name}"
        if self.kind == "array":
            return f"{self.target.describe() if self.target else 'void'}[{self.count}]"
        if self.kind == "pointer":
            return f"{self.target.describe() if self.target else 'void'}*"
        return self.kind


VOID = CType("void")


@dataclass(frozen=True)
class Field:
    """A member of a struct."""

    name: str
    type: CType
    offset: int


@dataclass(frozen=True)
class Struct:
    """A struct with its layout."""

    name: str
    size: int
    alignment: int
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Parameter:
    """A parameter; `spelling` is its canonical C type."""

    name: str
    type: CType
    spelling: str


@dataclass(frozen=True)
class Function:
    """A function's signature, and where the header or the library declares it."""

    name: str
    result: CType
    parameters: tuple[Parameter, ...]
    result_spelling: str = ""
    line: int = 0
    comment: str = ""

    def signature(self) -> str:
        """Return ``result (type name, ...)`` in the words of `CType.describe`."""
        inner = ", ".join(f"{p.type.describe()} {p.name}".strip() for p in self.parameters)
        return f"{self.result.describe()} {self.name}({inner})"

    def abi(self) -> str:
        """Return the signature without the parameters' names, which a caller cannot see."""
        return f"{self.result.describe()} {self.name}({', '.join(p.type.describe() for p in self.parameters)})"

    def types(self) -> Iterator[CType]:
        """Yield the types of result and parameters."""
        yield self.result
        yield from (parameter.type for parameter in self.parameters)


def same_type(ours: CType, theirs: CType) -> bool:
    """Tell whether both sides pass the same thing. A pointer to void stands for a pointer to anything."""
    if ours.kind == theirs.kind == "pointer":
        anything = any(t is None or t.kind == "void" for t in (ours.target, theirs.target))
        return anything or same_type(ours.target or VOID, theirs.target or VOID)
    if ours.kind == theirs.kind == "array":
        return ours.count == theirs.count and same_type(ours.target or VOID, theirs.target or VOID)
    return (ours.kind, ours.size, ours.signed, ours.name) == (theirs.kind, theirs.size, theirs.signed, theirs.name)
