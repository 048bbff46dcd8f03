"""Where flags come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ck_post_build.compile_db import CompileDatabase, FixedFlags
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags


def database(directory: Path, *commands: dict[str, object]) -> CompileDatabase:
    path = directory / "compile_commands.json"
    path.write_text(json.dumps(commands))
    return CompileDatabase(path)


def test_a_command_is_split_without_a_shell_and_stripped_of_compiler_source_and_output(tmp_path: Path) -> None:
    command = f"/opt/rocm/bin/hipcc -DA='a b' -DB=\\$(x) -Iinc --offload-arch=gfx942 -O3 -MD -MF a.d -o a.o -c {tmp_path}/a.cpp"
    found = database(tmp_path, {"file": "a.cpp", "directory": str(tmp_path), "command": command}).of(tmp_path / "a.cpp")
    assert found == Flags(("-DA=a b", "-DB=$(x)", f"-I{tmp_path}/inc", "-O3"), ("gfx942",))


def test_arguments_are_taken_as_they_are(tmp_path: Path) -> None:
    arguments = ["hipcc", "-DA=a 'b' \"c\" $d \\", "-c", "src/a b.cpp", "-o", "x"]
    found = database(tmp_path, {"file": "src/a b.cpp", "directory": str(tmp_path), "arguments": arguments})
    assert found.of(tmp_path / "src" / "a b.cpp") == Flags(("-DA=a 'b' \"c\" $d \\",), ())


def test_files_whose_commands_differ_in_their_name_share_the_splitting(tmp_path: Path) -> None:
    commands = [
        {
            "file": f"b_{n}.cpp",
            "directory": str(tmp_path),
            "command": f"hipcc -DNAME=b_{n}.cpp -O{n % 2} -c b_{n}.cpp -o b_{n}.cpp.o",
        }
        for n in range(6)
    ]
    found = database(tmp_path, *commands)
    assert [found.of(tmp_path / f"b_{n}.cpp").arguments for n in range(6)] == [
        (f"-DNAME=b_{n}.cpp", f"-O{n % 2}") for n in range(6)
    ]


def test_the_same_relative_name_in_two_directories_is_two_files(tmp_path: Path) -> None:
    found = database(
        tmp_path,
        *({"file": "a.cpp", "directory": str(tmp_path / d), "command": f"hipcc -D{d} a.cpp"} for d in ("x", "y")),
    )
    assert found.of(tmp_path / "x" / "a.cpp").arguments == ("-Dx",)
    assert found.of(tmp_path / "y" / "a.cpp").arguments == ("-Dy",)


def test_the_first_of_several_entries_for_a_file_counts(tmp_path: Path) -> None:
    found = database(
        tmp_path, *({"file": "a.cpp", "directory": str(tmp_path), "command": f"hipcc -D{d} a.cpp"} for d in ("X", "Y"))
    )
    assert found.of(tmp_path / "a.cpp").arguments == ("-DX",)


def test_links_and_dots_in_paths_name_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.cpp").write_text("")
    (tmp_path / "link").symlink_to("real")
    found = database(tmp_path, {"file": "link/../link/a.cpp", "directory": str(tmp_path), "command": "hipcc -DA a.cpp"})
    assert found.of(tmp_path / "real" / "a.cpp").arguments == ("-DA",)
    monkeypatch.chdir(tmp_path)
    assert found.of(Path("link/a.cpp")).arguments == ("-DA",)


def test_a_file_without_an_entry_is_an_error_that_names_both(tmp_path: Path) -> None:
    found = database(tmp_path)
    with pytest.raises(
        CkPostBuildError, match=r"/b\.cpp: the compile database .*compile_commands\.json has no entry.*--flags"
    ):
        found.of(tmp_path / "b.cpp")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'[{"directory": "."}]', b'[{"file": 3}]', b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_compile_database_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "compile_commands.json"
    path.write_bytes(content)
    with pytest.raises(CkPostBuildError, match=r"compile_commands\.json: this is no compile database"):
        CompileDatabase(path)


def test_an_unreadable_database_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CkPostBuildError, match=r"none\.json: cannot read the compile database: No such file"):
        CompileDatabase(tmp_path / "none.json")


def configured(directory: Path) -> Path:
    """Return a directory as CMake leaves it after configuring for Ninja: nothing is built."""
    build = directory / "build"
    build.mkdir()
    (build / "build.ninja").write_text(
        "rule CXX\n  command = hipcc $DEFINES $FLAGS -MD -MF $out.d -o $out -c $in\n  depfile = $out.d\n  deps = gcc\n"
        f'build a.o: CXX {directory}/a$ b.cpp\n  DEFINES = -DX=\\"q\\"\n  FLAGS = -O3 --offload-arch=gfx90a -I../inc\n'
        "build gen.cpp: phony\nrule CUSTOM\n  command = cd / && touch x\nbuild other: CUSTOM\n"
    )
    return build


def test_ninja_lists_the_commands_of_a_configured_directory(tmp_path: Path) -> None:
    build = configured(tmp_path)
    found = CompileDatabase(build)
    assert found.of(tmp_path / "a b.cpp") == Flags(('-DX="q"', "-O3", f"-I{build}/../inc"), ("gfx90a",))
    assert sorted(path.name for path in build.iterdir() if not path.name.startswith(".")) == ["build.ninja"]


def test_a_listed_database_in_the_directory_comes_first(tmp_path: Path) -> None:
    build = configured(tmp_path)
    database(build, {"file": str(tmp_path / "a b.cpp"), "command": "hipcc -DLISTED 'a b.cpp'"})
    assert CompileDatabase(build).of(tmp_path / "a b.cpp").arguments == ("-DLISTED",)


def test_a_directory_that_is_not_configured_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        CkPostBuildError, match=r"ninja cannot list its commands \(.*build\.ninja.*configured for Ninja"
    ):
        CompileDatabase(tmp_path)


def test_names_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    (build / "build.ninja").write_bytes(b"rule CXX\n  command = hipcc -c $in\nbuild a.o: CXX bl\xf6b.cpp\n")
    with pytest.raises(CkPostBuildError, match=r"/build: this is no compile database: Invalid UTF-8"):
        CompileDatabase(build)


@pytest.mark.parametrize(
    "command", ["hipcc -DA -c 'a b.cpp' -o x", "hipcc -DA -c a\\ b.cpp -o x", 'hipcc -DA -c "a b.cpp" -o x']
)
def test_a_source_whose_name_needs_quotes_is_no_flag(tmp_path: Path, command: str) -> None:
    found = database(tmp_path, {"file": "a b.cpp", "directory": str(tmp_path), "command": command})
    assert found.of(tmp_path / "a b.cpp") == Flags(("-DA",), ())


def test_a_source_that_is_listed_by_a_link_is_no_flag(tmp_path: Path) -> None:
    (tmp_path / "real.cpp").write_text("")
    (tmp_path / "link.cpp").symlink_to("real.cpp")
    found = database(tmp_path, {"file": "link.cpp", "directory": str(tmp_path), "command": "hipcc -DA -c link.cpp"})
    assert found.of(tmp_path / "real.cpp") == Flags(("-DA",), ())


def test_a_relative_directory_is_relative_to_the_database(tmp_path: Path) -> None:
    found = database(tmp_path, {"file": "a.cpp", "directory": "sub", "command": "hipcc -Iinc -c a.cpp"})
    assert found.of(tmp_path / "sub" / "a.cpp") == Flags((f"-I{tmp_path}/sub/inc",), ())


def test_a_string_serves_every_file() -> None:
    source = FixedFlags("-O3 --offload-arch=gfx942,gfx950 -c")
    assert source.of(Path("a.cpp")) == source.of(Path("b.cpp")) == Flags(("-O3",), ("gfx942", "gfx950"))
