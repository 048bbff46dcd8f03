"""Builds a toy lazy library: the real runtime, a hand-written glue, and blobs that compile in a tenth of a second."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
RUNTIME = HERE.parent.parent / "ck_jit_runtime"
FAKE_HIPCC = HERE / "fake_hipcc.sh"

CXX = os.environ.get("CXX", "g++")
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
NO_FLAGS: Sequence[str] = ()


def compile_cpp(sources: Sequence[Path], output: Path, flags: Sequence[str] = NO_FLAGS, cxx: str = CXX) -> Path:
    libraries = [] if "-c" in flags else ["-ldl", "-pthread"]
    command = [cxx, *WARNINGS, "-O0", "-g1", f"-I{RUNTIME}", *flags, *map(str, sources), "-o", str(output), *libraries]
    subprocess.run(command, check=True, timeout=300)
    return output


def runtime_objects(directory: Path, flags: Sequence[str] = NO_FLAGS, cxx: str = CXX) -> list[Path]:
    """The whole runtime as one object file: reading the standard headers once takes a quarter of the time."""
    directory.mkdir(parents=True, exist_ok=True)
    unit = directory / "runtime.cpp"
    unit.write_text("".join(f'#include "{source}"\n' for source in sorted(RUNTIME.glob("*.cpp"))))
    return [compile_cpp([unit], directory / "runtime.o", ["-c", "-fPIC", "-fvisibility=hidden", *flags], cxx)]


def c_string(text: str | bytes) -> str:
    raw = os.fsencode(text)
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in raw) + '"'


@dataclass
class ToyBlob:
    number: int
    name: str = ""
    flags: str = "-O0"
    source: str = ""  # relative to the root; by default made from the name
    text: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or f"toy_{self.number}.cpp"
        self.source = self.source or f"blobs/{self.name}"
        self.text = self.text or (HERE / "toy_blob.cpp.in").read_text().replace("@N@", str(self.number))


def default_blobs() -> list[ToyBlob]:
    return [ToyBlob(number) for number in range(8)]


@dataclass
class ToyLibrary:
    """A lazy library in `directory`: lib<name>.so, and ck_jit/ with the script and the blob sources beside it."""

    directory: Path
    objects: list[Path]
    blobs: list[ToyBlob] = field(default_factory=default_blobs)
    name: str = "toy"
    arches: Sequence[str] = ("gfx90a", "gfx942")
    flags: Sequence[str] = ()
    cxx: str = CXX
    root: str = "ck_jit"

    @property
    def path(self) -> Path:
        return self.directory / f"lib{self.name}.so"

    @property
    def root_dir(self) -> Path:
        return self.directory / "ck_jit"

    def build(self) -> ToyLibrary:
        self.install_root()
        glue = self.directory / f"{self.name}_glue.cpp"
        glue.write_text(self.glue())
        flags = ["-shared", "-fPIC", "-fvisibility=hidden", *self.flags]
        compile_cpp([glue, *self.objects], self.path, flags, self.cxx)
        return self

    def install_root(self) -> None:
        self.root_dir.mkdir(parents=True, exist_ok=True)
        script = self.root_dir / "ck_jit_compile.sh"
        script.write_bytes((RUNTIME / "ck_jit_compile.sh").read_bytes())
        script.chmod(0o755)
        for blob in self.blobs:
            path = self.root_dir / blob.source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(blob.text)

    def glue(self) -> str:
        blobs = sorted(self.blobs, key=lambda blob: os.fsencode(blob.name))
        entries = "".join(
            f"    {{{c_string(b.name)}, {c_string(b.source)}, {c_string(b.flags)}, "
            f'"{hashlib.sha256(b.text.encode()).hexdigest()}", "{"0" * 64}", {i}, 1}},\n'
            for i, b in enumerate(blobs)
        )
        instances = "".join(f'    {{{i}, 0, 2, "Li{b.number}EE"}},\n' for i, b in enumerate(blobs))
        values = {
            "ENTRIES": entries,
            "INSTANCES": instances,
            "ARCHES": ", ".join(map(c_string, self.arches)),
            "HASH": "0" * 64,
            "NAME": self.name,
            "ROOT": self.root,
        }
        text = (HERE / "toy_glue.cpp.in").read_text()
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        return text


@dataclass
class Result:
    """What the driver printed."""

    returncode: int
    values: dict[str, int]
    error: str
    stats: dict[str, int]
    stderr: str


def environment(tmp: Path, **extra: str) -> dict[str, str]:
    """An environment in which everything the runtime writes is under `tmp`."""
    ours = ("CK_JIT_", "XDG_", "FAKE_", "TOY_", "ROCM_", "HIP_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    (tmp / "tmp").mkdir(parents=True, exist_ok=True)
    env["CK_JIT_CACHE_DIR"] = str(tmp / "cache")
    env["CK_JIT_HIPCC"] = str(FAKE_HIPCC)
    env["TMPDIR"] = str(tmp / "tmp")
    env["FAKE_HIPCC_LOG"] = str(tmp / "hipcc.log")
    env["HOME"] = str(tmp / "home")
    return env | extra


def compiles(tmp: Path) -> int:
    """How often the compiler was started with an environment() of `tmp`."""
    log = tmp / "hipcc.log"
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def parse(returncode: int, stdout: str, stderr: str) -> Result:
    result = Result(returncode, {}, "", {}, stderr)
    for line in stdout.splitlines():
        if line.startswith("stats "):
            result.stats = {key: int(value) for key, value in (part.split("=") for part in line.split()[1:])}
        elif line.startswith("error "):
            result.error = line[len("error ") :]
        else:
            call, value = line.rsplit(" ", 1)
            result.values[call] = int(value)
    return result


def start(driver: Path, library: ToyLibrary, env: Mapping[str, str], *calls: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(driver), str(library.path), *calls],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )


def finish(process: subprocess.Popen[str], timeout: float = 120) -> Result:
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return parse(process.returncode, stdout, stderr)


def drive(driver: Path, library: ToyLibrary, env: Mapping[str, str], *calls: str, timeout: float = 120) -> Result:
    return finish(start(driver, library, env, *calls), timeout)
