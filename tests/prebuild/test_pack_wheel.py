"""pack --wheel."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from .conftest import Entries
from .lazy_library import ENTRIES, GFX942, Place, answers


@pytest.fixture
def wheel(place: Place, entries: Entries) -> Path:
    """A wheel of all entries."""
    place.fill(entries.cache, entries.every)
    done = place.run("pack", "-o", place.scratch / "wheels", "--wheel", "My-Kernels==1.0.post2", "--root", place.prefix)
    assert done.returncode == 0, done.stderr
    path, counts = done.stdout.splitlines()
    assert counts == f"{ENTRIES} entries, for 6 of 6 blobs"
    assert Path(path).name.startswith("my_kernels-1.0.post2-py3-none-linux_")
    return Path(path)


def test_an_installed_wheel_serves_a_machine_without_a_compiler(place: Place, wheel: Path) -> None:
    venv.create(place.scratch / "venv", symlinks=True, with_pip=False)
    python = place.scratch / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True, capture_output=True, timeout=120)
    done = subprocess.run([python, "-m", "my_kernels"], check=True, capture_output=True, text=True, timeout=60)
    tier = Path(done.stdout.strip())
    assert tier.is_relative_to(place.scratch / "venv")
    elsewhere = {
        "CK_JIT_CACHE_PATH": str(tier),
        "CK_JIT_CACHE_DIR": str(place.scratch / "empty"),
        "CK_JIT_HIPCC": "/no",
    }
    assert place.call(*GFX942, CK_JIT_COMPILE="0", **elsewhere) == answers(*GFX942)


def test_the_same_entries_give_the_same_wheel(place: Place, wheel: Path) -> None:
    before = wheel.read_bytes()
    wheel.unlink()
    for path in place.cache.glob("*.so"):
        path.touch()
    done = place.run("pack", "-o", wheel.parent, "--wheel", "My-Kernels==1.0.post2", "--root", place.prefix)
    assert done.returncode == 0
    assert wheel.read_bytes() == before


def test_a_wheel_holds_what_a_pack_holds_and_its_metadata(place: Place, wheel: Path) -> None:
    info = "my_kernels-1.0.post2.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(f"{info}/METADATA").decode()
        record = archive.read(f"{info}/RECORD").decode().splitlines()
    kernels = [name.removeprefix("my_kernels/kernels/") for name in names if "/kernels/" in name]
    assert kernels == ["ck_jit_pack.json", *place.entries()]
    assert "\nName: My-Kernels\nVersion: 1.0.post2\n" in metadata
    assert [line.partition(",")[0] for line in record] == names


@pytest.mark.parametrize("name", ["kernels", "kernels==", "==1.0", "a b==1", "class==1", "9k==1", "k==one", "k==1.0-x"])
def test_a_name_that_a_wheel_cannot_have_is_refused(place: Place, name: str) -> None:
    done = place.run("pack", "-o", place.scratch, "--wheel", name, "--root", place.prefix)
    assert done.returncode == 1
    assert "--wheel my-kernels==1.0" in done.stderr
