"""Which header goes with which blob, and which classes it instantiates."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob, RootManifest
from ck_post_build.precompile import precompile_files
from ck_post_build.toolchain import Toolchain

SHARED = """#pragma once
template <int N> struct kernel { int operator()() const; };
template <typename T> float fmha_fwd_(int);
template <typename T> float fmha_bwd_(int);
template <int> struct trait {};
"""
BLOB = """// a comment comes first
#include "shared.h"
#if !defined(SIDE) || defined(A)
using kernel_0 = kernel<1>;
template <> float fmha_fwd_<trait<1>>(int) {
    auto call = kernel_0{};
    struct here {} unnamed;
    auto lambda = [] {};
    return 0;
}
#endif
"""


def files(root: Path, toolchain: Toolchain, blobs: dict[str, str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return header name → text, blob → header name, and the notes, for blobs given as name → text."""
    (root / "blobs").mkdir()
    (root / "include").mkdir()
    (root / "include/shared.h").write_text(SHARED)
    for name, text in blobs.items():
        (root / "blobs" / name).write_text(text)
    flags = ["-x", "c++", "-std=c++17", "-I@CK_JIT_ROOT@/include"]
    entries = [RootBlob(name, f"blobs/{name}", flags, "", "", []) for name in blobs]
    notes: list[str] = []
    made = precompile_files(root, RootManifest("l.so", [], entries), toolchain, notes.append)
    records = made.pop("l.so.precompile").decode().split("\0")[:-1]
    assigned = dict(record.split("\t") for record in records)
    return {name: data.decode() for name, data in made.items()}, assigned, notes


def test_blobs_that_include_and_specialise_the_same_share_one(tmp_path: Path, toolchain: Toolchain) -> None:
    blobs = {
        "a.cpp": BLOB,
        "b.cpp": BLOB.replace("<1>", "<2>"),
        "c.cpp": BLOB.replace("<1>", "<3>").replace("defined(A)", "defined(B)"),
        "d.cpp": BLOB.replace("fmha_fwd_", "fmha_bwd_").replace("<1>", "<4>"),
    }
    headers, assigned, notes = files(tmp_path, toolchain, blobs)
    assert notes == []
    assert assigned["a.cpp"] == assigned["b.cpp"] == assigned["c.cpp"] != assigned["d.cpp"]
    shared = headers[assigned["a.cpp"]]
    assert '\n#include "shared.h"\n' in shared
    assert shared.count("instantiate<kernel<1>>(0);") == shared.count("instantiate<kernel<3>>(0);") == 1
    assert "kernel<2>" not in shared
    assert "unnamed" not in shared and "lambda" not in shared
    first, second = shared.index("#if !defined(SIDE) || defined(A)"), shared.index("#if !defined(SIDE) || defined(B)")
    assert first < shared.index("kernel<1>") < shared.index("#endif", first) < second < shared.index("kernel<3>")
    assert "instantiate<kernel<4>>(0);" in headers[assigned["d.cpp"]]


def test_only_includes_before_anything_else_are_precompiled(tmp_path: Path, toolchain: Toolchain) -> None:
    blobs = {
        "after.cpp": "#define SIDE 1\n" + BLOB,
        "around.cpp": "#if 1\n#endif\n" + BLOB,
        "late.cpp": BLOB.replace("using", '#include "shared.h"\nusing'),
    }
    headers, assigned, _ = files(tmp_path, toolchain, blobs)
    assert list(assigned) == ["late.cpp"]
    assert headers[assigned["late.cpp"]].count("#include") == 1


def test_a_blob_that_libclang_cannot_read_gets_its_includes(tmp_path: Path, toolchain: Toolchain) -> None:
    headers, assigned, notes = files(tmp_path, toolchain, {"a.cpp": BLOB.replace("return 0", "return wrong")})
    assert len(notes) == 1 and "a.cpp" in notes[0] and "wrong" in notes[0]
    assert "(0);" not in headers[assigned["a.cpp"]]


def test_bytes_beyond_ascii_stay_as_they_are(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "ünï.h").write_text("#pragma once\n")
    blob = BLOB.replace('"shared.h"', f'"shared.h"\n#include "{tmp_path}/ünï.h"').replace("kernel_0", "kérnel_0")
    headers, assigned, notes = files(
        tmp_path, toolchain, {"a.cpp": blob.replace("kernel<1>;", "kernel<1>; struct ö {};")}
    )
    assert notes == []
    assert "/ünï.h" in headers[assigned["a.cpp"]] and "instantiate<kernel<1>>(0);" in headers[assigned["a.cpp"]]


def test_a_header_without_a_guard_cannot_be_precompiled(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "bare.h").write_text("struct bare {};\n")
    blob = BLOB.replace('"shared.h"', f'"shared.h"\n#include "{tmp_path}/bare.h"')
    _, _, notes = files(tmp_path, toolchain, {"a.cpp": blob})
    assert len(notes) == 1 and "redefinition of 'bare'" in notes[0]


def test_a_truncated_blob_is_an_error(tmp_path: Path, toolchain: Toolchain) -> None:
    with pytest.raises(CkPostBuildError, match=r"a\.cpp"):
        files(tmp_path, toolchain, {"a.cpp": BLOB[:150]})


def test_the_same_blobs_give_the_same_bytes(tmp_path: Path, toolchain: Toolchain) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
    assert files(tmp_path / "x", toolchain, {"a.cpp": BLOB}) == files(tmp_path / "y", toolchain, {"a.cpp": BLOB})
