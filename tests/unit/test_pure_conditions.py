"""Conditions are split where that is safe, and only there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clang.cindex import Cursor, CursorKind

from ck_post_build import libclang
from ck_post_build.pure_conditions import PureConditions
from ck_post_build.toolchain import Toolchain

_FRAME = """enum class mask {{ none, causal }};
struct traits {{ bool group; mask type; volatile bool changes; }};
struct odd {{ int value; bool operator==(int) const; explicit operator bool() const; }};
struct outer {{ traits inner; traits *pointer; int numbers[4]; }};
bool call(int);
#define BOTH(A, B) A && B
int f(traits t, outer a, odd o, int n, int *p, const int &r) {{
    {before}if({condition}) {{ return 1; }}
    return 0;
}}
"""


Parts = Callable[..., list[str] | None]


@pytest.fixture
def parts(tmp_path: Path, toolchain: Toolchain) -> Parts:
    libclang.load(toolchain.clang.library)

    def of(condition: str, before: str = "") -> list[str] | None:
        path = tmp_path / "f.cpp"
        path.write_text(_FRAME.format(condition=condition, before=before))
        return _parts(path, toolchain)

    return of


def _parts(path: Path, toolchain: Toolchain) -> list[str] | None:
    unit = libclang.parse(toolchain.clang, path, ["-x", "c++", "-std=c++20", "-w"])
    libclang.raise_on_errors(unit)
    chain = PureConditions(path.read_text())
    found = [chain.parts(libclang.children(cursor)[0]) for cursor in _ifs(unit.cursor)]
    return found[-1]


def _ifs(cursor: Cursor) -> list[Cursor]:
    return [c for c in cursor.walk_preorder() if c.kind == CursorKind.IF_STMT]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.group", ["t.group"]),
        ("t.group && n > 3", ["t.group", "n > 3"]),
        ("(t.group == true) and (t.type != mask::none)", ["(t.group == true)", "(t.type != mask::none)"]),
        ("(true /* && ( */) && // )\n (n == 1)", None),  # a comment between parts: not worth understanding
        ("(true /* && ( */) && (n == 1)", ["(true  )", "(n == 1)"]),
        ("((n % 8 == 0) || (r / 4 < 2)) && !t.group", ["((n % 8 == 0) || (r / 4 < 2))", "!t.group"]),
        ("t.group || n == 1 && n == 2", ["t.group || n == 1 && n == 2"]),
        ("a.inner.group && p != nullptr && p", ["a.inner.group", "p != nullptr", "p"]),
        ("static_cast<int>(t.group) + n == 2", ["static_cast<int>(t.group) + n == 2"]),
    ],
)
def test_parts_of_a_pure_condition(parts: Parts, condition: str, expected: list[str] | None) -> None:
    assert parts(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "call(n)",
        "n == 1 && call(n)",
        "p && *p == 1",
        "p != nullptr && p[0] == 1",
        "a.numbers[n] == 1",
        "a.pointer->group",
        "n && 8 / n == 1",
        "n && 8 % (n + 1) == 1",
        "n / 0 == 1",
        "n++ == 1",
        "-- n == 1",
        "n = 2",
        "n += 2",
        "n * n == 4",
        "n << 2 == 4",
        "o == 3",
        "bool(o)",
        "static_cast<bool>(o)",
        "o",
        "t.changes",
        "int x = n",
        "n ? t.group : t.group",
        "(n, t.group)",
        "BOTH(t.group, n)",
        "[&] { return true; }()",
        "new int",
    ],
)
def test_no_parts_of_a_condition_that_may_act_or_fail(parts: Parts, condition: str) -> None:
    assert parts(condition) is None


def test_what_is_one_part_alone_does_not_split_another_condition(parts: Parts) -> None:
    before = "if(t.group || n == 1) { return 2; } "
    assert parts("t.group || n == 1 && n == 2", before) == ["t.group || n == 1 && n == 2"]
