"""Turns conditions into inputs: the values on both sides of every comparison, and for each site values that aim at it."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from .boxes import Boxes
from .conditions import Atom, Conditions, Node, Value, comparisons, fields_of
from .distinctions import NotSimple, representatives
from .paths import Path, Step
from .records import Field

# For integers that are computed with in a way that is not followed (the number of thread blocks, say).
_OTHER_INTEGERS = (0, 1, 2, 7, 16, 64, 127, 128, 1000, 4096, 100000)
_MOST_COMBINATIONS = 20000
# Of ck_tile::stream_config. No API file names them: wrappers hand them to CK's own launch code.
_TIMING: dict[str, list[Value]] = {"time_kernel_": [0, 0, 0, 1], "cold_niters_": [0, 1, 2], "nrepeat_": [1, 2]}


@dataclass
class Aim:
    """How to reach one site.

    Attributes:
        solved: for each field of its path the values that satisfy the path, in ascending order.
        clear: values that, set after those, keep out of what earlier sites take, as far as that is known.
        flips: one value each that breaks the path at one atom.
        problem: why there are no such values; "" if there are.
        takers: places of the branches that together take every input of its path.
        proved: no input reaches it, whatever is tried.
    """

    solved: dict[str, list[Value]] = field(default_factory=dict)
    clear: dict[str, list[Value]] = field(default_factory=dict)
    flips: list[tuple[str, Value]] = field(default_factory=list)
    problem: str = ""
    takers: list[int] = field(default_factory=list)
    proved: bool = False


@dataclass
class Pools:
    """Values worth trying.

    Attributes:
        values: those of each field that a condition names, in ascending order.
        exact: fields whose values show everything that the conditions can tell apart.
    """

    values: dict[str, list[Value]]
    exact: set[str] = field(default_factory=set)


def pools(conditions: Conditions, fields: dict[str, Field]) -> Pools:
    """Return what to try."""
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
    known = {path: values for path, values in sorted(found.items()) if path in fields}
    result = Pools({path: fields[path].values(values, nonzero=path in divisors) for path, values in known.items()})
    for path, values in result.values.items():
        with contextlib.suppress(NotSimple):
            result.values[path] = representatives(path, fields[path].kind, conditions.atoms, values)
            result.exact.add(path)
    result.values |= {path: _TIMING[name] for path in fields if (name := path.rpartition(".")[2]) in _TIMING}
    return result


def _around(node: Node, divides: bool) -> list[Value]:
    if node[0] != "const":
        return []
    value = node[1]
    if isinstance(value, str):
        return [value]
    assert isinstance(value, int)
    near: list[Value] = [value - 1, value, value + 1]
    return [*near, 2 * value, 3 * value, 3 * value + 1, 16 * value] if divides else near


def _share_between_compared_fields(atoms: Sequence[Atom], found: dict[str, set[Value]]) -> None:
    for atom in atoms:
        if len(atom.fields) > 1:
            together = set().union(*(found[path] for path in atom.fields)) or set(_OTHER_INTEGERS)
            for path in atom.fields:
                found[path] |= together


class Solver:
    """Finds values for paths; remembers what each atom allows."""

    def __init__(self, atoms: Sequence[Atom], pools_: Pools, seed: int) -> None:
        self._atoms = atoms
        self._pools = pools_.values
        self._boxes = Boxes(atoms, pools_.values, pools_.exact)
        self._random = random.Random(seed)
        self._allowed: dict[Step, list[Value]] = {}

    def aim(self, path: Path) -> Aim:
        """Return values for the fields of `path`."""
        left = self._boxes.remainder(path)
        if left.contradiction:
            return Aim(problem=f"nothing satisfies its path ({left.contradiction})", proved=True)
        steps = [step for step in dict.fromkeys(path.steps) if self._atoms[step[0]].fields]
        steps = [step for step in steps if all(name in self._pools for name in self._atoms[step[0]].fields)]
        aim = self._solve(steps)
        if not aim.problem:
            aim.clear, aim.takers, aim.proved = left.allowed, left.takers, bool(left.takers)
            aim.flips = self._flips(steps)
        return aim

    def _solve(self, steps: Sequence[Step]) -> Aim:
        domains: dict[str, list[Value]] = {}
        several = [step for step in steps if len(self._atoms[step[0]].fields) > 1]
        for step in steps:
            fields = self._atoms[step[0]].fields
            for name in fields:
                domains.setdefault(name, self._pools[name])
            if len(fields) == 1:
                allowed = set(self._allow(step))
                domains[fields[0]] = [v for v in domains[fields[0]] if v in allowed]
                if not domains[fields[0]]:
                    return Aim(problem=f"no value tried satisfies its path ({self._atoms[step[0]].text})")
        solved = self._choose(domains, several)
        if solved is None:
            return Aim(problem=f"no values tried satisfy {self._atoms[several[0][0]].text}")
        return Aim(solved)

    def _allow(self, step: Step) -> list[Value]:
        known = self._allowed.get(step)
        if known is None:
            atom, wanted = self._atoms[step[0]], step[1]
            pool = self._pools[atom.fields[0]]
            known = [v for v in pool if atom.holds({atom.fields[0]: v}) in (wanted, None)]
            self._allowed[step] = known
        return known

    def _choose(self, domains: dict[str, list[Value]], several: list[Step]) -> dict[str, list[Value]] | None:
        together = list(dict.fromkeys(name for step in several for name in self._atoms[step[0]].fields))
        choices = [self._random.sample(domains[name], len(domains[name])) for name in together]
        for values in itertools.islice(itertools.product(*choices), _MOST_COMBINATIONS):
            trial = dict(zip(together, values, strict=True))
            if all(self._atoms[number].holds(trial) in (wanted, None) for number, wanted in several):
                return domains | {name: [value] for name, value in trial.items()}
        return None

    def _flips(self, path: Sequence[Step]) -> list[tuple[str, Value]]:
        flips = []
        for number, wanted in path:
            fields = self._atoms[number].fields
            if len(fields) == 1:
                allowed = set(self._allow((number, wanted)))
                broken = [v for v in self._pools[fields[0]] if v not in allowed]
                flips += [(fields[0], v) for v in self._random.sample(broken, min(2, len(broken)))]
        return list(dict.fromkeys(flips))
