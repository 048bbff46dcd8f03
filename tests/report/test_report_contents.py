"""What report writes, without a browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prebuild.lazy_library import BLOBS, ENTRIES, Place

from ck_post_build.compile_time import read_seconds
from ck_post_build.jit_root import read_root_manifest
from ck_post_build.library_size import library_size

from .conftest import Reported


def contents(page: Path) -> dict[str, Any]:
    """Return the data in a page."""
    found = re.search(r'<script id="data"[^>]*>([^<]+)</script>', page.read_text())
    assert found is not None
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found.group(1))))
    return data


def kernels(data: dict[str, Any]) -> dict[tuple[str, str], tuple[int, float]]:
    """Return size and seconds by blob and architecture."""
    columns = data["kernels"]
    keys = [
        (data["blobs"][blob], data["arches"][arch]) for blob, arch in zip(columns["blob"], columns["arch"], strict=True)
    ]
    return dict(zip(keys, zip(columns["size"], columns["seconds"], strict=True), strict=True))


def test_every_blob_is_there_for_every_architecture_that_it_is_made_for(reported: Reported, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert reported.report(page) == f"6 blobs, {ENTRIES} kernels with their architectures, 3 compiled\n"
    found = kernels(contents(page))
    assert sorted(found) == sorted(
        (f"{name}.cpp", arch)
        for name, blob in BLOBS.items()
        for arch in (["gfx950"] if blob[3] == "gfx950" else ["gfx942", "gfx950"])
    )
    compiled = {key: facts for key, facts in found.items() if facts != (-1, -1)}
    assert set(compiled) == {(f"d64_{rest}.cpp", "gfx942") for rest in ("bf16", "fp16", "fp16_mask")}
    sizes = {path.stat().st_size for path in reported.place.cache.glob("*.so")}
    assert {size for size, _ in compiled.values()} == sizes
    assert all(seconds > 0 for _, seconds in compiled.values())


def test_traits_come_from_the_kernels(reported: Reported, tmp_path: Path) -> None:
    reported.report(tmp_path / "report.html")
    data = contents(tmp_path / "report.html")
    traits = {trait["name"]: dict(zip(data["blobs"], trait["index"], strict=True)) for trait in data["traits"]}
    values = {trait["name"]: trait["values"] for trait in data["traits"]}
    assert list(values)[:6] == ["direction", "arch", "dtype", "hdim", "mask", "bias"]
    assert (values["hdim"], values["mask"]) == (["64", "128"], ["false", "true"])
    assert values["mask"][traits["mask"]["d64_fp16_mask.cpp"]] == "true"
    assert values["arch"][traits["arch"]["d128_bf16_fast.cpp"]] == "gfx950"


def test_what_was_used_and_what_no_site_reaches(reported: Reported, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    reported.report(page)
    assert (contents(page)["used"], set(contents(page)["unreached"])) == (None, {0})
    prefix = shutil.copytree(reported.place.prefix, tmp_path / "prefix")
    manifest = read_root_manifest(prefix / "ck_jit", "libsmall.so")
    changed = msgspec.structs.replace(manifest, unreferenced_blobs=["d64_bf16.cpp"])
    (prefix / "ck_jit" / "libsmall.so.manifest.json").write_bytes(msgspec.json.encode(changed))
    reported.report(page, prefix, reported.place.cache, "--used", reported.record)
    data = contents(page)
    named = {
        column: [b for b, on in zip(data["blobs"], data[column], strict=True) if on] for column in ("used", "unreached")
    }
    assert named == {"used": ["d128_bf16.cpp", "d64_fp16.cpp"], "unreached": ["d64_bf16.cpp"]}


def test_a_build_directory_and_the_cache_of_the_environment(reported: Reported, tmp_path: Path) -> None:
    build = reported.place.prefix.parent / "lazy"
    reported.report(tmp_path / "a.html")
    reported.report(tmp_path / "b.html", build)
    assert kernels(contents(tmp_path / "a.html")) == kernels(contents(tmp_path / "b.html"))


def test_the_share_of_the_manifest(reported: Reported, tmp_path: Path) -> None:
    library = reported.place.prefix / "libsmall.so"
    reported.report(tmp_path / "report.html")
    (facts,) = contents(tmp_path / "report.html")["libraries"]
    assert facts == {"name": "libsmall.so", "size": library.stat().st_size, "manifest": library_size(library).manifest}
    # At least the paths of six blobs with their hashes, and far less than the runtime.
    assert sum(len(f"blobs/{name}.cpp") + 64 for name in BLOBS) < facts["manifest"] < facts["size"] // 10


def test_the_same_contents_give_the_same_bytes_and_nothing_is_loaded(reported: Reported, tmp_path: Path) -> None:
    first, second = tmp_path / "1.html", tmp_path / "2.html"
    reported.report(first)
    reported.report(second)
    assert first.read_bytes() == second.read_bytes()
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|@import|url\(", first.read_text())


def test_what_cannot_be_reported(reported: Reported, tmp_path: Path) -> None:
    def message(*words: str | Path) -> str:
        done = reported.place.run("report", *words, "-o", tmp_path / "report.html")
        assert done.returncode == 1
        assert not (tmp_path / "report.html").exists()
        return done.stderr

    assert "Name the build directory or the installed prefix too" in message(reported.place.cache)
    assert "no such directory" in message(tmp_path / "none")
    assert "cannot read the list" in message(reported.place.prefix, "--used", tmp_path / "none.txt")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text"])
def test_a_damaged_library_is_told(reported: Reported, tmp_path: Path, content: bytes) -> None:
    place = reported.place.__class__(reported.place.prefix, tmp_path, reported.place.hipcc).copy()
    (place.prefix / "libsmall.so").write_bytes(content)
    done = place.run("report", place.prefix, "-o", tmp_path / "report.html")
    assert done.returncode == 1
    assert "libsmall.so" in done.stderr and "Build it again" in done.stderr


def test_what_the_runtime_compiled_has_its_time_too(reported: Reported, tmp_path: Path) -> None:
    place = Place(reported.place.prefix, tmp_path, reported.place.hipcc)
    place.call("d128_fp16")
    place.run("report", place.prefix, place.cache, "-o", tmp_path / "report.html")
    seconds = {key: facts[1] for key, facts in kernels(contents(tmp_path / "report.html")).items() if facts[0] >= 0}
    assert list(seconds) == [("d128_fp16.cpp", "gfx942")]
    assert 0 < seconds["d128_fp16.cpp", "gfx942"] < 100


@pytest.mark.parametrize(
    ("log", "seconds"),
    [
        (b"warning: x\n[CK-JIT] compiled in 21.3 s\n", 21.3),
        (b"[CK-JIT] compiled in 7,5 s\n", 7.5),  # by a process with another locale
        (b"error: [CK-JIT] compiled in 1.0 s or so\n", None),
        (b"", None),
    ],
)
def test_the_time_in_a_log(tmp_path: Path, log: bytes, seconds: float | None) -> None:
    (tmp_path / "log").write_bytes(log)
    assert read_seconds(tmp_path / "log") == seconds


def test_no_log_has_no_time(tmp_path: Path) -> None:
    assert read_seconds(tmp_path / "none") is None
