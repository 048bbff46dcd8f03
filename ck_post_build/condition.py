"""Conditions on traits: ``hdim=128 and dtype in (bf16, fp16) and not mask``."""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from ck_post_build.blob_traits import Traits, Value
from ck_post_build.errors import CkPostBuildError

_Test = Callable[[Traits], bool]
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


class Condition:
    """A condition on traits, in Python's grammar, with ``=`` for ``==`` too.

    A comparison is ``trait op value``, where op is ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` or ``not in``; also
    ``64 <= hdim <= 128``. A trait alone means that it is true. Values are numbers, words, and text in quotes. Of a blob
    with several values of a trait, one has to fit, and none for ``!=`` and ``not in``. A blob that lacks the trait does not
    fit, whatever the comparison.

    Args:
        text: the condition.

    Raises:
        CkPostBuildError: it is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()
        try:
            tree = ast.parse(re.sub(r"(?<![=!<>])=(?!=)", "==", text).strip(), mode="eval")
        except (SyntaxError, ValueError) as error:
            raise self._error("cannot be read") from error
        self._test = self._compile(tree.body)

    def __call__(self, traits: Traits) -> bool:
        """Tell whether the blob with these traits fits."""
        return self._test(traits)

    def check_names(self, known: Iterable[str]) -> None:
        """Raise CkPostBuildError when the condition names a trait that is not among `known`."""
        names = sorted({*known})
        for name in sorted(self.names.difference(names)):
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise CkPostBuildError(f"no blob has a trait called {name}{hint} There are: {', '.join(names)}")

    def _error(self, problem: str) -> CkPostBuildError:
        return CkPostBuildError(
            f"the condition {self.text!r} {problem}. Write it like --where 'hdim=128 and dtype in (bf16, fp16) and not mask'"
        )

    def _compile(self, node: ast.expr) -> _Test:
        if isinstance(node, ast.BoolOp):
            tests = [self._compile(value) for value in node.values]
            combine = all if isinstance(node.op, ast.And) else any
            return lambda traits: combine(test(traits) for test in tests)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._compile(node.operand)
            return lambda traits: not inner(traits)
        if isinstance(node, ast.Name):
            return self._compare(node, ast.Eq(), ast.Constant(True))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            comparisons = [self._compare(*pair) for pair in pairs]
            return lambda traits: all(comparison(traits) for comparison in comparisons)
        raise self._error("has a part that is neither a comparison nor a trait")

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Test:
        if not isinstance(left, ast.Name) and type(op) in _MIRRORED:
            left, op, right = right, _MIRRORED[type(op)](), left
        if not isinstance(left, ast.Name):
            raise self._error("compares a value with something that is no trait")
        name = left.id
        self.names.add(name)
        values = self._values(right)
        if isinstance(op, (ast.Eq, ast.In)):
            return lambda traits: bool(traits.get(name, frozenset()) & values)
        if isinstance(op, (ast.NotEq, ast.NotIn)):
            return lambda traits: name in traits and not traits[name] & values
        order = _ORDER.get(type(op))
        numbers = [value for value in values if isinstance(value, int)]
        if order is None or not numbers:
            raise self._error("orders something that is no number")
        return lambda traits: any(
            isinstance(value, int) and order(value, number) for value in traits.get(name, ()) for number in numbers
        )

    def _values(self, node: ast.expr) -> frozenset[Value]:
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return frozenset(value for element in node.elts for value in self._values(element))
        if isinstance(node, ast.Name):
            return frozenset([node.id.lower()])
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, str)):
            return frozenset([str(node.value).lower()])
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return frozenset([node.value])
        raise self._error("has a value that is neither a number nor a word")
