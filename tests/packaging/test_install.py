"""The package installed into a fresh environment: everything is carried, and the command works from any directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from golden.fixtures import FIXTURES
from golden.golden import REPOSITORY, arguments, copy_inputs, environment

FWD = next(fixture for fixture in FIXTURES if fixture.name == "fwd")
PYENV = Path.home() / ".pyenv" / "versions"
OTHERS = sorted(p / "bin" / "python" for v in ("3.10", "3.12", "3.13", "3.14") for p in PYENV.glob(f"{v}.*"))


def run(words: Sequence[str | Path], cwd: Path, **extra: str) -> str:
    env = environment(CK_TEST_HIPCC="pretend", **extra)
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        [*map(str, words)], env=env, cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is built from a copy of the sources, so that nothing lands in the checkout."""
    scratch = tmp_path_factory.mktemp("wheel")
    source = scratch / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    for name in ("ck_post_build", "templates", "ck_jit_runtime", "cmake"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", scratch, source]
    run(pip, scratch)
    return next(scratch.glob("*.whl"))


def relative_files(*directories: str) -> set[str]:
    return {
        p.relative_to(REPOSITORY).as_posix()
        for directory in directories
        for p in (REPOSITORY / directory).rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }


def test_the_wheel_carries_all_that_is_no_test(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    data = {f"ck_post_build/data/{name}" for name in relative_files("templates", "ck_jit_runtime", "cmake")}
    assert names == relative_files("ck_post_build") | data
    assert "ck_post_build/data/ck_jit_runtime/ck_jit_compile.sh" in names
    assert "ck_post_build/data/cmake/CkPostBuild.cmake" in names
    assert "ck_post_build/py.typed" in names


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
        licence = next(name for name in archive.namelist() if name.endswith("/LICENSE"))
        assert "MIT License" in archive.read(licence).decode()
    assert "\nRequires-Python: >=3.10\n" in text
    assert "\nLicense-Expression: MIT\n" in text
    assert "\nProvides-Extra: distributed\n" in text


def use(python: Path, directory: Path) -> None:
    """Run the installed command of `python` from `directory`: help, a rewrite, a build, an install."""
    command = python.with_name("ck-post-build")
    where = run([python, "-c", "import ck_post_build as c; print(c.__file__)"], directory).strip()
    assert not Path(where).is_relative_to(REPOSITORY)
    for name in ("", "rewrite", "build", "install", "verify"):
        assert "Usage: ck-post-build" in run([command, *([name] if name else []), "--help"], directory)
    cmake_dir = Path(run([command, "--cmake-dir"], directory).strip())
    assert cmake_dir.is_relative_to(Path(where).parent)
    assert (cmake_dir / "CkPostBuild.cmake").is_file()
    assert (cmake_dir.parent / "ck_jit_runtime" / "ck_jit.h").is_file()
    source = copy_inputs(FWD, directory / "in")
    words = arguments(FWD, source)
    assert "5 sites, 5 blobs, 0 discarded" in run([command, "rewrite", *words, "-o", "out"], directory)
    built = run([command, "build", *words, "--lib", "libx.so", "-o", "built"], directory).strip()
    assert (directory / built).is_file()
    run([command, "install", "--build-dir", "built", "--prefix", "dist"], directory)
    assert os.access(directory / "dist" / "ck_jit" / "ck_jit_compile.sh", os.X_OK)


@pytest.mark.timeout(600)
def test_the_command_works_from_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    """The wheel alone is new in it; what it needs comes from the environment of the tests."""
    run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], tmp_path).strip())
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    run(pip, tmp_path)
    ours = run([sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], tmp_path).strip()
    # Not a .pth file of ours: it would bring the editable install, whose own .pth is only read in a site directory.
    (site / "dependencies.pth").write_text(f"{ours}\n")
    (tmp_path / "elsewhere").mkdir()
    use(python, tmp_path / "elsewhere")


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parents[1].name)
def test_the_package_installs_and_works_with_every_python(python: Path, wheel: Path, tmp_path: Path) -> None:
    run([python, "-m", "venv", tmp_path / "venv"], tmp_path)
    installed = tmp_path / "venv" / "bin" / "python"
    run([installed, "-m", "pip", "install", "--quiet", wheel], tmp_path)
    (tmp_path / "elsewhere").mkdir()
    use(installed, tmp_path / "elsewhere")
