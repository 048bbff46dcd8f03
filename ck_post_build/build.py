"""Builds a lazy library: rewrite, then a ninja graph."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import ninja

from ck_post_build.build_info import STAMP, LinkInfo, read_link_info
from ck_post_build.build_stamp import Stamp, header_places, read_stamp, take_stamp, tool_files
from ck_post_build.compile_db import FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.glue import STUBS
from ck_post_build.headers import header_files
from ck_post_build.jit_root import JIT_ROOT
from ck_post_build.ninja_graph import Graph, Source, write_graph
from ck_post_build.outline import outlined_name
from ck_post_build.output import write_all
from ck_post_build.refresh import refresh
from ck_post_build.resources import resource_dir
from ck_post_build.rewriter import Progress, list_blob_files, rewrite
from ck_post_build.toolchain import Toolchain, find_toolchain

LIBRARY_FILE = "ck_post_build_library"
_RUNTIME = "ck_jit_runtime.cpp"
_SOURCES = frozenset({".cpp", ".cc", ".cxx", ".hip", ".cu", ".c"})
_HOST = ("-x", "hip", "--cuda-host-only")
# The dispatcher is one huge chain of conditions: -O1 removes them as well as -O3 does, in a fraction of the time.
_DISPATCHER_OPTIMISATION = "-O1"


@dataclass(frozen=True)
class BuildRequest:
    """What to build.

    Attributes:
        api, blob_dirs, flags: as for ``rewrite``.
        output: the build directory.
        library: file name of the library.
        host_objects: more objects, archives and host sources of the library.
        link_flags: passed to the link as they are.
        jobs: compiles at once; None: ninja's choice.
        depfile: where to write, for make or ninja, what the library depends on.
    """

    api: Sequence[Path]
    blob_dirs: Sequence[Path]
    flags: FlagSource
    output: Path
    library: str
    host_objects: Sequence[Path] = ()
    link_flags: Sequence[str] = field(default_factory=tuple)
    jobs: int | None = None
    depfile: Path | None = None


def build(request: BuildRequest, *, verbose: bool = False, progress: Progress = lambda message: None) -> Path:
    """Build the lazy library and return its path.

    Only what changed is done again; a second build does nothing.

    Raises:
        CkPostBuildError: what ``rewrite`` raises, no compiler, or a compile or link that fails (its output is printed).
    """
    if "/" in request.library or not request.library.endswith(".so"):
        raise CkPostBuildError(f"--lib takes a file name that ends in .so, not {request.library!r}")
    for path in request.host_objects:
        if not path.is_file():
            raise CkPostBuildError("this host object does not exist", file=path)
    toolchain = find_toolchain()
    hipcc = toolchain.require_hipcc()
    _bring_up_to_date(request, toolchain, progress)
    info = read_link_info(request.output)
    graph = write_graph(_graph(request, info, hipcc))
    files = {
        "build.ninja": graph.encode("utf-8", "surrogateescape"),
        LIBRARY_FILE: request.library.encode(),
        _RUNTIME: _runtime_unit(),
    }
    write_all(request.output, files)
    _run_ninja(request, verbose)
    if request.depfile is not None:
        write_all(request.depfile.parent, {request.depfile.name: _dependencies(request, hipcc)})
    return request.output / request.library


def _bring_up_to_date(request: BuildRequest, toolchain: Toolchain, progress: Progress) -> None:
    """Rewrite what has to be rewritten: nothing, the manifest's words about some blobs, or everything."""

    def stamp() -> Stamp:
        return take_stamp(request.api, request.blob_dirs, request.flags, request.output, toolchain)

    old, new = read_stamp(request.output), stamp()
    if new == old:
        return
    changed = new.changed(old) if old is not None else None
    if changed is not None and refresh(request.output, changed, request.flags, toolchain):
        progress(f"took over the new text of {len(changed)} files")
    else:
        rewrite(request.api, request.blob_dirs, request.output, request.flags, toolchain=toolchain, progress=progress)
        # Again: only now is it known which headers there are. The files are those that were read, or older.
        new = msgspec.structs.replace(stamp(), files=new.files)
    write_all(request.output, {STAMP: msgspec.json.encode(new)})


