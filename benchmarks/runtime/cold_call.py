"""What compiling one blob costs: ck_jit_compile.sh against the plain single hipcc command, side by side in one run.

    python benchmarks/runtime/cold_call.py [--rounds N] [--arch gfx90a]

Three real blobs, forward, split-KV and backward, compiled with an assembled HIP compiler: 25 minutes. Their headers
are those that `ck-post-build install` writes for precompiling: for each kind of blob with the kernel of the first of its kind,
which is none of the three. "headers" is how long precompiling took, once; "no header yet" is the first blob of a kind, for which
one is made afterwards.

They take turns; the table has seconds on the wall and of processor time for each round, and the ratio of the medians.
The device code of the first two is compared byte by byte (both get the same -cuid; without one, clang makes it up from the
output's name). Use a quiet machine: with all cores busy, compiling two halves side by side wins nothing.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from elftools.elf.elffile import ELFFile

from ck_post_build import flags as flag_text
from ck_post_build.jit_root import RootBlob, RootManifest
from ck_post_build.manifest import SOURCE_DIRECTORY
from ck_post_build.output import write_all
from ck_post_build.precompile import precompile_files
from ck_post_build.toolchain import find_toolchain

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import inputs

SCRIPT = Path(__file__).resolve().parent.parent.parent / "ck_jit_runtime/ck_jit_compile.sh"

# A direction and the blobs of it to choose from: a common head size, another type than the first blob's, and without the inline
# assembly of the asynchronous pipelines, which clang 19 refuses.
GENERATED = {
    "fwd": "fmha_fwd_d128_fp16_group_*_qr_vr_*.cpp",
    "fwd_splitkv": "fmha_fwd_splitkv_d128_fp16_group_*_qr_vr_*.cpp",
    "bwd": "fmha_bwd_d128_fp16_group_*.cpp",
}


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds on the wall and of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode:
        sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def device_code(path: Path) -> bytes:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".hip_fatbin")
        return bytes(section.data()) if section else b""


def generated_root(direction: str, root: Path, options: argparse.Namespace) -> RootBlob:
    """Make a JIT root of a direction's blobs in `root`, and return one of them."""
    api = inputs.generate(direction, root / SOURCE_DIRECTORY, targets=(options.arch,))
    names = sorted(path.name for path in api.parent.glob("*.cpp") if path != api)
    blobs = [RootBlob(name, SOURCE_DIRECTORY + name, options.flags, "", "", []) for name in names]
    manifest = RootManifest("library.so", [options.arch], blobs)
    write_all(root, precompile_files(root, manifest, find_toolchain(), print))
    return next(blob for blob in blobs if fnmatch.fnmatch(blob.name, GENERATED[direction]))


def compare(root: Path, blob: RootBlob, options: argparse.Namespace) -> tuple[float, bool]:
    """Print a table of rounds; return the ratio of the medians and whether the device code is equal."""
    flags = [*blob.flags, f"--offload-arch={options.arch}"]
    plain_so, ours_so, source = root / "plain.so", root / "ours.so", root / blob.source
    plain = [
        options.hipcc,
        *flags,
        "-cuid=ck_jit",
        "-shared",
        "-fPIC",
        "-Wl,--build-id=sha1",
        "-o",
        str(plain_so),
        str(source),
    ]
    ours = [str(SCRIPT), "--blob-source", str(source), "--blob-flags", flag_text.join(flags), "--root", str(root)]
    ours += ["--hipcc", options.hipcc, "--output", str(ours_so)]
    os.environ["CK_JIT_PRECOMPILED"] = str(root / "precompiled/compiler")
    first = timed_ours(ours, "first")[0]
    print(f"{blob.name}\n\n| round | hipcc s | its CPU s | ck_jit_compile.sh s | its CPU s | no header yet s | load |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    walls: dict[str, list[float]] = {"plain": [], "ours": [], "no header": []}
    for number in range(options.rounds):
        (plain_wall, plain_cpu), (ours_wall, ours_cpu) = timed(plain), timed_ours(ours, "first")
        same = device_code(plain_so) == device_code(ours_so)
        no_header = timed_ours(ours, "0")[0]
        for walls_of, wall in zip(walls.values(), (plain_wall, ours_wall, no_header), strict=True):
            walls_of.append(wall)
        cells = (plain_wall, plain_cpu, ours_wall, ours_cpu, no_header, os.getloadavg()[0])
        print(f"| {number + 1} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)
    medians = {name: median(found) for name, found in walls.items()}
    ratio = medians["ours"] / medians["plain"]
    print(
        f"\nratio of the medians: {ratio:.2f}, {medians['no header'] / medians['plain']:.2f} with no header yet; device code: "
        f"{'equal' if same else 'DIFFERENT'}; headers: {first - medians['ours']:.1f} s\n"
    )
    return ratio, same


def timed_ours(command: list[str], precompile: str) -> tuple[float, float]:
    os.environ["CK_JIT_PRECOMPILE"] = precompile
    return timed(command)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="gfx90a")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["ROCM_PATH"] = str(inputs.rocm())
    options.hipcc, options.flags = str(inputs.rocm() / "bin/hipcc"), inputs.flags()
    results = []
    for direction in GENERATED:
        with tempfile.TemporaryDirectory(prefix="ck-jit-bench-") as directory:
            root = Path(directory)
            results.append(compare(root, generated_root(direction, root, options), options))
    print(f"median ratio of {len(results)} blobs: {median(ratio for ratio, _ in results):.2f}")
    sys.exit(0 if all(same for _, same in results) else 1)


if __name__ == "__main__":
    main()
