"""cache list, verify, prune, clear and path."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from ck_post_build.cache_dir import node_name
from ck_post_build.cache_upkeep import parse_age, parse_size
from ck_post_build.errors import CkPostBuildError

from .conftest import Entries
from .lazy_library import Place, build_library, command


@pytest.fixture
def filled(place: Place, entries: Entries) -> Place:
    """A cache with three entries, of 30, 20 and 10 days ago."""
    place.fill(entries.cache, entries.three)
    for days, entry in zip((30, 20, 10), sorted(place.cache.glob("*.so")), strict=True):
        _age(entry, days)
    return place


def _age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    os.utime(path, (then, then))


def _dead_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_path_is_the_runtimes(place: Place) -> None:
    env = {key: value for key, value in place.environment().items() if key != "CK_JIT_CACHE_DIR"}
    for extra, expected in (
        ({"CK_JIT_CACHE_DIR": "/a/b/"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/ck_jit"),
        ({"HOME": "/h"}, "/h/.cache/ck_jit"),
        ({"HOME": "", "TMPDIR": "/t"}, f"/t/ck_jit-{os.geteuid()}"),
    ):
        done = subprocess.run(
            command("cache", "path"), env={**env, **extra}, capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout.strip() == expected


def test_list_says_size_age_and_state(filled: Place) -> None:
    done = filled.run("cache", "list", "--root", filled.prefix)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines[:3]] == ["30.0", "20.0", "10.0"]
    assert all(line.endswith(" current") for line in lines[:3])
    assert lines[3].startswith("3 entries, ")


def test_listing_and_verifying_do_not_make_an_entry_look_used(filled: Place) -> None:
    before = filled.run("cache", "list").stdout
    assert filled.run("cache", "verify", "--root", filled.prefix).returncode == 0
    assert filled.run("cache", "list").stdout == before


@pytest.mark.parametrize("damage", ["flip", "truncate", "text", "other blob"])
def test_verify_finds_a_bad_entry_and_prune_removes_it(filled: Place, damage: str) -> None:
    first, second, _ = sorted(filled.cache.glob("*.so"))
    data = first.read_bytes()
    if damage == "flip":
        first.write_bytes(data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    elif damage == "truncate":
        first.write_bytes(data[:4096])
    elif damage == "text":
        first.write_bytes(b"not an ELF file\n" * 100)
    else:
        first.write_bytes(second.read_bytes())
    done = filled.run("cache", "verify", "--root", filled.prefix)
    assert done.returncode == 1
    assert f"{first}: it " in done.stdout
    assert "3 entries, 1 bad" in done.stdout
    assert "prune --bad" in done.stderr
    assert filled.run("cache", "prune", "--bad").returncode == 0
    assert not first.exists()
    assert filled.run("cache", "verify", "--root", filled.prefix).returncode == 0


def test_prune_by_age(filled: Place) -> None:
    oldest, second, youngest = sorted(filled.cache.glob("*.so"))
    done = filled.run("cache", "prune", "--max-age", "25d", "--dry-run")
    assert f"would remove {oldest.name}: unused for 30.0 days" in done.stdout
    assert oldest.exists()
    assert filled.run("cache", "prune", "--max-age", "25d").returncode == 0
    assert sorted(filled.cache.glob("*.so")) == [second, youngest]


def test_prune_by_size_takes_what_was_unused_longest(filled: Place) -> None:
    _, second, youngest = sorted(filled.cache.glob("*.so"))
    size = second.stat().st_size + youngest.stat().st_size
    assert filled.run("cache", "prune", "--max-size", str(size)).returncode == 0
    assert sorted(filled.cache.glob("*.so")) == [second, youngest]
    assert filled.run("cache", "prune", "--max-size", str(size - 1)).returncode == 0
    assert sorted(filled.cache.glob("*.so")) == [youngest]


def test_prune_removes_entries_that_the_library_would_not_use(filled: Place, tmp_path: Path) -> None:
    filled = filled.copy()
    manifest = filled.root / "libsmall.so.manifest.json"
    # As if the library had been built again from another source of this blob.
    text = manifest.read_text()
    start = text.index('"source_hash":"', text.index('"name":"d64_bf16.cpp"')) + len('"source_hash":"')
    manifest.write_text(text[:start] + "0" * 64 + text[start + 64 :])
    foreign = next(filled.cache.glob("d64_fp16.*.so"))
    orphan = foreign.with_name(foreign.name.replace("d64_fp16", "of_another_library"))
    orphan.write_bytes(foreign.read_bytes())
    done = filled.run("cache", "prune", "--root", filled.prefix, "--stale")
    assert done.returncode == 0, done.stderr
    assert [path.name.split(".")[0] for path in sorted(filled.cache.glob("*.so"))] == [
        "d64_fp16",
        "d64_fp16_mask",
        "of_another_library",
    ]
    assert filled.run("cache", "prune", "--root", filled.prefix, "--orphans").returncode == 0
    assert not orphan.exists()
    assert filled.run("cache", "prune", "--stale").returncode == 2


def test_entries_of_another_compiler_are_stale(filled: Place) -> None:
    script = filled.copy().root / "ck_jit_compile.sh"
    with script.open("a") as stream:
        stream.write("# changed\n")
    done = filled.run("cache", "list", "--root", script.parent)
    assert done.stdout.count("stale (another compiler)") == 3


def test_prune_removes_what_dead_processes_left(filled: Place) -> None:
    dead = filled.cache / f".tmp.{node_name()}.{_dead_process()}.0"
    alive = filled.cache / f".tmp.{node_name()}.{os.getpid()}.0"
    elsewhere = filled.cache / ".tmp.0123456789ab.1.0"
    old = filled.cache / ".tmp.0123456789ab.2.0"
    mine = filled.cache / "notes.txt"
    bad = filled.cache / "bad"
    bad.mkdir()
    for path in (dead, alive, elsewhere, old, mine, bad / "thing.so"):
        path.write_bytes(b"x")
    _age(old, 2)
    assert filled.run("cache", "prune").returncode == 0
    assert [path.exists() for path in (dead, alive, elsewhere, old, mine)] == [False, True, True, False, True]
    assert list(bad.iterdir()) == []
    assert len(filled.entries()) == 3


def test_clear_removes_all_that_is_the_caches_and_nothing_else(filled: Place) -> None:
    filled.call("d64_fp16")  # the runtime remembers the compiler
    assert list((filled.cache / "compiler").iterdir())
    mine = filled.cache / "notes.txt"
    alive = filled.cache / f".tmp.{node_name()}.{os.getpid()}.0"
    for path in (mine, alive):
        path.write_text("x")
    assert filled.run("cache", "clear").returncode == 0
    left = {str(path.relative_to(filled.cache)) for path in filled.cache.rglob("*") if path.is_file()}
    assert left == {mine.name, alive.name}


def test_a_library_without_architectures_is_not_called_stale(tmp_path: Path, place: Place, runtime: Path) -> None:
    prefix = build_library(tmp_path / "any", runtime, arches=())
    place = Place(prefix, place.scratch, place.hipcc)
    assert place.prebuild("d64_fp16", "--all").returncode == 1
    assert place.prebuild("d64_fp16", "--arch", "gfx942:xnack-").returncode == 0
    assert place.call("d64_fp16", CK_JIT_COMPILE="0") == [7.0]
    assert " current" in place.run("cache", "list", "--root", prefix).stdout


@pytest.mark.parametrize(("text", "size"), [("20G", 20 << 30), ("1.5M", 3 << 19), ("512", 512), ("2 KiB", 2048)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("90d", 90 * 86400), ("1.5h", 5400), ("10m", 600), ("3s", 3)])
def test_ages(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "G", "20X", "-1G", "a lot"])
def test_what_is_no_size_or_age(text: str) -> None:
    with pytest.raises(CkPostBuildError, match="is no size"):
        parse_size(text)
    with pytest.raises(CkPostBuildError, match="is no age"):
        parse_age(text)
