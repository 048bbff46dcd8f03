"""CkPostBuild.cmake in a project whose compiler is a script: what is rebuilt when."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import ninja
import pytest
from golden.golden import REPOSITORY, ROCM, environment

HERE = Path(__file__).parent
FIXTURES = REPOSITORY / "tests" / "golden" / "fixtures"
COMMAND = Path(sys.executable).with_name("ck-post-build")


class Project:
    """A copy of the project under `directory`, configured for Ninja."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "source of mine"
        self.build_dir = directory / "build of mine"
        shutil.copytree(HERE / "small", self.source)
        shutil.copytree(REPOSITORY / "tests" / "golden" / "include", self.source / "headers of mine")
        for name in ("fwd", "fwd_splitkv"):
            shutil.copytree(FIXTURES / name, self.source / name, ignore=shutil.ignore_patterns("expected"))
        self.configure()

    def cmake(self, *words: str | Path, **extra: str) -> str:
        done = subprocess.run(
            ["cmake", *map(str, words)],
            env=environment(CK_TEST_HIPCC="pretend", **extra),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def configure(self, *words: str) -> None:
        self.cmake(
            *(
                "-G",
                "Ninja",
                f"-DCMAKE_MAKE_PROGRAM={ninja.BIN_DIR}/ninja",
                "-S",
                self.source,
                "-B",
                self.build_dir,
                f"-DCMAKE_CXX_COMPILER={ROCM}/bin/hipcc",
            ),
            *("-DCMAKE_CXX_COMPILER_WORKS=1", f"-DCK_POST_BUILD_CMAKE_DIR={REPOSITORY}/cmake"),
            *(
                f"-DCK_POST_BUILD_EXECUTABLE={COMMAND}",
                f"-DCK_POST_BUILD_ROCM_PATH={ROCM}",
                "-DCMAKE_BUILD_TYPE=Release",
            ),
            *words,
        )

    def build(self) -> set[str]:
        """Build, and return what was run: lazy libraries and users of them."""
        lines = self.cmake("--build", self.build_dir, "--verbose").splitlines()
        names = {"--lib libmha_fwd.so": "fwd", "--lib libmha_splitkv.so": "splitkv"}
        names |= {"-E touch used_mha_fwd": "use fwd", "-E touch used_splitkv": "use splitkv"}
        return {name for line in lines for words, name in names.items() if words in line}

    def info(self, library: str) -> dict:
        return json.loads((self.build_dir / f"{library}.ck_post_build" / "ck_post_build.json").read_bytes())


def append(path: Path, text: str) -> None:
    """Change a file, later than anything that was built before."""
    time.sleep(0.02)
    with path.open("a") as stream:
        stream.write(text)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("cmake"))
    assert made.build() == {"fwd", "splitkv", "use fwd", "use splitkv"}
    return made


@pytest.fixture(autouse=True)
def quiet(project: Project) -> None:
    """Each test begins with a project in which nothing is to be done."""
    project.build()
    assert project.build() == set()
    assert "no work to do" in project.cmake("--build", project.build_dir)


def test_flags_of_a_target_and_given_ones_arrive_as_they_are(project: Project) -> None:
    headers = project.source / "headers of mine"
    flags = project.info("mha_fwd")["apis"][0]["flags"]
    assert [f for f in flags if f.startswith(("-I", "-std", "-no"))] == [
        *("-std=c++17", f"-I{headers}/ck_tile", f"-I{headers}/2025", "-nogpuinc"),
    ]
    assert {'-DTEXT="a b"', "-DFMHA_SMALL=1", "-DIN_FLAGS=\"c 'd' $e\"", "-O3", "-DNDEBUG"} <= set(flags)
    assert project.info("mha_fwd")["arches"] == ["gfx942"]
    assert project.info("splitkv")["apis"][0]["flags"][-2:] == [f"-I{headers}/ck_tile", f"-I{headers}/2025"]


def test_link_flags_arrive_as_they_are(project: Project) -> None:
    graph = (project.build_dir / "mha_fwd.ck_post_build" / "build.ninja").read_text()
    assert "-Wl,--version-script=/no\\ where" in graph


def test_a_touched_blob_builds_nothing_that_uses_the_library(project: Project) -> None:
    time.sleep(0.02)
    os.utime(next(iter(sorted((project.source / "fwd_splitkv" / "blobs").iterdir()))))
    assert project.build() == {"splitkv"}


def test_a_changed_blob_builds_its_library_and_what_uses_it(project: Project) -> None:
    append(project.source / "fwd_splitkv" / "blobs" / "combine_lse.cpp", "// changed\n")
    assert project.build() == {"splitkv", "use splitkv"}


