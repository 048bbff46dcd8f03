"""``python -m tests.oracle.sample``: real compiles, device pass and all, of a stratified sample of an installed library's blobs.

Each is half a minute or more: to be run by hand.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import click

from ck_post_build import verify
from ck_post_build.blob_traits import blob_traits
from ck_post_build.jit_root import RootManifest, find_root_manifests, root_directory

STRATUM = ("direction", "dtype", "hdim")


def choose(manifest: RootManifest, count: int, seed: int) -> list[str]:
    """Return names of `count` blobs: one of each stratum in turn."""
    generator = random.Random(seed)
    strata: dict[str, list[str]] = defaultdict(list)
    for blob in manifest.blobs:
        traits = blob_traits(manifest, blob)
        strata[str([sorted(map(str, traits.get(name, ()))) for name in STRATUM])].append(blob.name)
    queues = [generator.sample(names, len(names)) for _, names in sorted(strata.items())]
    generator.shuffle(queues)
    chosen: list[str] = []
    while len(chosen) < count and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    return chosen[:count]


@click.command()
@click.option("--root", type=click.Path(path_type=Path, exists=True), required=True, help="Prefix of an installation.")
@click.option("--count", default=60, help="Blobs of each library.")
@click.option("--seed", default=1)
@click.option("--arch", default="gfx90a")
@click.option("--cache", type=click.Path(path_type=Path), required=True, help="Cache directory; kept.")
@click.option("-j", "jobs", default=2)
def main(root: Path, count: int, seed: int, arch: str, cache: Path, jobs: int) -> None:
    """Compile the sample, and check the predicted symbols against the objects. Exit status 1: one is wrong or fails."""
    started = time.monotonic()
    os.environ["CK_JIT_CACHE_DIR"] = str(cache.absolute())
    failed = False
    for manifest in find_root_manifests(root):
        names = choose(manifest, count, seed)
        words = ["prebuild", "--root", root, "--arch", arch, "-j", str(jobs), *names]
        done = subprocess.run([sys.executable, "-m", "ck_post_build", *words])
        failed |= done.returncode != 0
        result = verify(root_directory(root).parent / manifest.library)
        click.echo(
            f"{manifest.library}: {len(names)} of {result.blobs} blobs chosen, {result.compiled} compiled ones checked, "
            f"all with the predicted symbols, {time.monotonic() - started:.0f} s"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
