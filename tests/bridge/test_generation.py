"""What ``ck-post-build bridge`` accepts, what it writes and what it refuses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ck_post_build.bridge.command import bridge_command, generate
from ck_post_build.errors import CkPostBuildError
from tests.bridge.conftest import STANDIN, compile_library, run

GOLDEN = Path(__file__).parent / "golden"
EXAMPLE = Path(__file__).parents[2] / "examples" / "gdn"
Edit = Callable[..., Path]


@pytest.fixture
def edited(tmp_path: Path) -> Edit:
    """Copy the stand-in's spec, header and source with one of them changed; return the spec."""

    def edit(name: str = "", old: str = "", new: str = "") -> Path:
        for source in ("standin.toml", "standin.h", "standin.c"):
            text = (STANDIN / source).read_text()
            if source == name:
                assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
                text = text.replace(old, new)
            (tmp_path / source).write_text(text)
        return tmp_path / "standin.toml"

    return edit


def test_the_text_is_the_recorded_one(tmp_path: Path) -> None:
    """To record it again: ck-post-build bridge tests/bridge/standin/standin.toml -o tests/bridge/golden"""
    files, _ = generate(STANDIN / "standin.toml", tmp_path)
    assert [f.name for f in files] == ["standin.rs", "standin.hpp", "standin.py", "standin_abi.c"]
    for file in files:
        assert file.read_text() == (GOLDEN / file.name).read_text(), f"{file.name} differs from tests/bridge/golden"


