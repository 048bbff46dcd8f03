"""What conditions can tell of one field: values of it, one for every combination of truths."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence

from .conditions import BINARY, LOGICAL, Atom, Node, Value, evaluate, fields_of

_COMPARISONS = {operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne}
_REMAINDER = BINARY[5]
_LONGEST_PERIOD = 1 << 14


class NotSimple(Exception):
    """A field is used otherwise than in comparisons with constants, by itself or its remainder by a constant."""


def representatives(path: str, kind: str, atoms: Sequence[Atom], values: Iterable[Value]) -> list[Value]:
    """Return `values` and, for a field that is a number, one for each combination of truths that they lack.

    Raises:
        NotSimple: the combinations are not known.
    """
    found = sorted(values)  # type: ignore[type-var]
    tests = {id(test): test for atom in atoms if path in atom.fields for test in _tests(atom.node, path)}.values()
    if kind == "fraction":
        raise NotSimple
    if kind != "number":
        return found
    seen = {_truths(tests, path, value) for value in found}
    for value in _candidates(tests):
        truths = _truths(tests, path, value)
        if truths not in seen:
            seen.add(truths)
            found.append(value)
    return sorted(found)  # type: ignore[type-var]


def _truths(tests: Iterable[Node], path: str, value: Value) -> tuple[bool, ...]:
    return tuple(bool(evaluate(test, {path: value})) for test in tests)


def _candidates(tests: Iterable[Node]) -> Iterator[int]:
    """Between two constants, remainders repeat with the least common multiple of the divisors."""
    bounds, period = {0}, 1
    for test in tests:
        if test[0] == "op":
            one, other = test[2]
            bounds |= {0} if one[0] == "op" else {other[1]}
            period = math.lcm(period, one[2][1][1] if one[0] == "op" else 1)
    if period > _LONGEST_PERIOD:
        raise NotSimple
    for bound in (min(bounds) - period - 1, *sorted(bounds)):
        yield from range(bound, bound + period + 2)


def _tests(node: Node, path: str) -> Iterator[Node]:
    """Yield the smallest expressions with a truth in which the field is."""
    if path not in fields_of(node):
        return
    if node[0] == "field":
        yield node
        return
    function, operands = node[1], node[2]
    if function in LOGICAL:
        for operand in operands:
            yield from _tests(operand, path)
        return
    if function not in _COMPARISONS or operands[1][0] != "const":
        raise NotSimple
    if operands[0][0] == "field" or _is_remainder(operands[0]):
        yield node
    elif operands[0][1] in _COMPARISONS or operands[0][1] in LOGICAL:
        yield from _tests(operands[0], path)
    else:
        raise NotSimple


def _is_remainder(node: Node) -> bool:
    if node[0] != "op" or node[1] is not _REMAINDER:
        return False
    divisor = node[2][1]
    return bool(node[2][0][0] == "field" and divisor[0] == "const" and divisor[1] > 0)
