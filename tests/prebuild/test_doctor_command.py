"""doctor: each line is ok or says the fix."""

from __future__ import annotations

from pathlib import Path

from golden.golden import ROCM

from .conftest import Entries
from .lazy_library import BLOBS, ENTRIES, Place


def _lines(text: str) -> dict[str, tuple[str, str]]:
    """Return mark and text by what the line is about."""
    found = {}
    for line in text.splitlines():
        mark, rest = line.split(maxsplit=1)
        what, _, said = rest.partition(": ")
        found[what] = (mark, said)
    return found


def _rocm(place: Place) -> dict[str, str]:
    """Return variables that name a compiler which looks like a whole ROCm."""
    header = place.hipcc.parent.parent / "include" / "hip" / "hip_runtime.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.touch()
    return {"ROCM_PATH": str(ROCM)}


def test_all_is_well(place: Place, entries: Entries) -> None:
    place.fill(entries.cache, entries.three)
    # libclang is loaded once in a process, and an earlier test may have loaded another one.
    done = place.run_process("doctor", "--root", place.prefix, **_rocm(place))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = _lines(done.stdout)
    assert lines["compiler"] == ("ok", f"{place.hipcc} (HIP version: 7.1.0-test)")
    assert lines["cache"] == ("ok", f"{place.cache} (3 entries)")
    assert lines["library"] == (
        "ok",
        f"libsmall.so: {len(BLOBS)} blobs for gfx942, gfx950; {ENTRIES - 3} of {ENTRIES} entries would be compiled",
    )


def test_what_is_broken_is_named_with_its_fix(place: Place) -> None:
    place = place.copy()
    place.cache.mkdir()
    place.cache.chmod(0o777)
    (place.root / "blobs" / "d64_fp16.cpp").unlink()
    # libclang is loaded once in a process.
    missing = {"CK_JIT_HIPCC": "/no/hipcc", "CK_POST_BUILD_LIBCLANG": "/no/clang.so"}
    done = place.run_process("doctor", "--root", place.prefix, **missing)
    assert done.returncode == 1
    lines = _lines(done.stdout)
    assert lines["compiler"] == ("BROKEN", "no hipcc found (looked at /no/hipcc): set CK_JIT_HIPCC or ROCM_PATH")
    assert lines["libclang"][0] == "BROKEN"
    assert lines["cache"][0] == "BROKEN" and "Remedy: chmod go-w it" in lines["cache"][1]
    assert lines["library"][0] == "BROKEN" and "blobs/d64_fp16.cpp" in lines["library"][1]
    assert "Traceback" not in done.stderr


def test_it_makes_nothing(place: Place) -> None:
    before = set(place.scratch.rglob("*"))
    place.run("doctor", "--root", place.prefix, **_rocm(place))
    # The compiler's own log, of the check that it links, and the directory that the test made for scratch files.
    assert set(place.scratch.rglob("*")) - before == {place.scratch / "tmp", place.scratch / "compiles"}


def test_a_root_that_is_none(place: Place, tmp_path: Path) -> None:
    done = place.run("doctor", "--root", tmp_path, **_rocm(place))
    assert done.returncode == 1
    assert _lines(done.stdout)["library"][0] == "BROKEN"