def test_the_text_depends_on_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ck_post_build.bridge", str(STANDIN / "standin.toml"), "-o", str(tmp_path / "out")]
    env = {**os.environ, "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    subprocess.run(command, check=True, cwd=tmp_path, env=env, capture_output=True)
    for file in GOLDEN.iterdir():
        assert (tmp_path / "out" / file.name).read_bytes() == file.read_bytes()


def test_an_unchanged_file_is_not_touched(tmp_path: Path) -> None:
    files, _ = generate(STANDIN / "standin.toml", tmp_path)
    for file in files:
        os.utime(file, (1, 1))
    generate(STANDIN / "standin.toml", tmp_path)
    assert all(file.stat().st_mtime == 1 for file in files)
    assert not [f for f in tmp_path.iterdir() if f not in files]  # no temporary file left


def test_the_python_bridge_satisfies_mypy_and_ruff(tmp_path: Path) -> None:
    generate(STANDIN / "standin.toml", tmp_path)
    pytest.importorskip("mypy")
    run(sys.executable, "-m", "mypy", "--strict", "--no-incremental", tmp_path / "standin.py")
    settings = Path(__file__).parents[2] / "pyproject.toml"
    run(sys.executable, "-m", "ruff", "check", "--no-cache", "--config", settings, tmp_path / "standin.py")


def test_the_example_declares_what_the_reference_declares(tmp_path: Path) -> None:
    """Four pointers, a float, eight ints and a stream, in this order, and an int back."""
    generate(EXAMPLE / "gdn.toml", tmp_path)
    text = (tmp_path / "gdn.rs").read_text()
    types = ["*mut c_void"] * 4 + ["f32"] + ["i32"] * 8 + ["*mut c_void"]
    assert f'AtlasGdnPrefillPackedManagedFn = unsafe extern "C" fn({", ".join(types)}) -> i32;' in text
    assert 'AtlasGdnLoadFn = unsafe extern "C" fn();' in text
    assert 'var_os("ATLAS_GDN_LIB")' in text and 'var_os("ATLAS_GDN_FLASHINFER")' in text


# The library against the header.


def build(spec: Path, *flags: str, name: str = "standin.c") -> Path:
    """Compile the sources beside `spec` and the record that its bridge brings."""
    directory = spec.parent
    generate(spec, directory / "bridge")
    sources = [directory / name, directory / "bridge" / "standin_abi.c"]
    return compile_library(directory / "libstandin.so", sources, f"-I{directory}", *flags)


def test_a_matching_library_is_reported_as_compared(edited: Edit) -> None:
    spec = edited()
    library = build(spec)
    report = generate(spec, spec.parent / "bridge", library)[1]
    assert report is not None
    names = {"standin_load", "standin_sum", "standin_fail", "standin_loads", "standin_reset"}
    assert set(report.signatures) == names and report.unseen == [] and report.record
    run("strip", "--strip-debug", library)
    report = generate(spec, spec.parent / "bridge", library)[1]
    assert report is not None and report.signatures == [] and set(report.unseen) == names


@pytest.mark.parametrize("compiler", ["g++", "clang-19"])
def test_other_compilers_debug_information_is_read(edited: Edit, tmp_path: Path, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    spec = edited()
    build(spec)
    language = ["-x", "c++", "-fpermissive", "-w"] if compiler == "g++" else []
    source = spec.parent / "standin.c"
    if compiler == "g++":
        source.write_text(source.read_text().replace("<stdatomic.h>", "<atomic>\nusing namespace std;"))
    library = tmp_path / "libother.so"
    record = spec.parent / "bridge" / "standin_abi.c"
    flags = [*language, "-g", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", f"-I{spec.parent}"]
    run(compiler, *flags, source, record, "-o", library)
    report = generate(spec, spec.parent / "bridge", library)[1]
    assert report is not None and len(report.signatures) == 5 and report.unseen == []


WRONG_SIGNATURES = {
    # what the library's own header says instead: what the message shows of both sides
    ("standin_fail(int code)", "standin_fail(int code, int more)"): (
        "int32 standin_fail(int32 code)",
        "int32 standin_fail(int32 code, int32 more)",
    ),
    ("standin_fail(int code)", "standin_fail(long code)"): (
        "int32 standin_fail(int32 code)",
        "int32 standin_fail(int64 code)",
    ),
    ("standin_fail(int code)", "standin_fail(unsigned code)"): (
        "int32 standin_fail(int32 code)",
        "int32 standin_fail(uint32 code)",
    ),
    ("int64_t standin_loads", "int32_t standin_loads"): ("int64 standin_loads()", "int32 standin_loads()"),
    ("float scale, bool twice", "bool twice, float scale"): (
        "uint64 columns, float32 scale, bool twice, void* stream)",
        "uint64 columns, bool twice, float32 scale, struct standin_handle* stream)",
    ),
    ("float *result,", "double *result,"): ("float32* result", "float64* result"),
    ("int standin_load(void)", "void standin_load(void)"): ("int32 standin_load()", "void standin_load()"),
}


@pytest.mark.parametrize("change", WRONG_SIGNATURES, ids=lambda change: change[1])
def test_a_library_with_another_signature_is_an_error_that_shows_both(
    edited: Edit, tmp_path: Path, change: tuple[str, str]
) -> None:
    spec = edited()
    build(spec)
    for name in ("standin.h", "standin.c"):  # what the library is built from
        file = spec.parent / name
        text = file.read_text()
        assert change[0] in text
        file.write_text(
            text.replace(*change).replace("return STANDIN_OK;\n#endif\n}\n\n#ifndef", "#endif\n}\n\n#ifndef")
        )
    library = tmp_path / "libwrong.so"
    compile_library(
        library, [spec.parent / "standin.c", spec.parent / "bridge" / "standin_abi.c"], f"-I{spec.parent}", "-w"
    )
    (tmp_path / "out").mkdir()
    with pytest.raises(CkPostBuildError, match="the library does not match the header") as caught:
        generate(STANDIN / "standin.toml", tmp_path / "out", library)
    ours, theirs = WRONG_SIGNATURES[change]
    header_line, library_line = re.findall(r"  (header|library)[^:]*(?::\d+\))?: (.*)", str(caught.value))
    assert ours in header_line[1]
    assert theirs.replace("struct standin_handle*", "void*") in library_line[1].replace(
        "struct standin_handle*", "void*"
    )
    assert list((tmp_path / "out").iterdir()) == []  # nothing written


def test_a_struct_of_another_layout_is_an_error_that_shows_both(edited: Edit, tmp_path: Path) -> None:
    spec = edited("standin.h", "    float low, high;", "    float high, low;")
    library = build(spec)
    with pytest.raises(CkPostBuildError) as caught:
        generate(STANDIN / "standin.toml", tmp_path / "out", library)
    assert "header: low@0 float32, high@4 float32" in str(caught.value)
    assert "library: high@0 float32, low@4 float32" in str(caught.value)


def test_a_library_that_lacks_something_is_an_error(edited: Edit, tmp_path: Path) -> None:
    spec = edited()
    library = build(spec, "-DWITHOUT_SUM")
    with pytest.raises(CkPostBuildError, match=r"does not export standin_sum; the header declares"):
        generate(spec, tmp_path / "out", library)
    library = build(spec, "-DEXPORT=")  # there, but hidden
    with pytest.raises(CkPostBuildError, match=r"does not export"):
        generate(spec, tmp_path / "out", library)
    library = compile_library(tmp_path / "libbare.so", [spec.parent / "standin.c"], f"-I{spec.parent}")
    with pytest.raises(
        CkPostBuildError, match=r"exports no standin_abi, which the spec requires. Compile standin_abi.c"
    ):
        generate(spec, tmp_path / "out", library)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text"])
def test_a_file_that_is_no_library_is_an_error(edited: Edit, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(CkPostBuildError, match="pyelftools can read"):
        generate(edited(), tmp_path / "out", tmp_path / "file")
    with pytest.raises(CkPostBuildError, match="cannot read the library: No such file"):
        generate(edited(), tmp_path / "out", tmp_path / "none")
    with pytest.raises(CkPostBuildError, match="not a shared library"):
        generate(edited(), tmp_path / "out", Path(run("gcc", "-print-file-name=crti.o").stdout.strip()))


# The header and the spec.

WRONG_HEADERS = [
    (
        "int standin_fail(int code);",
        "int standin_fail(int code",
        r"standin.h:\d+: the header does not compile as C: .*",
    ),
    (
        "int standin_fail(int code);",
        "int standin_fail(int code, ...);",
        "standin.h:41: .* variable number of arguments",
    ),
    ("int standin_fail(int code);", "int standin_fail(void (*call)(int));", "standin.h:41: a callback cannot cross"),
    ("int standin_fail(int code);", "int standin_fail();", r"standin.h:41: standin_fail\(\) declares no parameters"),
    ("int standin_fail(int code);", "int standin_fail(int match);", "standin.h:41: parameter 'match' .* reserved word"),
    ("int standin_fail(int code);", "int standin_fail(long double x);", "standin.h:41: type long double cannot cross"),
    (
        "int standin_fail(int code);",
        "long standin_fail(int code);",
        r"standin.toml:43: standin_fail returns int64, .*status",
    ),
    ("int standin_fail(int code);", "", r"standin.toml:43: standin.h declares no function standin_fail"),
    ("int standin_load(void);", "int standin_load(int x);", "standin.toml:25: the load hook takes no argument"),
    ("    float low, high;", "    union { float low; int high; } u;", "is a union, which has no one layout"),
    ("    float low, high;", "    unsigned low : 3;", "standin.h:16: standin_range.low is a bit-field"),
    ("enum standin_status {", "enum other_status {", "standin.toml:17: standin.h defines no enum standin_status"),
    ("    STANDIN_OK = 0,", "    STANDIN_FINE = 0,", "standin.toml:18: enum standin_status has no STANDIN_OK"),
    ("#include <stdbool.h>", '#include "missing.h"', "standin.h:4: the header does not compile as C: 'missing.h'"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG_HEADERS)
def test_a_header_that_a_bridge_cannot_carry(edited: Edit, old: str, new: str, message: str) -> None:
    spec = edited("standin.h", old, new)
    with pytest.raises(CkPostBuildError, match=message):
        generate(spec, spec.parent / "out")
    assert not (spec.parent / "out").exists()


WRONG_SPECS = [
    ('name = "standin"\n', 'name = "standin\n', r"standin.toml:1: not valid TOML"),
    ('name = "standin"\n', "name = 3\n", r"the spec does not fit: Expected `str`, got `int` - at `\$.name`"),
    ('name = "standin"\n', 'name = "Stand-in"\n', r"standin.toml:1: name 'Stand-in' must be a lower-case identifier"),
    ('name = "standin"\n', "", "missing required field `name`"),
    ('header = "standin.h"', 'headers = "standin.h"', "unknown field|contains unknown|missing required"),
    ('header = "standin.h"', 'header = "none.h"', "none.h: the header does not exist"),
    ('file = "libstandin.so"', 'file = "lib/standin.so"', "standin.toml:5: library.file is a file name"),
    ('override = "STANDIN_LIB"', 'override = "STANDIN LIB"', "standin.toml:6: 'STANDIN LIB' is not the name"),
    ('override = "STANDIN_LIB"', 'override = "S"\ndirectories = ["lib"]', "directory 'lib' must be absolute"),
    ("version = 1", "version = 0", "abi.version must be from 1"),
    ('alias = "loads"', 'alias = "fail"', "'fail' is used twice"),
    ('alias = "loads"', 'alias = "available"', "'available' is used twice"),
    ('role = "load"', 'role = "load"\nalias = "load"', "is the load hook: it takes no alias"),
    ('role = "call"\nalias = "loads"', 'role = "load"', "more than one function has the role load"),
    ('returns = "value"', "", r"standin.toml:48: standin_loads returns int64, which cannot be a status"),
    ('that = "nonnull(job)"', 'that = "nonnull(jobs)"', r"standin.toml:34: standin_sum: there is no parameter 'jobs'"),
    ('[status]\nenum = "standin_status"\nok = "STANDIN_OK"\n', "", "returns a status but the spec has no"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG_SPECS)
def test_a_spec_with_a_mistake_names_the_line(edited: Edit, old: str, new: str, message: str) -> None:
    spec = edited("standin.toml", old, new)
    with pytest.raises(CkPostBuildError, match=message):
        generate(spec, spec.parent / "out")
    assert not (spec.parent / "out").exists()


def test_the_command_prints_files_or_one_message(edited: Edit, tmp_path: Path) -> None:
    runner, spec = CliRunner(), edited()
    library = build(spec)
    done = runner.invoke(bridge_command, [str(spec), "-o", str(tmp_path / "out"), "--library", str(library)])
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        *(f"wrote {tmp_path / 'out' / name}" for name in ("standin.rs", "standin.hpp", "standin.py", "standin_abi.c")),
        f"{library}: 5 signatures match the header",
    ]
    failed = runner.invoke(bridge_command, [str(tmp_path / "none.toml"), "-o", str(tmp_path / "out")])
    assert failed.exit_code == 1
    assert failed.output == f"Error: {tmp_path / 'none.toml'}: cannot read the spec: No such file or directory\n"
    helped = runner.invoke(bridge_command, ["--help"])
    assert "ck-post-build bridge examples/gdn/gdn.toml" in helped.output
