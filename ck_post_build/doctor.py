"""Checks whether this machine can compile blobs, and says what to do where it cannot."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ck_post_build import libclang, runtime_env
from ck_post_build.blob_selection import Selection, select
from ck_post_build.cache_dir import Kind, list_cache
from ck_post_build.cache_key import SCRIPT, CompilerId, compiler_id, compiler_key, read_script
from ck_post_build.errors import CkPostBuildError
from ck_post_build.jit_root import RootManifest, find_root_manifests, root_directory
from ck_post_build.machine_lock import lock_directory
from ck_post_build.toolchain import find_toolchain

_SPACE = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One line of the report. `mark` is ``ok``, ``note`` (worth knowing) or ``BROKEN``."""

    mark: str
    what: str
    text: str

    @property
    def broken(self) -> bool:
        """Whether something does not work."""
        return self.mark == "BROKEN"


def examine(root: Path | None, cache_dir: Path | None) -> Iterator[Finding]:
    """Yield a finding for each thing that compiling needs; `root` is the installed library to compile for, if any."""
    compiler: CompilerId | None = None
    try:
        compiler = compiler_id(runtime_env.find_hipcc())
        yield Finding("ok", "compiler", f"{compiler.hipcc} ({compiler.version})")
    except CkPostBuildError as error:
        yield Finding("BROKEN", "compiler", str(error))
    if compiler is not None:
        yield _rocm(compiler)
        yield _linker(compiler)
    yield _libclang()
    yield _device()
    cache = runtime_env.cache_dir(cache_dir)
    yield _cache(cache)
    yield _locks(cache)
    yield from (_space(what, path) for what, path in (("cache", cache), ("scratch", runtime_env.temp_dir())))
    if root is not None:
        yield from _library(root, cache, compiler)


def _rocm(compiler: CompilerId) -> Finding:
    prefix = Path(compiler.hipcc).parent.parent
    header = prefix / "include" / "hip" / "hip_runtime.h"
    bitcode = [os.environ.get("HIP_DEVICE_LIB_PATH", ""), str(prefix / "amdgcn" / "bitcode")]
    if not header.is_file():
        return Finding(
            "BROKEN", "ROCm", f"{header} is missing: install HIP's headers, or set ROCM_PATH to a whole ROCm"
        )
    if not any(place and Path(place).is_dir() for place in bitcode):
        return Finding(
            "note", "ROCm", f"{prefix} has no amdgcn/bitcode; if compiles fail, set HIP_DEVICE_LIB_PATH to its place"
        )
    return Finding("ok", "ROCm", str(prefix))


