"""Files that one step leaves for the next: build info, root manifests, reports."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ck_post_build.build_info import FILE_NAME, ApiInfo, BlobInfo, BuildInfo, LinkInfo, read_build_info, read_link_info
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootBlob, RootManifest, find_root_manifests, manifest_name, read_root_manifest
from ck_post_build.report import Entry, LeftOut, Report

INFO = BuildInfo(
    apis=[ApiInfo("a.cpp", "a_ck_jit.cpp", ["-O3"])],
    blobs=[BlobInfo("b.cpp", "/x/b.cpp", ["-DA=a b"], "0" * 64, "1" * 32, ["_Z1fv"])],
    headers={"/x/include": "include/include_1"},
    arches=["gfx942"],
    manifest_records="ck_jit_manifest",
)


def test_build_info_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(msgspec.json.encode(INFO))
    assert read_build_info(tmp_path) == INFO
    assert read_link_info(tmp_path) == LinkInfo(apis=INFO.apis, headers=INFO.headers, arches=INFO.arches)


def test_a_directory_without_build_info_is_an_error_that_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(
        CkPostBuildError, match=rf"{FILE_NAME}: no output of ck-post-build rewrite or build here.*-o {tmp_path}"
    ):
        read_build_info(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"apis": []}', msgspec.json.encode(INFO)[:-20], b"\xff"])
def test_damaged_build_info_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(CkPostBuildError, match=r"damaged or of another version.*Run ck-post-build rewrite again"):
        read_build_info(tmp_path)


ROOT = RootManifest("libx.so", ["gfx942"], [RootBlob("b.cpp", "blobs/b.cpp", [], "0", "1", ["_Z1fv"])])


def test_root_manifests_are_found_in_the_root_and_in_its_prefix(tmp_path: Path) -> None:
    root = tmp_path / "ck_jit"
    root.mkdir()
    for name in ("libz.so", "libx.so"):
        manifest = msgspec.structs.replace(ROOT, library=name)
        (root / f"{manifest_name(name)}.json").write_bytes(msgspec.json.encode(manifest))
    assert [m.library for m in find_root_manifests(root)] == ["libx.so", "libz.so"]
    assert find_root_manifests(tmp_path) == find_root_manifests(root)
    assert read_root_manifest(root, "libx.so") == ROOT


def test_missing_and_damaged_root_manifests_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CkPostBuildError, match=r"no JIT root: it holds no \*\.manifest\.json"):
        find_root_manifests(tmp_path)
    with pytest.raises(
        CkPostBuildError, match=r"libx\.so\.manifest\.json: no manifest of libx\.so.*ck-post-build install"
    ):
        read_root_manifest(tmp_path, "libx.so")
    (tmp_path / "libx.so.manifest.json").write_text("{}")
    with pytest.raises(CkPostBuildError, match=r"damaged manifest: .*Install the library again"):
        read_root_manifest(tmp_path, "libx.so")


def test_the_report_is_the_documented_json() -> None:
    report = Report(
        2, 3, [], [LeftOut("a.cpp", 7, "f_", ["t"])], ["u.cpp"], [Entry("a.cpp", 4, "fwd", ["_Z1fv"], ["b.cpp"])]
    )
    text = report.to_json()
    assert text.endswith(b"}\n")
    assert json.loads(text) == {
        "sites": 2,
        "blobs": 3,
        "unresolved": [],
        "discarded": [{"file": "a.cpp", "line": 7, "template": "f_", "arguments": ["t"]}],
        "unreferenced_blobs": ["u.cpp"],
        "entries": [
            {"file": "a.cpp", "line": 4, "direction": "fwd", "symbols": ["_Z1fv"], "blobs": ["b.cpp"], "mode": "call"}
        ],
    }


def test_errors_say_file_and_line_before_the_message() -> None:
    assert str(CkPostBuildError("wrong")) == "wrong"
    assert str(CkPostBuildError("wrong", file="a.cpp")) == "a.cpp: wrong"
    assert str(CkPostBuildError("wrong", file=Path("a.cpp"), line=3)) == "a.cpp:3: wrong"
