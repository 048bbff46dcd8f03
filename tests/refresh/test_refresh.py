"""A second build after a change of blobs: what is read again, and that the result is that of a first build."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from golden.fixtures import FIXTURES, Fixture
from golden.golden import arguments, copy_inputs, run

FWD = next(fixture for fixture in FIXTURES if fixture.name == "fwd")
BLOB = "fmha_fwd_d128_bf16_batch_nmask_gfx9.cpp"
TAKEN_OVER = "took over the new text of 1 files"


class Build:
    """A copy of a fixture's input and the directory that it is built in."""

    def __init__(self, fixture: Fixture, directory: Path) -> None:
        self.fixture = fixture
        self.source = copy_inputs(fixture, directory / "in")
        self.output = directory / "out"
        self.build()

    def build(self, output: Path | None = None, status: int = 0) -> str:
        words = [*arguments(self.fixture, self.source), "-o", output or self.output, "--lib", "libx.so", "--verbose"]
        done = run("build", *words, CK_TEST_HIPCC="pretend")
        assert done.returncode == status, done.stderr
        return done.stderr

    def edit(self, change: Callable[[str], str], name: str = BLOB) -> None:
        path = self.source / "blobs" / name
        before = path.stat().st_mtime_ns
        path.write_text(change(path.read_text()))
        os.utime(path, ns=(before + 1_000_000, before + 1_000_000))

    def files(self, output: Path) -> dict[str, bytes]:
        names = [path for path in sorted(output.iterdir()) if path.is_file() and not path.name.startswith(".ninja")]
        ours = [path for path in names if path.name not in ("build.ninja", "libx.so")]
        return {path.name: path.read_bytes() for path in ours}


@pytest.fixture
def built(tmp_path: Path) -> Build:
    return Build(FWD, tmp_path)


def check_same_as_a_first_build(built: Build, scratch: Path) -> None:
    fresh = scratch / "fresh"
    assert TAKEN_OVER not in built.build(fresh)
    assert built.files(built.output) == built.files(fresh)
    shutil.rmtree(fresh)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text + "// changed\n", id="comment"),
        pytest.param(lambda text: "// changed\n" + text, id="first line"),
        pytest.param(lambda text: text.replace("say(", "say( "), id="body"),
        pytest.param(lambda text: text.replace("trait_0", "trait_of_mine"), id="alias renamed"),
        pytest.param(lambda text: text.replace("(2 * 64)", "(64 + 64)"), id="same value written differently"),
        pytest.param(lambda text: text, id="touched"),
    ],
)
def test_a_change_that_leaves_the_symbols_is_taken_over(
    built: Build, change: Callable[[str], str], tmp_path: Path
) -> None:
    built.edit(change)
    said = built.build()
    assert TAKEN_OVER in said
    assert "reading" not in said
    check_same_as_a_first_build(built, tmp_path)
    assert built.build() == ""


def test_sources_that_are_generated_again_are_not_read_by_clang_again(built: Build) -> None:
    for path in built.source.rglob("*.cpp"):
        os.utime(path, ns=(1, 1))
    said = built.build()
    assert "took over the new text of 5 files" in said
    assert "reading" not in said
    (built.source / "fmha_fwd_api.cpp").write_bytes((built.source / "fmha_fwd_api.cpp").read_bytes() + b"// more\n")
    assert "reading 5 blob files" in built.build()


def test_a_change_is_remembered_for_the_next_one(built: Build, tmp_path: Path) -> None:
    built.edit(lambda text: text.replace("(2 * 64)", "(64 + 64)"))
    built.build()
    built.edit(lambda text: text.replace("(64 + 64)", "(100 + 28)"))
    built.edit(lambda text: text + "// changed\n", "fmha_fwd_d64_fp16_batch_mask_gfx9.cpp")
    assert "took over the new text of 2 files" in built.build()
    check_same_as_a_first_build(built, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda text: (
                text
                + text.replace(
                    "template <>", "using more = fmha_fwd_traits_<192, fmha_dtype_0, false, false>;\ntemplate <>"
                )
                .replace("trait_0, ck", "more, ck")
                .replace("using fmha_dtype_0 = FmhaFwdBf16;", "")
                .replace("using trait_0 = fmha_fwd_traits_<(2 * 64), fmha_dtype_0, false, false>;", "")
            ),
            id="one more kernel",
        ),
        pytest.param(lambda text: text.replace("#if ", "#define MORE\n#if "), id="no kernel more, other text"),
    ],
)
def test_more_in_a_blob_gives_what_a_first_build_gives(
    built: Build, change: Callable[[str], str], tmp_path: Path
) -> None:
    built.edit(change)
    built.build()
    check_same_as_a_first_build(built, tmp_path)


def test_another_kernel_in_a_blob_is_the_error_of_a_first_build(built: Build) -> None:
    built.edit(lambda text: text.replace("(2 * 64)", "32"))
    said = built.build(status=1)
    assert "no blob defines" in said
    assert "fmha_fwd_api.cpp:" in said
    built.edit(lambda text: text.replace("32,", "128,"))
    built.build()


def test_a_blob_that_is_none_any_more_is_the_error_of_a_first_build(built: Build) -> None:
    built.edit(lambda text: "int nothing;\n")
    assert "no blob defines" in built.build(status=1)


def test_wrong_text_is_an_error_that_names_the_file_and_line(built: Build) -> None:
    built.edit(lambda text: text.replace("FmhaFwdBf16", "FmhaFwdBf17"))
    assert f"{BLOB}:" in built.build(status=1)
    built.edit(lambda text: text.replace("FmhaFwdBf17", "FmhaFwdBf16"))
    assert TAKEN_OVER in built.build()


@pytest.mark.parametrize("damage", [b"", b"\x00", b"{"])
@pytest.mark.parametrize("name", ["ck_post_build.kept", "ck_post_build.stamp"])
def test_damaged_notes_make_a_first_build(built: Build, name: str, damage: bytes, tmp_path: Path) -> None:
    (built.output / name).write_bytes(damage)
    built.edit(lambda text: text + "// changed\n")
    assert "reading 5 blob files" in built.build()
    check_same_as_a_first_build(built, tmp_path)


def test_a_rewrite_into_the_directory_makes_a_first_build(built: Build) -> None:
    done = run("rewrite", *arguments(built.fixture, built.source), "-o", built.output)
    assert done.returncode == 0
    assert "reading 5 blob files" in built.build()


def test_what_changed_since_the_build_is_not_installed(built: Build, tmp_path: Path) -> None:
    built.edit(lambda text: text + "// changed\n")
    words = ["install", "--build-dir", built.output, "--prefix", tmp_path / "prefix"]
    done = run(*words)
    assert (done.returncode, (tmp_path / "prefix").exists()) == (1, False)
    assert f"{BLOB}: changed since the library was built: run ck-post-build build again" in done.stderr
    built.build()
    assert run(*words).returncode == 0


def test_headers_that_changed_since_the_build_are_not_installed(tmp_path: Path) -> None:
    fixture = next(fixture for fixture in FIXTURES if "-I." in fixture.flags)
    built = Build(fixture, tmp_path)
    header = next(built.source.rglob("*.hpp"))
    header.write_text(header.read_text() + "// changed\n")
    done = run("install", "--build-dir", built.output, "--prefix", tmp_path / "prefix")
    assert done.returncode == 1
    assert "changed since the library was built" in done.stderr
