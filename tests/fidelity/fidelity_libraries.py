"""The two libraries of a fidelity test, original and lazy, from the same generated sources with the same flags.

The lazy library is built with ``ck-post-build build``. Its first run of a case says which blobs the case needs
(``CK_JIT_RECORD``); the original library links those, each compiled to an object, with CK's own dispatchers. If the lazy
library took a wrong blob, the original lacks the right one and dies in the call.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layouts import Layouts, parse_layouts, without_padding

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
ARCH = "gfx90a"
LIBRARY = "libmha_fidelity.so"
# Kernels for one head size keep CK's dispatchers small. d128 where the direction has no d32.
FILTERS = {
    "fwd": "*_d32_bf16_*_nskip_*",
    "fwd_splitkv": "*_d32_bf16_*@*_d32_bf16_*",
    "fwd_appendkv": "*_d32_bf16_*",
    "batch_prefill": "*_d128_bf16_*_ndropout_*",
    "pagedkv_prefill": "*_d128_bf16_*",
    "bwd": "*_d32_bf16_*@*_d32_bf16_*@*_d32_bf16_*_npad_nbias_*",
}
API_NAMES = {"pagedkv_prefill": "fmha_fwd_pagedkv_api.cpp"}


@dataclass(frozen=True)
class Case:
    """A call: its direction, what the driver is told, and a piece of the name of each blob that it must reach."""

    direction: str
    words: str
    blobs: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.direction} {self.words}"


@dataclass
class Run:
    """What one run of a case left: printed text with return values, launches, and the blobs that were loaded.

    Padding in the arguments of the launches is masked by ``Libraries.comparable``, not here.
    """

    printed: str
    errors: str
    launches: list[dict[str, Any]]
    blobs: list[str]


@dataclass
class Libraries:
    """Builds in `directory`; everything that exists is kept.

    Attributes:
        rocm, aiter: the HIP compiler's prefix, and the unpacked amd-aiter wheel.
        kernels: directory of compiled kernels, lazy cache and objects, which other instances may share.
        cases: what will be called.
    """

    directory: Path
    rocm: Path
    aiter: Path
    kernels: Path
    cases: Sequence[Case]
    cold: dict[str, Run] = field(default_factory=dict)
    layouts: Layouts = field(default_factory=dict)

    @property
    def directions(self) -> list[str]:
        return list(dict.fromkeys(case.direction for case in self.cases))

    @property
    def ck(self) -> Path:
        return self.aiter / "aiter_meta/3rdparty/composable_kernel"

    @property
    def includes(self) -> list[Path]:
        return [self.ck / "include", self.ck / "example/ck_tile/01_fmha"]

    @property
    def flags(self) -> list[str]:
        defines = ["-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=2", "-DCK_TILE_FMHA_FWD_FAST_EXP2=1"]
        return [
            *("-std=c++20", "-O3", f"--offload-arch={ARCH}", "-fgpu-flush-denormals-to-zero", "-w", *defines),
            *(f"-I{path}" for path in self.includes),
        ]

    @property
    def cache(self) -> Path:
        return self.kernels / "cache"

    @property
    def lazy(self) -> Path:
        return self.directory / "lazy" / LIBRARY

    @property
    def original(self) -> Path:
        return self.directory / "original" / LIBRARY

    def build(self) -> Libraries:
        """Make both libraries. At most two compilers run at a time."""
        for path in (self.cache, self.kernels / "objects", self.directory / "original"):
            path.mkdir(parents=True, exist_ok=True)
        self._generate()
        self._build_lazy()
        with ThreadPoolExecutor(2) as pool:
            objects = [pool.submit(self._object, self._api(d), self.directory / "original") for d in self.directions]
            driver = pool.submit(self._build_driver)
            driver.result()
            cold = {case.name: pool.submit(self.run, case, self.lazy) for case in self.cases}
            blobs = dict.fromkeys(blob for run in cold.values() for blob in run.result().blobs)
            self.cold = {name: run.result() for name, run in cold.items()}
            objects += [pool.submit(self._object, self._blob(name), self.kernels / "objects") for name in blobs]
            for layouts in [pool.submit(self._layouts, self._blob(name)) for name in blobs]:
                self.layouts |= layouts.result()
            self._link_original([each.result() for each in objects])
        return self

    def run(self, case: Case, library: Path) -> Run:
        """Call `case` in the original or the lazy library, in a process of its own."""
        record = self.directory / f"record-{os.getpid()}-{abs(hash((case, library)))}"
        blobs = Path(f"{record}.blobs")
        for path in (record, blobs):
            path.write_text("")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("CK_JIT_", "HIP_", "LD_"))}
        env |= {
            "ROCM_PATH": str(self.rocm),
            "LD_LIBRARY_PATH": str(library.parent),
            "CK_JIT_CACHE_DIR": str(self.cache),
            "CK_JIT_RECORD": str(blobs),
            "CK_JIT_JOBS": "1",
            "HIP_STANDIN_RECORD": str(record),
            "HIP_STANDIN_EVENT_MS": "0.75",
        }
        command = [str(self.directory / "driver"), case.direction, *case.words.split()]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, f"{library}: {case.name}: status {done.returncode}\n{done.stdout}{done.stderr}"
        launches = [json.loads(line) for line in record.read_text().splitlines()]
        return Run(done.stdout, done.stderr, launches, sorted(set(blobs.read_text().split())))

    def comparable(self, run: Run) -> list[dict[str, Any]]:
        """Return the launches of a run without what is left to chance: the padding in argument structs."""
        return [without_padding(launch, self.layouts) for launch in run.launches]

    def predicted(self) -> dict[str, list[str]]:
        """Return the kernel symbols that ck-post-build predicts for each blob."""
        info = json.loads((self.directory / "build" / "ck_post_build.json").read_text())
        return {blob["name"]: blob["symbols"] for blob in info["blobs"]}

    def compiled(self, blob: str) -> Path:
        """Return the cache entry of a blob."""
        # The runtime cuts long names; no two of our blobs have the same first 160 bytes and are both compiled.
        (entry,) = self.cache.glob(f"{Path(blob).stem[:160]}.*.so")
        return entry

    def _api(self, direction: str) -> Path:
        name = API_NAMES.get(direction, f"fmha_{direction}_api.cpp")
        return self.directory / "generated" / direction / name

    def _blob(self, name: str) -> Path:
        (path,) = (self.directory / "generated").glob(f"*/{name}")
        return path

    def _generate(self) -> None:
        for direction in self.directions:
            output = self._api(direction).parent
            if not output.is_dir():
                arguments: list[str | Path] = [
                    "--targets",
                    ARCH,
                    "--filter",
                    FILTERS[direction],
                    "--output_dir",
                    output,
                ]
                self._execute([sys.executable, self.includes[1] / "generate.py", "-d", direction, *arguments])

    def _build_lazy(self) -> None:
        tool: list[str | Path] = [sys.executable, "-m", "ck_post_build"]
        command = [*tool, "build", "--lib", LIBRARY, "-o", self.directory / "build", "-j", "2"]
        command += ["--flags", shlex.join(self.flags)]
        for direction in self.directions:
            command += ["--api", self._api(direction), "--blob-dir", self._api(direction).parent]
        self._execute(command)
        self._execute([*tool, "install", "--build-dir", self.directory / "build", "--prefix", self.lazy.parent])

    def _build_driver(self) -> None:
        hipcc: list[str | Path] = [self.rocm / "bin/hipcc", "-x", "hip", "--cuda-host-only", "-std=c++20", "-O1"]
        hipcc += ["-Wall", "-Wextra", "-Werror", *(word for path in self.includes for word in ("-isystem", path))]
        objects: list[Path] = []
        for name in [*self.directions, "driver"]:
            objects.append(self.directory / f"{name}.o")
            # In a host-only pass clang names no unit by itself, and the units' symbols clash.
            self._execute([*hipcc, "-Xclang", f"-cuid={name}", "-c", HERE / f"{name}.cpp", "-o", objects[-1]])
        self._execute([self.rocm / "bin/hipcc", *objects, self.lazy, "-o", self.directory / "driver"])

    def _object(self, source: Path, directory: Path) -> Path:
        key = hashlib.sha256(repr((source.read_bytes(), self.flags, self.rocm)).encode()).hexdigest()[:16]
        target = directory / f"{source.stem}.{key}.o"
        if not target.exists():
            partial = target.with_suffix(f".{os.getpid()}.partial")
            self._execute([self.rocm / "bin/hipcc", *self.flags, "-fPIC", "-c", source, "-o", partial])
            partial.rename(target)
        return target

    def _layouts(self, blob: Path) -> Layouts:
        layouts = ["--cuda-host-only", "-fsyntax-only", "-Xclang", "-fdump-record-layouts"]
        return parse_layouts(self._execute([self.rocm / "bin/hipcc", *layouts, *self.flags, blob]))

    def _link_original(self, objects: Sequence[Path]) -> None:
        # -z lazy: it has not all blobs of its dispatchers, only those that the cases need.
        flags: list[str | Path] = [
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{LIBRARY}",
            "-Wl,-z,lazy",
            f"--offload-arch={ARCH}",
        ]
        self._execute([self.rocm / "bin/hipcc", *flags, *objects, "-o", self.original])

    def _execute(self, command: Sequence[str | Path]) -> str:
        env = os.environ | {"ROCM_PATH": str(self.rocm)}
        done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout
