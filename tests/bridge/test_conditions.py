"""Preconditions: what they mean in Python, and what is refused because three languages could not agree on it."""

from __future__ import annotations

import math

import pytest

from ck_post_build.bridge.conditions import ConditionError, parse_condition
from ck_post_build.bridge.ctypes_model import VOID, CType

TYPES = {
    "n": CType("integer", 4, True),
    "m": CType("integer", 4, True),
    "big": CType("integer", 8, False),
    "x": CType("float", 4),
    "p": CType("pointer", 8, target=VOID),
    "flag": CType("bool", 1),
    "s": CType("struct", 8, name="pair"),
}


@pytest.mark.parametrize(
    ("text", "values", "met"),
    [
        ("n == 1", {"n": 1}, True),
        ("n == 1", {"n": 2}, False),
        ("1 <= n <= 8 or flag", {"n": 9, "flag": True}, True),
        ("1 <= n <= 8 or flag", {"n": 9, "flag": False}, False),
        ("not (n == 1 or m == 2) and flag", {"n": 0, "m": 0, "flag": True}, True),
        ("n >= 2 * m + 3", {"n": 7, "m": 2}, True),
        ("n - (m - 2) == 4", {"n": 7, "m": 5}, True),
        ("n % 8 == 0", {"n": -16}, True),
        ("n % 8 != 0", {"n": -16}, False),
        ("(n + m) * 3 == -big + 12", {"n": 1, "m": 1, "big": 6}, True),
        ("aligned(p, 16)", {"p": 32}, True),
        ("aligned(p, 16)", {"p": 40}, False),
        ("nonnull(p)", {"p": 0}, False),
        ("finite(x) and x < 1", {"x": 0.5}, True),
        ("finite(x)", {"x": math.inf}, False),
        ("x * 1 == 1", {}, None),
    ],
)
def test_meaning(text: str, values: dict[str, object], met: bool | None) -> None:
    if met is None:
        with pytest.raises(ConditionError, match="of kind float, expected integer"):
            parse_condition(text, TYPES, set())
        return
    rendered = parse_condition(text, TYPES, set()).render("python")
    assert eval(rendered, {"math": math, **values}) is met


def test_each_language_is_written_in_its_own_words() -> None:
    condition = parse_condition("aligned(p, 16) and (1 <= n <= 8 or not finite(x)) and x > 1", TYPES, set())
    assert condition.names() == ["n", "x", "p"]
    assert condition.render("python") == "p % 16 == 0 and (1 <= n <= 8 or not math.isfinite(x)) and x > 1.0"
    assert condition.render("rust") == (
        "p as usize & (16 - 1) == 0 && ((1 <= i128::from(n) && i128::from(n) <= 8) || !x.is_finite()) "
        "&& f64::from(x) > 1.0"
    )
    assert condition.render("cpp") == (
        "detail::aligned(p, 16) && ((detail::wide(1) <= detail::wide(n) && detail::wide(n) <= detail::wide(8)) "
        "|| !std::isfinite(x)) && static_cast<double>(x) > 1.0"
    )


@pytest.mark.parametrize(
    "earlier", ["m >= 1", "m > 0", "m != 0", "m == 64", "1 <= m", "0 < m <= 8", "flag and m >= 2", "8 >= m > 0"]
)
def test_a_divisor_may_be_known_from_an_earlier_condition(earlier: str) -> None:
    nonzero: set[str] = set()
    parse_condition(earlier, TYPES, nonzero)
    assert parse_condition("n % m == 0", TYPES, nonzero).render("rust") == "i128::from(n) % i128::from(m) == 0"


@pytest.mark.parametrize(
    "earlier", ["m >= 0", "m > -1", "m != 1", "m == 0", "m <= 8", "flag or m >= 1", "n >= 1", "-1 < m"]
)
def test_a_divisor_that_may_be_zero_is_refused(earlier: str) -> None:
    nonzero: set[str] = set()
    parse_condition(earlier, TYPES, nonzero)
    with pytest.raises(ConditionError, match="'m' may be zero here: require m >= 1 before"):
        parse_condition("n % m == 0", TYPES, nonzero)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n ==", "is not an expression"),
        ("n + 1", "is a value, not a condition"),
        ("1 == 1", "speaks of no parameter; there are n, m, big"),
        ("k == 1", "there is no parameter 'k'; there are n, m, big"),
        ("n == x", "compares an integer with a float"),
        ("n / 2 == 1", r"only \+, - and \*"),
        ("n ** 2 == 1", r"only \+, - and \*"),
        ("n % 8 == 1", "compare a remainder with 0 only"),
        ("n % 0 == 0", "'0' may be zero here"),
        ("0 == n % 8", "compare a remainder with 0 only"),
        ("n in (1, 2)", "this comparison is not part of the language"),
        ("len(p) == 1", "the tests are aligned"),
        ("aligned(p, 12)", "an alignment is a power of two"),
        ("aligned(n, 16)", "'n' is of kind integer, expected pointer"),
        ("aligned(p)", "the tests are aligned"),
        ("finite(n)", "'n' is of kind integer, expected float"),
        ("p == 0", "'p' is of kind pointer"),
        ("n", "is a value, not a condition"),
        ("s == 1", "parameter 's' is a struct"),
        ("n == True", "'True' is not a number"),
        ("n == 'a'", "is not a number"),
        ("n if flag else m", "is not part of the language"),
        ("big * big * n == 0", "may not fit into 128 bits"),
        ("n == 9223372036854775808", "is no 64-bit integer"),
        ("~n == 0", "this operator is not part of the language"),
        ("n.real == 0", "is not part of the language"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        parse_condition(text, TYPES, set())
