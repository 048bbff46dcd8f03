"""Builds libatlasgdn.so for sm_90a, and its bridges. Needs nvcc 13, g++, pip and about 3 minutes; no GPU.

FlashInfer's headers come out of its wheel, which pip fetches and which nothing here keeps in the repository.

    python examples/gdn/build.py [--output build/gdn]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from ck_post_build.bridge.command import generate
from ck_post_build.errors import CkPostBuildError

HERE = Path(__file__).resolve().parent
# The last release whose prefill kernel for Hopper is CUTLASS C++; later ones generate it from Python.
WHEEL = "flashinfer-python==0.6.13"
FLA = "fla-core==0.6.0"
HEADERS = ("include/flashinfer/flat/", "cutlass/include/", "cutlass/tools/util/include/")
# Of -use_fast_math, with which FlashInfer compiles, only -ftz: its log2 is off by 2e-7 near 1, which a gate of 0.9999
# carries through thousands of tokens.
NVCC_FLAGS = (
    "-std=c++20",
    "-O3",
    "-DNDEBUG",
    "-ftz=true",
    "-gencode=arch=compute_90a,code=sm_90a",
    "--expt-relaxed-constexpr",
)
FLAT_FLAGS = ("-DFLAT_SM90A_ENABLED", "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED", "-w")
HOST_FLAGS = ("-std=c++20", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden")


def run(*command: str | Path) -> None:
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run(command, check=True)


def fetch(output: Path) -> Path:
    """Fetch the wheel unless it is there, unpack the headers and return their directory."""
    wheels = output / "wheels"
    if not list(wheels.glob("flashinfer_python-*.whl")):
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, WHEEL)
    headers = output / "flashinfer"
    if not headers.is_dir():
        partial = output / "flashinfer.partial"
        with zipfile.ZipFile(next(wheels.glob("flashinfer_python-*.whl"))) as wheel:
            prefixes = tuple(f"flashinfer/data/{part}" for part in HEADERS)
            wheel.extractall(partial, [name for name in wheel.namelist() if name.startswith(prefixes)])
        (partial / "flashinfer" / "data").rename(headers)
    return headers


def is_current(target: Path, sources: list[Path]) -> bool:
    return target.is_file() and all(s.stat().st_mtime <= target.stat().st_mtime for s in sources)


def cuda_home() -> Path:
    if "CUDA_HOME" in os.environ:
        return Path(os.environ["CUDA_HOME"])
    command = ["nvcc", "--dryrun", "-E", "-x", "cu", os.devnull]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    top = next(line for line in listing.stderr.splitlines() if " TOP=" in line)
    return Path(top.split("=", 1)[1].strip()).resolve()


def compile_all(output: Path, headers: Path, bridge: Path) -> list[Path]:
    """Compile what is out of date and return the objects."""
    shim, objects = HERE / "shim", output / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    local = [*shim.glob("*.hpp"), HERE / "atlas_gdn.h"]
    includes = [f"-I{headers / part}" for part in ("include", *HEADERS[1:])]
    cuda = cuda_home() / "include"
    nvcc = ["nvcc", *NVCC_FLAGS, "-Xcompiler", "-fPIC,-fvisibility=hidden"]
    commands: dict[Path, list[str | Path]] = {
        shim / "flat_kernel.cu": [*nvcc, *FLAT_FLAGS, *includes],
        shim / "state_kernels.cu": [*nvcc],
        **{
            shim / f"{name}.cpp": ["g++", *HOST_FLAGS, "-isystem", cuda]
            for name in ("entry", "scratch", "stream", "device")
        },
        bridge / "gdn_abi.c": ["gcc", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden", f"-I{HERE}"],
    }
    made = []
    for source, command in commands.items():
        target = objects / f"{source.name}.o"
        if not is_current(target, [source, *local]):
            run(*command, "-c", source, "-o", target)
        made.append(target)
    return made


def build(output: Path) -> Path:
    """Build everything into `output` and return the library."""
    headers, bridge = fetch(output), output / "bridge"
    generate(HERE / "gdn.toml", bridge)
    objects = compile_all(output, headers, bridge)
    library = output / "libatlasgdn.so"
    run("nvcc", "-shared", "-cudart", "static", "-o", library, *objects)
    generate(HERE / "gdn.toml", bridge, library)  # fails if the library does not match the header
    return library


def build_bench(output: Path) -> None:
    """Build what bench/run_h200.py needs besides: the scalar kernel, the programs in C++ and Rust, and FLA's wheel."""
    bench, bridge, cuda = HERE / "bench", output / "bridge", cuda_home()
    source, baseline = bench / "scalar_gdn.cu", output / "libscalar_gdn.so"
    if not is_current(baseline, [source]):
        run("nvcc", *NVCC_FLAGS, "-shared", "-cudart", "static", "-Xcompiler", "-fPIC", "-o", baseline, source)
    runtime = next(d for d in (cuda / "lib64", cuda / "lib") if (d / "libcudart_static.a").is_file())
    libraries = [f"-L{runtime}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    program = bench / "smoke.cpp"
    includes: list[str | Path] = [f"-I{bridge}", f"-I{HERE}", "-isystem", cuda / "include"]
    run("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", *includes, program, "-o", output / "smoke_cpp", *libraries)
    (bridge / "smoke.rs").write_bytes((bench / "smoke.rs").read_bytes())  # beside gdn.rs, its module
    rust = [word for library in libraries for word in ("-C", f"link-arg={library}")]
    run("rustc", "--edition", "2021", "-O", "-D", "warnings", bridge / "smoke.rs", "-o", output / "smoke_rust", *rust)
    if not list((output / "wheels").glob("fla_core-*.whl")):
        run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", output / "wheels", FLA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", action="store_true", help="build the programs of bench/ too; needs rustc")
    parser.add_argument("--output", type=Path, default=HERE.parents[1] / "build" / "gdn")
    arguments = parser.parse_args()
    try:
        library = build(arguments.output.resolve())
        if arguments.bench:
            build_bench(arguments.output.resolve())
    except (CkPostBuildError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")
    print(f"built {library}, {library.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