def _linker(compiler: CompilerId) -> Finding:
    """Compile and link nothing, as a blob would be."""
    command = [compiler.hipcc, "-x", "c++", "-shared", "-fPIC", "-o", "/dev/null", "/dev/null"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("BROKEN", "linking", f"{compiler.hipcc}: {error}. Reinstall ROCm")
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
        return Finding(
            "BROKEN", "linking", f"an empty shared object cannot be made ({first}). Install binutils and libstdc++"
        )
    return Finding("ok", "linking", "an empty shared object can be made")


def _libclang() -> Finding:
    try:
        toolchain = find_toolchain()
        libclang.load(toolchain.clang.library)
    except CkPostBuildError as error:
        return Finding("BROKEN", "libclang", str(error))
    place = toolchain.clang.library or "of the libclang package"
    return Finding("ok", "libclang", f"{place} (only rewrite and build need it)")


def _device() -> Finding:
    if chosen := os.environ.get("CK_JIT_ARCH"):
        return Finding("ok", "device", f"CK_JIT_ARCH={chosen}")
    nodes = Path("/sys/class/kfd/kfd/topology/nodes")
    versions = []
    for properties in sorted(nodes.glob("*/properties")) if nodes.is_dir() else ():
        with contextlib.suppress(OSError):
            lines = dict(line.split(" ", 1) for line in properties.read_text().splitlines() if " " in line)
            versions.append(int(lines.get("gfx_target_version", "0")))
    names = [f"gfx{v // 10000}{v // 100 % 100:x}{v % 100:x}" for v in versions if v]
    if not names:
        return Finding("note", "device", "no AMD GPU here; prebuild needs none, give it --arch (or CK_JIT_ARCH)")
    if not os.access("/dev/kfd", os.R_OK | os.W_OK):
        return Finding("BROKEN", "device", f"{', '.join(names)}, and /dev/kfd cannot be opened: join the group render")
    return Finding("ok", "device", ", ".join(names))


def _cache(cache: str) -> Finding:
    path = Path(cache)
    existing = next(place for place in (path, *path.parents) if place.exists())
    try:
        if existing == path:
            runtime_env.private_dir(cache)
    except CkPostBuildError as error:
        return Finding("BROKEN", "cache", str(error))
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding(
            "BROKEN", "cache", f"{existing} cannot be written: set CK_JIT_CACHE_DIR to a directory of your own"
        )
    if existing != path:
        return Finding("ok", "cache", f"{cache} (will be made)")
    entries = sum(file.kind is Kind.ENTRY for file in list_cache(path))
    return Finding("ok", "cache", f"{cache} ({entries} entries)")


def _locks(cache: str) -> Finding:
    # Only looked at: lock_directory would make the cache.
    place = next((place for place in runtime_env.lock_dirs(cache) if Path(place).is_dir()), None)
    if place is None:
        return Finding("ok", "locks", f"{runtime_env.lock_dirs(cache)[0]} (will be made)")
    found = lock_directory(cache)
    if found is None:
        return Finding(
            "note", "locks", f"{place} cannot be trusted, so blobs may be compiled twice: set CK_JIT_LOCK_DIR"
        )
    return Finding("ok", "locks", str(found))


def _space(what: str, path: str) -> Finding:
    existing = next(place for place in (Path(path), *Path(path).parents) if place.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / (1 << 30):.1f} GiB free in {existing}"
    if free < _SPACE:
        return Finding("BROKEN", f"{what} space", f"{text}: make room, or choose another directory")
    return Finding("ok", f"{what} space", text)


def _library(root: Path, cache: str, compiler: CompilerId | None) -> Iterator[Finding]:
    place = root_directory(root)
    try:
        manifests = find_root_manifests(root)
        script = read_script(place)
    except CkPostBuildError as error:
        yield Finding("BROKEN", "library", str(error))
        return
    if not os.access(place / SCRIPT, os.X_OK):
        yield Finding("BROKEN", "library", f"{place / SCRIPT} is not executable: install the library again")
    for manifest in manifests:
        missing = [blob.source for blob in manifest.blobs if not (place / blob.source).is_file()]
        if missing:
            yield Finding(
                "BROKEN", "library", f"{manifest.library} lacks {len(missing)} sources ({missing[0]}): install it again"
            )
        else:
            yield _to_compile(manifest, cache, compiler_key(compiler.identity, script) if compiler else None)


def _to_compile(manifest: RootManifest, cache: str, key: str | None) -> Finding:
    what = f"{manifest.library}: {len(manifest.blobs)} blobs"
    try:
        targets = select([manifest], Selection(everything=True), runtime_env.chosen_arches())
    except CkPostBuildError as error:
        return Finding("note", "library", f"{what}; {error}")
    there = {f.entry for f in list_cache(Path(cache)) if f.kind is Kind.ENTRY and f.entry}
    inputs = {(entry.stem, entry.input) for entry in there}
    left = [t for t in targets if (t.entry(key) not in there if key else (t.entry("").stem, t.input) not in inputs)]
    built_for = ", ".join(dict.fromkeys(target.arch for target in targets))
    return Finding("ok", "library", f"{what} for {built_for}; {len(left)} of {len(targets)} entries would be compiled")
