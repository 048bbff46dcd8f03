"""What the tool writes for each fixture, against the recorded text. ``python -m tests.golden.regenerate`` records it anew."""

from __future__ import annotations

import locale
import shlex
from pathlib import Path

import pytest

from .fixtures import FIXTURES, HERE, Fixture
from .golden import actual, copy_inputs, difference, expected, flags, run


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_output_is_the_recorded_one(fixture: Fixture, tmp_path: Path) -> None:
    changes = difference(expected(fixture), actual(fixture, tmp_path))
    assert not changes, f"{fixture.name} ({fixture.shows}):\n{changes}"


def test_every_fixture_directory_is_listed() -> None:
    assert sorted(p.name for p in (HERE / "fixtures").iterdir()) == sorted(fixture.name for fixture in FIXTURES)


def test_a_difference_is_found_and_shown() -> None:
    assert difference({"a": b"one\n"}, {"a": b"two\n"}) == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
    assert "+new" in difference({}, {"a": b"new\n"})
    assert "went" in difference({"a": b""}, {})
    assert difference({"a": b"same\r\n"}, {"a": b"same\n"})


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def has_locale(name: str) -> bool:
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, before)
    return True


TURKISH = "tr_TR.UTF-8" if has_locale("tr_TR.UTF-8") else "POSIX"


@pytest.mark.parametrize(
    ("backwards", "extra"),
    [
        ((True, False), {"PYTHONHASHSEED": "1", "LC_ALL": "C"}),
        ((False, True), {"PYTHONHASHSEED": "2", "LC_ALL": TURKISH, "TZ": "Asia/Tokyo"}),
        ((True, True), {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}),
    ],
)
def test_output_depends_on_the_input_alone(tmp_path: Path, backwards: tuple[bool, bool], extra: dict[str, str]) -> None:
    """Not on the order of files, the locale, the hash seed, the working directory, the output directory, or earlier runs."""
    fixture = next(fixture for fixture in FIXTURES if fixture.name == "two_api_files")
    source = copy_inputs(fixture, tmp_path / "in put")

    def words(apis: tuple[str, ...], blob_dirs: tuple[str, ...]) -> list[str]:
        options = [word for api in apis for word in ("--api", str(source / api))]
        return [*options, *(word for d in blob_dirs for word in ("--blob-dir", str(source / d)))]

    text = shlex.join(flags(fixture, source))
    first, second = tmp_path / "first", tmp_path / "second"
    done = run("rewrite", *words(fixture.apis, fixture.blob_dirs), "--flags", text, "-o", first, PYTHONHASHSEED="0")
    assert done.returncode == 0, done.stderr
    stamps = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    assert len(stamps) > 8
    orders = [
        names[::-1] if turned else names
        for names, turned in zip((fixture.apis, fixture.blob_dirs), backwards, strict=True)
    ]
    (tmp_path / "elsewhere").mkdir()
    for output in (second, first):
        done = run("rewrite", *words(*orders), "--flags", text, "-o", output, cwd=tmp_path / "elsewhere", **extra)
        assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == stamps
    assert tree(second) == tree(first)
