"""The command ``report``."""

from __future__ import annotations

from pathlib import Path

import click

_PATH = click.Path(path_type=Path, readable=False)


@click.command("report")
@click.argument("targets", metavar="BUILD_DIR_OR_CACHE...", type=_PATH, nargs=-1, required=True)
@click.option("-o", "--output", type=_PATH, required=True, help="The HTML file.")
@click.option("--used", type=_PATH, multiple=True, help="What CK_JIT_RECORD wrote in a run. Repeats.")
@click.option("--arch", "arches", multiple=True, help="GPU to show. Repeats. Default: all it was built for.")
@click.option("--title", default="Attention kernels", show_default=True, help="The page's title.")
def report_command(
    targets: tuple[Path, ...],
    output: Path,
    used: tuple[Path, ...],
    arches: tuple[str, ...],
    title: str,
) -> None:
    """Write one HTML page on the kernels of libraries: which are reachable, compiled and used, their sizes and times.

    Names build directories or installed prefixes, and caches; without a cache, that of this machine is looked into.

    \b
    Example:
      ck-post-build report dist ~/.cache/ck_jit --used used.txt -o kernels.html
    """
    from ck_post_build import runtime_env
    from ck_post_build.output import write_all
    from ck_post_build.report_data import collect
    from ck_post_build.report_page import render

    data = collect(targets, Path(runtime_env.cache_dir(None)), used, arches)
    write_all(output.absolute().parent, {output.name: render(data, title)})
    cached = sum(kernel.size is not None for kernel in data.kernels)
    click.echo(f"{len(data.traits)} blobs, {len(data.kernels)} kernels with their architectures, {cached} compiled")
