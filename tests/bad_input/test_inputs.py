"""Spoiled API files, blobs and headers."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from golden.golden import command

from .refusal import Case, check, run_line, snapshot


def place(path: Path, line: int | None = None) -> str:
    return re.escape(f"{path}:" if line is None else f"{path}:{line}:")


def test_api_file_that_is_none(case: Case) -> None:
    case.api.write_text('#include "fmha_fwd.hpp"\nfloat unrelated() { return 1; }\n')
    case.refused(place(case.api), "this is no API file: it calls no kernel template", "--api", "--blob-dir")


def test_api_file_of_another_direction(case: Case) -> None:
    case.edit(case.api, '#include "fmha_fwd.hpp"', '#include "fmha_fwd.hpp"\nvoid unused() {}')
    text = case.api.read_text().replace("fmha_fwd_<", "fmha_batch_prefill_<")
    case.api.write_text(text)
    case.refused(place(case.api), "this is no API file", "blobs of the same direction")


def test_empty_api_file(case: Case) -> None:
    case.api.write_text("")
    case.refused(place(case.api), "the file is empty", "Generate it again")


def test_missing_api_file(case: Case) -> None:
    case.api.unlink()
    case.refused(place(case.api), "cannot read the file: No such file or directory")


def test_directory_for_an_api_file(case: Case) -> None:
    case.api.unlink()
    case.api.mkdir()
    case.refused(place(case.api), "cannot read the file: Is a directory")


def test_api_file_given_twice(case: Case) -> None:
    case.refused(place(case.api), "two API files are called fmha_fwd_api;", words=[*case.words(), "--api", case.api])


def test_two_api_files_with_one_name(case: Case, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Path(shutil.copy(case.api, tmp_path / "other"))
    case.refused(
        place(other), "two API files are called", re.escape(str(case.api)), words=[*case.words(), "--api", other]
    )


def test_two_api_files_that_differ_in_the_suffix(case: Case) -> None:
    other = Path(shutil.copy(case.api, case.api.with_suffix(".cu")))
    case.refused(place(other), "two API files are called fmha_fwd_api;", words=[*case.words(), "--api", other])


@pytest.mark.parametrize("part", [0.3, 0.6, 0.95])
def test_truncated_api_file(case: Case, part: float) -> None:
    text = case.api.read_text()
    case.api.write_text(text[: int(len(text) * part)])
    case.refused(rf"{re.escape(str(case.api))}:\d+: libclang: ", "check the flags and the CK version")


def test_api_file_with_an_error(case: Case) -> None:
    line = case.edit(case.api, "using trait_ = fmha_fwd_traits_<64", "using trait_ = fmha_fwd_trait_<64")
    case.refused(place(case.api, line), "libclang: ", "fmha_fwd_trait_")


def test_macro_that_is_not_understood(case: Case) -> None:
    case.edit(
        case.api, "float fmha_fwd(", "#define CALL(ARGS) fmha_fwd_<trait_, ck_tile::gfx9_t>(s, ARGS)\nfloat fmha_fwd("
    )
    line = case.edit(case.api, "fmha_fwd_<trait_, ck_tile::gfx9_t>(s, a)", "[&](auto b) { return CALL(b); }(a)")
    case.refused(place(case.api, line), "CALL is used in a way that is not understood here", "Write it as a plain call")


def test_explicit_instantiation_of_a_template_that_stays(case: Case) -> None:
    template = "template <typename T> float f(T, fmha_fwd_args a) { return fmha_fwd_<T>({}, a); }"
    instantiation = "template float f<int>(int, fmha_fwd_args);"
    case.edit(case.api, "float fmha_fwd(", f"{template}\n{instantiation}\nfloat fmha_fwd(")
    line = case.api.read_text().split(instantiation)[0].count("\n") + 1
    case.refused(place(case.api, line), "f is instantiated explicitly here", "Leave that to its callers")


def test_virtual_functions_that_cannot_be_named(case: Case) -> None:
    cls = "struct caller { virtual float f(int) { return 1; } virtual float f() { return fmha_fwd_<T>({}, {}); } };"
    line = case.edit(
        case.api, "float fmha_fwd(", f"template <typename T>\n{cls}\ncaller<int> *c = new caller<int>;\nfloat fmha_fwd("
    )
    case.refused(place(case.api, line + 1), "virtual functions of caller call kernels", "a name of its own")


def test_blob_that_is_missing(case: Case) -> None:
    (case.blobs / "fmha_fwd_d64_fp16_group_nmask_gfx9.cpp").unlink()
    line = case.api.read_text().split("FmhaFwdFp16, true, (1 > 2)>")[0].count("\n") + 2
    case.refused(
        place(case.api, line),
        r"no blob defines fmha_fwd_<fmha_fwd_traits_<64, FmhaFwdFp16, true, false(, false)?>, ck_tile::gfx9_t>",
        "Give every directory",
    )


def test_blobs_of_several_sites_missing_are_counted(case: Case) -> None:
    for blob in sorted(case.blobs.iterdir())[:3]:
        blob.unlink()
    case.refused("no blob defines", r"\(2 more sites lack their blobs too\)")


def test_blob_of_a_wrapper_that_is_missing(splitkv: Case) -> None:
    (splitkv.blobs / "combine_lse.cpp").unlink()
    splitkv.refused(rf"{re.escape(str(splitkv.api))}:\d+: no blob defines fmha_fwd_splitkv_combine_")


def test_two_blobs_that_define_the_same_symbol(case: Case) -> None:
    other = case.blobs / "a_copy.cpp"
    shutil.copy(case.blob(), other)
    case.refused(place(case.blob(1)), "the blob defines _Z9fmha_fwd_I", re.escape(str(other)), "Only one may")


def test_two_blobs_with_one_name(case: Case, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    other = Path(shutil.copy(case.blob(), tmp_path / "more"))
    message = case.refused("two blobs have the name", words=[*case.words(), "--blob-dir", other.parent])
    assert str(other) in message
    assert str(case.blob()) in message


def test_blob_directory_given_twice(case: Case) -> None:
    case.refused(
        "two blobs have the name", "Give each --blob-dir once", words=[*case.words(), "--blob-dir", case.blobs]
    )


def test_truncated_blob(case: Case) -> None:
    text = case.blob().read_text()
    cut = text[: text.index("return")]
    case.blob().write_text(cut)
    case.refused(place(case.blob(), cut.rstrip().count("\n") + 1), "truncated", "Generate it again")


def test_blob_with_a_broken_bracket(case: Case) -> None:
    line = case.edit(case.blob(), "    return ck_tile::say(", "    }\n    return ck_tile::say(") + 2
    case.refused(place(case.blob(), line), "a bracket closes that was never opened")


def test_empty_blob_is_none_and_its_site_lacks_it(case: Case) -> None:
    case.blob().write_text("")
    case.refused(rf"{re.escape(str(case.api))}:\d+: no blob defines fmha_fwd_")


def test_blob_that_clang_rejects(case: Case) -> None:
    line = case.edit(case.blob(), "fmha_fwd_<trait_0,", "fmha_fwd_<no_such_trait,") - 1
    case.refused(place(case.blob(), line) + " libclang: ", "no_such_trait")


def test_blob_with_an_argument_that_is_neither_type_nor_integer(case: Case) -> None:
    header = case.source / "extra.hpp"
    header.write_text("#pragma once\ntemplate <int> struct s;\ntemplate <template <int> class T> int f_();\n")
    case.blob().write_text(f'#include "{header}"\ntemplate <> int f_<s>() {{ return 1; }}\n')
    case.refused(place(case.blob()), "f_ has a template argument that is neither a type nor an integer")


def test_directory_without_blobs(case: Case, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    words = [word if word != case.blobs else tmp_path / "empty" for word in case.words()]
    case.refused(re.escape(str(tmp_path / "empty")), "no blobs there", words=words)


def test_blob_directory_that_does_not_exist(case: Case) -> None:
    shutil.rmtree(case.blobs)
    case.refused(place(case.blobs), "cannot list the blob directory: No such file or directory")


def test_file_for_a_blob_directory(case: Case) -> None:
    words = [word if word != case.blobs else case.api for word in case.words()]
    case.refused(place(case.api), "cannot list the blob directory: Not a directory", words=words)


def test_dangling_link_among_the_blobs(case: Case) -> None:
    (case.blobs / "gone.cpp").symlink_to("nowhere")
    case.refused(place(case.blobs / "gone.cpp"), "cannot read the file: No such file or directory")


def test_directory_among_the_blobs(case: Case) -> None:
    (case.blobs / "directory.cpp").mkdir()
    case.refused(place(case.blobs / "directory.cpp"), "cannot read the file: Is a directory")


def test_blobs_of_another_ck_version(case: Case) -> None:
    """The 2024 dispatcher has no architecture tag, so its traits name other specialisations than the blobs define."""
    text = case.api.read_text().replace(", ck_tile::gfx9_t>", ">").replace(", ck_tile::gfx950_t>", ">")
    case.api.write_text(text)
    case.refused(
        rf"{re.escape(str(case.api))}:\d+: no blob defines fmha_fwd_<.*, void>",
        "generate API file and blobs in one run",
    )


def test_blobs_of_two_ck_versions(case: Case) -> None:
    old = Path(__file__).parents[1] / "golden" / "include" / "2024" / "fmha_fwd.hpp"
    text = case.blob().read_text().replace('"fmha_fwd.hpp"', f'"{old}"').replace(", ck_tile::gfx9_t>", ">")
    case.blob().write_text(text.replace("fmha_fwd_args a)", "fmha_fwd_args a, int)"))
    case.refused(place(case.blob()), "libclang: ", "blobs and headers are of one CK version")


def test_wrapper_without_a_twin_whose_blob_is_missing(splitkv: Case) -> None:
    splitkv.edit(
        splitkv.api,
        "    return ck_tile::launch_kernel(",
        "    if (sizeof(fmha_fwd_splitkv_traits_) > 8) return 0;\n    return ck_tile::launch_kernel(",
    )
    (splitkv.blobs / "combine_lse.cpp").unlink()
    line = splitkv.api.read_text().split("return fmha_fwd_splitkv_<")[0].count("\n") + 1
    splitkv.refused(
        place(splitkv.api, line),
        r"no blob defines fmha_fwd_splitkv_combine_\w+<fmha_fwd_splitkv_combine_traits_<64, FmhaFwdFp16, false, true>, ",
        r"\(1 more sites lack their blobs too\)",
    )


def test_header_that_is_missing(case: Case) -> None:
    line = case.edit(case.api, '#include "fmha_fwd.hpp"', '#include "no_such.hpp"')
    case.refused(place(case.api, line), "libclang: 'no_such.hpp' file not found", "check the flags")


def test_header_directory_that_is_missing(case: Case) -> None:
    words = case.words()
    words[-1] = f"{words[-1]} -I{case.source}/none"
    case.refused(
        place(case.source / "none"), "the flags name this header directory, and it does not exist", words=words
    )


def test_names_that_are_no_utf8(case: Case) -> None:
    name = os.fsdecode(b"bl\xf6b.cpp")
    case.blob().rename(case.blobs / name)
    case.refused(r"bl\\udcf6b\.cpp", "UTF-8", "ename")


def test_api_name_that_is_no_utf8(case: Case) -> None:
    name = case.api.with_name(os.fsdecode(b"\xf6_api.cpp"))
    case.api.rename(name)
    words = [word if word != case.api else name for word in case.words()]
    case.refused("UTF-8", "ename", words=words)


def test_nothing_appears_where_nothing_was(case: Case, tmp_path: Path) -> None:
    case.blob().unlink()
    output = tmp_path / "new" / "out"
    check(
        run_line(command("rewrite", *case.words(), "-o", output, "--report", tmp_path / "report.json")),
        ("no blob defines",),
    )
    assert snapshot(tmp_path / "new") is None
    assert not (tmp_path / "report.json").exists()
