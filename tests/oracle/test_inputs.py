"""How conditions become inputs, on a dispatcher of our own."""

from __future__ import annotations

import pytest

from ck_post_build import libclang
from ck_post_build.toolchain import Toolchain

from .conditions import Conditions, read_conditions
from .distinctions import NotSimple, representatives
from .inputs import Pools, Solver, pools
from .records import OTHER_TEXT, fields_of_parameters
from .symbols import bodiless

TEXT = """
#include <string>
enum class mask { none, causal };
struct traits { std::string type; int size; mask kind; bool lse; };
struct arguments { int queries; int keys; const void *table; };
int blocks(int);
struct stream_config { void *stream; bool time_kernel_; };
float attention(traits t, arguments a, const stream_config &s) {
    const bool small = a.queries < 64;
    if (t.type.compare("half") == 0) {
        if (t.size <= 32 && small) { return 1; }
        else if (t.size <= 64 && (a.table != nullptr) && t.kind == mask::causal) { return 2; }
        else if (t.size % 8 == 0 && a.keys >= a.queries && blocks(a.queries) > 3) { return 3; }
        else if (t.size > 7 && t.size < 7) { return 4; }
        else if (t.size <= 48 && a.queries < 32) { return 6; }
        else if (t.size <= 64 && small && (t.size <= 32 || (a.table && t.kind == mask::causal))) { return 7; }
        else if (t.size % 32 == 0 && t.size > 0 && t.size < 65 && a.keys != 3) { return 8; }
        else if (t.size % 32 == 0 && t.size > 0 && t.size < 65 && (a.keys == 3 || a.table)) { return 9; }
        else if (blocks(a.keys) > 3 && t.size == 200) { return 10; }
        else if (t.size == 200 && t.lse) { return 11; }
        else if (blocks(a.keys) > 3 && t.size == 200 && t.lse) { return 12; }
    } else if (t.type == "single") { if (!t.lse) return 5; }
    return 0;
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> tuple[Conditions, Solver, Pools]:
    path = tmp_path_factory.mktemp("conditions") / "dispatcher.cpp"
    path.write_text(TEXT)
    clang = libclang.Clang(toolchain.clang.library, ())
    libclang.load(clang.library)
    unit = libclang.parse(clang, path, ["-std=c++20"])
    libclang.raise_on_errors(unit)
    conditions = read_conditions(unit, path.read_bytes())
    (function,) = conditions.functions
    values = pools(conditions, {field.path: field for field in fields_of_parameters(function)})
    return conditions, Solver(conditions.atoms, values, 1), values


def test_each_comparison_gives_both_of_its_sides(found: tuple[Conditions, Solver, Pools]) -> None:
    values = found[2].values
    assert values["t.type"] == ["half", OTHER_TEXT, "single"]
    assert {31, 32, 33, 63, 64, 65, 6, 7, 8} <= set(values["t.size"])
    assert values["t.kind"] == [0, 1]
    assert values["t.lse"] == [0, 1]
    assert {63, 64, 65} <= set(values["a.queries"])
    assert {63, 64, 65} <= set(values["a.keys"])
    assert values["a.table"] == [0, 4096]


def test_kernels_are_timed_now_and_then(found: tuple[Conditions, Solver, Pools]) -> None:
    assert set(found[2].values["s.time_kernel_"]) == {0, 1}
    assert "s.stream" not in found[2].values


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("return 1", {"t.type": "half", "t.size": 32, "a.queries": 63}),
        ("return 2", {"t.type": "half", "t.size": 64, "a.table": 4096, "t.kind": 1}),
        ("return 5", {"t.type": "single", "t.lse": 0}),
    ],
)
def test_a_site_is_aimed_at_with_what_its_path_allows(
    found: tuple[Conditions, Solver, Pools], statement: str, wanted: dict[str, int | str]
) -> None:
    conditions, solver, _ = found
    aim = solver.aim(conditions.path(TEXT.index(statement)))
    assert aim.problem == ""
    assert {name: allowed[-1] for name, allowed in aim.solved.items()} == wanted
    assert {name for name, _ in aim.flips} == set(wanted)


def test_fields_compared_with_each_other_are_solved_together(
    found: tuple[Conditions, Solver, Pools],
) -> None:
    conditions, solver, _ = found
    aim = solver.aim(conditions.path(TEXT.index("return 3")))
    (queries,), (keys,) = aim.solved["a.queries"], aim.solved["a.keys"]
    assert keys >= queries
    assert all(size % 8 == 0 for size in aim.solved["t.size"])


def test_a_path_that_contradicts_itself_is_reported(found: tuple[Conditions, Solver, Pools]) -> None:
    conditions, solver, _ = found
    aim = solver.aim(conditions.path(TEXT.index("return 4")))
    assert (aim.problem, aim.proved) == ("nothing satisfies its path (t.size < 7)", True)


@pytest.mark.parametrize(
    ("statement", "takers"),
    [
        ("return 6", []),  # 33 to 48 are left by the first
        ("return 7", ["return 1", "return 2"]),  # only both of them together take it
        ("return 8", []),
        ("return 9", []),  # a combination that one field alone does not decide
        ("return 11", []),
        ("return 12", ["return 10"]),  # a condition that is not understood is the same wherever it stands
    ],
)
def test_a_site_behind_others_is_aimed_clear_of_them_or_they_are_named(
    found: tuple[Conditions, Solver, Pools], statement: str, takers: list[str]
) -> None:
    conditions, solver, _ = found
    aim = solver.aim(conditions.path(TEXT.index(statement)))
    assert [TEXT[offset:].split(";")[0].strip("{ ") for offset in aim.takers] == takers
    assert aim.proved == bool(takers)
    assert bool(aim.clear) == (not takers)


def test_what_is_clear_of_earlier_sites_satisfies_none_of_their_paths(found: tuple[Conditions, Solver, Pools]) -> None:
    conditions, solver, _ = found
    for statement in ("return 6", "return 8", "return 9"):
        path = conditions.path(TEXT.index(statement))
        allowed = solver.aim(path).clear
        values = {name: some[0] for name, some in allowed.items()}
        assert all(conditions.atoms[number].holds(values) in (wanted, None) for number, wanted in path.steps)
        for link in path.earlier():
            assert not all(conditions.atoms[number].holds(values) == wanted for number, wanted in link.steps)


def test_every_combination_of_truths_has_a_value(found: tuple[Conditions, Solver, Pools]) -> None:
    conditions, _, values = found
    assert "t.size" in values.exact
    assert {n for n in values.values["t.size"] if isinstance(n, int) and n % 8 == 0 and 64 < n != 200}
    assert not {"a.queries", "a.keys"} & values.exact  # they are compared with each other
    with pytest.raises(NotSimple):
        representatives("a.keys", "number", conditions.atoms, [])


def test_bodies_are_cut_out_and_aliases_named() -> None:
    text, aliases = bodiless(
        "#include <x>\nusing trait_0 = int; struct s { int f() { return 1; } };\n"
        "template <> float f<trait_0>(int a) { if (a) { g('}'); } return 1; }\ntemplate <> void g<s>(int) { }\n"
    )
    assert aliases == ["trait_0"]
    assert "struct s { int f() { return 1; } };" in text
    assert "float f<trait_0>(int a) { __builtin_trap(); }" in text
    assert "void g<s>(int) { __builtin_trap(); }" in text
