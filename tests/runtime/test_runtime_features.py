"""Environment variables, names, keys, tiers, the fallback for unknown blobs: what a user can see and set."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import toy
from entry_format import compiler_identity, compiler_key, input_key, problem_with_entry
from fault_lab import wait_for

Drive = Callable[..., toy.Result]


@pytest.fixture
def drive(driver: Path, library: toy.ToyLibrary, tmp_path: Path) -> Drive:
    """Runs the driver with the toy library, in an environment below tmp_path."""

    def run(*calls: str, lib: toy.ToyLibrary = library, **extra: str) -> toy.Result:
        return toy.drive(driver, lib, toy.environment(tmp_path, **extra), *calls)

    return run


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache").glob("*.so"))


# --- names and bytes ---

ODD = "a b'c\"d$e`f;g&h|i*j\nk\tl\\m é \udcff-%s"  # \udcff: a byte that is not UTF-8


def test_paths_and_flags_with_any_bytes(objects: list[Path], driver: Path, tmp_path: Path) -> None:
    escaped = "".join("\\" + c if c in " \t\n\\" else c for c in ODD)
    text = toy.ToyBlob(1).text + f'static_assert(sizeof(ODD) == {len(os.fsencode(ODD)) + 1}, "");\n'
    define = "-DODD=" + "".join("\\" + c for c in toy.c_string(ODD))
    flags = f"-O0 {define} -I@CK_JIT_ROOT@/in/{escaped}  \t-DEND"
    blob = toy.ToyBlob(1, name=f"{ODD}.cpp", flags=flags, source=f"blobs/{ODD}.cpp", text="#include <odd.h>\n" + text)
    where = tmp_path / ODD
    where.mkdir()
    lib = toy.ToyLibrary(where, objects, blobs=[blob])
    include = lib.root_dir / "in" / ODD
    include.mkdir(parents=True)
    (include / "odd.h").write_text("")
    lib.build()
    result = toy.drive(driver, lib, toy.environment(where), "i:0")
    assert result.values == {"i:0": 1001}, result.stderr
    assert toy.drive(driver, lib, toy.environment(where), "i:0").stats["hits"] == 1
    (entry,) = (where / "cache").glob("*.so")
    assert problem_with_entry(entry) == ""


def test_a_name_with_path_separators_becomes_one_file_name(objects: list[Path], driver: Path, tmp_path: Path) -> None:
    blobs = [
        toy.ToyBlob(1, name="../x/a\\b.cpp", source="one.cpp"),
        toy.ToyBlob(2, name="n" * 240 + ".cpp", source="two.cpp"),
    ]
    lib = toy.ToyLibrary(tmp_path, objects, blobs=blobs).build()
    result = toy.drive(driver, lib, toy.environment(tmp_path), "n:../x/a\\b.cpp", "i:1")
    assert result.values == {"n:../x/a\\b.cpp": 1001, "i:1": 1002}, result.stderr
    stems = [path.name.split(".")[-3] for path in entries(tmp_path)]
    assert sorted(stems) == ["_x_a_b", "n" * 160]


def test_flags_are_split_as_documented(tmp_path: Path) -> None:
    out = tmp_path / "seen"
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(f"#!/bin/bash\nprintf '%s\\0' \"$@\" >'{out}'\n")
    hipcc.chmod(0o755)
    (tmp_path / "a.cpp").touch()
    flags = "  -a\\ b \t -c'd\"e \n\\\\-f\\\ng -@CK_JIT_ROOT@&-$(h) \\-i *"
    script = [str(toy.RUNTIME / "ck_jit_compile.sh"), "--blob-source", "a.cpp", "--blob-flags", flags]
    root = str(tmp_path / "r&oot")
    Path(root).mkdir()
    (Path(root) / "a.cpp").touch()
    subprocess.run([*script, "--output", "o.so", "--hipcc", str(hipcc), "--root", root], check=True)
    seen = out.read_text().split("\0")
    want = ["-a b", "-c'd\"e", "\\-f\ng", f"-{root}&-$(h)", "-i", "*", "-shared", "-fPIC", "-Wl,--build-id=sha1"]
    assert seen == [*want, "-o", "o.so", f"{root}/a.cpp", ""]


@pytest.mark.parametrize("arguments", [[], ["--output"], ["--nonsense"], ["--output", "x"]])
def test_the_script_refuses_wrong_arguments(arguments: list[str]) -> None:
    done = subprocess.run([str(toy.RUNTIME / "ck_jit_compile.sh"), *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert "error:" in done.stderr


def test_the_scripts_pass_shellcheck() -> None:
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        pytest.skip("no shellcheck here")
    subprocess.run([shellcheck, str(toy.RUNTIME / "ck_jit_compile.sh"), str(toy.FAKE_HIPCC)], check=True)


# --- the key ---


def test_the_key_is_what_the_documentation_says(drive: Drive, library: toy.ToyLibrary, tmp_path: Path) -> None:
    prefix = tmp_path / "rocm"
    (prefix / "amdgcn/bitcode").mkdir(parents=True)
    (prefix / "bin").mkdir()
    for name in ("ocml.bc", "ockl.bc", "notes.txt"):
        (prefix / "amdgcn/bitcode" / name).write_text(name)
    clang = prefix / "bin/clang"
    clang.write_text("pretend")
    hipcc = prefix / "bin/hipcc"
    version = f"HIP version: 7\nInstalledDir: {prefix}/bin\n"
    hipcc.write_text(
        f"#!/bin/bash\n[[ $1 != --version ]] || {{ printf '%s' '{version}'; exit; }}\nexec '{toy.FAKE_HIPCC}' \"$@\"\n"
    )
    hipcc.chmod(0o755)
    assert drive("i:1", CK_JIT_HIPCC=str(hipcc)).values == {"i:1": 1001}

    libraries = sorted((prefix / "amdgcn/bitcode").glob("*.bc"))
    identity = compiler_identity(hipcc, version.encode(), clang, libraries)
    source = hashlib.sha256(library.blobs[1].text.encode()).hexdigest().encode()
    key = input_key(b"toy_1.cpp", source, b"0" * 64, b"-O0", b"gfx90a")
    key += compiler_key(identity, library.root_dir / "ck_jit_compile.sh")
    assert [path.name for path in entries(tmp_path)] == [f"toy_1.{key}.so"]


def test_another_compiler_version_arch_or_script_means_another_entry(
    objects: list[Path], driver: Path, tmp_path: Path
) -> None:
    lib = toy.ToyLibrary(tmp_path, objects).build()
    hipcc = tmp_path / "hipcc"

    def compiles_with(version: str, **extra: str) -> int:
        hipcc.write_text(f"#!/bin/bash\nFAKE_HIPCC_VERSION={version} exec '{toy.FAKE_HIPCC}' \"$@\"\n")
        hipcc.chmod(0o755)
        env = toy.environment(tmp_path, CK_JIT_HIPCC=str(hipcc), **extra)
        return toy.drive(driver, lib, env, "i:1").stats["compiles"]

    assert compiles_with("1") == 1
    assert compiles_with("1") == 0, "rewritten, but the same"
    assert compiles_with("2") == 1
    assert compiles_with("2", CK_JIT_ARCH="gfx942") == 1
    with (lib.root_dir / "ck_jit_compile.sh").open("a") as script:
        script.write("# changed\n")
    assert compiles_with("2") == 1
    assert len(entries(tmp_path)) == 4


def test_the_compiler_is_asked_for_its_version_once(drive: Drive, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(f"#!/bin/bash\n[[ $1 != --version ]] || echo x >>'{asked}'\nexec '{toy.FAKE_HIPCC}' \"$@\"\n")
    hipcc.chmod(0o755)
    for blob in (1, 2, 1):
        drive(f"i:{blob}", CK_JIT_HIPCC=str(hipcc))
    assert asked.read_text() == "x\n"
    os.utime(hipcc, (1, 1))
    drive("i:1", CK_JIT_HIPCC=str(hipcc))
    assert asked.read_text() == "x\nx\n"


# --- architecture ---


def test_an_arch_the_library_was_not_built_for_is_an_error_that_names_both(drive: Drive, tmp_path: Path) -> None:
    result = drive("i:1", TOY_GPU="gfx1100")
    assert result.values == {"i:1": -1}
    assert "the GPU is gfx1100, but this library was built for gfx90a, gfx942" in result.error
    result = drive("i:1", CK_JIT_ARCH="gfx950")
    assert "CK_JIT_ARCH is gfx950, but this library was built for gfx90a, gfx942" in result.error
    result = drive("i:1", TOY_GPU="")
    assert "no GPU found to compile for; set CK_JIT_ARCH" in result.error
    assert toy.compiles(tmp_path) == 0
    assert drive("i:1", TOY_GPU="", CK_JIT_ARCH="gfx942").values == {"i:1": 1001}


# --- cache directories ---


def test_a_read_only_tier_is_searched_first_and_needs_no_compiler(drive: Drive, tmp_path: Path) -> None:
    drive("i:1", "i:2")
    (tmp_path / "cache").rename(tmp_path / "pack")
    tiers = f"{tmp_path}/nothing::{tmp_path}/pack"
    result = drive("i:1", "i:2", CK_JIT_CACHE_PATH=tiers, CK_JIT_COMPILE="0", CK_JIT_HIPCC="/nowhere")
    assert result.values == {"i:1": 1001, "i:2": 1002}
    assert result.stats["hits"] == 2
    assert entries(tmp_path) == []


def test_a_damaged_file_in_a_tier_is_passed_over(drive: Drive, tmp_path: Path) -> None:
    drive("i:1")
    (tmp_path / "cache").rename(tmp_path / "pack")
    (pack,) = (tmp_path / "pack").glob("*.so")
    pack.write_bytes(pack.read_bytes()[:-1])
    result = drive("i:1", CK_JIT_CACHE_PATH=str(tmp_path / "pack"))
    assert result.values == {"i:1": 1001}
    assert result.stats["compiles"] == 1
    assert pack.exists(), "a tier is never written"


def test_compile_off_prints_the_command_that_helps(drive: Drive, library: toy.ToyLibrary, tmp_path: Path) -> None:
    result = drive("i:1", CK_JIT_COMPILE="0")
    assert result.values == {"i:1": -1}
    command = f"ck-post-build prebuild --root '{library.root_dir}' 'toy_1.cpp'"
    assert f"CK_JIT_CACHE_DIR='{tmp_path}/cache' CK_JIT_ARCH='gfx90a' {command}" in result.error
    assert toy.compiles(tmp_path) == 0


def test_set_cache_dir_moves_later_blobs(drive: Drive, tmp_path: Path) -> None:
    result = drive("i:1", f"c:{tmp_path}/elsewhere", "i:2")
    assert result.values["i:2"] == 1002
    assert [path.name.split(".")[0] for path in entries(tmp_path)] == ["toy_1"]
    assert [path.name.split(".")[0] for path in (tmp_path / "elsewhere").glob("*.so")] == ["toy_2"]


def test_default_cache_directories(driver: Path, library: toy.ToyLibrary, tmp_path: Path) -> None:
    env = toy.environment(tmp_path)
    del env["CK_JIT_CACHE_DIR"]
    cases = [
        ({"XDG_CACHE_HOME": str(tmp_path / "xdg")}, tmp_path / "xdg/toy"),
        ({"XDG_CACHE_HOME": ""}, tmp_path / "home/.cache/toy"),
        ({"HOME": ""}, tmp_path / f"tmp/toy-{os.geteuid()}"),
    ]
    for extra, where in cases:
        result = toy.drive(driver, library, env | extra, "i:1")
        assert result.values == {"i:1": 1001}, result.stderr
        assert len(list(where.glob("*.so"))) == 1
        assert where.stat().st_mode & 0o777 == 0o700


def test_lock_files_go_where_they_should_and_are_removed(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir(mode=0o700)
    drive("i:1", XDG_RUNTIME_DIR=str(tmp_path / "runtime"))
    assert {path.name for path in (tmp_path / "runtime/ck-jit").iterdir()} <= {"job.0", "job.1", "job.2", "job.3"}
    drive("i:2", XDG_RUNTIME_DIR=str(tmp_path / "runtime"), CK_JIT_LOCK_DIR=str(tmp_path / "locks"), CK_JIT_JOBS="1")
    assert [path.name for path in (tmp_path / "locks").iterdir()] == ["job.0"]
    drive("i:3", XDG_RUNTIME_DIR=str(tmp_path / "missing"))
    assert not (tmp_path / "missing").exists()


# --- root ---


def test_a_relative_root_moves_with_the_library(objects: list[Path], driver: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    lib = toy.ToyLibrary(tmp_path / "made", objects).build()
    (tmp_path / "made").rename(tmp_path / "moved")
    lib.directory = tmp_path / "moved"
    assert toy.drive(driver, lib, toy.environment(tmp_path), "i:1").values == {"i:1": 1001}
    (tmp_path / "moved/ck_jit").rename(tmp_path / "moved/other")
    result = toy.drive(driver, lib, toy.environment(tmp_path, CK_JIT_ROOT="other"), "i:2")
    assert result.values == {"i:2": 1002}, result.stderr


# --- blobs that the manifest does not have ---


def write_manifest(path: Path, *records: tuple[str, str, str]) -> str:
    path.write_bytes(b"".join("\t".join(record).encode() + b"\0" for record in records))
    return str(path)


def test_an_unknown_blob_comes_through_ck_jit_manifest(drive: Drive, tmp_path: Path) -> None:
    source = tmp_path / "extra source.cpp"
    source.write_text(toy.ToyBlob(77).text)
    manifest = write_manifest(tmp_path / "m", ("other.cpp", "x", ""), ("sub/extra.cpp", str(source), "-O0 -DX=a\\ b"))
    result = drive("n:sub/extra.cpp", "n:sub/extra.cpp", CK_JIT_MANIFEST=manifest)
    assert result.values == {"n:sub/extra.cpp": 1077}, result.stderr
    assert [path.name.split(".")[0] for path in entries(tmp_path)] == ["sub_extra"]
    assert drive("n:sub/extra.cpp", CK_JIT_MANIFEST=manifest).stats["compiles"] == 0
    source.write_text(toy.ToyBlob(78).text)
    assert drive("n:sub/extra.cpp", CK_JIT_MANIFEST=manifest).values == {"n:sub/extra.cpp": 1078}


def test_an_unknown_blob_without_a_record_fails_with_a_reason(drive: Drive, tmp_path: Path) -> None:
    result = drive("n:extra.cpp")
    assert result.values == {"n:extra.cpp": -1}
    assert "blob not resolved: extra.cpp: build script failed (exit code 1)" in result.error
    assert "set CK_JIT_MANIFEST" in result.error
    manifest = write_manifest(tmp_path / "m", ("other.cpp", "x", ""))
    assert "no record for blob extra.cpp" in drive("n:extra.cpp", CK_JIT_MANIFEST=manifest).error


def test_an_unknown_blob_without_any_kernel_is_refused(drive: Drive, tmp_path: Path) -> None:
    source = tmp_path / "empty.cpp"
    source.write_text("int nothing_of_interest() { return 1; }\n")
    result = drive("n:e.cpp", CK_JIT_MANIFEST=write_manifest(tmp_path / "m", ("e.cpp", str(source), "")))
    assert "it defines no function that starts with _Z4toy_I" in result.error
    source.write_text("template <int> int toy_twice_(int); template <> int toy_twice_<1>(int x) { return x; }\n")
    result = drive("n:f.cpp", CK_JIT_MANIFEST=write_manifest(tmp_path / "m", ("f.cpp", str(source), "")))
    assert result.values == {"n:f.cpp": -1}
    assert "symbol missing: it has no function that starts with _Z4toy_I" in result.error


# --- the rest ---


def test_a_failure_is_tried_again_after_a_while(drive: Drive, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(f"#!/bin/bash\n[[ -e '{broken}' ]] || exec '{toy.FAKE_HIPCC}' \"$@\"\nrm '{broken}'; exit 9\n")
    hipcc.chmod(0o755)
    assert drive("i:2", CK_JIT_HIPCC=str(hipcc)).values == {"i:2": 1002}  # so that --version is known
    broken.touch()
    result = drive("i:1", "s:0.01", "i:1", "i:2", "s:1.1", "i:1", CK_JIT_HIPCC=str(hipcc))
    assert result.values["i:1"] == 1001, "the last of the three"
    assert result.stderr.count("build script failed (exit code 9)") == 1, "the second one was not an attempt"
    assert result.stats["failures"] == 1
    assert result.error == ""


def test_record_names_each_used_blob_once(drive: Drive, tmp_path: Path) -> None:
    record = tmp_path / "used"
    drive("--threads", "4", "i:3", "i:1", "i:3", CK_JIT_RECORD=str(record))
    assert sorted(record.read_text().splitlines()) == ["toy_1.cpp", "toy_3.cpp"]
    drive("p:toy_5.cpp", "w:1", "i:3", CK_JIT_RECORD=str(record))
    assert record.read_text().splitlines()[2:] == ["toy_3.cpp"], "a prefetched blob is not a used one"


def test_prefetch_compiles_in_the_background_and_the_call_loads(drive: Drive, tmp_path: Path) -> None:
    result = drive("p:toy_1.cpp", "p:toy_2.cpp", "w:2", "i:1", "i:2")
    assert result.values == {"p:toy_1.cpp": 0, "p:toy_2.cpp": 0, "w:2": 0, "i:1": 1001, "i:2": 1002}
    assert result.stats["compiles"] == 2
    assert drive("p:").values == {"p:": -1}


def test_prefetch_without_a_usable_cache_keeps_the_copy_for_the_call(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    result = drive("p:toy_1.cpp", "w:1", "s:0.2", "i:1")
    assert result.values["i:1"] == 1001
    assert toy.compiles(tmp_path) == 1


def test_a_call_that_needs_what_is_being_prefetched_waits_for_it(drive: Drive, tmp_path: Path) -> None:
    result = drive("p:toy_1.cpp", "s:0.1", "i:1", FAKE_HIPCC_MODE="slow")
    assert result.values["i:1"] == 1001
    assert toy.compiles(tmp_path) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_never_more_compiles_at_once_than_jobs(
    jobs: int, driver: Path, library: toy.ToyLibrary, tmp_path: Path
) -> None:
    running = tmp_path / "running"
    running.mkdir()
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(
        f"#!/bin/bash\n[[ $1 != --version ]] || exec '{toy.FAKE_HIPCC}' \"$@\"\n"
        f"mkdir '{running}'/$$; ls '{running}' | wc -l >>'{tmp_path}/counts'; sleep 0.2; rmdir '{running}'/$$\n"
        f"exec '{toy.FAKE_HIPCC}' \"$@\"\n"
    )
    hipcc.chmod(0o755)
    env = toy.environment(tmp_path, CK_JIT_HIPCC=str(hipcc), CK_JIT_JOBS=str(jobs))
    processes = [toy.start(driver, library, env, *calls) for calls in (["t:1,2,3"], ["t:4,5,6"])]
    for process in processes:
        assert -1 not in toy.finish(process).values.values()
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 6
    assert max(counts) == jobs


def test_verbose_shows_the_compiler_command(drive: Drive, tmp_path: Path) -> None:
    result = drive("i:1", CK_JIT_VERBOSE="1")
    assert f"{toy.FAKE_HIPCC} -O0 --offload-arch=gfx90a -shared -fPIC" in result.stderr
    assert "loaded toy_1.cpp from" in result.stderr
    quiet = drive("i:2").stderr.splitlines()
    assert len(quiet) == 1, "one line per compile"
    assert quiet[0].startswith("[CK-JIT] pid ")
    assert ": compiling toy_2.cpp, " in quiet[0]


def test_left_overs_are_removed(drive: Drive, driver: Path, library: toy.ToyLibrary, tmp_path: Path) -> None:
    process = toy.start(driver, library, toy.environment(tmp_path, FAKE_HIPCC_MODE="hang"), "i:1")
    wait_for(lambda: toy.compiles(tmp_path) == 1)
    process.kill()
    process.communicate()
    scratch = tmp_path / f"tmp/ck-jit-{os.geteuid()}"
    assert len(list(scratch.glob("work.*"))) == 1
    (tmp_path / "cache" / next(scratch.glob("work.*")).name.replace("work.", ".tmp.")).touch()
    assert drive("i:2").values == {"i:2": 1002}
    assert list(scratch.glob("work.*")) == []
    assert list((tmp_path / "cache").glob(".tmp.*")) == []
