"""Reads a dispatcher's conditions from clang's syntax tree: what each site's path asks of the traits and arguments."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from clang.cindex import Cursor, CursorKind, TranslationUnit, conf

from ck_post_build import libclang

from .paths import Link, Path, Step

Value = int | str
# ("const", value) · ("field", path) · ("op", function, operands) · ("unknown",)
Node = tuple[Any, ...]

_UNKNOWN: Node = ("unknown",)
_AND, _OR, _NOT = 20, 21, 10  # CXBinaryOperator_LAnd, _LOr; CXUnaryOperator_LNot
BINARY: dict[int, Callable[[Any, Any], Any]] = {
    3: operator.mul,
    4: lambda a, b: _quotient(a, b),
    5: lambda a, b: a - b * _quotient(a, b),
    6: operator.add,
    7: operator.sub,
    11: operator.lt,
    12: operator.gt,
    13: operator.le,
    14: operator.ge,
    15: operator.eq,
    16: operator.ne,
    _AND: lambda a, b: bool(a) and bool(b),
    _OR: lambda a, b: bool(a) or bool(b),
}
LOGICAL = {BINARY[_AND], BINARY[_OR], operator.not_}
_WRAPPERS = (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR)


def _quotient(a: int, b: int) -> int:
    """C's, which rounds towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@dataclass
class Atom:
    """One condition that no `&&` divides.

    Attributes:
        text: as written.
        node: what clang says that it is.
        fields: paths of the fields in it.
    """

    text: str
    node: Node
    fields: tuple[str, ...]

    def holds(self, values: dict[str, Value]) -> bool | None:
        """Evaluate it; None: it is about something else than the given fields."""
        result = evaluate(self.node, values)
        return None if result is None else bool(result)


@dataclass
class Conditions:
    """All conditions of an API file.

    Attributes:
        atoms: in the order in which they were found.
        mentioned: fields used outside of comparisons that could be read.
        functions: the definitions that callers of the library see.
    """

    atoms: list[Atom] = field(default_factory=list)
    mentioned: set[str] = field(default_factory=set)
    functions: list[Cursor] = field(default_factory=list)
    _leaves: list[tuple[int, int, Path]] = field(default_factory=list)

    def path(self, offset: int) -> Path:
        """Return the way to the statement at `offset`."""
        position = bisect_right(self._leaves, (offset, 1 << 62), key=lambda leaf: leaf[:2]) - 1
        while position >= 0:
            start, end, path = self._leaves[position]
            if start <= offset < end:
                return path
            position -= 1
        return Path()


def evaluate(node: Node, values: dict[str, Value]) -> Any:
    """Return the value of an expression, or None where it is not known."""
    kind = node[0]
    if kind == "const":
        return node[1]
    if kind == "field":
        return values.get(node[1])
    if kind != "op":
        return None
    operands = [evaluate(operand, values) for operand in node[2]]
    if any(operand is None for operand in operands):
        return None
    try:
        return node[1](*operands)
    except (ZeroDivisionError, TypeError):
        return None


def comparisons(node: Node) -> Iterator[tuple[Node, Node, bool]]:
    """Yield the operand pairs of an expression's operators, and whether the second one divides."""
    if node[0] == "op":
        if len(node[2]) == 2:
            yield node[2][0], node[2][1], node[1] in (operator.mod, operator.floordiv)
        for operand in node[2]:
            yield from comparisons(operand)


def fields_of(node: Node) -> Iterator[str]:
    """Yield the paths of the fields in an expression."""
    if node[0] == "field":
        yield node[1]
    elif node[0] == "op":
        for operand in node[2]:
            yield from fields_of(operand)


def read_conditions(unit: TranslationUnit, text: bytes) -> Conditions:
    """Return the conditions in the functions of the main file."""
    return _Reader(text).read(unit)


class _Reader:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._found = Conditions()
        self._known: dict[bytes, list[Step]] = {}

    def read(self, unit: TranslationUnit) -> Conditions:
        for cursor in _definitions(unit.cursor):
            if cursor.kind != CursorKind.FUNCTION_TEMPLATE and cursor.linkage.name == "EXTERNAL":
                self._found.functions.append(cursor)
            self._statement(libclang.children(cursor)[-1], Path())
        self._found._leaves.sort(key=lambda leaf: leaf[:2])
        return self._found

    def _statement(self, cursor: Cursor, path: Path) -> None:
        start, end = libclang.offsets(cursor)
        self._found._leaves.append((start, end, path))
        if cursor.kind == CursorKind.IF_STMT:
            self._if(cursor, path)
        elif cursor.kind in (CursorKind.COMPOUND_STMT, CursorKind.FOR_STMT, CursorKind.SWITCH_STMT):
            for child in libclang.children(cursor):
                self._statement(child, path)
        elif cursor.kind == CursorKind.DECL_STMT or (cursor.kind == CursorKind.RETURN_STMT and not path.steps):
            self._mention(cursor)

    def _if(self, cursor: Cursor, path: Path) -> None:
        """A chain of else-ifs is thousands long: no recursion along it."""
        links: list[Link] = []
        while True:
            parts = libclang.children(cursor)
            condition, branches = parts[0], parts[1:]
            start, end = libclang.offsets(condition)
            atoms = self._conjunction(condition, self._text[start:end])
            self._statement(branches[0], path.past(links).through(atoms))
            if len(branches) < 2:
                return
            if len(atoms) == 1:
                path = path.through([(atoms[0][0], not atoms[0][1])])
            else:  # of a conjunction it would take one false atom, and it is not said which
                links.append(Link(libclang.offsets(branches[0])[0], tuple(atoms)))
            cursor = branches[1]
            if cursor.kind != CursorKind.IF_STMT:
                self._statement(cursor, path.past(links))
                return

    def _conjunction(self, cursor: Cursor, text: bytes) -> list[Step]:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = list(self._split(cursor))
        return known

    def _split(self, cursor: Cursor) -> Iterator[Step]:
        inner = _unwrapped(cursor)
        if inner.kind == CursorKind.BINARY_OPERATOR and _binary(inner) == _AND:
            for child in libclang.children(inner):
                start, end = libclang.offsets(child)
                yield from self._conjunction(child, self._text[start:end])
            return
        start, end = libclang.offsets(cursor)
        node = _expression(cursor)
        if _has_unknown(node):
            self._mention(cursor)
        atom = Atom(self._text[start:end].decode(), node, tuple(dict.fromkeys(fields_of(node))))
        self._found.atoms.append(atom)
        yield len(self._found.atoms) - 1, True

    def _mention(self, cursor: Cursor) -> None:
        path = _field_path(cursor)
        if path is not None:
            self._found.mentioned.add(path)
            return
        for child in libclang.children(cursor):
            self._mention(child)


