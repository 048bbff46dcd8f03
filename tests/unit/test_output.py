"""Output appears whole or not at all, and only when it changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ck_post_build.errors import CkPostBuildError
from ck_post_build.output import write_all


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def test_files_are_written_with_their_directories(tmp_path: Path) -> None:
    write_all(tmp_path / "a" / "b", {"x": b"1", "sub dir/y": b"\xff"})
    assert (tmp_path / "a" / "b" / "x").read_bytes() == b"1"
    assert (tmp_path / "a" / "b" / "sub dir" / "y").read_bytes() == b"\xff"
    assert names(tmp_path) == ["a/b/sub dir/y", "a/b/x"]


def test_everybody_may_read_them(tmp_path: Path) -> None:
    write_all(tmp_path, {"x": b"1"})
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


def test_what_does_not_change_keeps_its_time_stamp(tmp_path: Path) -> None:
    write_all(tmp_path, {"same": b"1", "other": b"1"})
    for name in ("same", "other"):
        os.utime(tmp_path / name, ns=(1, 1))
    write_all(tmp_path, {"same": b"1", "other": b"2"})
    assert (tmp_path / "same").stat().st_mtime_ns == 1
    assert (tmp_path / "other").stat().st_mtime_ns > 1
    assert (tmp_path / "other").read_bytes() == b"2"


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "x").symlink_to("precious")
    write_all(tmp_path, {"x": b"new"})
    assert (tmp_path / "precious").read_bytes() == b"keep"
    assert not (tmp_path / "x").is_symlink()


def test_a_failure_in_the_middle_leaves_the_old_files_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(tmp_path, {"a": b"old", "b": b"old"})
    real = os.fdopen
    opened: list[int] = []

    def fdopen(handle: int, mode: str) -> object:
        opened.append(handle)
        if len(opened) == 2:
            os.close(handle)
            raise OSError(28, "No space left on device")
        return real(handle, mode)

    monkeypatch.setattr(os, "fdopen", fdopen)
    with pytest.raises(
        CkPostBuildError, match=r"cannot write: No space left on device. Choose another output directory with -o"
    ):
        write_all(tmp_path, {"a": b"new", "b": b"new"})
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == {"a": b"old", "b": b"old"}


def test_a_directory_in_the_place_of_a_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(CkPostBuildError, match="cannot write: Is a directory"):
        write_all(tmp_path, {"a": b"new", "b": b"new"})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_file_in_the_place_of_the_directory_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(CkPostBuildError, match=r"/out: cannot write: File exists"):
        write_all(tmp_path / "out", {"a": b""})
    with pytest.raises(CkPostBuildError, match=r"/out/deeper: cannot write: Not a directory"):
        write_all(tmp_path / "out" / "deeper", {"a": b""})
