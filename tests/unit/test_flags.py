"""Flags: splitting, joining, which of them travel, and relocation."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_post_build import flags
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags, HeaderTree
from ck_post_build.resources import resource_dir

DIRECTORY = Path("/build dir")
# What a command line can hold: any bytes but zero, undecodable ones as surrogates.
WORDS = st.lists(st.binary(max_size=12).filter(lambda b: b"\0" not in b).map(os.fsdecode))


def travelling(*arguments: str, sources: frozenset[str] = frozenset()) -> Flags:
    return flags.travelling(arguments, DIRECTORY, sources)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", []),
        ("  -O3\t-DA=1\n-DB ", ["-O3", "-DA=1", "-DB"]),
        ('\'-DA=a b\' "-DB=\\"x\\"" -DC=\\$HOME', ["-DA=a b", '-DB="x"', "-DC=$HOME"]),
        ("''", [""]),
        ("-D'A=$(touch x)'", ["-DA=$(touch x)"]),
    ],
)
def test_split_reads_quotes_and_runs_no_shell(text: str, arguments: list[str]) -> None:
    assert flags.split(text) == arguments


@pytest.mark.parametrize("text", ["-DA='x", '-DA="x', "-DA=\\"])
def test_unclosed_quote_is_an_error_that_shows_the_flags(text: str) -> None:
    with pytest.raises(CkPostBuildError, match=r"cannot split the flags .*-DA="):
        flags.split(text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-O3", "-I/a/b"], "-O3 -I/a/b"),
        (["-DA=a b"], "-DA=a\\ b"),
        (['-DB="x"', "-DC=$HOME"], '-DB=\\"x\\" -DC=\\$HOME'),
        (["-Iünï/@CK_JIT_ROOT@"], "-Iünï/@CK_JIT_ROOT@"),
        ([os.fsdecode(b"-I/\xff")], os.fsdecode(b"-I/\xff")),
        (["a\nb"], "a\\\nb"),
    ],
)
def test_join_escapes_what_could_be_taken_for_something_else(arguments: list[str], text: str) -> None:
    assert flags.join(arguments) == text


def by_backslash(text: str) -> list[str]:
    """Read flags as ck_jit_compile.sh documents them: blanks separate, a backslash makes the next byte ordinary."""
    words: list[str] = []
    word: str | None = None
    position = 0
    while position < len(text):
        character = text[position]
        if character in " \t\n":
            if word is not None:
                words.append(word)
            word = None
        else:
            if character == "\\":
                position += 1
                character = text[position]
            word = (word or "") + character
        position += 1
    return words if word is None else [*words, word]


@given(WORDS)
def test_joined_flags_split_into_the_same(arguments: list[str]) -> None:
    assert by_backslash(flags.join(arguments)) == [a for a in arguments if a]


@given(WORDS.map(lambda words: [w for w in words if w and "\n" not in w]))
def test_joined_flags_split_into_the_same_for_a_shell(arguments: list[str]) -> None:
    assert flags.split(flags.join(arguments)) == arguments


def test_the_compile_script_reads_joined_flags_as_they_were(tmp_path: Path) -> None:
    """One run of the real script with a compiler that prints its arguments, over every byte that a flag can hold."""
    arguments = [os.fsdecode(bytes([byte])) + "x" for byte in range(1, 256)]
    arguments += [
        "-DA=a b\tc\nd",
        "-DB=\"quoted\" 'single' $(touch pwned) `touch pwned` ; & | * ? ~ # !",
        "-D\\",
        "@CK_JIT_ROOT@/x",
    ]
    hipcc = tmp_path / "hipcc"
    hipcc.write_text('#!/bin/sh\nfor a; do printf "%s\\0" "$a"; done\n')
    hipcc.chmod(0o755)
    (tmp_path / "blob.cpp").write_text("")
    done = subprocess.run(
        [
            "bash",
            resource_dir("ck_jit_runtime") / "ck_jit_compile.sh",
            *("--blob-source", "blob.cpp", "--blob-flags", flags.join(arguments), "--output", "out.so"),
            *("--hipcc", hipcc, "--root", tmp_path),
        ],
        capture_output=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    seen = [os.fsdecode(word) for word in done.stdout.split(b"\0")]
    expected = [*arguments[:-1], f"{tmp_path}/x"]
    assert seen[: len(expected)] == expected
    assert not (tmp_path / "pwned").exists()


def test_what_belongs_to_the_build_does_not_travel() -> None:
    dropped = (
        "-c -o x.o -MD -MMD -MP -MF x.d -MT x.o -MQ x -MJ x.json -MFx.d -MTx -fvisibility=hidden -Wl,-z,now -S -E -M "
        "-fvisibility-inlines-hidden -fdiagnostics-color=always -fcolor-diagnostics -shared -fsyntax-only -Xlinker foo"
    )
    assert travelling(*dropped.split()) == Flags((), ())


def test_the_rest_travels_in_order() -> None:
    kept = "-O3 -DA -DA=2 -O2 -std=c++20 -fPIC -mllvm -amdgpu-x=true -Wno-a -Wall -fgpu-flush-denormals-to-zero -UA"
    assert travelling("-c", *kept.split(), "-MD") == Flags(tuple(kept.split()), ())


def test_source_and_output_are_not_flags() -> None:
    assert travelling("-O3", "x.cpp", "-o", "x.cpp.o", sources=frozenset({"x.cpp"})) == Flags(("-O3",), ())


def test_arches_are_taken_out_in_order_and_once() -> None:
    found = travelling("--offload-arch=gfx942", "-O3", "--offload-arch=gfx950,gfx942", "--offload-arch=gfx90a:xnack-")
    assert found == Flags(("-O3",), ("gfx942", "gfx950", "gfx90a:xnack-"))


@pytest.mark.parametrize(
    ("given_flags", "kept"),
    [
        (["-Iinclude"], ["-I/build dir/include"]),
        (["-I", "include"], ["-I", "/build dir/include"]),
        (["-I."], ["-I/build dir"]),
        (["-I../x"], ["-I/build dir/../x"]),
        (["-isystem", "a b"], ["-isystem", "/build dir/a b"]),
        (["-isystema"], ["-isystem/build dir/a"]),
        (["-iquote/abs"], ["-iquote/abs"]),
        (["-include", "x.h"], ["-include", "/build dir/x.h"]),
        (["-I=/sysroot"], ["-I=/sysroot"]),
    ],
)
def test_relative_paths_become_absolute(given_flags: list[str], kept: list[str]) -> None:
    assert travelling(*given_flags).arguments == tuple(kept)


def test_headers_move_under_the_root_and_the_compilers_stay(tmp_path: Path) -> None:
    rocm, ours, other = tmp_path / "rocm", tmp_path / "in clude", tmp_path / "x" / "in clude"
    for directory in (rocm / "include", ours, other):
        directory.mkdir(parents=True)
    (ours / "a.h").write_text("a")
    (other / "a.h").write_text("b")
    tree = HeaderTree(rocm)
    relocated, used = tree.relocate(
        ("-O3", f"-I{ours}", "-isystem", str(other), f"-I{rocm}/include", "-DPATH=/not/a/header", f"-I{ours}")
    )
    first, second = tree.places[ours], tree.places[other]
    assert first != second
    assert first.startswith("include/in clude_")
    assert relocated == (
        *("-O3", f"-I@CK_JIT_ROOT@/{first}", "-isystem", f"@CK_JIT_ROOT@/{second}"),
        *(f"-I{rocm}/include", "-DPATH=/not/a/header", f"-I@CK_JIT_ROOT@/{first}"),
    )
    assert used == (ours, other, ours)


def test_places_depend_on_content_not_on_the_build_directory(tmp_path: Path) -> None:
    places = []
    for name in ("one", "two"):
        include = tmp_path / name / "include"
        include.mkdir(parents=True)
        (include / "a.h").write_text("same")
        places.append(HeaderTree(None).relocate((f"-I{include}",))[0])
    assert places[0] == places[1]


def test_missing_header_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CkPostBuildError, match=r"/none: the flags name this header directory, and it does not exist"):
        HeaderTree(None).relocate((f"-I{tmp_path}/none",))


def test_relative_flags_of_a_string_are_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ck_post_build.compile_db import FixedFlags

    monkeypatch.chdir(tmp_path)
    source = FixedFlags("-Iinclude " + shlex.quote("-DA=a b"))
    assert source.of(Path("any.cpp")) == Flags((f"-I{tmp_path}/include", "-DA=a b"), ())
