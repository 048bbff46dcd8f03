"""Turns conditions into inputs: the values on both sides of every comparison, and for each site values that aim at it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from .conditions import Atom, Conditions, Node, Value, comparisons, fields_of
from .records import Field

# For integers that are computed with in a way that is not followed (the number of thread blocks, say).
_OTHER_INTEGERS = (0, 1, 2, 7, 16, 64, 127, 128, 1000, 4096, 100000)
_MOST_COMBINATIONS = 20000


@dataclass
class Aim:
    """How to reach one site.

    Attributes:
        solved: for each field of its path the values that satisfy the path, in ascending order.
        flips: one value each that breaks the path at one atom.
        problem: why there are no such values; "" if there are.
    """

    solved: dict[str, list[Value]]
    flips: list[tuple[str, Value]]
    problem: str = ""


def pools(conditions: Conditions, fields: dict[str, Field]) -> dict[str, list[Value]]:
    """Return for each field that a condition names the values worth trying, in ascending order."""
    found: dict[str, set[Value]] = {}
    divisors: set[str] = set()
    for atom in conditions.atoms:
        for left, right, divides in comparisons(atom.node):
            for one, other in ((left, right), (right, left)):
                for path in fields_of(one):
                    found.setdefault(path, set()).update(_around(other, divides))
            if divides:
                divisors.update(fields_of(right))
        for path in atom.fields:
            found.setdefault(path, set())
    for path in conditions.mentioned & fields.keys():
        found.setdefault(path, set()).update(_OTHER_INTEGERS if fields[path].kind == "number" else ())
    _share_between_compared_fields(conditions.atoms, found)
    return {
        path: fields[path].values(values, nonzero=path in divisors)
        for path, values in sorted(found.items())
        if path in fields
    }


def _around(node: Node, divides: bool) -> list[Value]:
    if node[0] != "const":
        return []
    value = node[1]
    if isinstance(value, str):
        return [value]
    assert isinstance(value, int)
    near = [value - 1, value, value + 1]
    return [*near, 2 * value, 3 * value, 3 * value + 1, 16 * value] if divides else near


def _share_between_compared_fields(atoms: Sequence[Atom], found: dict[str, set[Value]]) -> None:
    for atom in atoms:
        if len(atom.fields) > 1:
            together = set().union(*(found[path] for path in atom.fields)) or set(_OTHER_INTEGERS)
            for path in atom.fields:
                found[path] |= together


class Solver:
    """Finds values for paths; remembers what each atom allows."""

    def __init__(self, atoms: Sequence[Atom], pools_: dict[str, list[Value]], seed: int) -> None:
        self._atoms = atoms
        self._pools = pools_
        self._random = random.Random(seed)
        self._allowed: dict[tuple[int, bool], list[Value]] = {}

    def aim(self, path: Sequence[tuple[int, bool]]) -> Aim:
        """Return values for the fields of `path`."""
        path = [step for step in dict.fromkeys(path) if all(f in self._pools for f in self._atoms[step[0]].fields)]
        domains: dict[str, list[Value]] = {}
        several: list[tuple[int, bool]] = []
        for step in path:
            fields = self._atoms[step[0]].fields
            if len(fields) > 1:
                several.append(step)
                for name in fields:
                    domains.setdefault(name, self._pools[name])
            elif fields:
                allowed = set(self._allow(step))
                domains[fields[0]] = [v for v in domains.get(fields[0], self._pools[fields[0]]) if v in allowed]
                if not domains[fields[0]]:
                    return Aim({}, [], f"no value of {fields[0]} satisfies its path ({self._atoms[step[0]].text})")
        solved = self._choose(domains, several)
        if solved is None:
            return Aim({}, [], "no values of the pool satisfy " + self._atoms[several[0][0]].text)
        return Aim(solved, self._flips(path))

    def _allow(self, step: tuple[int, bool]) -> list[Value]:
        known = self._allowed.get(step)
        if known is None:
            atom, wanted = self._atoms[step[0]], step[1]
            pool = self._pools[atom.fields[0]]
            known = [v for v in pool if atom.holds({atom.fields[0]: v}) in (wanted, None)]
            self._allowed[step] = known
        return known

    def _choose(
        self, domains: dict[str, list[Value]], several: list[tuple[int, bool]]
    ) -> dict[str, list[Value]] | None:
        together = list(dict.fromkeys(name for step in several for name in self._atoms[step[0]].fields))
        choices = [self._random.sample(domains[name], len(domains[name])) for name in together]
        for values in itertools.islice(itertools.product(*choices), _MOST_COMBINATIONS):
            trial = dict(zip(together, values, strict=True))
            if all(self._atoms[number].holds(trial) in (wanted, None) for number, wanted in several):
                return domains | {name: [value] for name, value in trial.items()}
        return None

    def _flips(self, path: Sequence[tuple[int, bool]]) -> list[tuple[str, Value]]:
        flips = []
        for number, wanted in path:
            fields = self._atoms[number].fields
            if len(fields) == 1:
                allowed = set(self._allow((number, wanted)))
                broken = [v for v in self._pools[fields[0]] if v not in allowed]
                flips += [(fields[0], v) for v in self._random.sample(broken, min(2, len(broken)))]
        return list(dict.fromkeys(flips))
