"""The generated bridges at run time: each test runs the same scenario in Rust, C++ and Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridge.conftest import LANGUAGES, STANDIN, Programs, compile_library

each_language = pytest.mark.parametrize("language", LANGUAGES)
OPENED = "standin: opened"


def enabled(library: Path | str) -> dict[str, str]:
    return {"STANDIN_ENABLE": "yes", "STANDIN_LIB": str(library)}


def assert_refused(result: tuple[list[str], list[str]], reason: str) -> None:
    """The library is unavailable for `reason`, said once on stderr however often it is asked for."""
    stdout, stderr = result
    assert len(stdout) == 3 and len(set(stdout)) == 1
    assert stdout[0].startswith("false ") and reason in stdout[0]
    warnings = [line for line in stderr if "standin is not available" in line and "warn(" not in line]
    assert len(warnings) == 1 and reason in warnings[0]


@each_language
def test_a_good_library_is_opened_once_and_called(strict: Programs, library: Path, language: str) -> None:
    stdout, stderr = strict.run(language, "available", env=enabled(library))
    assert stdout == ["true -"] * 3
    assert stderr == [OPENED]
    stdout, _ = strict.run(language, "sum", "job", "0", "2", "2", "1", env=enabled(library))
    assert stdout == ["ok", "123"]  # (1+2+3+4) * 0.5 * 2 * 2 + 100 + 3: every field and argument arrived
    stdout, _ = strict.run(language, "reset", "65535", env=enabled(library))
    assert stdout == ["65535"]


@each_language
@pytest.mark.parametrize("flag", [None, "", "no", "1"])
def test_without_the_flag_nothing_is_opened_and_nothing_said(
    strict: Programs, library: Path, language: str, flag: str | None
) -> None:
    env = {"STANDIN_LIB": str(library)} | ({} if flag is None else {"STANDIN_ENABLE": flag})
    stdout, stderr = strict.run(language, "available", env=env)
    assert stdout == ["false STANDIN_ENABLE is not yes"] * 3
    assert stderr == []
    stdout, stderr = strict.run(language, "fail", "0", env=env)
    assert stdout == ["Unavailable: standin is not available: STANDIN_ENABLE is not yes"]


@each_language
def test_a_missing_library_is_one_warning(strict: Programs, language: str, tmp_path: Path) -> None:
    assert_refused(strict.run(language, "available", env=enabled(tmp_path / "libnone.so")), "No such file or directory")
    assert_refused(strict.run(language, "available", env={"STANDIN_ENABLE": "yes"}), "libstandin.so")


@each_language
def test_a_file_that_is_no_library_is_one_warning(strict: Programs, language: str, tmp_path: Path) -> None:
    (tmp_path / "libstandin.so").write_text("not ELF")
    assert_refused(
        strict.run(language, "available", env=enabled(tmp_path / "libstandin.so")), "cannot open the library"
    )


@each_language
def test_a_missing_symbol_is_one_warning(strict: Programs, language: str, tmp_path: Path) -> None:
    sources = [STANDIN / "standin.c", strict.directory / "standin_abi.c"]
    library = compile_library(tmp_path / "libstandin.so", sources, f"-I{STANDIN}", "-DWITHOUT_SUM")
    result = strict.run(language, "available", env=enabled(library))
    assert_refused(result, "the library lacks a symbol")
    assert "standin_sum" in result[0][0]


@each_language
def test_the_load_hook_runs_once_under_sixteen_threads(strict: Programs, library: Path, language: str) -> None:
    stdout, stderr = strict.run(language, "threads", env=enabled(library))
    assert stdout == ["16 1"]
    assert stderr == [OPENED]


@each_language
def test_a_load_hook_that_fails_makes_the_library_unavailable(strict: Programs, language: str, tmp_path: Path) -> None:
    sources = [STANDIN / "standin.c", strict.directory / "standin_abi.c"]
    library = compile_library(tmp_path / "libstandin.so", sources, f"-I{STANDIN}", "-DFAILING_LOAD")
    reason = "standin_load returned STANDIN_NO_DEVICE (3)"
    assert_refused(strict.run(language, "available", env=enabled(library)), reason)


WRONG_RECORDS = {
    # what is changed in record or header -> what the bridge says
    ("    1u, /* ABI version */", "    2u, /* ABI version */"): "ABI version is 0x2 in the library, 0x1 in standin.h",
    ("    17u,", "    16u,"): "number of words is 0x10 in the library, 0x11",
    ("0x434b", "0x434c"): "mark of the record is 0x434c",
    (
        "    double factor;\n    const float *data;",
        "    const float *data;\n    double factor;",
    ): "offset of standin_job.factor is 0x10 in the library, 0x8",
    ("    float low, high;", "    double low, high;"): "size of struct standin_range is 0x10 in the library, 0x8",
}


@each_language
@pytest.mark.parametrize("change", WRONG_RECORDS, ids=lambda change: change[0].split()[0])
def test_a_wrong_abi_record_is_one_warning(
    strict: Programs, language: str, change: tuple[str, str], tmp_path: Path
) -> None:
    changed = 0
    for source in (strict.directory / "standin_abi.c", STANDIN / "standin.h", STANDIN / "standin.c"):
        text = source.read_text()
        changed += text.count(change[0])
        (tmp_path / source.name).write_text(text.replace(*change))
    assert changed == 1
    sources = [tmp_path / "standin.c", tmp_path / "standin_abi.c"]
    library = compile_library(tmp_path / "libstandin.so", sources, f"-I{tmp_path}")
    assert_refused(strict.run(language, "available", env=enabled(library)), f"wrong ABI: {WRONG_RECORDS[change]}")


@each_language
def test_a_record_of_another_signature_is_one_warning(strict: Programs, language: str, tmp_path: Path) -> None:
    """A library and its record that were both made from a header with another argument type."""
    from ck_post_build.bridge.command import generate

    for name in ("standin.h", "standin.c", "standin.toml"):
        text = (STANDIN / name).read_text()
        (tmp_path / name).write_text(text.replace("standin_fail(int code)", "standin_fail(long code)"))
    generate(tmp_path / "standin.toml", tmp_path)
    sources = [tmp_path / "standin.c", tmp_path / "standin_abi.c"]
    library = compile_library(tmp_path / "libstandin.so", sources, f"-I{tmp_path}")
    assert_refused(strict.run(language, "available", env=enabled(library)), "wrong ABI: signature of standin_fail is")


@each_language
def test_a_library_without_a_record_is_used_only_if_the_spec_allows(
    strict: Programs, loose: Programs, language: str, tmp_path: Path
) -> None:
    library = compile_library(tmp_path / "libstandin.so", [STANDIN / "standin.c"], f"-I{STANDIN}")
    reason = "the library has no ABI record (standin_abi)"
    assert_refused(strict.run(language, "available", env=enabled(library)), reason)
    assert loose.run(language, "available", env=enabled(library)) == (["true -"] * 3, [OPENED])


@each_language
def test_the_search_order_is_override_directory_loader(
    strict: Programs, loose: Programs, library: Path, language: str, tmp_path: Path
) -> None:
    flag = {"STANDIN_ENABLE": "yes"}
    by_loader = {**flag, "LD_LIBRARY_PATH": str(library.parent), "STANDIN_LIB": ""}  # empty counts as not set
    assert strict.run(language, "available", env=by_loader) == (["true -"] * 3, [OPENED])
    listed = loose.directory / "libraries" / "libstandin.so"
    listed.write_text("the listed directory comes before the loader's own search")
    try:
        assert_refused(loose.run(language, "available", env=by_loader), "cannot open the library")
        assert loose.run(language, "available", env=enabled(library))[0] == ["true -"] * 3
    finally:
        listed.unlink()


@each_language
def test_a_file_that_others_can_change_is_not_opened(
    strict: Programs, library: Path, language: str, tmp_path: Path
) -> None:
    copy = tmp_path / "libstandin.so"
    copy.write_bytes(library.read_bytes())
    for place, mode in ((copy, 0o666), (tmp_path, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        result = strict.run(language, "available", env=enabled(copy))
        place.chmod(before & 0o7777)
        assert_refused(result, f"{place} can be changed by other users")
        assert OPENED not in result[1]


PRECONDITIONS = [
    # job, offset of the result, columns, scale, twice -> the requirement and the value reported
    (("null", "0", "2", "1", "0"), "requires nonnull(job), got job = 0"),
    (("job", "2", "2", "1", "0"), "requires aligned(result, 4) and nonnull(result), got result = 0x"),
    (("job", "0", "0", "1", "0"), "requires 1 <= columns <= 1024, got columns = 0: more does not fit \\ ever"),
    (("job", "0", "1025", "1", "0"), "requires 1 <= columns <= 1024, got columns = 1025"),
    (("job", "0", "18446744073709551615", "1", "0"), "got columns = 18446744073709551615"),
    (("job", "0", "3", "1", "0"), "requires 1024 % columns == 0, got columns = 3: rows are cut evenly"),
    (("job", "0", "2", "nan", "0"), "requires finite(scale) and scale > -0.5, got scale = "),
    (("job", "0", "2", "inf", "0"), "requires finite(scale) and scale > -0.5, got scale = inf"),
    (("job", "0", "2", "-0.5", "0"), "requires finite(scale) and scale > -0.5, got scale = -0.5"),
    (("job", "0", "1", "1", "1"), "requires not twice or columns != 7 - 3 * (4 - 2), got columns = 1, twice = "),
]


@each_language
@pytest.mark.parametrize(("arguments", "message"), PRECONDITIONS)
def test_each_precondition_stops_the_call(
    strict: Programs, library: Path, language: str, arguments: tuple[str, ...], message: str
) -> None:
    stdout, _ = strict.run(language, "sum", *arguments, env=enabled(library))
    assert stdout[0].startswith("PreconditionError: standin_sum: ") and message in stdout[0]
    assert stdout[1] == "0"  # the result was not written: nothing was called


@each_language
@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "ok"),
        (3, "StatusError: standin_fail returned STANDIN_NO_DEVICE (3)"),
        (7, "StatusError: standin_fail returned STANDIN_LOST (7)"),
        (-2, "StatusError: standin_fail returned STANDIN_NEGATIVE (-2)"),
        (42, "StatusError: standin_fail returned unknown status (42)"),
    ],
)
def test_a_status_is_an_error_with_its_name(
    strict: Programs, library: Path, language: str, code: int, text: str
) -> None:
    assert strict.run(language, "fail", str(code), env=enabled(library))[0] == [text]


def test_python_refuses_an_integer_that_the_c_type_would_cut_off(strict: Programs, library: Path) -> None:
    stdout, _ = strict.run("python", "fail", str(2**32), env=enabled(library))
    assert stdout == ["PreconditionError: code = 4294967296 does not fit into int32"]
