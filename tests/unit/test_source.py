"""Edits by offset: what is outside them stays, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import BYTE_ORDER_MARK, Edit, SourceFile, read_text


def make(directory: Path, content: bytes) -> SourceFile:
    path = directory / "file.cpp"
    path.write_bytes(content)
    return SourceFile(path)


def test_one_character_is_one_byte(tmp_path: Path) -> None:
    source = make(tmp_path, "ä\r\n€\n".encode() + b"\xff\xfe")
    assert len(source.text) == len("ä\r\n€\n".encode()) + 2
    assert source.apply([]).encode("latin-1") == source.path.read_bytes()


def test_byte_order_mark_is_kept_and_known(tmp_path: Path) -> None:
    source = make(tmp_path, b"\xef\xbb\xbfint x;")
    assert source.text.startswith(BYTE_ORDER_MARK)
    assert source.apply([Edit(3, 6, "long")]).encode("latin-1") == b"\xef\xbb\xbflong x;"


def test_lines_are_counted_from_one(tmp_path: Path) -> None:
    source = make(tmp_path, b"a\nbc\r\n\nd")
    assert [source.line_of(offset) for offset in range(8)] == [1, 1, 2, 2, 2, 2, 3, 4]
    assert [source.line_start(offset) for offset in (0, 1, 3, 6, 7)] == [0, 0, 2, 6, 7]


@pytest.mark.parametrize(("content", "newline"), [(b"a\r\nb\n", "\r\n"), (b"a\nb", "\n"), (b"a", "\n")])
def test_newline_is_the_one_that_the_file_uses(tmp_path: Path, content: bytes, newline: str) -> None:
    assert make(tmp_path, content).newline() == newline


def test_edits_apply_in_order_of_place(tmp_path: Path) -> None:
    source = make(tmp_path, b"0123456789")
    edits = [Edit(8, 10, ""), Edit(0, 0, "<"), Edit(2, 4, "xyz"), Edit(4, 4, "|")]
    assert source.apply(edits) == "<01xyz|4567"


def test_insertions_at_one_place_keep_their_order(tmp_path: Path) -> None:
    source = make(tmp_path, b"ab")
    assert source.apply([Edit(1, 1, "2"), Edit(1, 1, "1"), Edit(1, 2, "B")]) == "a21B"


def test_overlapping_edits_are_refused(tmp_path: Path) -> None:
    source = make(tmp_path, b"0123456789")
    with pytest.raises(ValueError, match="overlapping edits at offset 3"):
        source.apply([Edit(2, 4, "x"), Edit(3, 5, "y")])


@pytest.mark.parametrize("content", [b"", b" \r\n\t\n"])
def test_empty_file_is_an_error_that_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CkPostBuildError, match=r"file\.cpp: the file is empty.*Generate it again"):
        make(tmp_path, content)


def test_unreadable_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CkPostBuildError, match=r"none\.cpp: cannot read the file: No such file"):
        read_text(tmp_path / "none.cpp")
    with pytest.raises(CkPostBuildError, match="cannot read the file: Is a directory"):
        read_text(tmp_path)


@given(
    st.binary(min_size=1).filter(lambda b: b.decode("latin-1").strip()),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.text("xyz"))),
)
def test_edits_apply_like_slices_from_the_back(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, raw: list[tuple[int, int, str]]
) -> None:
    source = make(tmp_path_factory.mktemp("edits"), content)
    edits: list[Edit] = []
    position = 0
    for start, length, text in raw:
        begin = min(position + start, len(source.text))
        end = min(begin + length, len(source.text))
        edits.append(Edit(begin, end, text))
        position = end + 1
    edits = [edit for edit in edits if edit.start <= len(source.text)]
    expected = source.text
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.text + expected[edit.end :]
    assert source.apply(edits) == expected
