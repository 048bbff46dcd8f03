"""Machines and options that do not do: libclang, compiler, flags, directories, disks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden.golden import ROCM, command, run

from ck_post_build.build_info import read_build_info
from ck_post_build.cache_key import input_key
from ck_post_build.verify import as_root_manifest

from .refusal import Case, check, run_line, snapshot

LIBC = next(Path("/lib/x86_64-linux-gnu").glob("libc.so.6"), Path("/lib/aarch64-linux-gnu/libc.so.6"))
# Root may read and write everything unless it gives that up.
AS_ANYBODY = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    if os.geteuid() == 0
    else ()
)


def flagged(case: Case, flags: str) -> list[str | Path]:
    return [*case.words()[:-1], flags]


def test_no_libclang(case: Case) -> None:
    case.refused(
        "cannot load libclang", "/none/libclang.so", "pip install libclang", CK_POST_BUILD_LIBCLANG="/none/libclang.so"
    )


def test_a_library_that_is_no_libclang(case: Case) -> None:
    case.refused(re.escape(str(LIBC)), "this is no libclang", CK_POST_BUILD_LIBCLANG=str(LIBC))


def test_a_file_that_is_no_library(case: Case) -> None:
    case.refused("cannot load libclang", CK_POST_BUILD_LIBCLANG=str(case.api))


def test_libclang_that_reports_errors(case: Case) -> None:
    case.refused(
        r":\d+: libclang: ",
        "ck_tile/core.hpp",
        words=flagged(case, f"-I{Path(__file__).parents[1]}/golden/include/2025"),
    )


def test_flags_with_an_unclosed_quote(case: Case) -> None:
    case.refused("cannot split the flags", "-DA='x", "No closing quotation", words=flagged(case, "-O3 -DA='x"))


def test_flags_that_the_compiler_does_not_know(case: Case) -> None:
    case.refused("libclang", "no-such-flag", words=flagged(case, f"{case.words()[-1]} --no-such-flag=1"))


def test_compile_database_that_is_no_json(case: Case) -> None:
    case.refused(rf"{case.api}: this is no compile database", words=[*case.words()[:-2], "--compile-db", case.api])


def test_compile_database_that_does_not_exist(case: Case) -> None:
    case.refused(
        r"/none: cannot read the compile database: No such file", words=[*case.words()[:-2], "--compile-db", "/none"]
    )


def test_directory_that_is_not_configured(case: Case) -> None:
    case.refused(
        f"{case.source}: ninja cannot list",
        "configured for Ninja",
        words=[*case.words()[:-2], "--compile-db", case.source],
    )


def test_compile_database_without_an_entry_for_a_blob(case: Case, tmp_path: Path) -> None:
    database = tmp_path / "compile_commands.json"
    sources = [case.api, *sorted(case.blobs.iterdir())[:-1]]
    flags = case.words()[-1]
    database.write_text(
        json.dumps([{"file": str(s), "directory": "/", "command": f"hipcc {flags} -c {s}"} for s in sources])
    )
    case.refused(
        rf"{case.blob(-1)}: the compile database {database} has no entry",
        "--flags",
        words=[*case.words()[:-2], "--compile-db", database],
    )


def test_both_and_neither_source_of_flags_are_usage_errors(case: Case) -> None:
    for words in ([*case.words(), "--compile-db", "x"], case.words()[:-2]):
        done = run("rewrite", *words, "-o", case.output)
        assert done.returncode == 2
        assert "give either --compile-db or --flags" in done.stderr


def test_output_that_is_a_file(case: Case) -> None:
    shutil.rmtree(case.output)
    case.output.write_text("precious")
    case.refused(rf"{case.output}: cannot write: (File exists|Not a directory)", "-o")
    assert case.output.read_text() == "precious"


def test_directory_in_the_place_of_an_output_file(case: Case) -> None:
    (case.output / "ck_jit_manifest.cpp").mkdir()
    case.refused(r"ck_jit_manifest\.cpp: cannot write: Is a directory")


def test_output_in_a_directory_that_nobody_may_write(case: Case) -> None:
    case.output.chmod(0o555)
    try:
        case.refused(rf"{case.output}.*: cannot write: Permission denied", "-o", before=AS_ANYBODY)
    finally:
        case.output.chmod(0o755)


def test_output_below_a_directory_that_nobody_may_write(case: Case, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = run_line([*AS_ANYBODY, *command("rewrite", *case.words(), "-o", locked / "a" / "b")])
    check(done, ("cannot write: Permission denied",))
    assert snapshot(locked) == {}


@pytest.mark.parametrize("which", ["api", "blob", "blob directory"])
def test_input_that_nobody_may_read(case: Case, which: str) -> None:
    path = {"api": case.api, "blob": case.blob(), "blob directory": case.blobs}[which]
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        case.refused(rf"{path}: cannot (read the file|list the blob directory): Permission denied", before=AS_ANYBODY)
    finally:
        path.chmod(mode)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB, which is less than the output takes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a tmpfs here; test_a_file_that_may_not_grow covers a write that fails half way")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(case: Case, small_disk: Path) -> None:
    (small_disk / "old").write_bytes(b"kept")
    done = run_line(command("rewrite", *case.words(), "-o", small_disk))
    check(done, ("cannot write: No space left on device", "-o"))
    assert snapshot(small_disk) == {"old": b"kept"}


def test_a_file_that_may_not_grow(case: Case) -> None:
    case.refused("cannot write: File too large", before=("prlimit", "--fsize=2000", "env", "PYTHONDONTWRITEBYTECODE=1"))


def test_report_that_cannot_be_written(case: Case, tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    done = run("rewrite", *case.words(), "-o", tmp_path / "new", "--report", tmp_path / "report")
    check(done, ("report: cannot write: Is a directory",))


def built(case: Case, *options: str | Path) -> list[str | Path]:
    return ["build", "--lib", "libx.so", *options]


def test_no_compiler(case: Case) -> None:
    case.refused("no HIP compiler", "ROCM_PATH", steps=built(case), ROCM_PATH="", ROCM_HOME="", PATH="/usr/bin:/bin")


def test_compiler_that_fails(case: Case, tmp_path: Path) -> None:
    done = run_line(command(*built(case), *case.words(), "-o", tmp_path / "new"), CK_TEST_HIPCC="fail")
    check(
        done,
        (
            "build.ninja: the build failed; the compiler's output",
            r"some\.hpp:3:5: error: no such kernel",
            "Correct the cause",
        ),
    )
    assert not (tmp_path / "new" / "libx.so").exists()


def test_compiler_that_is_no_compiler(case: Case, tmp_path: Path) -> None:
    rocm = tmp_path / "rocm"
    (rocm / "bin").mkdir(parents=True)
    shutil.copy("/bin/false", rocm / "bin" / "hipcc")
    done = run_line(command(*built(case), *case.words(), "-o", tmp_path / "new"), ROCM_PATH=str(rocm))
    check(done, ("libclang|the build failed",))
    (rocm / "bin" / "hipcc").write_text("no program\n")
    done = run_line(command(*built(case), *case.words(), "-o", tmp_path / "new"), ROCM_PATH=str(rocm))
    check(done, ("hipcc",))


@pytest.mark.parametrize("name", ["libx", "x/libx.so", "../libx.so", "libx.a"])
def test_name_that_no_library_can_have(case: Case, name: str) -> None:
    case.refused("--lib takes a file name that ends in .so", steps=["build", "--lib", name])


def test_host_object_that_does_not_exist(case: Case) -> None:
    case.refused("/none.o: this host object does not exist", steps=built(case, "--host-object", "/none.o"))


def test_link_flags_with_an_unclosed_quote(case: Case) -> None:
    case.refused("cannot split the flags", steps=built(case, "--link-flags", "-Wl,'x"))


def test_installing_what_was_not_built(case: Case, tmp_path: Path) -> None:
    for directory in (tmp_path / "none", case.output):
        done = run("install", "--build-dir", directory, "--prefix", tmp_path / "prefix")
        check(done, ("no output of ck-post-build rewrite or build here", "Run one of them"))
    rewritten = tmp_path / "rewritten"
    assert run("rewrite", *case.words(), "-o", rewritten).returncode == 0
    done = run("install", "--build-dir", rewritten, "--prefix", tmp_path / "prefix")
    check(done, (f"{rewritten}: no library here: run ck-post-build build first",))
    assert snapshot(tmp_path / "prefix") is None


def test_installing_when_a_blob_has_gone(case: Case, tmp_path: Path) -> None:
    output = tmp_path / "built"
    assert run(*built(case), *case.words(), "-o", output, CK_TEST_HIPCC="pretend").returncode == 0
    case.blob().unlink()
    check(
        run("install", "--build-dir", output, "--prefix", tmp_path / "prefix"),
        (f"{case.source}.*cannot read the file", "Build again"),
    )
    assert snapshot(tmp_path / "prefix") is None


def test_verifying_what_is_no_library(case: Case, tmp_path: Path) -> None:
    check(run("verify", tmp_path / "none.so"), (r"no manifest of none\.so", "ck-post-build install"))
    check(run("verify", case.output), ("no output of ck-post-build rewrite or build here",))


def test_verifying_a_blob_that_lacks_its_symbol(case: Case, tmp_path: Path) -> None:
    output = tmp_path / "rewritten"
    assert run("rewrite", *case.words(), "-o", output).returncode == 0
    cache = tmp_path / "cache"
    cache.mkdir()
    info = read_build_info(output)
    blob = next(blob for blob in as_root_manifest(info, "x.so").blobs if blob.name == case.blob().name)
    entry = cache / f"{case.blob().stem}.{input_key(blob, info.arches[0])}{'0' * 32}.so"
    (tmp_path / "a.cpp").write_text("int unrelated;")
    subprocess.run(["clang++-19", "-shared", "-fPIC", tmp_path / "a.cpp", "-o", entry], check=True, timeout=60)
    check(
        run("verify", output, CK_JIT_CACHE_DIR=str(cache)),
        (re.escape(str(entry)), "lacks _Z9fmha_fwd_I", "report this"),
    )


def test_rocm_prefix_of_the_tests_is_found() -> None:
    assert (ROCM / "bin" / "hipcc").is_file()
