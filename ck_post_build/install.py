"""Installs a built library with its JIT root: a relocatable tree."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from ck_post_build.build import LIBRARY_FILE
from ck_post_build.build_info import read_build_info
from ck_post_build.errors import CkPostBuildError
from ck_post_build.headers import header_files, header_place
from ck_post_build.jit_root import JIT_ROOT, RootManifest, manifest_name
from ck_post_build.manifest import SOURCE_DIRECTORY
from ck_post_build.output import write_all
from ck_post_build.precompile import precompile_files
from ck_post_build.resources import resource_dir
from ck_post_build.toolchain import find_toolchain
from ck_post_build.verify import as_root_manifest

COMPILE_SCRIPT = "ck_jit_compile.sh"


def install(build_dir: Path, prefix: Path, note: Callable[[str], None] = lambda text: None) -> Path:
    """Install the library that ``build`` left in `build_dir` under `prefix`, and return the installed library's path.

    The tree is ``<prefix>/<library>`` and ``<prefix>/ck_jit/`` (compile script, blob sources, headers, manifest, headers to
    precompile). Several libraries may share a prefix. Moving the prefix is fine. `note` is told of what is left out.

    Raises:
        CkPostBuildError: nothing was built there, or the prefix cannot be written.
    """
    info = read_build_info(build_dir)
    name_file = build_dir / LIBRARY_FILE
    library = build_dir / name_file.read_text() if name_file.is_file() else None
    if library is None or not library.is_file():
        raise CkPostBuildError("no library here: run ck-post-build build first", file=build_dir)
    files: dict[str, bytes] = {}
    for blob in info.blobs:
        content = _read(Path(blob.source))
        if hashlib.sha256(content).hexdigest() != blob.source_hash:
            raise _changed(Path(blob.source))
        files[f"{JIT_ROOT}/{SOURCE_DIRECTORY}{blob.name}"] = content
    for place, target in info.headers.items():
        if header_place(Path(place)) != target:
            raise _changed(Path(place))
        for header in header_files(Path(place)):
            relative = "" if header == Path(place) else f"/{header.relative_to(place).as_posix()}"
            files[f"{JIT_ROOT}/{target}{relative}"] = _read(header)
    stem = manifest_name(library.name)
    files[f"{JIT_ROOT}/{stem}"] = _read(build_dir / info.manifest_records)
    manifest = as_root_manifest(info, library.name)
    files[f"{JIT_ROOT}/{stem}.json"] = msgspec.json.encode(manifest)
    write_all(prefix, files)
    _write_precompile_files(prefix / JIT_ROOT, manifest, note)
    script = prefix / JIT_ROOT / COMPILE_SCRIPT
    _copy(resource_dir("ck_jit_runtime") / COMPILE_SCRIPT, script)
    script.chmod(0o755)
    _copy(library, prefix / library.name)
    return prefix / library.name


def _write_precompile_files(root: Path, manifest: RootManifest, note: Callable[[str], None]) -> None:
    """Write the headers to precompile. They only save time: where there is no HIP compiler, the library works without."""
    try:
        toolchain = find_toolchain()
    except CkPostBuildError as error:
        note(f"no headers to precompile, so each kernel compiles at full length: {error}")
        return
    write_all(root, precompile_files(root.absolute(), manifest, toolchain, note))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CkPostBuildError(f"cannot read the file: {error.strerror}. Build again", file=path) from error


def _changed(path: Path) -> CkPostBuildError:
    return CkPostBuildError("changed since the library was built: run ck-post-build build again", file=path)


def _copy(source: Path, target: Path) -> None:
    """Copy over a temporary name, because a running process may have the old file mapped."""
    temporary = target.with_name(f".{target.name}.new")
    try:
        shutil.copyfile(source, temporary)
        temporary.chmod(0o755)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CkPostBuildError(f"cannot install: {error.strerror}. Choose another --prefix", file=target) from error
