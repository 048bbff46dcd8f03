"""A slice of the mutation run, and that a wrong rewrite counts as one. The figures of full runs are in docs/fidelity.md."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ck_post_build import Report
from tests.oracle.build import Api

from .mutants import KINDS, mutants
from .trial import Outcome, attempt, read_source

pytestmark = [pytest.mark.real_ck, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def dispatcher(aiter_tree: Path, rocm_prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """CK's batch-prefill dispatcher for one head size and data type, and its flags."""
    ck = aiter_tree / "aiter_meta/3rdparty/composable_kernel"
    fmha = ck / "example/ck_tile/01_fmha"
    generated = tmp_path_factory.mktemp("mutation")
    words = [
        "-d",
        "batch_prefill",
        "--receipt",
        "600",
        "--targets",
        "gfx942",
        "--filter",
        "*d128*bf16*",
        "--output_dir",
        generated,
    ]
    subprocess.run([sys.executable, fmha / "generate.py", *words, "--output_dir", generated], check=True)
    (api,) = generated.glob("fmha_*_api.cpp")
    return api, shlex.join(["-std=c++20", "-O3", "-fPIC", "--offload-arch=gfx942", f"-I{ck / 'include'}", f"-I{fmha}"])


def test_a_few_mutants(
    dispatcher: tuple[Path, str], rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(rocm_prefix))
    api, flags = dispatcher
    made = {mutant.kind: mutant for mutant in mutants(read_source(api), seed=1, each=1)}
    expected = {
        "alias: two arguments swapped": Outcome.REPORTED,
        "alias: an argument too few": Outcome.REPORTED,
        "site: a kernel without a blob": Outcome.REPORTED,
        "blob: gone": Outcome.REPORTED,
        "blob: twice": Outcome.REPORTED,
        "brace gone": Outcome.REPORTED,
        "aliases of two sites swapped": Outcome.RIGHT,
    }
    found = {kind: attempt(made[kind], api.name, flags, tmp_path / "mutant", inputs=1000) for kind in expected}
    assert {kind: trial.outcome for kind, trial in found.items()} == expected, [t.message for t in found.values()]


def test_a_wrong_rewrite_counts_as_wrong(
    dispatcher: tuple[Path, str], rocm_prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(rocm_prefix))
    right = Api.rewrite

    def wrong(api: Api, output: Path) -> Report:
        report = right(api, output)
        (copy,) = output.glob("*.outlined.cpp")
        first, second = list(re.finditer(r"^\{(\d+)\},$", copy.read_text(), re.MULTILINE))[5:7]
        text = copy.read_text()
        copy.write_text(text[: first.start(1)] + second[1] + text[first.end(1) :])
        return report

    monkeypatch.setattr(Api, "rewrite", wrong)
    api, flags = dispatcher
    mutant = next(m for m in mutants(read_source(api), seed=1, each=1) if m.kind == "site: in parentheses")
    assert attempt(mutant, api.name, flags, tmp_path / "mutant", inputs=1000).outcome == Outcome.WRONG


def test_mutants_are_the_same_for_a_seed(dispatcher: tuple[Path, str]) -> None:
    source = read_source(dispatcher[0])
    first = [(m.kind, m.what) for m in mutants(source, seed=3, each=2)]
    assert first == [(m.kind, m.what) for m in mutants(source, seed=3, each=2)]
    assert first != [(m.kind, m.what) for m in mutants(source, seed=4, each=2)]
    # Batch prefill has no wrapper, and no tag for the architecture.
    others = {kind for kind in KINDS if not kind.startswith("wrapper")} - {"site: another architecture"}
    assert {kind for kind, _ in first} == others