def _dependencies(request: BuildRequest, hipcc: Path) -> bytes:
    """Return a depfile: what was read, and the blob directories, whose time stamps tell of new and removed blobs."""
    paths = [*request.api, *request.blob_dirs, *list_blob_files(request.api, request.blob_dirs), *request.host_objects]
    paths += [header for place in header_places(request.output) for header in header_files(place)]
    paths += [hipcc, *tool_files(), *resource_dir("ck_jit_runtime").iterdir()]
    # What the compiler saw of all else, as ninja noted it.
    noted = subprocess.run([*_ninja(request), "-t", "deps"], stdout=subprocess.PIPE, check=True).stdout
    output = request.output.absolute()
    for line in os.fsdecode(noted).splitlines():
        if line.startswith("    "):
            path = output / line.strip()
            if not path.is_relative_to(output):
                paths.append(path)
    names = dict.fromkeys(str(path.absolute()) for path in paths)
    escaped = [
        re.sub(r"([ #\\])", r"\\\1", name).replace("$", "$$") for name in (str(output / request.library), *names)
    ]
    return (escaped[0] + ":" + "".join(f" \\\n  {name}" for name in escaped[1:]) + "\n").encode(
        "utf-8", "surrogateescape"
    )


def _runtime_unit() -> bytes:
    """Return one translation unit of all runtime sources: they share their headers, which are most of the work."""
    names = sorted(path.name for path in resource_dir("ck_jit_runtime").glob("*.cpp"))
    return "".join(f'#include "{name}"\n' for name in names).encode()


def _graph(request: BuildRequest, info: LinkInfo, hipcc: Path) -> Graph:
    runtime = resource_dir("ck_jit_runtime")
    arch = [f"--offload-arch={info.arches[0]}"] if info.arches else []
    common = [*arch, "-fPIC", f"-I{request.output.absolute()}", f"-I{runtime}"]
    # CK prints __FILE__ in messages: name the place that the header has when it is installed.
    common += [f"-ffile-prefix-map={path}={JIT_ROOT}/{place}" for path, place in info.headers.items()]
    common.append(f"-ffile-prefix-map={request.output.absolute()}=.")
    api_flags = tuple(info.apis[0].flags)
    sources = []
    for api in info.apis:
        host = (*_HOST, *api.flags, *common, _DISPATCHER_OPTIMISATION)
        sources.append(Source(outlined_name(api.name), api.name, host))
    sources.append(Source("ck_jit_manifest.cpp", "ck_jit_manifest.cpp", (*_HOST, *api_flags, *common)))
    if info.stubs:
        sources.append(Source(STUBS, STUBS, ("-x", "assembler-with-cpp", "-fPIC")))
    plain = ("-x", "c++", "-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", f"-I{runtime}")
    sources.append(Source(_RUNTIME, _RUNTIME, plain))
    objects = []
    for number, path in enumerate(request.host_objects):
        if path.suffix in _SOURCES:
            host_flags = request.flags.of(path).arguments
            sources.append(Source(str(path.absolute()), f"host_{number}_{path.name}", (*_HOST, *host_flags, *common)))
        else:
            objects.append(str(path.absolute()))
    return Graph(hipcc, request.library, sources, objects, tuple(request.link_flags))


def _ninja(request: BuildRequest) -> list[str]:
    return [str(Path(ninja.BIN_DIR) / "ninja"), "-C", str(request.output)]


def _run_ninja(request: BuildRequest, verbose: bool) -> None:
    command = _ninja(request)
    command += ["-j", str(request.jobs)] if request.jobs else []
    command += ["-v"] if verbose else ["--quiet"]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        raise CkPostBuildError(
            f"the build failed; the compiler's output:\n{done.stdout.strip()}\nCorrect the cause and run the same command again",
            file=request.output / "build.ninja",
        )
    if verbose:
        print(done.stdout, end="")
