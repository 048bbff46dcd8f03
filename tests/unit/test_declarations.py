"""Cutting a blob into declarations: a lexer and a bracket matcher."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ck_post_build.declarations import BlobText, Declaration, Directive, cut, identifiers, introduced_name
from ck_post_build.errors import CkPostBuildError

BLOB = Path("blob.cpp")
HEAD = "template <>\nfloat f_<trait_0, gfx9>(const S& s, args a)\n"


def declarations(text: str) -> list[str]:
    return [item.text for item in cut(text, BLOB).items if isinstance(item, Declaration)]


def heads(text: str) -> list[tuple[str, str | None, str, str, str]]:
    found = [s.head for s in cut(text, BLOB).specialisations]
    return [(h.template, h.arguments, h.result, h.parameters, h.trailer) for h in found]


def test_declarations_end_at_their_semicolon_or_body() -> None:
    text = "using a = b<1>;\nstruct s { int x; };\nint f() { return 1; }\nint g();\nint v = 3, w{4};\n"
    assert declarations(text) == ["using a = b<1>", "struct s { int x; }", "int f()", "int g()", "int v = 3, w{4}"]


def test_bodies_are_left_out_whatever_is_in_them() -> None:
    body = """{
        const char* a = "}"; char b = '}'; char c = '\\''; /* } */ // }
        auto d = R"x(})" } )x"; int e = 1'000'000; if (a[0] == '"') { }
        #define BRACE }
        #if 0
        #endif
    }"""
    assert declarations(f"{HEAD}{body}\nint after;") == [HEAD.strip(), "int after"]


@pytest.mark.parametrize(
    "comment",
    ["// ; {\n", "/* ; { \n */", "// continued \\\n ; {\n", "/**/", "/*/ ; */"],
)
def test_comments_are_no_declarations(comment: str) -> None:
    assert [text.split() for text in declarations(f"int {comment} a;{comment}int b;{comment}")] == [
        ["int", "a"],
        ["int", "b"],
    ]


@pytest.mark.parametrize(
    "value",
    [
        'R"(;{)"',
        'R"abc(;{)")abc"',
        'u8R"(;{)"',
        'LR"(;{)"',
        '"\\";{"',
        "';'",
        "u';'",
        "'\\x7b'",
        "0xF'F",
        "1'0;int c = '{'",
        'L"{"',
    ],
)
def test_texts_characters_and_separators_end_no_declaration(value: str) -> None:
    assert declarations(f"int a = {value}; int b;")[-1] == "int b"


def test_directives_stay_where_they_are() -> None:
    text = "#pragma once\n#include <a>\n#if A \\\n  && B // }\nint a;\n#else /* {\n { */\nint b;\n#endif\n#define X(a) { a\n"
    items = cut(text, BLOB).items
    assert [item.text for item in items] == [
        *("#pragma once", "#if A \\\n  && B // }", "int a", "#else /* {\n { */", "int b", "#endif", "#define X(a) { a"),
    ]
    assert [isinstance(item, Directive) for item in items] == [True, True, False, True, False, True, True]
    assert [item.ordinal for item in items] == sorted(item.ordinal for item in items)


def test_prologue_is_the_includes() -> None:
    assert cut('#include "a.h"\n#include <b>\nint a;\n', BLOB).prologue == ('#include "a.h"', "#include <b>")


def test_prologue_keeps_conditions_around_includes() -> None:
    text = "#if A\n#include <a>\n#else\n#include <b>\n#endif\n#include <c>\nint a;\n"
    assert cut(text, BLOB).prologue == ("#if A", "#include <a>", "#else", "#include <b>", "#endif", "#include <c>")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_change_nothing(newline: str, mark: str) -> None:
    text = mark + f"#include <a>\nusing t = x<1>;\n{HEAD}{{ return 1; }}\n".replace("\n", newline)
    pieces = cut(text, BLOB)
    assert pieces.prologue == ("#include <a>",)
    assert [item.text.split() for item in pieces.items] == [["using", "t", "=", "x<1>"], HEAD.split()]


def test_a_byte_order_mark_before_a_declaration_is_no_part_of_it() -> None:
    assert declarations("\xef\xbb\xbfint a;") == ["int a"]


def test_named_namespaces_are_kept_and_unnamed_ones_left_out() -> None:
    text = """
    namespace a { namespace b::c { int x; } namespace { int y; } }
    inline namespace v1 { int z; }
    extern "C" { int w; } extern "C++" int u;
    namespace alias = a::b;
    """
    found = [(item.text, item.namespaces) for item in cut(text, BLOB).items if isinstance(item, Declaration)]
    assert found == [
        *(("int x", ("a", "b::c")), ("int y", ("a",)), ("int z", ("v1",)), ("int w", ()), ('extern "C++" int u', ())),
        ("namespace alias = a::b", ()),
    ]


def test_specialisation_heads_come_in_pieces() -> None:
    assert heads(HEAD + "{ }") == [("f_", "trait_0, gfx9", "float", "(const S& s, args a)", "")]


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("template<> void f_<a<b<1>>>(int) {}", ("f_", "a<b<1>>", "void", "(int)", "")),
        ("template <> void f_<(8 > 0), (1 < 2)>() {}", ("f_", "(8 > 0), (1 < 2)", "void", "()", "")),
        (
            "template <> std::pair<int, x<2>> n::m::f_<t>(a<int(*)(int)> b) {}",
            ("n::m::f_", "t", "std::pair<int, x<2>>", "(a<int(*)(int)> b)", ""),
        ),
        ("template <> auto f_<t>(int a) -> float { return 1; }", ("f_", "t", "auto", "(int a)", "-> float")),
        ("template <> bool f_<t>() noexcept { return true; }", ("f_", "t", "bool", "()", "noexcept")),
        ("template <> [[nodiscard]] inline static bool f_<t>() {}", ("f_", "t", "bool", "()", "")),
        ("template <> __attribute__((noinline)) int* f_<t>(int) {}", ("f_", "t", "int*", "(int)", "")),
        ("template <> decltype(g(1)) f_<t>(int) {}", ("f_", "t", "decltype(g(1))", "(int)", "")),
        ("template <> void f_(args<1>) {}", ("f_", None, "void", "(args<1>)", "")),
        ("template <> __host__ float f_<sizeof(int[3])>() {}", ("f_", "sizeof(int[3])", "float", "()", "")),
        ("template float f_<t, gfx9>(const S&);", ("f_", "t, gfx9", "float", "(const S&)", "")),
        ("extern template float f_<t>(int);", None),
        ("template <typename T> void f_(T) {}", None),
        ("template <> struct s<int> { void f(); };", None),
        ("template struct s<int>;", None),
        ("template <> int v<int> = 3;", None),
        ("void f_(int) {}", None),
    ],
)
def test_what_is_a_specialisation_of_a_function(text: str, head: tuple[str, str | None, str, str, str] | None) -> None:
    assert heads(text) == ([] if head is None else [head])


def test_nested_templates_and_default_initialisers_are_types_not_bodies() -> None:
    text = "template <bool A, int N = (3 > 2)>\nstruct s { template <class T> void f(T) { } int x = 1; };\nint after;"
    assert len(declarations(text)) == 2
    assert declarations(text)[-1] == "int after"


def test_braces_in_a_parameter_list_are_no_body() -> None:
    text = "float f(args a = {}, int b = int{3}) { }\nauto v(g([](int) { return 1; }));\nint after;"
    assert [found.split("(")[0] for found in declarations(text)] == ["float f", "auto v", "int after"]


def test_a_template_of_templates_is_a_function_all_the_same() -> None:
    function, type_ = (
        "template <template <typename> class T>\nvoid f(T<int>)",
        "template <template <class> class T> struct s { void g(); }",
    )
    assert declarations(f"{function} {{ }}\n{type_};") == [function, type_]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + "{\n  if (a) {\n", 4, "truncated"),
        ("int a;\nusing b = c", 2, "truncated"),
        ("namespace a {\nint b;\n\n", 2, "truncated"),
        ("int a;\n}\n", 2, "closes that was never opened"),
    ],
)
def test_brackets_that_do_not_match_are_an_error_with_file_and_line(text: str, line: int, message: str) -> None:
    with pytest.raises(CkPostBuildError, match=rf"^blob\.cpp:{line}: .*{message}"):
        cut(text, BLOB)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("using a = b<c>", "a"),
        ("using a [[maybe_unused]] = b", "a"),
        ("template <int N> using a = b<N>", "a"),
        ("using n::a", "a"),
        ("using namespace n", None),
        ("using enum n::E", None),
        ("struct a { int b; }", "a"),
        ("struct alignas(16) a {}", "a"),
        ("enum class a : int { x }", "a"),
        ("enum a { x }", "a"),
        ("template <int N> struct a {}", "a"),
        ("typedef b<c> a", "a"),
        ("constexpr int a = 3", "a"),
        ("constexpr int a{3}", "a"),
        ("constexpr bool a[2] = {true}", "a"),
        ("int a", "a"),
    ],
)
def test_introduced_names(text: str, name: str | None) -> None:
    assert introduced_name(Declaration(text, 0, (), 0)) == name


def test_identifiers() -> None:
    assert identifiers("a::b_1<c, 3>(d)") == {"a", "b_1", "c", "d"}


PIECES = st.sampled_from(
    [
        *(
            "{",
            "}",
            "(",
            ")",
            "<",
            ">",
            ";",
            ",",
            "[",
            "]",
            "'",
            '"',
            "\\",
            "\n",
            "\r\n",
            "#",
            "/*",
            "*/",
            "//",
            'R"(',
            ')"',
            "=",
            "->",
        ),
        *(
            "template <>",
            "template",
            "using a = b",
            "namespace n",
            "struct s",
            "#if A",
            "#endif",
            "#include <x>",
            "#define M",
            "f_",
        ),
        *(
            "1'0",
            "operator()",
            "\xef\xbb\xbf",
            " ",
            "::",
            "decltype",
            "noexcept",
            'extern "C"',
            "\x00",
            "ü",
            "template <> void f_<t>()",
        ),
    ]
)


@settings(max_examples=400, deadline=2000)
@given(st.one_of(st.lists(PIECES, max_size=60).map("".join), st.text(max_size=200)))
@example("template<><(")
@example("#" * 50 + "/*")
@example("'" * 99)
def test_any_text_is_cut_or_refused_with_a_message(text: str) -> None:
    try:
        pieces = cut(text, BLOB)
    except CkPostBuildError as error:
        assert str(error).startswith("blob.cpp:")
    else:
        assert isinstance(pieces, BlobText)
        for item in pieces.items:
            if isinstance(item, Declaration):
                introduced_name(item)


def test_a_large_blob_takes_no_quadratic_time() -> None:
    many = (
        "".join(f"using t{n} = x<{n}>;\n" for n in range(20_000)) + "#" * 20_000 + "\n" + "int a" + "<" * 20_000 + ";"
    )
    assert len(declarations(many)) == 20_001
