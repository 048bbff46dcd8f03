"""A small lazy library: the real tool, runtime and script around six blobs, with the stand-in hipcc of the golden tests.

A wrapper around that hipcc counts compiles and can be made slow.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from click.testing import CliRunner
from golden.fixtures import HERE as GOLDEN
from golden.golden import ROCM, RUNTIME
from golden.lazy import compile_cpp

from ck_post_build.cli import main

LIBRARY = "libsmall.so"
# name → (head size, type, mask, architecture tag)
BLOBS = {
    "d64_fp16": (64, "Fp16", "false", "gfx9"),
    "d64_fp16_mask": (64, "Fp16", "true", "gfx9"),
    "d64_bf16": (64, "Bf16", "false", "gfx9"),
    "d128_fp16": (128, "Fp16", "false", "gfx9"),
    "d128_bf16": (128, "Bf16", "false", "gfx9"),
    "d128_bf16_fast": (128, "Bf16", "false", "gfx950"),
}
GFX942 = {name for name, blob in BLOBS.items() if blob[3] == "gfx9"}
ENTRIES = len(GFX942) + len(BLOBS)  # on gfx942, and on gfx950

_HEADER = """\
#pragma once
#include "ck_tile/core.hpp"
struct FmhaFwdFp16 {};
struct FmhaFwdBf16 {};
struct fmha_fwd_traits { int hdim; bool bf16; bool mask; };
struct fmha_fwd_args { int x; };
template <int HDim_, typename DataType_, typename FmhaMask_, ck_tile::BiasEnum BiasEnum_>
struct fmha_fwd_traits_ {};
template <typename Traits, typename Arch>
float fmha_fwd_(const ck_tile::stream_config&, fmha_fwd_args);
float fmha_fwd(fmha_fwd_traits, fmha_fwd_args, const ck_tile::stream_config&);
"""

_CALL = """\
#include "fmha_fwd.hpp"
extern "C" float call(int hdim, int bf16, int mask, int x)
{
    return fmha_fwd({hdim, bf16 != 0, mask != 0}, {x}, ck_tile::stream_config{});
}
"""


def _trait(blob: tuple[int, str, str, str]) -> str:
    hdim, dtype, mask, _ = blob
    return f"fmha_fwd_traits_<{hdim}, FmhaFwd{dtype}, ck_tile::GenericMask<{mask}>, ck_tile::BiasEnum::alibi>"


def _blob(name: str) -> str:
    tag = BLOBS[name][3]
    return f"""\
#include "fmha_fwd.hpp"
using trait_0 = {_trait(BLOBS[name])};
template <>
float fmha_fwd_<trait_0, ck_tile::{tag}_t>(const ck_tile::stream_config&, fmha_fwd_args a)
{{
    return a.x + {list(BLOBS).index(name)} * 100;
}}
"""


def _api() -> str:
    cases = ""
    for name in sorted(BLOBS, key=lambda name: BLOBS[name][3] != "gfx950"):
        hdim, dtype, mask, tag = BLOBS[name]
        condition = f"t.hdim == {hdim} && t.bf16 == {str(dtype == 'Bf16').lower()} && t.mask == {mask}"
        cases += f"""\
    if (device.compare(0, {len(tag)}, "{tag}") == 0 && {condition}) {{
        using trait_ = {_trait(BLOBS[name])};
        return fmha_fwd_<trait_, ck_tile::{tag}_t>(s, a);
    }}
"""
    return f"""\
#include "fmha_fwd.hpp"
float fmha_fwd(fmha_fwd_traits t, fmha_fwd_args a, const ck_tile::stream_config& s)
{{
    const std::string device = ck_tile::get_device_name();
{cases}    return -1;
}}
"""


_HIPCC = """\
#!/bin/sh
case " $* " in *" --version "*) ;; *)
    echo "$$" >>"$TEST_COMPILES"
    sleep "${TEST_SECONDS:-0}" ;;