def test_a_new_and_a_removed_blob_are_noticed(project: Project) -> None:
    blobs = project.source / "fwd_splitkv" / "blobs"
    time.sleep(0.02)
    text = (blobs / "combine_lse.cpp").read_text().replace("<64,", "<128,")
    (blobs / "new.cpp").write_text(text)
    assert project.build() == {"splitkv", "use splitkv"}
    assert [blob["name"] for blob in project.info("splitkv")["blobs"]].count("new.cpp") == 1
    (blobs / "new.cpp").unlink()
    assert project.build() == {"splitkv", "use splitkv"}


def test_a_changed_header_builds_both(project: Project) -> None:
    append(project.source / "headers of mine" / "2025" / "fmha_fwd.hpp", "// changed\n")
    assert project.build() == {"fwd", "splitkv", "use fwd", "use splitkv"}


def test_a_changed_generator_makes_api_file_and_library_anew(project: Project) -> None:
    append(project.source / "fwd" / "fmha_fwd_api.cpp", "// changed\n")
    assert project.build() == {"fwd", "use fwd"}
    rewritten = project.build_dir / "mha_fwd.ck_post_build" / "fmha_fwd_api.cpp"
    assert rewritten.read_text().endswith("// changed\n")


def test_a_generator_that_writes_the_same_builds_nothing_that_uses_the_library(project: Project) -> None:
    append(project.source / "generator_input", "x")
    assert "use fwd" not in project.build()


def test_a_changed_host_source_builds_its_library(project: Project) -> None:
    append(project.source / "unused.cpp", "int more;\n")
    assert project.build() >= {"splitkv", "use splitkv"}


def test_a_changed_flag_builds_its_library(project: Project) -> None:
    project.configure("-DEXTRA_FLAG=-DMORE")
    assert project.build() == {"fwd", "use fwd"}
    assert "-DMORE" in project.info("mha_fwd")["apis"][0]["flags"]


def test_a_removed_library_is_built_again(project: Project) -> None:
    (project.build_dir / "splitkv.ck_post_build" / "libmha_splitkv.so").unlink()
    assert project.build() == {"splitkv", "use splitkv"}


def test_a_blob_that_becomes_wrong_fails_the_build_with_the_message(project: Project) -> None:
    blob = project.source / "fwd_splitkv" / "blobs" / "combine_lse.cpp"
    text = blob.read_text()
    append(blob, "}\n")
    with pytest.raises(AssertionError, match=r"ck-post-build: .*combine_lse\.cpp:\d+: a bracket closes"):
        project.build()
    time.sleep(0.02)
    blob.write_text(text)
    assert "splitkv" in project.build()


def test_install_makes_a_tree_that_both_libraries_share(project: Project, tmp_path: Path) -> None:
    project.cmake("--install", project.build_dir, "--prefix", "/opt/dist", DESTDIR=str(tmp_path))
    place = tmp_path / "opt" / "dist" / "lib of mine"
    assert sorted(path.name for path in place.iterdir()) == ["ck_jit", "libmha_fwd.so", "libmha_splitkv.so"]
    root = place / "ck_jit"
    assert os.access(root / "ck_jit_compile.sh", os.X_OK)
    assert {path.name for path in (FIXTURES / "fwd" / "blobs").iterdir()} < {
        path.name for path in (root / "blobs").iterdir()
    }
    assert list(root.glob("include/2025_*/fmha_fwd.hpp"))
    built = str(project.build_dir).encode()
    assert not [
        p
        for p in root.rglob("*")
        if p.is_file() and (built in p.read_bytes() or str(project.source).encode() in p.read_bytes())
    ]


def test_wrong_calls_are_refused_when_configuring(project: Project, tmp_path: Path) -> None:
    shutil.copytree(HERE / "small", tmp_path / "wrong")
    for call, message in (
        ("ck_post_build_library(NAME x API a.cpp)", "BLOB_DIR is missing"),
        ("ck_post_build_library(NAME x WRONG API a.cpp BLOB_DIR b)", "unknown arguments"),
        ("ck_post_build_library(NAME x API a BLOB_DIR b COMPILE_DB c FLAGS d)", "COMPILE_DB excludes TARGET and FLAGS"),
        ("add_library(y INTERFACE)\nck_post_build_install(y)", "no target of"),
    ):
        (tmp_path / "wrong" / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.21)\nproject(p NONE)\nlist(APPEND CMAKE_MODULE_PATH {REPOSITORY}/cmake)\n"
            f"set(CK_POST_BUILD_EXECUTABLE {COMMAND})\ninclude(CkPostBuild)\n{call}\n"
        )
        with pytest.raises(AssertionError, match=message):
            project.cmake("-S", tmp_path / "wrong", "-B", tmp_path / "build")
