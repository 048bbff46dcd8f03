"""Writes a checked precondition as an expression of one language."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal

from ck_post_build.bridge.ctypes_model import CType

Language = Literal["rust", "cpp", "python"]

COMPARISONS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%"}
_TESTS: dict[Language, dict[str, str]] = {
    "rust": {"aligned": "{0} as usize & ({1} - 1) == 0", "nonnull": "!{0}.is_null()", "finite": "{0}.is_finite()"},
    "cpp": {"aligned": "detail::aligned({0}, {1})", "nonnull": "{0} != nullptr", "finite": "std::isfinite({0})"},
    "python": {"aligned": "{0} % {1} == 0", "nonnull": "{0} != 0", "finite": "math.isfinite({0})"},
}


class ConditionWriter:
    """Walks a checked tree; `float_context` says whether literals stand beside a float."""

    float_context = False

    def __init__(self, language: Language, types: Mapping[str, CType]) -> None:
        self.language = language
        self.types = types

    def write(self, node: ast.expr, wide: bool = True) -> str:
        if isinstance(node, ast.BoolOp):
            return self.bool_op(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, wide)
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.BinOp):
            return self.arithmetic(node)
        if isinstance(node, ast.Name):
            return self.name(node, wide)
        assert isinstance(node, ast.Constant)
        return self.number(node)

    def bool_op(self, node: ast.BoolOp) -> str:
        words = {"rust": ("&&", "||"), "cpp": ("&&", "||"), "python": ("and", "or")}[self.language]
        word = words[isinstance(node.op, ast.Or)]
        return f" {word} ".join(f"({self.write(v)})" if self.is_row(v) else self.write(v) for v in node.values)

    def is_row(self, node: ast.expr) -> bool:
        """Tell whether `node` becomes several tests in a row, which need brackets inside another row."""
        chain = isinstance(node, ast.Compare) and len(node.ops) > 1 and self.language != "python"
        return chain or isinstance(node, ast.BoolOp)

    def unary(self, node: ast.UnaryOp, wide: bool) -> str:
        inner = self.write(node.operand, wide)
        simple = isinstance(node.operand, (ast.Name, ast.Constant, ast.Call))
        inner = inner if simple else f"({inner})"
        if isinstance(node.op, ast.USub):
            return f"-{inner}"
        return f"not {inner}" if self.language == "python" else f"!{inner}"

    def compare(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        self.float_context = any(self.is_float(side) for side in sides)
        operators = [COMPARISONS[type(op)] for op in node.ops]
        if self.language == "python":
            return self.write(sides[0]) + "".join(
                f" {o} {self.write(s)}" for o, s in zip(operators, sides[1:], strict=True)
            )
        pairs = zip(sides[:-1], operators, sides[1:], strict=True)
        return " && ".join(f"{self.write(a)} {operator} {self.write(b)}" for a, operator, b in pairs)

    def is_float(self, node: ast.expr) -> bool:
        return any(
            (isinstance(n, ast.Name) and n.id in self.types and self.types[n.id].kind == "float")
            or (isinstance(n, ast.Constant) and type(n.value) is float)
            for n in ast.walk(node)
        )

    def call(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        first = self.write(node.args[0], wide=False)
        size = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        return _TESTS[self.language][node.func.id].format(first, size)

    def arithmetic(self, node: ast.BinOp) -> str:
        def side(child: ast.expr, right: bool) -> str:
            tight = isinstance(node.op, (ast.Mult, ast.Mod)) or (right and isinstance(node.op, ast.Sub))
            same = isinstance(child, ast.BinOp) and (tight and not (isinstance(child.op, ast.Mult) and not right))
            return f"({self.write(child)})" if same else self.write(child)

        return f"{side(node.left, False)} {_ARITHMETIC[type(node.op)]} {side(node.right, True)}"

    def name(self, node: ast.Name, wide: bool) -> str:
        kind = self.types[node.id].kind
        if not wide or self.language == "python" or kind in ("bool", "pointer"):
            return node.id
        if kind == "float":
            return f"f64::from({node.id})" if self.language == "rust" else f"static_cast<double>({node.id})"
        return f"i128::from({node.id})" if self.language == "rust" else f"detail::wide({node.id})"

    def number(self, node: ast.Constant) -> str:
        if self.float_context:
            return repr(float(node.value))  # type: ignore[arg-type]
        if self.language == "cpp":
            return f"detail::wide({node.value!r})"
        return str(node.value)