def _definitions(cursor: Cursor) -> Iterator[Cursor]:
    for child in libclang.children(cursor):
        if not libclang.is_in_main_file(child):
            continue
        if child.kind in (CursorKind.NAMESPACE, CursorKind.UNEXPOSED_DECL, CursorKind.LINKAGE_SPEC):
            yield from _definitions(child)
        elif child.kind in (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CONSTRUCTOR):
            parts = libclang.children(child)
            if parts and parts[-1].kind == CursorKind.COMPOUND_STMT:
                yield child


def _binary(cursor: Cursor) -> int:
    return int(conf.lib.clang_getCursorBinaryOperatorKind(cursor))


def _unwrapped(cursor: Cursor) -> Cursor:
    while cursor.kind in _WRAPPERS:
        inner = libclang.children(cursor)
        if len(inner) != 1:
            break
        cursor = inner[0]
    return cursor


def _field_path(cursor: Cursor) -> str | None:
    """Return ``parameter.field`` for a member of a parameter, at any depth."""
    names: list[str] = []
    while cursor.kind == CursorKind.MEMBER_REF_EXPR and cursor.referenced.kind == CursorKind.FIELD_DECL:
        names.append(cursor.spelling)
        inner = libclang.children(cursor)
        if not inner:
            return None
        cursor = _unwrapped(inner[0])
    if names and cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced.kind == CursorKind.PARM_DECL:
        return ".".join([cursor.spelling, *reversed(names)])
    return None


def _expression(cursor: Cursor, depth: int = 0) -> Node:
    cursor = _unwrapped(cursor)
    if cursor.kind == CursorKind.STRING_LITERAL:
        return ("const", cursor.spelling[1:-1])
    if cursor.kind == CursorKind.CXX_NULL_PTR_LITERAL_EXPR:
        return ("const", 0)
    path = _field_path(cursor)
    if path is not None:
        return ("field", path)
    value = libclang.evaluate(cursor)
    if value is not None:
        return ("const", value)
    parts = libclang.children(cursor)
    if cursor.kind == CursorKind.BINARY_OPERATOR and _binary(cursor) in BINARY:
        return ("op", BINARY[_binary(cursor)], tuple(_expression(part, depth) for part in parts))
    if cursor.kind == CursorKind.UNARY_OPERATOR and conf.lib.clang_getCursorUnaryOperatorKind(cursor) == _NOT:
        return ("op", operator.not_, (_expression(parts[0], depth),))
    if cursor.kind == CursorKind.DECL_REF_EXPR:
        return _variable(cursor.referenced, depth)
    if cursor.kind == CursorKind.CALL_EXPR:
        return _string_comparison(cursor, parts, depth)
    return _UNKNOWN


def _variable(declaration: Cursor, depth: int) -> Node:
    """An enumerator, or a variable that is what it was initialised with."""
    if declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
        return ("const", declaration.enum_value)
    if declaration.kind == CursorKind.VAR_DECL and declaration.type.is_const_qualified() and depth < 8:
        parts = libclang.children(declaration)
        return _expression(parts[-1], depth + 1) if parts else _UNKNOWN
    return _UNKNOWN


def _string_comparison(cursor: Cursor, parts: list[Cursor], depth: int) -> Node:
    if cursor.spelling == "compare" and len(parts) == 2:
        callee = libclang.children(parts[0])
        if callee:
            operands = (_expression(callee[0], depth), _expression(parts[1], depth))
            return ("op", operator.ne, operands)
    if cursor.spelling in ("operator==", "operator!=") and len(parts) == 3:
        compare = operator.eq if cursor.spelling == "operator==" else operator.ne
        return ("op", compare, (_expression(parts[0], depth), _expression(parts[2], depth)))
    return _UNKNOWN


def _has_unknown(node: Node) -> bool:
    return node[0] == "unknown" or (node[0] == "op" and any(_has_unknown(operand) for operand in node[2]))
