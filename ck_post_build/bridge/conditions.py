"""Preconditions: a small expression language over a call's parameters, checked once and written in three languages.

Python's own parser reads it. Integers are computed wide enough never to overflow, and a remainder is only compared with
zero and only taken by a number that an earlier condition keeps from being zero: so all three languages agree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ck_post_build.bridge.condition_writer import COMPARISONS, ConditionWriter, Language
from ck_post_build.bridge.ctypes_model import CType

Value = Literal["integer", "float", "pointer", "boolean", "number"]

_LIMIT = 2**126  # what a 128-bit integer holds, with room for a sign and a sum
_TESTS: dict[str, Value] = {"aligned": "pointer", "nonnull": "pointer", "finite": "float"}


class ConditionError(Exception):
    """A condition that cannot be written; the message says why, the caller knows where."""


@dataclass(frozen=True)
class Condition:
    """A checked condition."""

    text: str
    tree: ast.expr
    types: Mapping[str, CType]

    def names(self) -> list[str]:
        """Return the parameters it speaks of, each once, in order."""
        found = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n.id in self.types]
        return sorted(set(found), key=list(self.types).index)

    def render(self, language: Language) -> str:
        """Return the condition as an expression of `language`, true when it is met."""
        return ConditionWriter(language, self.types).write(self.tree)


def parse_condition(text: str, types: Mapping[str, CType], nonzero: set[str]) -> Condition:
    """Parse and check `text`.

    Args:
        types: the call's parameters.
        nonzero: parameters that earlier conditions keep from being zero; what this one says is added.

    Raises:
        ConditionError: it is not a condition on these parameters.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ConditionError(f"{text!r} is not an expression: {error}") from error
    checker = _Checker(types, nonzero)
    if checker.kind(tree) != "boolean":
        raise ConditionError(f"{text!r} is a value, not a condition: compare it with something")
    condition = Condition(text, tree, types)
    if not condition.names():
        raise ConditionError(f"{text!r} speaks of no parameter; there are {', '.join(types) or 'none'}")
    nonzero |= _kept_from_zero(tree)
    return condition


def _kept_from_zero(tree: ast.expr) -> set[str]:
    """Return the names that `tree`, once met, keeps from being zero."""
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return set().union(*(_kept_from_zero(v) for v in tree.values))
    if not isinstance(tree, ast.Compare):
        return set()
    sides = [tree.left, *tree.comparators]
    found = set()
    for left, operator, right in zip(sides[:-1], tree.ops, sides[1:], strict=True):
        if _excludes_zero(left, operator, right):
            found.add(left.id)  # type: ignore[attr-defined]
        if _excludes_zero(right, _MIRRORED.get(type(operator), operator), left):
            found.add(right.id)  # type: ignore[attr-defined]
    return found


_MIRRORED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.Gt(),
    ast.LtE: ast.GtE(),
    ast.Gt: ast.Lt(),
    ast.GtE: ast.LtE(),
}


def _excludes_zero(name: ast.expr, operator: ast.cmpop, bound: ast.expr) -> bool:
    """Tell whether ``name operator bound`` is a test of a name against a number that zero does not pass."""
    if not (isinstance(name, ast.Name) and isinstance(bound, ast.Constant) and type(bound.value) is int):
        return False
    tests: dict[type[ast.cmpop], bool] = {
        ast.GtE: bound.value >= 1,
        ast.Gt: bound.value >= 0,
        ast.Eq: bound.value != 0,
        ast.NotEq: bound.value == 0,
    }
    return tests.get(type(operator), False)


