"""The oracle on real CK, and that it sees a wrong slot. The figures of full runs are in docs/fidelity.md."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from . import other_ck
from .run import ARCHES, Oracle

pytestmark = [pytest.mark.real_ck, pytest.mark.timeout(1800)]
# In the compiled copy: a slot in the code, one in a row of a table, the bits of the rows that need a condition.
_WAYS_TO_BE_WRONG = {
    "slot": re.compile(r"ck_jit::slots \+ (\d+)"),
    "slot of a row": re.compile(r"^\{(\d+)\},$", re.MULTILINE),
    "bits of a condition": re.compile(r"(?<=[{ ])(0x[0-9a-f]+),"),
}


def _oracle(direction: str, receipt: int, aiter: Path, rocm: Path, tmp: Path, patch: pytest.MonkeyPatch) -> Oracle:
    patch.setenv("ROCM_PATH", str(rocm))
    ck = aiter / "aiter_meta/3rdparty/composable_kernel"
    fmha = ck / "example/ck_tile/01_fmha"
    generated = tmp / "generated"
    words = ["-d", direction, "--receipt", str(receipt), "--targets", "gfx942,gfx950", "--output_dir", generated]
    subprocess.run([sys.executable, fmha / "generate.py", *words], check=True)
    (path,) = generated.glob("fmha_*_api.cpp")
    flags = ["-std=c++20", "-O3", "-fPIC", "--offload-arch=gfx942", f"-I{ck / 'include'}", f"-I{fmha}"]
    oracle = Oracle(path, generated, shlex.join(flags), tmp / "oracle")
    oracle.build(seed=1)
    return oracle


def test_every_site_is_the_original_one_and_a_wrong_slot_or_row_is_seen(
    aiter_tree: Path, rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = _oracle("batch_prefill", 600, aiter_tree, rocm_prefix, tmp_path, monkeypatch)
    result = oracle.drive(100_000, 1, ("gfx942", "gfx1234"))
    assert (result.different, result.differences) == (0, [])
    assert (result.sites, result.unreached) == (128, [])
    assert result.inputs > 200_000

    (dispatcher,) = oracle.lazy.glob("*.outlined.cpp")
    text = dispatcher.read_text()
    for what, pattern in _WAYS_TO_BE_WRONG.items():
        first, second = list(pattern.finditer(text))[5:7]
        swapped = text[: first.start(1)] + second[1] + text[first.end(1) :]
        assert swapped != text
        dispatcher.write_text(swapped)
        oracle.build_rewritten()
        result = oracle.drive(0, 1, ("gfx942",))
        assert result.different > 0, what
        assert "difference for" in result.differences[0]


@pytest.mark.full
@pytest.mark.parametrize(
    ("direction", "receipt"),
    [("fwd", 600), ("fwd_splitkv", 600), ("bwd", 600), ("fwd_appendkv", 0), ("pagedkv_prefill", 0)],
)
def test_no_difference_at_full_size(
    direction: str, receipt: int, aiter_tree: Path, rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = _oracle(direction, receipt, aiter_tree, rocm_prefix, tmp_path, monkeypatch)
    result = oracle.drive(1_000_000, 1, ARCHES)
    assert (result.different, result.differences) == (0, [])


def _other(name: str, direction: str, rocm: Path, tmp: Path, patch: pytest.MonkeyPatch, random_inputs: int) -> None:
    patch.setenv("ROCM_PATH", str(rocm))
    oracle = other_ck.oracle(name, direction, tmp)
    oracle.build(seed=1)
    result = oracle.drive(random_inputs, 1, ("gfx942",) if random_inputs < 100_000 else ARCHES)
    assert (result.different, result.differences) == (0, [])
    assert (result.sites, result.unreached) == (other_ck.CKS[name].sites[direction], [])


def test_another_ck_of_2025(rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _other("flash_attn", "fwd_appendkv", rocm_prefix, tmp_path, monkeypatch, 10_000)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "direction"), [(name, direction) for name, ck in other_ck.CKS.items() for direction in ck.sites]
)
def test_no_difference_on_other_cks(
    name: str, direction: str, rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _other(name, direction, rocm_prefix, tmp_path, monkeypatch, 1_000_000)
