"""The lookup in the tables that dispatchers are compiled to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ck_post_build.resources import resource_dir, template_environment


@pytest.mark.parametrize("optimisation", ["-O0", "-O1"])
def test_the_first_link_whose_conditions_hold_is_found(optimisation: str, tmp_path: Path) -> None:
    header = template_environment().get_template("ck_jit_dispatch.h.j2").render(layout_hash="0" * 16, slot_count=1)
    (tmp_path / "ck_jit_dispatch.h").write_text(header)
    words = ["-std=c++17", optimisation, "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fno-sanitize-recover"]
    includes = [f"-I{tmp_path}", f"-I{resource_dir('ck_jit_runtime')}"]
    program = tmp_path / "first_row"
    source = Path(__file__).with_name("first_row.cpp")
    subprocess.run(["clang++-19", *words, *includes, source, "-o", program], check=True, timeout=120)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
