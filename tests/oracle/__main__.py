"""``python -m tests.oracle``: is the rewritten dispatcher the original?"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from .run import ARCHES, Oracle, Result


@click.command()
@click.option("--api", type=click.Path(path_type=Path, exists=True), required=True, help="The API file.")
@click.option("--blob-dir", type=click.Path(path_type=Path, exists=True), help="Its blobs; beside it by default.")
@click.option("--flags", required=True, help="Compiler flags, as for ck-post-build.")
@click.option("--random", "random_inputs", default=1_000_000, help="Random inputs for each architecture.")
@click.option("--seed", default=1)
@click.option("--arch", "arches", multiple=True, default=ARCHES, help="gcnArchName of the device; repeat.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Directory to build in.")
@click.option("--list-unreached", is_flag=True, help="Print each site that no input reached, and why.")
def main(
    api: Path,
    blob_dir: Path | None,
    flags: str,
    random_inputs: int,
    seed: int,
    arches: tuple[str, ...],
    output: Path,
    list_unreached: bool,
) -> None:
    """Compare the original and the rewritten dispatcher of one API file. Exit status 1: they differ."""
    started = time.monotonic()
    oracle = Oracle(api, blob_dir or api.parent, flags, output)
    oracle.build(seed)
    result = oracle.drive(random_inputs, seed, arches)
    report(api.name, result, list_unreached=list_unreached)
    click.echo(f"{time.monotonic() - started:.0f} s")
    sys.exit(1 if result.differences else 0)


def report(name: str, result: Result, *, list_unreached: bool) -> None:
    """Print what a run found."""
    for line in result.differences:
        click.echo(line)
    for arch, counts in result.counts.items():
        click.echo(f"{arch}: {counts}")
    if list_unreached:
        for site in result.unreached:
            click.echo(f"{name}:{site.line}: {'cannot be' if site.proved else 'not'} reached: {site.reason}")
    proved = sum(site.proved for site in result.unreached)
    click.echo(
        f"{name}: {result.sites} sites, {result.sites - len(result.unreached)} reached, {proved} that no input reaches, "
        f"{result.inputs} inputs, {result.different} differences"
    )


if __name__ == "__main__":
    main()
