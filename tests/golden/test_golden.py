"""What the tool writes for each fixture, against the recorded text. ``python -m tests.golden.regenerate`` records it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from .fixtures import FIXTURES, HERE, Fixture
from .golden import actual, difference, expected


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
