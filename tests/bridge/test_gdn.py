"""The parts of examples/gdn that need no GPU: the bridge's preconditions and how a sequence is cut."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ck_post_build.bridge.command import generate
from tests.bridge.conftest import compile_library, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "gdn"

STUB = """
#include "atlas_gdn.h"
void atlas_gdn_load(void) {}
int atlas_gdn_prefill_packed_managed(void *a, void *b, void *c, void *d, float s, int t, int nk, int nv, int kd, int vd,
                                     int conv, int gb, int n, void *stream) {
    (void)a, (void)b, (void)c, (void)d, (void)s, (void)nk, (void)nv, (void)kd, (void)vd, (void)conv, (void)gb, (void)n;
    (void)stream;
    return t == 7 ? ATLAS_GDN_NEEDS_WARM_UP : ATLAS_GDN_OK;
}
int atlas_gdn_limit_slots(int slots) { return slots < 0 ? ATLAS_GDN_BAD_SLOTS : ATLAS_GDN_OK; }
"""
GOOD = {
    "qkv": 4096, "gate_beta": 4100, "output": 8192, "h_state": 16, "scale": 0.1, "total_seqlen": 1, "nk": 16, "nv": 32,
    "kd": 128, "vd": 128, "conv_dim": 8192, "gb_stride": 64, "num_seqs": 1, "stream": None,
}  # fmt: skip


@pytest.fixture
def gdn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The generated Python bridge over a library that only answers."""
    generate(EXAMPLE / "gdn.toml", tmp_path)
    (tmp_path / "stub.c").write_text(STUB)
    library = compile_library(tmp_path / "lib.so", [tmp_path / "stub.c", tmp_path / "gdn_abi.c"], f"-I{EXAMPLE}")
    monkeypatch.setenv("ATLAS_GDN_FLASHINFER", "1")
    monkeypatch.setenv("ATLAS_GDN_LIB", str(library))
    module_spec = importlib.util.spec_from_file_location("gdn", tmp_path / "gdn.py")
    assert module_spec and module_spec.loader
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("argument", "value", "requirement"),
    [
        ("num_seqs", 2, "num_seqs == 1"),
        ("num_seqs", 0, "num_seqs == 1"),
        ("total_seqlen", 0, "total_seqlen >= 1"),
        ("kd", 64, "kd == 128"),
        ("vd", 256, "vd == 128"),
        ("nk", 0, "nk >= 1"),
        ("nv", 0, "nv >= 1 and nv % nk == 0"),
        ("nv", 24, "nv >= 1 and nv % nk == 0"),
        ("conv_dim", 8184, "conv_dim >= 2 * nk * kd + nv * vd"),
        ("conv_dim", 8196, "conv_dim % 8 == 0"),
        ("gb_stride", 63, "gb_stride >= 2 * nv"),
        ("qkv", 4104, "aligned(qkv, 16) and nonnull(qkv)"),
        ("qkv", None, "aligned(qkv, 16) and nonnull(qkv)"),
        ("gate_beta", 4098, "aligned(gate_beta, 4) and nonnull(gate_beta)"),
        ("gate_beta", 0, "aligned(gate_beta, 4) and nonnull(gate_beta)"),
        ("output", 8200, "aligned(output, 16) and nonnull(output)"),
        ("h_state", None, "aligned(h_state, 16) and nonnull(h_state)"),
        ("scale", float("nan"), "finite(scale)"),
        ("scale", 1e39, "finite(scale)"),  # finite in Python, infinite as the float that is passed
    ],
)
def test_each_precondition_of_the_example(gdn: ModuleType, argument: str, value: object, requirement: str) -> None:
    gdn.prefill(**GOOD)
    with pytest.raises(gdn.PreconditionError) as caught:
        gdn.prefill(**{**GOOD, argument: value})
    assert f"requires {requirement}, got " in str(caught.value)


def test_statuses_and_pointers_of_the_example(gdn: ModuleType) -> None:
    with pytest.raises(gdn.StatusError, match=r"returned ATLAS_GDN_NEEDS_WARM_UP \(16\)"):
        gdn.prefill(**{**GOOD, "total_seqlen": 7})

    class Tensor:
        def __init__(self, address: int) -> None:
            self.address = address

        def data_ptr(self) -> int:
            return self.address

    class Stream:
        cuda_stream = 12345

    gdn.prefill(**{**GOOD, "qkv": Tensor(32), "stream": Stream()})
    with pytest.raises(gdn.PreconditionError, match="qkv = 0x21"):
        gdn.prefill(**{**GOOD, "qkv": Tensor(33)})
    with pytest.raises(TypeError, match="qkv must be an address, a tensor, a stream or None, not str"):
        gdn.prefill(**{**GOOD, "qkv": "4096"})


SPLIT_TEST = """
#include "split.hpp"
#include <cstdio>
using namespace atlas_gdn;

static bool covers(const Split &s, int chunks) {
    if (s.slots == 1)
        return s.first == chunks;
    return s.first >= 1 && s.middle >= 1 && s.last >= 1 && s.slots <= kMaxSlots &&
           s.first + (s.slots - 1) * s.middle + s.last == chunks;
}

int main() {
    for (int room = 1; room <= 20; ++room)
        for (int chunks = 1; chunks <= 4096; chunks += chunks < 300 ? 1 : 61) {
            const Split chosen = choose_split(chunks, room), forced = forced_split(chunks, room);
            const Split whole{1, chunks, 0, 0};
            if (!covers(chosen, chunks) || !covers(forced, chunks) || chosen.slots > room || cost(chosen) > cost(whole))
                return std::printf("chunks %d, room %d\\n", chunks, room), 1;
        }
    const Split long_one = choose_split(6000, 4); // 2m, m, m, m, m with m a sixth: half the time
    if (long_one.slots != 4 || long_one.first != 2000 || long_one.middle != 1000 || long_one.last != 1000)
        return std::puts("not in the proportions that balance both passes"), 1;
    if (choose_split(4, 16).slots != 1)
        return std::puts("a short sequence is cut"), 1;
    return 0;
}
"""


def test_every_cut_covers_the_sequence_once(tmp_path: Path) -> None:
    (tmp_path / "split_test.cpp").write_text(SPLIT_TEST)
    program = tmp_path / "split_test"
    run(
        "g++",
        "-std=c++20",
        "-O1",
        "-Wall",
        "-Werror",
        f"-I{EXAMPLE / 'shim'}",
        tmp_path / "split_test.cpp",
        "-o",
        program,
    )
    run(program)


@pytest.mark.full
def test_the_real_library_builds_and_names_each_bad_argument(tmp_path: Path) -> None:
    """Needs nvcc 13, pip and about 4 minutes: python -m pytest -m full tests/bridge"""
    done = subprocess.run([sys.executable, EXAMPLE / "build.py", "--output", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    program = (
        "import ctypes; f = ctypes.CDLL(r'{}').atlas_gdn_prefill_packed_managed\n"
        "f.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_float] + [ctypes.c_int] * 8 + [ctypes.c_void_p]\n"
        "good = [16, 16, 16, 16, 1.0, 1, 16, 32, 128, 128, 8192, 64, 1, None]\n"
        "bad = [None, 2, 8, 8, float('nan'), 0, 0, 33, 64, 64, 8191, 63, 2]\n"
        "print([f(*good[:i], value, *good[i + 1:]) for i, value in enumerate(bad)])"
    ).format(tmp_path / "libatlasgdn.so")
    assert run(sys.executable, "-c", program).stdout.strip() == str(list(range(1, 14)))