class _Checker:
    """Gives each expression its kind, and refuses what the three languages could see differently."""

    def __init__(self, types: Mapping[str, CType], nonzero: set[str]) -> None:
        self.types = types
        self.nonzero = nonzero

    def kind(self, node: ast.expr) -> Value:
        handlers: dict[type[ast.expr], Callable[..., Value]] = {
            ast.BoolOp: self.bool_op,
            ast.UnaryOp: self.unary,
            ast.Compare: self.compare,
            ast.Call: self.call,
            ast.Name: self.name,
            ast.Constant: self.constant,
            ast.BinOp: self.arithmetic,
        }
        handler = handlers.get(type(node))
        if handler is None:
            raise ConditionError(f"{ast.unparse(node)!r} is not part of the language; docs/bridge.md lists what is")
        return handler(node)

    def expect(self, node: ast.expr, *kinds: Value) -> Value:
        kind = self.kind(node)
        if kind not in kinds:
            raise ConditionError(f"{ast.unparse(node)!r} is of kind {kind}, expected {' or '.join(kinds)}")
        return kind

    def bool_op(self, node: ast.BoolOp) -> Value:
        for value in node.values:
            self.expect(value, "boolean")
        return "boolean"

    def unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.expect(node.operand, "boolean")
        if isinstance(node.op, ast.USub):
            return self.expect(node.operand, "integer", "float", "number")
        raise ConditionError(f"{ast.unparse(node)!r}: this operator is not part of the language")

    def compare(self, node: ast.Compare) -> Value:
        sides = [node.left, *node.comparators]
        for operator in node.ops:
            if type(operator) not in COMPARISONS:
                raise ConditionError(f"{ast.unparse(node)!r}: this comparison is not part of the language")
        remainder = any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod) for side in sides)
        if remainder:
            self.remainder(node)
            return "boolean"
        kinds = {self.expect(side, "integer", "float", "number") for side in sides}
        if {"integer", "float"} <= kinds:
            raise ConditionError(f"{ast.unparse(node)!r} compares an integer with a float")
        if "float" not in kinds:
            for side in sides:
                self.bound(side)
        return "boolean"

    def remainder(self, node: ast.Compare) -> None:
        zero = len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0
        if not (zero and isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and isinstance(node.left, ast.BinOp)):
            raise ConditionError(
                f"{ast.unparse(node)!r}: compare a remainder with 0 only, its sign differs by language"
            )
        dividend, divisor = node.left.left, node.left.right
        self.expect(dividend, "integer", "number")
        self.bound(dividend)
        self.expect(divisor, "integer", "number")
        literal = isinstance(divisor, ast.Constant) and divisor.value != 0
        known = isinstance(divisor, ast.Name) and divisor.id in self.nonzero
        if not (literal or known):
            spelled = ast.unparse(divisor)
            raise ConditionError(f"{spelled!r} may be zero here: require {spelled} >= 1 before this condition")

    def call(self, node: ast.Call) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _TESTS or node.keywords or len(node.args) != (2 if name == "aligned" else 1):
            raise ConditionError(f"{ast.unparse(node)!r}: the tests are aligned(p, n), nonnull(p) and finite(x)")
        self.expect(node.args[0], _TESTS[name])
        if not isinstance(node.args[0], ast.Name):
            raise ConditionError(f"{ast.unparse(node)!r} must test a parameter itself")
        if name == "aligned":
            size = node.args[1]
            power = isinstance(size, ast.Constant) and type(size.value) is int and size.value > 0
            if not power or size.value & (size.value - 1):  # type: ignore[attr-defined]
                raise ConditionError(f"{ast.unparse(node)!r}: an alignment is a power of two, written as a number")
        return "boolean"

    def name(self, node: ast.Name) -> Value:
        if node.id not in self.types:
            raise ConditionError(f"there is no parameter {node.id!r}; there are {', '.join(self.types) or 'none'}")
        kind = self.types[node.id].kind
        if kind == "bool":
            return "boolean"
        if kind in ("integer", "float", "pointer"):
            return kind
        raise ConditionError(f"parameter {node.id!r} is a {kind}, which no condition can test")

    def constant(self, node: ast.Constant) -> Value:
        if type(node.value) is int:
            return "number"  # goes with integers and with floats
        if type(node.value) is float:
            return "float"
        raise ConditionError(f"{ast.unparse(node)!r} is not a number")

    def arithmetic(self, node: ast.BinOp) -> Value:
        if not isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            raise ConditionError(f"{ast.unparse(node)!r}: only +, - and *, and % compared with 0")
        kinds = {self.expect(side, "integer", "number") for side in (node.left, node.right)}
        return "integer" if "integer" in kinds else "number"

    def bound(self, node: ast.expr) -> int:
        """Return what the size of `node` cannot exceed, and refuse what 128 bits could not hold."""
        if isinstance(node, ast.Constant):
            size = abs(int(node.value))  # type: ignore[arg-type]
            if size >= 2**63:
                raise ConditionError(f"{size} is no 64-bit integer, which C++ literals are")
        elif isinstance(node, ast.Name):
            size = 1 << (8 * self.types[node.id].size)
        elif isinstance(node, ast.UnaryOp):
            size = self.bound(node.operand)
        elif isinstance(node, ast.BinOp):
            left, right = self.bound(node.left), self.bound(node.right)
            size = left * right if isinstance(node.op, ast.Mult) else left + right
        else:
            raise ConditionError(f"{ast.unparse(node)!r} is not a number")
        if size >= _LIMIT:
            raise ConditionError(f"{ast.unparse(node)!r} may not fit into 128 bits")
        return size
