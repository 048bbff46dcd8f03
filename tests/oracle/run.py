"""All of the oracle in order: rewrite, build both, plan the inputs, drive, collect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build import Report
from ck_post_build.source import SourceFile
from tests.oracle.build import Api, Builder, api, blobs_by_symbol, result_kinds, undefined_symbols
from tests.oracle.conditions import Conditions, Value, read_conditions
from tests.oracle.inputs import Aim, Solver, pools
from tests.oracle.records import Field, fields_of_parameters

ARCHES = ("gfx942", "gfx950", "gfx90a", "gfx1234")


@dataclass
class Result:
    """What a check found.

    Attributes:
        unreached: line of each site that no input reached, and why not.
        counts: the driver's summary for each architecture.
        differences: the first of them, as text.
    """

    sites: int
    unreached: list[tuple[int, str]] = field(default_factory=list)
    counts: dict[str, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    inputs: int = 0
    different: int = 0


def check(
    path: Path, blob_dir: Path, flags: str, output: Path, random_inputs: int, seed: int, arches: Sequence[str]
) -> Result:
    """Compare the dispatchers of one API file.

    Raises:
        SystemExit: something did not compile, or the driver died.
    """
    output = output.absolute()
    output.mkdir(parents=True, exist_ok=True)
    api_ = api(path.absolute(), blob_dir.absolute(), flags)
    report = api_.rewrite(output / "lazy")
    unit = api_.parse()
    conditions = read_conditions(unit, api_.path.read_bytes())
    (function,) = conditions.functions
    fields = fields_of_parameters(function)
    original, rewritten, driver = _build(unit, Builder(api_, output), output / "lazy", conditions, fields)
    result = Result(len(report.entries))
    plan, aims = _plan(api_, report, conditions, fields, seed)
    (output / "plan").write_text(plan)
    reached: set[int] = set()
    taken: dict[int, int] = {}
    for arch in arches:
        command = [driver, original, rewritten, output / "plan", str(random_inputs), str(seed)]
        env = os.environ | {"HIP_STANDIN_ARCH": arch}
        done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"the driver died on {arch}: status {done.returncode}\n{done.stdout}{done.stderr}")
        _collect(done.stdout, arch, result, reached, taken)
    for number, entry in enumerate(report.entries):
        if number not in reached:
            result.unreached.append((entry.line, _reason(number, aims[number], taken)))
    return result


def _build(
    unit: TranslationUnit, builder: Builder, lazy: Path, conditions: Conditions, fields: Sequence[Field]
) -> tuple[Path, Path, Path]:
    (function,) = conditions.functions
    original = builder.original()
    blobs = blobs_by_symbol(lazy)
    # What is no kernel is the libraries' and must be there when the original is linked.
    kernels = [symbol for symbol in undefined_symbols(original) if symbol in blobs]
    stubs = builder.stubs(result_kinds(unit, kernels), blobs)
    driver = builder.driver(function, fields, stubs)
    rewritten = builder.link(builder.rewritten(lazy), stubs, "rewritten.so")
    return builder.link([original], stubs, "original.so"), rewritten, driver


def _plan(
    api_: Api, report: Report, conditions: Conditions, fields: Sequence[Field], seed: int
) -> tuple[str, list[Aim]]:
    """Return the driver's plan, and how each site of the report is aimed at."""
    values = pools(conditions, {f.path: f for f in fields})
    numbers = {f.path: number for number, f in enumerate(fields)}
    lines = [str(len(fields))]
    for f in fields:
        pool = values.get(f.path, [])
        lines += [f"{f.path} {f.kind} {len(pool)}", *map(str, pool)]
    solver = Solver(conditions.atoms, values, seed)
    source = SourceFile(api_.path)
    starts = _line_starts(source)
    aims = []
    lines.append(str(len(report.entries)))
    for entry in report.entries:
        aim = solver.aim(conditions.path(starts[entry.line - 1]))
        aims.append(aim)
        lines.append(f"{entry.line} {int(not aim.problem)} {len(entry.symbols)} {' '.join(entry.symbols)}")
        lines += [_settings(list(aim.solved.items()), values, numbers), _settings(aim.flips, values, numbers)]
    return "\n".join(lines) + "\n", aims


def _line_starts(source: SourceFile) -> list[int]:
    """Return for each line the offset of the first byte in it that is not blank."""
    starts, offset = [], 0
    for line in source.path.read_bytes().split(b"\n"):
        starts.append(offset + len(line) - len(line.lstrip()))
        offset += len(line) + 1
    return starts


def _settings(settings: Sequence[tuple[str, Value]], values: dict[str, list[Value]], numbers: dict[str, int]) -> str:
    words = [str(len(settings))]
    for path, value in settings:
        words.append(f"{numbers[path]} {values[path].index(value)}")
    return " ".join(words)


def _collect(text: str, arch: str, result: Result, reached: set[int], taken: dict[int, int]) -> None:
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["inputs"]:
            result.counts[arch] = line
            result.inputs += int(words[1])
            result.different += int(words[7])
        elif words[:1] == ["reached"]:
            reached.add(int(words[1]))
        elif words[:1] == ["taken"]:
            taken[int(words[1])] = int(words[2])
        else:
            result.differences.append(f"{arch}: {line}")


def _reason(number: int, aim: Aim, taken: dict[int, int]) -> str:
    if aim.problem:
        return aim.problem
    if number in taken:
        return f"its inputs are taken by the site in line {taken[number]}"
    return "no kernel was called for any input that satisfies its path"
