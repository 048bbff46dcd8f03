"""Finds the HIP compiler, its ROCm prefix, and the libclang that goes with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ck_post_build import libclang
from ck_post_build.errors import CkPostBuildError


@dataclass(frozen=True)
class Toolchain:
    """The HIP compiler in use.

    Attributes:
        rocm: the ROCm prefix; None when no compiler was found.
        hipcc: the compiler; None when no compiler was found.
        clang: the libclang to read sources with.
    """

    rocm: Path | None
    hipcc: Path | None
    clang: libclang.Clang

    def require_hipcc(self) -> Path:
        """Return the compiler. Raises CkPostBuildError when there is none."""
        if self.hipcc is None:
            raise CkPostBuildError("no HIP compiler: set ROCM_PATH to a ROCm installation, or put hipcc on PATH")
        return self.hipcc


def find_toolchain() -> Toolchain:
    """Find hipcc in ROCM_PATH, ROCM_HOME, /opt/rocm or PATH, and its libclang (or CK_POST_BUILD_LIBCLANG's)."""
    hipcc = _find_hipcc()
    rocm = hipcc.parent.parent if hipcc else None
    resources = _resource_dir(hipcc) if hipcc else None
    library = _find_libclang(rocm, resources)
    foreign = library is None and resources is not None
    return Toolchain(
        rocm,
        hipcc,
        libclang.Clang(library, libclang.host_arguments(rocm_path=rocm, resource_dir=resources, foreign=foreign)),
    )


def _find_hipcc() -> Path | None:
    for prefix in (os.environ.get("ROCM_PATH"), os.environ.get("ROCM_HOME"), "/opt/rocm"):
        if prefix and os.access(Path(prefix) / "bin" / "hipcc", os.X_OK):
            return Path(prefix) / "bin" / "hipcc"
    found = shutil.which("hipcc")
    return Path(found).resolve() if found else None


def _resource_dir(hipcc: Path) -> Path | None:
    try:
        done = subprocess.run([hipcc, "-print-resource-dir"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise CkPostBuildError(f"cannot run the HIP compiler: {error.strerror}. Set ROCM_PATH", file=hipcc) from error
    path = Path(done.stdout.strip())
    return path if done.returncode == 0 and done.stdout.strip() and path.is_dir() else None


def _find_libclang(rocm: Path | None, resources: Path | None) -> Path | None:
    """Return the libclang of the compiler that `resources` belong to; None: the one of the libclang package."""
    named = os.environ.get("CK_POST_BUILD_LIBCLANG")
    if named:
        return Path(named)
    directories = [rocm / "llvm" / "lib", rocm / "lib" / "llvm" / "lib"] if rocm else []
    if resources:
        directories.append(resources.parent.parent)
    for directory in directories:
        found = sorted(
            p for p in directory.glob("libclang*.so*") if re.match(r"libclang(-\d+)?\.so(\.[\d.]+)?$", p.name)
        )
        if found:
            return found[0]
    return None
