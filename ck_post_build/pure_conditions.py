"""Splits a condition at its ``&&`` into parts that may be evaluated in any order and any number of times.

The text is split, and the syntax tree has to agree with each split that is new; the thousands of conditions of a chain
repeat a few dozen parts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind

from ck_post_build import libclang
from ck_post_build.declarations import strip_comments

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[()\[\]{}]|&&|\|\||[?,]|\band\b|\bor\b|(?<![=!<>])=(?!=)",
    re.DOTALL,
)
_LITERALS = frozenset(
    {
        CursorKind.INTEGER_LITERAL,
        CursorKind.FLOATING_LITERAL,
        CursorKind.CHARACTER_LITERAL,
        CursorKind.CXX_BOOL_LITERAL_EXPR,
        CursorKind.CXX_NULL_PTR_LITERAL_EXPR,
    }
)
_NAMED = frozenset({CursorKind.PARM_DECL, CursorKind.VAR_DECL, CursorKind.ENUM_CONSTANT_DECL, CursorKind.FIELD_DECL})
_NAMES_IN_FRONT = frozenset({CursorKind.TYPE_REF, CursorKind.NAMESPACE_REF, CursorKind.TEMPLATE_REF})
_WRAPPED = frozenset({CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CXX_STATIC_CAST_EXPR})
# Not * and shifts, which may overflow where a condition before them forbids it.
_OPERATORS = frozenset({"==", "!=", "<", "<=", ">", ">=", "&&", "||", "and", "or", "+", "-", "&", "|", "^"})
_DIVISIONS = frozenset({"/", "%"})
_AND = frozenset({"&&", "and"})
_BINDS_LESS = frozenset({"||", "or", "?", ",", "="})
_SCALARS = frozenset(
    [
        *(
            "BOOL",
            "CHAR_S",
            "SCHAR",
            "UCHAR",
            "SHORT",
            "USHORT",
            "INT",
            "UINT",
            "LONG",
            "ULONG",
            "LONGLONG",
            "ULONGLONG",
        ),
        *("FLOAT", "DOUBLE", "ENUM", "POINTER", "NULLPTR"),
    ]
)


@dataclass(frozen=True)
class _Part:
    """A part of a condition: its range in the condition, and its text without comments."""

    start: int
    end: int
    text: str


class PureConditions:
    """The conditions of one chain, whose names all mean the same."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, bool] = {}

    def parts(self, condition: Cursor) -> list[str] | None:
        """Return the texts of the parts whose conjunction `condition` is; None where one has effects or may fail.

        A part may fail when it is evaluated although one before it is false: a dereference, a call, a division by what
        may be zero.
        """
        start, end = libclang.offsets(condition)
        parts = _split(self._text[start:end])
        if any(part.text not in self._known for part in parts):
            self._learn(condition, start, parts)
        texts = [part.text for part in parts]
        return texts if all(self._known[text] for text in texts) else None

    def _learn(self, condition: Cursor, start: int, parts: tuple[_Part, ...]) -> None:
        leaves = list(_leaves(condition, self._text))
        agrees = [libclang.offsets(leaf) for leaf in leaves] == [(start + p.start, start + p.end) for p in parts]
        for number, text in enumerate(part.text for part in parts):
            if text not in self._known:
                self._known[text] = agrees and "#" not in text and _is_pure(leaves[number], self._text)


@functools.lru_cache(maxsize=1 << 14)
def _split(text: str) -> tuple[_Part, ...]:
    """Split at the ``&&`` outside brackets; not at all where an operator that binds less is outside them."""
    depth, start, parts = 0, 0, []
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        elif depth == 0 and mark in _AND:
            parts.append(_part(text, start, token.start()))
            start = token.end()
        elif depth == 0 and mark in _BINDS_LESS:
            return (_part(text, 0, len(text)),)
    return (*parts, _part(text, start, len(text)))


def _part(text: str, start: int, end: int) -> _Part:
    """Leave out the blanks around a part; a comment there makes the split disagree with the tree, which is safe."""
    part = text[start:end]
    trimmed = part.strip()
    start += len(part) - len(part.lstrip())
    return _Part(start, start + len(trimmed), strip_comments(trimmed))


def _leaves(cursor: Cursor, text: str) -> Iterator[Cursor]:
    """Yield the operands of the ``&&`` at the top of an expression."""
    operands = libclang.children(cursor)
    if cursor.kind == CursorKind.UNEXPOSED_EXPR and len(operands) == 1:
        if libclang.offsets(operands[0]) == libclang.offsets(cursor):
            yield from _leaves(operands[0], text)
            return
    elif cursor.kind == CursorKind.BINARY_OPERATOR and _operator(operands, text) in _AND:
        for operand in operands:
            yield from _leaves(operand, text)
        return
    yield cursor


def _operator(operands: list[Cursor], text: str) -> str:
    """Return the operator between two operands."""
    if len(operands) != 2:
        return ""
    return strip_comments(text[libclang.offsets(operands[0])[1] : libclang.offsets(operands[1])[0]])


def _is_pure(cursor: Cursor, text: str) -> bool:
    """Tell whether an expression has no effect, reads nothing through a pointer and cannot fail."""
    kind = cursor.kind
    if kind in _LITERALS:
        return True
    if cursor.type.get_canonical().kind.name not in _SCALARS and kind != CursorKind.DECL_REF_EXPR:
        return kind == CursorKind.MEMBER_REF_EXPR and _is_plain_member(cursor, text)
    if kind == CursorKind.DECL_REF_EXPR:
        return cursor.referenced.kind in _NAMED and not cursor.type.is_volatile_qualified()
    if kind == CursorKind.MEMBER_REF_EXPR:
        return _is_plain_member(cursor, text)
    operands = [child for child in libclang.children(cursor) if child.kind not in _NAMES_IN_FRONT]
    if kind == CursorKind.BINARY_OPERATOR:
        operator = _operator(operands, text)
        divides = operator in _DIVISIONS and (libclang.evaluate(operands[1]) or 0) > 0
        return (divides or operator in _OPERATORS) and all(_is_pure(operand, text) for operand in operands)
    if kind == CursorKind.UNARY_OPERATOR:
        return (
            text[libclang.offsets(cursor)[0]] in "!-+~"
            and text[libclang.offsets(cursor)[0] + 1] not in "-+"
            and (all(_is_pure(operand, text) for operand in operands))
        )
    return kind in _WRAPPED and len(operands) == 1 and _is_pure(operands[0], text)


def _is_plain_member(cursor: Cursor, text: str) -> bool:
    """Tell whether this is ``object.member``, where the object is no pointer and the member not volatile."""
    if cursor.referenced.kind not in _NAMED or cursor.type.is_volatile_qualified():
        return False
    for base in libclang.children(cursor):
        if base.kind in _NAMES_IN_FRONT:
            continue
        if base.type.get_canonical().kind.name == "POINTER" or not _is_pure(base, text):
            return False
    return True
