"""Can anything reach a site, and what? Each path is a box, the product of what it allows on each axis; what earlier
`else if` links take is cut out of it, so an empty remainder proves that no input reaches the site.

An axis is a field, or fields that conditions compare with each other, and its points are all that these conditions can
tell apart. A condition that is not understood is an axis of its own, either way: more than can happen, so a proof holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .conditions import Atom, Value
from .paths import Link, Path, Step

Box = dict[int, int]  # axis → set of its points, as bits
_MOST_POINTS = 4096


@dataclass
class Remainder:
    """What of a site's path earlier links leave.

    Attributes:
        allowed: values of single fields in one box of the remainder, if any.
        takers: places of the links that together take all of it.
        contradiction: text of the condition that leaves nothing of the path itself.
    """

    allowed: dict[str, list[Value]] = field(default_factory=dict)
    takers: list[int] = field(default_factory=list)
    contradiction: str = ""


class Boxes:
    """The boxes of an API file's paths.

    Args:
        atoms: its conditions.
        pools: values of each field; for `exact` ones all that conditions tell apart.
        exact: those fields.
    """

    def __init__(self, atoms: Sequence[Atom], pools: dict[str, list[Value]], exact: set[str]) -> None:
        self._atoms = atoms
        self._axes: list[list[dict[str, Value]]] = []
        self._of_field: dict[str, int] = {}
        for names in _joined(atoms, exact):
            points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(pools[n] for n in names))]
            if len(points) <= _MOST_POINTS:
                self._of_field |= dict.fromkeys(names, len(self._axes))
                self._axes.append(points)
        self._steps: dict[Step, tuple[int, int]] = {}
        self._unknown: dict[int, int] = {}

    def remainder(self, path: Path) -> Remainder:
        """Return what the links before it leave of `path`."""
        box, contradiction = self._box(path.steps)
        if box is None:
            return Remainder(contradiction=contradiction)
        near = []
        for link in path.earlier():
            other, _ = self._box(link.steps)
            if other is not None and all(box.get(axis, mask) & mask for axis, mask in other.items()):
                near.append((other, link))
        left, takers = self._subtract(box, near, 0)
        if left is None:
            return Remainder(takers=self._needed(box, [(other, link) for other, link in near if link.offset in takers]))
        return Remainder(self._values(left))

    def _needed(self, box: Box, takers: list[tuple[Box, Link]]) -> list[int]:
        """Return the places of those without which something of the box would be left."""
        for taker in list(takers):
            others = [other for other in takers if other is not taker]
            if self._subtract(box, others, 0)[0] is None:
                takers = others
        return [link.offset for _, link in takers]

    def _box(self, steps: Iterable[Step]) -> tuple[Box | None, str]:
        box: Box = {}
        for step in steps:
            axis, mask = self._known(step)
            box[axis] = box.get(axis, mask) & mask
            if not box[axis]:
                return None, self._atoms[step[0]].text
        return box, ""

    def _known(self, step: Step) -> tuple[int, int]:
        if step not in self._steps:
            self._steps[step] = self._mask(step)
        return self._steps[step]

    def _mask(self, step: Step) -> tuple[int, int]:
        number, wanted = step
        atom = self._atoms[number]
        axis = self._of_field.get(atom.fields[0]) if atom.fields else None
        always = None if atom.fields else atom.holds({})
        if always is not None:
            return -1, int(always == wanted)
        results: list[bool | None] = [None]
        if axis is not None:
            results = [atom.holds(point) for point in self._axes[axis]]
        if axis is None or None in results:
            axis = self._unknown.setdefault(number, len(self._axes))
            if axis == len(self._axes):
                self._axes.append([{}, {}])
            results = [False, True]
        return axis, sum(1 << i for i, result in enumerate(results) if result == wanted)

    def _subtract(self, box: Box, others: Sequence[tuple[Box, Link]], start: int) -> tuple[Box | None, list[int]]:
        """Return a part of the box that none of the others has, or, with None, the places of those that cover it."""
        for number in range(start, len(others)):
            other, link = others[number]
            if not all(self._on(box, axis) & mask for axis, mask in other.items()):
                continue
            takers = [link.offset]
            for axis, mask in other.items():
                outside = self._on(box, axis) & ~mask
                if outside:
                    left, more = self._subtract(box | {axis: outside}, others, number + 1)
                    if left is not None:
                        return left, []
                    takers += more
                    box = box | {axis: self._on(box, axis) & mask}
            return None, takers
        return box, []

    def _on(self, box: Box, axis: int) -> int:
        return box.get(axis, (1 << len(self._axes[axis])) - 1 if axis >= 0 else 1)

    def _values(self, box: Box) -> dict[str, list[Value]]:
        """Of fields that are compared with each other one combination, because not every one of theirs will do."""
        allowed: dict[str, list[Value]] = {}
        for axis, mask in box.items():
            points = [point for i, point in enumerate(self._axes[axis]) if mask >> i & 1] if axis >= 0 else []
            if points and len(points[0]) == 1:
                (name,) = points[0]
                allowed[name] = [point[name] for point in points]
            elif points:
                allowed |= {name: [value] for name, value in points[0].items()}
        return allowed


def _joined(atoms: Sequence[Atom], exact: set[str]) -> list[tuple[str, ...]]:
    """Return the exact fields in groups: those that an atom has together are in one."""
    groups = {name: {name} for name in sorted(exact)}
    for atom in atoms:
        if len(atom.fields) > 1 and exact.issuperset(atom.fields):
            union = set().union(*(groups[name] for name in atom.fields))
            groups |= dict.fromkeys(union, union)
    return sorted({tuple(sorted(group)) for group in groups.values()})
