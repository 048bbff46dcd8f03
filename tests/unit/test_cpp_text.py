"""Pieces of C++ text, against a real compiler."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ck_post_build.blob_index import Parameter
from ck_post_build.cpp_text import by_reference, declare, literal, parameter_names

TEXTS = [
    "",
    "plain",
    'quote " backslash \\ both \\"',
    "??= ??/ trigraphs",
    "tab\tline\nreturn\r bell\a null-like \\0",
    "digits after escapes: \x01" + "7" * 4 + "\x7f8ä9",
    "ünï €",
    os.fsdecode(bytes(range(1, 256))),
    'R"x( )x"',
    "%s %n",
]


def printed(texts: list[str], directory: Path) -> list[str]:
    """Return the texts as a program prints that holds them as literals."""
    source = directory / "texts.cpp"
    rows = ",\n".join(literal(text) for text in texts)
    source.write_text(
        f"#include <cstdio>\nconst char* const t[] = {{\n{rows}}};\n"
        "int main() { for (auto x : t) std::fwrite(x, 1, __builtin_strlen(x) + 1, stdout); }\n",
        encoding="ascii",
    )
    program = directory / "texts"
    subprocess.run(["clang++-19", "-std=c++17", "-Wall", "-Werror", source, "-o", program], check=True, timeout=120)
    output = subprocess.run([program], capture_output=True, check=True, timeout=60).stdout
    return [os.fsdecode(text) for text in output.split(b"\0")[:-1]]


def test_a_program_prints_its_literals_as_they_were(tmp_path: Path) -> None:
    random: list[str] = []

    @settings(max_examples=200, database=None)
    @given(st.binary(max_size=40).filter(lambda b: b"\0" not in b))
    def collect(raw: bytes) -> None:
        random.append(os.fsdecode(raw))

    collect()
    texts = [*TEXTS, *random]
    assert printed(texts, tmp_path) == texts


@given(st.text())
def test_a_literal_is_one_line_of_ascii(text: str) -> None:
    found = literal("".join(c for c in text if not 0xD800 <= ord(c) < 0xDC80 and not 0xDCFF < ord(c) < 0xE000))
    assert found.isascii()
    assert found.isprintable()
    assert "??" not in found


@pytest.mark.parametrize(
    ("type_", "taken"),
    [
        *(("int", "int"), ("const int", "const int"), ("unsigned long", "unsigned long"), ("bool", "bool")),
        *(("enum E", "enum E"), ("args *", "args *"), ("const args &", "const args &"), ("args &&", "args &&")),
        *(("void *const", "void *const"), ("args", "const args &"), ("const args", "const args &")),
        *(("std::basic_string<char>", "const std::basic_string<char> &"), ("ns::args<3>", "const ns::args<3> &")),
        *(
            ("float (*)(int)", "float (*)(int)"),
            ("args (*)(int)", "args (*)(int)"),
            ("args *__restrict", "args *__restrict"),
        ),
        ("std::function<args (*)(int)>", "const std::function<args (*)(int)> &"),
    ],
)
def test_classes_go_by_reference_and_the_rest_as_it_is(type_: str, taken: str) -> None:
    assert by_reference(type_) == taken


@pytest.mark.parametrize(
    ("type_", "declaration"),
    [
        ("int", "int x"),
        ("args &", "args &x"),
        ("args *", "args *x"),
        ("void (*)(int)", "void (*x)(int)"),
        ("const args &", "const args &x"),
        ("void (&)(int)", "void (&x)(int)"),
        ("int (&)[3]", "int (&x)[3]"),
        ("int (*)[3]", "int (*x)[3]"),
        ("void (*const)(int)", "void (*const x)(int)"),
        ("void (*(*)(int))(float)", "void (*(*x)(int))(float)"),
        ("std::function<void (int)>", "std::function<void (int)> x"),
        ("void (ns::s::*)(int)", "void (ns::s::*x)(int)"),
        ("std::function<void (*)(int)>", "std::function<void (*)(int)> x"),
        ("void *const", "void *const x"),
    ],
)
def test_declarations_put_the_name_where_c_wants_it(type_: str, declaration: str) -> None:
    assert declare(type_, "x") == declaration


def test_parameters_without_a_name_get_one() -> None:
    assert parameter_names([Parameter("int", "a"), Parameter("int", ""), Parameter("int", "")]) == [
        "a",
        "ck_jit_1",
        "ck_jit_2",
    ]
