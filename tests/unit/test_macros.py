"""Which macros name a template, directly or not."""

from __future__ import annotations

from ck_post_build.macros import macros_in, macros_naming

_TEXT = r"""
#define CALL(T) fmha_fwd_<T>(s, a)
#  define TWICE(T) \
    CALL(T) + \
    CALL(T)
#define TEXT "CALL(x)" /* fmha_fwd_ */ // CALL
#define OTHER(x) x
#undef CALL
#define EMPTY
"""


def test_definitions_with_their_words() -> None:
    macros = macros_in([_TEXT, "#define CALL(T) again\r\n"])
    assert macros["CALL"] == {"T", "fmha_fwd_", "s", "a", "again"}
    assert macros["TWICE"] == {"T", "CALL"}
    assert macros["TEXT"] == set()
    assert macros["EMPTY"] == set()


def test_macros_that_name_a_template_through_each_other() -> None:
    macros = macros_in([_TEXT])
    assert macros_naming(macros, {"fmha_fwd_"}) == {"CALL", "TWICE"}
    assert macros_naming(macros, {"TWICE"}) == set()
    assert macros_naming(macros_in(["#define A B\n#define B A fmha_\n"]), {"fmha_"}) == {"A", "B"}
