"""Hashes over headers: names and contents count, places and other files do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ck_post_build.errors import CkPostBuildError
from ck_post_build.headers import combined_hash, header_files, tree_hash


def tree(directory: Path, **files: str) -> Path:
    directory.mkdir()
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def test_equal_trees_have_equal_hashes_wherever_they_are(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one", a_hpp="a", sub__b_h="b"), tree(tmp_path / "two", sub__b_h="b", a_hpp="a")
    assert tree_hash(one) == tree_hash(two)
    assert combined_hash([one]) == combined_hash([two])
    assert len(combined_hash([one])) == 32


@pytest.mark.parametrize(
    "files", [{"a_hpp": "x"}, {"b_hpp": "a"}, {"sub__a_hpp": "a"}, {"a_hpp": "a", "b_inc": ""}, {}]
)
def test_names_contents_and_number_count(tmp_path: Path, files: dict[str, str]) -> None:
    assert tree_hash(tree(tmp_path / "one", a_hpp="a")) != tree_hash(tree(tmp_path / "two", **files))


def test_what_is_no_header_does_not_count(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one", a_hpp="a"), tree(tmp_path / "two", a_hpp="a", b_cpp="b", c_o="c", r_md="e")
    tree(two / ".git", d_h="d")
    assert header_files(two) == (two / "a.hpp",)
    assert tree_hash(one) == tree_hash(two)


def test_headers_without_a_suffix_count(tmp_path: Path) -> None:
    assert tree_hash(tree(tmp_path / "one")) != tree_hash(tree(tmp_path / "two", vector=""))


def test_order_of_places_counts(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one", a_h="1"), tree(tmp_path / "two", a_h="2")
    assert combined_hash([one, two]) != combined_hash([two, one])


def test_a_single_header_is_a_place(tmp_path: Path) -> None:
    header = tree(tmp_path / "one", a_hpp="a") / "a.hpp"
    assert header_files(header) == (header,)
    assert tree_hash(header) == tree_hash(header.parent)


def test_names_that_are_no_utf8_are_hashed(tmp_path: Path) -> None:
    directory = tree(tmp_path / "one")
    (directory / os.fsdecode(b"\xff.h")).write_text("")
    assert len(tree_hash(directory)) == 64


def test_loops_of_links_end(tmp_path: Path) -> None:
    directory = tree(tmp_path / "one", a_h="a", sub__b_h="b")
    for name in ("loop", "other loop", "sub/up"):
        (directory / name).symlink_to(directory)
    (tmp_path / "two").mkdir()
    (directory / "two").symlink_to(tmp_path / "two")
    (tmp_path / "two" / "one").symlink_to(directory)
    assert header_files(directory) == (directory / "a.h", directory / "sub" / "b.h")


def test_links_to_other_directories_are_followed(tmp_path: Path) -> None:
    directory = tree(tmp_path / "one")
    (directory / "link").symlink_to(tree(tmp_path / "two", a_h="a"))
    assert header_files(directory) == (directory / "link" / "a.h",)


def test_missing_places_and_unreadable_headers_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CkPostBuildError, match=r"/none: the flags name this header directory"):
        header_files(tmp_path / "none")
