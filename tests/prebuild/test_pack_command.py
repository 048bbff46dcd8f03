"""pack and unpack."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from .conftest import Entries
from .lazy_library import BLOBS, ENTRIES, GFX942, Place, answers


@pytest.fixture
def packed(place: Place, entries: Entries) -> Path:
    """A pack of all entries."""
    place.fill(entries.cache, entries.every)
    archive = place.scratch / "kernels.tar.gz"
    done = place.run("pack", "-o", archive, "--root", place.prefix)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{ENTRIES} entries, for {len(BLOBS)} of {len(BLOBS)} blobs"
    return archive


def _change(archive: Path, name: str, content: bytes) -> None:
    """Replace the member `name` of a pack."""
    with tarfile.open(archive) as old:
        files = {item.name: old.extractfile(item).read() for item in old.getmembers()}  # type: ignore[union-attr]
    files[name] = content
    with tarfile.open(archive, "w:gz") as new:
        for member, data in files.items():
            item = tarfile.TarInfo(member)
            item.size = len(data)
            new.addfile(item, io.BytesIO(data))


def test_a_pack_serves_a_machine_that_has_no_compiler_and_no_cache(place: Place, packed: Path) -> None:
    place = place.copy()
    tier = place.scratch / "image" / "kernels"
    done = place.run("unpack", packed, "-o", tier, "--root", place.prefix)
    assert done.returncode == 0, done.stderr
    for path in tier.iterdir():
        path.chmod(0o444)
    tier.chmod(0o555)
    elsewhere = {
        "CK_JIT_CACHE_PATH": str(tier),
        "CK_JIT_CACHE_DIR": str(place.scratch / "empty"),
        "CK_JIT_HIPCC": "/no",
    }
    assert place.call(*GFX942, CK_JIT_COMPILE="0", **elsewhere) == answers(*GFX942)
    assert place.call("d128_bf16_fast", CK_TEST_DEVICE="gfx950", **elsewhere) == answers("d128_bf16_fast")


def test_the_same_entries_give_the_same_bytes(place: Place, packed: Path) -> None:
    again = place.scratch / "again.tar.gz"
    for path in place.cache.glob("*.so"):
        path.touch()
    assert place.run("pack", "-o", again, "--root", place.prefix).returncode == 0
    assert again.read_bytes() == packed.read_bytes()
    plain = place.scratch / "plain.tar"
    assert place.run("pack", "-o", plain, "--root", place.prefix).returncode == 0
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()


def test_a_pack_names_libraries_compiler_and_entries(place: Place, packed: Path) -> None:
    with tarfile.open(packed) as archive:
        names = archive.getnames()
        index = json.load(archive.extractfile("ck_jit_pack.json"))  # type: ignore[arg-type]
    assert names == ["ck_jit_pack.json", *place.entries()]
    assert [library["library"] for library in index["libraries"]] == ["libsmall.so"]
    (compiler,) = index["compilers"]
    assert compiler["version"].startswith("HIP version: 7.1.0-test")
    assert {entry["file"][-35:-3] for entry in index["entries"]} == {compiler["key"]}


def test_only_one_architecture(place: Place, packed: Path) -> None:
    assert place.run("pack", "-o", packed, "--root", place.prefix, "--arch", "gfx942:xnack-").stdout.startswith(
        "5 entries"
    )


def test_bad_entries_are_left_out(place: Place, packed: Path) -> None:
    entry = next(place.cache.glob("d64_fp16.*.so"))
    entry.write_bytes(entry.read_bytes()[:-1])
    assert place.run("pack", "-o", packed, "--root", place.prefix).stdout.startswith(f"{ENTRIES - 1} entries")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("source_hash", "other source"),
        ("headers_hash", "other headers"),
        ("flags", "other flags (here -O3, in the pack "),
    ],
)
def test_a_pack_for_another_build_is_refused_with_what_differs(
    place: Place, packed: Path, field: str, message: str
) -> None:
    place = place.copy()
    path = place.root / "libsmall.so.manifest.json"
    manifest = json.loads(path.read_bytes())
    (blob,) = [blob for blob in manifest["blobs"] if blob["name"] == "d64_bf16.cpp"]
    blob[field] = ["-O3"] if field == "flags" else "0" * len(blob[field])
    path.write_text(json.dumps(manifest))
    tier = place.scratch / "tier"
    done = place.run("unpack", packed, "-o", tier, "--root", place.prefix)
    assert done.returncode == 1
    assert f"of {ENTRIES} entries, 2 entries (d64_bf16.cpp, …): {message}" in done.stderr
    assert not tier.exists()


def test_a_pack_of_another_library_is_refused(place: Place, packed: Path) -> None:
    place = place.copy()
    path = place.root / "libsmall.so.manifest.json"
    path.with_name("libother.so.manifest.json").write_bytes(path.read_bytes().replace(b"libsmall.so", b"libother.so"))
    path.unlink()
    done = place.run("unpack", packed, "-o", place.scratch / "tier", "--root", place.prefix)
    assert done.returncode == 1
    assert "is of libsmall.so, and here are libother.so" in done.stderr


@pytest.mark.parametrize("damage", ["cut off", "text", "entry", "index", "path"])
def test_a_damaged_pack_is_refused(place: Place, packed: Path, damage: str) -> None:
    if damage == "cut off":
        packed.write_bytes(packed.read_bytes()[:2000])
    elif damage == "text":
        packed.write_text("no archive")
    elif damage == "entry":
        _change(packed, place.entries()[0], b"x" * 20000)
    elif damage == "index":
        _change(packed, "ck_jit_pack.json", b"{}")
    else:
        with tarfile.open(packed) as archive:
            index = archive.extractfile("ck_jit_pack.json").read()  # type: ignore[union-attr]
        name = place.entries()[0]
        _change(packed, "ck_jit_pack.json", index.replace(name.encode(), b"../" + name.encode()))
    tier = place.scratch / "tier"
    done = place.run("unpack", packed, "-o", tier, "--root", place.prefix)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ck-post-build: {packed}: ")
    assert "Traceback" not in done.stderr
    assert not tier.exists()


def test_an_empty_cache_cannot_be_packed(place: Place) -> None:
    done = place.run("pack", "-o", place.scratch / "k.tar", "--root", place.prefix)
    assert done.returncode == 1
    assert "the cache has no entry of this library" in done.stderr