esac
exec @HIPCC@ "$@"
"""


@dataclass(frozen=True)
class Place:
    """The library with a cache of its own.

    Attributes:
        prefix: where the library is installed.
        scratch: for everything that is written.
    """

    prefix: Path
    scratch: Path
    hipcc: Path

    @property
    def cache(self) -> Path:
        return self.scratch / "cache"

    @property
    def root(self) -> Path:
        return self.prefix / "ck_jit"

    def environment(self, **extra: str) -> dict[str, str]:
        """Return an environment in which all that is written is under `scratch`."""
        ours = ("CK_", "ROCM_", "HIP_", "XDG_", "TEST_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        (self.scratch / "tmp").mkdir(exist_ok=True)
        return {
            **kept,
            "CK_JIT_HIPCC": str(self.hipcc),
            "CK_JIT_CACHE_DIR": str(self.cache),
            "TMPDIR": str(self.scratch / "tmp"),
            "TEST_COMPILES": str(self.scratch / "compiles"),
            "CK_TEST_DEVICE": "gfx942",
            **extra,
        }

    def run(self, *words: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run ``ck-post-build`` with `words` within this process, which saves half a second. An exception is raised."""
        with mock.patch.dict(os.environ, self.environment(**extra), clear=True):
            result = CliRunner().invoke(main, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(words, result.exit_code, result.stdout, result.stderr)

    def run_process(self, *words: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run ``ck-post-build`` with `words` in a process of its own."""
        return subprocess.run(
            command(*words), env=self.environment(**extra), capture_output=True, text=True, timeout=120, check=False
        )

    def prebuild(self, *words: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run ``prebuild`` for this library."""
        return self.run("prebuild", "--root", self.prefix, *words, **extra)

    def call(self, *names: str, **extra: str) -> list[float]:
        """Call the library so that it uses the blobs `names`, in a process of its own, and return what it gives."""
        calls = [(hdim, dtype == "Bf16", mask == "true") for hdim, dtype, mask, _ in map(BLOBS.__getitem__, names)]
        program = (
            f"import ctypes; call = ctypes.CDLL({str(self.prefix / LIBRARY)!r}).call; call.restype = ctypes.c_float; "
            f"print([call(*map(int, c), 7) for c in {calls!r}])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=self.environment(**extra),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return [float(word) for word in done.stdout.strip(" []\n").split(",")]

    def entries(self) -> list[str]:
        """Return the file names of the entries in the cache."""
        return sorted(path.name for path in self.cache.glob("*.so"))

    def compiles(self) -> list[int]:
        """Return the process ids of all compilers that were started, without the ones that only link or assemble."""
        log = self.scratch / "compiles"
        return [int(line) for line in log.read_text().split()] if log.exists() else []

    def fill(self, cache: Path, names: Sequence[str]) -> None:
        """Copy the entries `names` from another cache."""
        self.cache.mkdir(mode=0o700)
        for name in names:
            shutil.copyfile(cache / name, self.cache / name)

    def copy(self) -> Place:
        """Return the same with a copy of the installed tree, to change."""
        prefix = self.scratch / "prefix"
        shutil.copytree(self.prefix, prefix)
        return replace(self, prefix=prefix)


def answers(*names: str) -> list[float]:
    """Return what ``Place.call`` gives when the blobs `names` are called."""
    return [7.0 + 100 * list(BLOBS).index(name) for name in names]


def command(*words: str | Path) -> list[str]:
    """Return the command line of ``ck-post-build`` with `words`."""
    return [sys.executable, "-m", "ck_post_build", *map(str, words)]


def write_hipcc(directory: Path) -> Path:
    """Write the counting compiler into `directory`, laid out like ROCm, and return its path."""
    hipcc = directory / "bin" / "hipcc"
    hipcc.parent.mkdir(parents=True)
    hipcc.write_text(_HIPCC.replace("@HIPCC@", shlex.quote(str(ROCM / "bin" / "hipcc"))))
    hipcc.chmod(0o755)
    return hipcc


def build_library(scratch: Path, runtime: Path, arches: Sequence[str] = ("gfx942", "gfx950")) -> Path:
    """Rewrite, compile and install the library under `scratch`, with the runtime's object; returns the prefix."""
    source, output, prefix = scratch / "source", scratch / "lazy", scratch / "prefix"
    (source / "blobs").mkdir(parents=True)
    (source / "fmha_fwd.hpp").write_text(_HEADER)
    (source / "fmha_fwd_api.cpp").write_text(_api())
    (source / "call.cpp").write_text(_CALL)
    for name in BLOBS:
        (source / "blobs" / f"{name}.cpp").write_text(_blob(name))
    includes = ["-std=c++17", f"-I{source}", f"-I{GOLDEN / 'include' / 'ck_tile'}", "-nogpuinc"]
    flags = shlex.join([*includes, "-O0", *(f"--offload-arch={arch}" for arch in arches)])
    words = ["--api", source / "fmha_fwd_api.cpp", "--blob-dir", source / "blobs", "--flags", flags, "-o", output]
    env = {**os.environ, "ROCM_PATH": str(ROCM)}
    subprocess.run(command("rewrite", *words), env=env, check=True, timeout=120)
    sources = [*sorted(output.glob("*_ck_jit.cpp")), output / "ck_jit_manifest.cpp", output / "fmha_fwd_api.cpp"]
    headers = [f"-I{output}", f"-I{RUNTIME}", "-isystem", ROCM / "include"]
    link = ["-shared", "-Wl,--no-undefined", "-o", output / LIBRARY, "-ldl", "-lpthread"]
    compile_cpp([*includes, *headers, *sources, source / "call.cpp", runtime, *link])
    (output / "ck_post_build_library").write_text(LIBRARY)
    subprocess.run(command("install", "--build-dir", output, "--prefix", prefix), check=True, timeout=120)
    return prefix
