"""All of the oracle in order: rewrite, build both, plan the inputs, drive, collect."""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ck_post_build import Report
from ck_post_build.source import SourceFile

from .build import Api, Builder, api, blobs_by_symbol, result_kinds, undefined_symbols
from .conditions import Conditions, Value, read_conditions
from .inputs import Aim, Solver, pools
from .records import Field, fields_of_parameters

# Where it is proved that no input reaches a site, some are tried all the same: the proof may be wrong.
_TRIES, _TRIES_OF_PROVED = 64, 16
ARCHES = ("gfx942", "gfx950", "gfx90a", "gfx1234")


@dataclass
class Unreached:
    """A site that no input reached: its line, why not, and whether it is proved that no other input reaches it."""

    line: int
    reason: str
    proved: bool


@dataclass
class Result:
    """What a check found.

    Attributes:
        unreached: the sites that no input reached.
        counts: the driver's summary for each architecture.
        differences: the first of them, as text.
    """

    sites: int
    unreached: list[Unreached] = field(default_factory=list)
    counts: dict[str, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    inputs: int = 0
    different: int = 0


class Oracle:
    """Both dispatchers of one API file, built in a directory.

    Args:
        entry: a source file with a function to call instead of the API file's, which may be a constructor. Its
            parameters have the names of the API file's, and it prints what is to be compared.
    """

    def __init__(self, path: Path, blob_dir: Path, flags: str, output: Path, entry: Path | None = None) -> None:
        self._entry = entry
        self._api = api(path.absolute(), blob_dir.absolute(), flags)
        self._directory = output.absolute()
        self.lazy = self._directory / "lazy"

    def build(self, seed: int) -> None:
        """Rewrite, read the conditions, write the plan and compile everything.

        Raises:
            SystemExit: something does not compile.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        self._report = self._api.rewrite(self.lazy)
        unit = self._api.parse()
        conditions = read_conditions(unit, self._api.path.read_bytes())
        (function,) = self._api.functions(self._entry) if self._entry else conditions.functions
        fields = fields_of_parameters(function)
        plan, self._aims = _plan(self._api, self._report, conditions, fields, seed)
        (self._directory / "plan").write_text(plan)
        builder = Builder(self._api, self._directory)
        original = builder.original()
        blobs = blobs_by_symbol(self.lazy)
        # What is no kernel is the libraries' and must be there when the original is linked.
        kernels = [symbol for symbol in undefined_symbols(original) if symbol in blobs]
        self._stubs = builder.stubs(result_kinds(unit, kernels), blobs)
        builder.driver(function, fields, self._stubs)
        self._more = [builder.entry(self._entry)] if self._entry else []
        builder.link([original, *self._more], self._stubs, "original.so")
        self.build_rewritten()

    def build_rewritten(self) -> None:
        """Compile what is in `lazy`."""
        builder = Builder(self._api, self._directory)
        builder.link([*builder.rewritten(self.lazy), *self._more], self._stubs, "rewritten.so")

    def drive(self, random_inputs: int, seed: int, arches: Sequence[str]) -> Result:
        """Call both with all inputs, in one process for each architecture.

        Raises:
            SystemExit: that process died.
        """
        result = Result(len(self._report.entries))
        reached: set[int] = set()
        taken: dict[int, dict[str, int]] = {}
        files = [self._directory / name for name in ("driver", "original.so", "rewritten.so", "plan", "reached")]
        for arch in arches:
            files[-1].write_text(" ".join(map(str, sorted(reached))))
            command = [*map(str, files), str(random_inputs), str(seed)]
            env = os.environ | {"HIP_STANDIN_ARCH": arch, "CK_TEST_DEVICE": arch}
            done = subprocess.run(command, env=env, capture_output=True, text=True)
            if done.returncode not in (0, 1):
                raise SystemExit(f"the driver died on {arch}: status {done.returncode}\n{done.stdout}{done.stderr}")
            _collect(done.stdout, arch, result, reached, taken)
        lines = [entry.line for entry in self._report.entries]
        for number, (line, aim) in enumerate(zip(lines, self._aims, strict=True)):
            if number not in reached:
                result.unreached.append(Unreached(line, _reason(aim, lines, taken.get(number, {})), aim.proved))
            elif aim.proved:
                result.differences.append(f"line {line}: reached, though it is proved that no input reaches it")
        return result


def _plan(
    api_: Api, report: Report, conditions: Conditions, fields: Sequence[Field], seed: int
) -> tuple[str, list[Aim]]:
    """Return the driver's plan, and how each site of the report is aimed at."""
    tried = pools(conditions, {f.path: f for f in fields})
    values = tried.values
    numbers = {f.path: number for number, f in enumerate(fields)}
    lines = [str(len(fields))]
    for f in fields:
        pool = values.get(f.path, [])
        lines += [f"{f.path} {f.kind} {len(pool)}", *map(str, pool)]
    solver = Solver(conditions.atoms, tried, seed)
    source = SourceFile(api_.path)
    starts = _line_starts(source)
    aims = []
    lines.append(str(len(report.entries)))
    paths = [conditions.path(starts[entry.line - 1]) for entry in report.entries]
    together = defaultdict(set)  # a launcher has several sites in one block, which all run
    for entry, path in zip(report.entries, paths, strict=True):
        together[id(path)].update(entry.symbols)
    for entry, path in zip(report.entries, paths, strict=True):
        aim = solver.aim(path)
        aim.takers = [bisect_right(starts, offset) for offset in aim.takers]
        aims.append(aim)
        tries = 0 if aim.problem else _TRIES_OF_PROVED if aim.proved else _TRIES
        lines.append(f"{entry.line} {tries} {_words(entry.symbols)} {_words(together[id(path)])}")
        for domains in (aim.solved, aim.clear):
            lines.append(str(len(domains)))
            lines += [_settings([(name, v) for v in allowed], values, numbers) for name, allowed in domains.items()]
        lines.append(_settings(aim.flips, values, numbers))
    return "\n".join(lines) + "\n", aims


def _line_starts(source: SourceFile) -> list[int]:
    """Return for each line the offset of the first byte in it that is not blank."""
    starts, offset = [], 0
    for line in source.path.read_bytes().split(b"\n"):
        starts.append(offset + len(line) - len(line.lstrip()))
        offset += len(line) + 1
    return starts


def _words(words: Collection[str]) -> str:
    return " ".join([str(len(words)), *sorted(words)])


def _settings(settings: Sequence[tuple[str, Value]], values: dict[str, list[Value]], numbers: dict[str, int]) -> str:
    words = [str(len(settings))]
    for path, value in settings:
        words.append(f"{numbers[path]} {values[path].index(value)}")
    return " ".join(words)


def _collect(text: str, arch: str, result: Result, reached: set[int], taken: dict[int, dict[str, int]]) -> None:
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["inputs"]:
            result.counts[arch] = line
            result.inputs += int(words[1])
            result.different += int(words[7])
        elif words[:1] == ["reached"]:
            reached.add(int(words[1]))
        elif words[:1] == ["taken"]:
            taken.setdefault(int(words[1]), {})[arch] = int(words[2])
        else:
            result.differences.append(f"{arch}: {line}")


def _reason(aim: Aim, sites: Sequence[int], taken: dict[str, int]) -> str:
    if aim.problem:
        return aim.problem
    if aim.takers:
        sites_of_takers = {next((line for line in sites if line >= taker), taker) for taker in aim.takers}
        return "earlier branches take all of its path, those of line " + ", ".join(map(str, sorted(sites_of_takers)))
    if taken:
        places = ", ".join(f"line {line} on {arch}" for arch, line in taken.items())
        return f"what satisfies its path is taken by {places}"
    return "no kernel was called for any input that satisfies its path"
