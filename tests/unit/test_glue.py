"""Generated entry points: signatures from the kernels', and one function by name for each."""

from __future__ import annotations

from pathlib import Path

from ck_post_build import glue
from ck_post_build.api_rewriter import ApiFile
from ck_post_build.manifest import FlagSet, Manifest
from ck_post_build.stubs import StubSite
from ck_post_build.toolchain import Toolchain

from .parsing import IndexMaker, parsed

BODY = """
template <typename T> float w(int s, args a) { return fmha_fwd_<T>(s, a); }
float f(args a) { return w<traits<1>>(1, a) + fmha_fwd_<traits<2>>(1, a); }
"""


def made(directory: Path, toolchain: Toolchain) -> tuple[ApiFile, Manifest]:
    blobs = IndexMaker()
    blobs.add("a.cpp", "traits<1>", "void")
    blobs.add("b.cpp", "traits<2>", "void")
    index = blobs.done()
    manifest = Manifest(index, dict.fromkeys(index.blobs, FlagSet(("-O3",), "")), [])
    return parsed(directory, toolchain, BODY).api(index), manifest


def test_header_declares_kernels_and_twins(tmp_path: Path, toolchain: Toolchain) -> None:
    api, manifest = made(tmp_path, toolchain)
    text = glue.entry_header(api, [], manifest)
    assert "inline float ck_jit_fwd_call(ck_jit::Slot* ck_jit_slot, int ck_jit_0, const args &a) {" in text
    assert (
        "    using Function = float (*)(int, args);\n    return ck_jit::kernel<Function, 0>(ck_jit_slot)(ck_jit_0, a);"
        in text
    )
    assert (
        "float ck_jit_fwd_call_at(int ck_jit_0, args a) {\n    return ck_jit_fwd_call(ck_jit::slots + Slot, ck_jit_0, a);"
        in text
    )
    assert '__attribute__((visibility("hidden"))) float ck_jit_w_call(ck_jit::Slot* T, int s, const args &a);' in text
    assert "get_name" not in text, "no site reaches it"


def test_a_twin_of_two_files_is_declared_static(tmp_path: Path, toolchain: Toolchain) -> None:
    api, manifest = made(tmp_path, toolchain)
    api.wrappers[0].file_local = True
    assert "\nstatic float ck_jit_w_call(ck_jit::Slot* T, " in glue.entry_header(api, [], manifest)


def test_entry_points_by_name_stand_in_one_file(tmp_path: Path, toolchain: Toolchain) -> None:
    api, manifest = made(tmp_path, toolchain)
    taken: set[str] = set()
    first = glue.entry_source(api, manifest, [], taken)
    assert "float ck_jit_fwd_call(const char* blob, int ck_jit_0, args a) {" in first
    assert "float ck_jit_w_call(const char* T, int s, args a) {" in first
    assert taken == {"ck_jit_fwd_call", "ck_jit_w_call"}
    assert 'extern "C"' not in glue.entry_source(api, manifest, [], taken)


def test_stubs_and_what_they_jump_to_on_failure(tmp_path: Path, toolchain: Toolchain) -> None:
    api, manifest = made(tmp_path, toolchain)
    assert glue.stub_failures([api], manifest) == {api.source.path: []}
    instance = manifest.index.instances[1]
    symbol = instance.kernels[1].symbol
    api.stub_sites = [StubSite(1, "fwd", (symbol,), (instance,))]
    stubs = [line for line in glue.stub_source([api], manifest).splitlines() if line.startswith("    ck_jit_stub ")]
    assert stubs == [f"    ck_jit_stub {symbol}, 1, 1 // b.cpp"]
    kernel = manifest.index.templates["fmha_fwd_get_name_"]
    assert list(glue.stub_failures([api], manifest).values()) == [[kernel]]
    text = glue.entry_source(api, manifest, [kernel], set())
    assert "const char * ck_jit_stub_failed_1() noexcept {\n    return ck_jit::failed<const char *>();\n}" in text
