"""What a first call does when nothing goes wrong."""

from __future__ import annotations

from pathlib import Path

import toy


def test_a_cold_call_compiles_and_the_next_process_finds_the_entry(
    library: toy.ToyLibrary, driver: Path, tmp_path: Path
) -> None:
    env = toy.environment(tmp_path)
    first = toy.drive(driver, library, env, "i:1", "i:1")
    assert first.values == {"i:1": 1001}
    assert first.stats["compiles"] == 1
    second = toy.drive(driver, library, env, "i:1")
    assert second.values == {"i:1": 1001}
    assert second.stats["compiles"] == 0
    assert second.stats["hits"] == 1
    assert second.stderr == ""
    assert toy.compiles(tmp_path) == 1


def test_the_blobs_of_one_call_are_all_brought_in(library: toy.ToyLibrary, driver: Path, tmp_path: Path) -> None:
    result = toy.drive(driver, library, toy.environment(tmp_path), "t:1,2,3", "t:4,5,-1")
    assert result.values == {"t:1,2,3": 1001 + 2002 + 1003, "t:4,5,-1": 1004 + 2005}
    assert toy.compiles(tmp_path) == 5
