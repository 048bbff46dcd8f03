"""The command line: one click command a step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ck_post_build import flags as flag_text
from ck_post_build.compile_db import CompileDatabase, FixedFlags, FlagSource
from ck_post_build.errors import CkPostBuildError
from ck_post_build.output import write_all
from ck_post_build.resources import resource_dir

_PATH = click.Path(path_type=Path, readable=False)  # whether it is, the steps say themselves


class _Group(click.Group):
    """Turns CkPostBuildError into one message and exit status 1, and loads a command's module only when it is used."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except CkPostBuildError as error:
            click.echo(f"ck-post-build: {error}", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_LAZY])

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _LAZY:
            return _LAZY[name]()
        return super().get_command(ctx, name)


def _bridge() -> click.Command:
    from ck_post_build.bridge.command import bridge_command

    return bridge_command


def _report() -> click.Command:
    from ck_post_build.report_command import report_command

    return report_command


def _cache_command(name: str) -> Callable[[], click.Command]:
    def load() -> click.Command:
        from ck_post_build import cache_commands

        return cache_commands.COMMANDS[name]

    return load


def _print_cmake_dir(context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        click.echo(str(resource_dir("cmake")))
        context.exit()


_LAZY: dict[str, Callable[[], click.Command]] = {
    "bridge": _bridge,
    "report": _report,
    **{name: _cache_command(name) for name in ("prebuild", "pack", "unpack", "cache", "doctor")},
}


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ck-post-build")
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_cmake_dir,
    help="Print the directory of CkPostBuild.cmake and exit.",
)
def main() -> None:
    """Turn Composable Kernel's fused-attention libraries into lazily compiled ones."""


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that ``rewrite`` and ``build`` share."""
    options = [
        click.option(
            "--api", "api", type=_PATH, multiple=True, required=True, help="A generated fmha_*_api.cpp. Repeats."
        ),
        click.option(
            "--blob-dir", "blob_dirs", type=_PATH, multiple=True, required=True, help="Where its blobs are. Repeats."
        ),
        click.option(
            "--compile-db",
            type=_PATH,
            help="compile_commands.json, or a directory configured for Ninja, for the flags.",
        ),
        click.option("--flags", help="Compiler flags of all files, as one string."),
        click.option("-o", "--output", type=_PATH, required=True, help="Output directory."),
        click.option("-v", "--verbose", is_flag=True, help="Say what is being done."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _flag_source(compile_db: Path | None, flags: str | None) -> FlagSource:
    if (compile_db is None) == (flags is None):
        raise click.UsageError("give either --compile-db or --flags")
    return CompileDatabase(compile_db) if compile_db is not None else FixedFlags(flags or "")


def _progress(verbose: bool) -> Callable[[str], None]:
    started = time.monotonic()

    def report(message: str) -> None:
        if verbose:
            click.echo(f"[{time.monotonic() - started:6.1f} s] {message}", err=True)

    return report


@main.command()
@_common
@click.option("--report", "report_file", type=_PATH, help="Write what was found as JSON.")
def rewrite(
    api: tuple[Path, ...],
    blob_dirs: tuple[Path, ...],
    compile_db: Path | None,
    flags: str | None,
    output: Path,
    verbose: bool,
    report_file: Path | None,
) -> None:
    """Rewrite API files so that each dispatch compiles its kernel when it is first reached.

    \b
    Example:
      ck-post-build rewrite --api gen/fmha_fwd_api.cpp --blob-dir gen \\
          --compile-db build -o lazy --report lazy/report.json
    """
    from ck_post_build.rewriter import rewrite as rewrite_files

    source = _flag_source(compile_db, flags)
    report = rewrite_files(api, blob_dirs, output, source, progress=_progress(verbose))
    if report_file is not None:
        write_all(report_file.parent, {report_file.name: report.to_json()})
    click.echo(
        f"{report.sites} sites, {report.blobs} blobs, {len(report.discarded)} discarded, "
        f"{len(report.unreferenced_blobs)} blobs that no site reaches"
    )


@main.command()
@_common
@click.option("--lib", "library", required=True, help="File name of the library, such as libmha_fwd.so.")
@click.option(
    "--host-object", "host_objects", type=_PATH, multiple=True, help="Another object, archive or host source. Repeats."
)
@click.option("--link-flags", default="", help="More link flags, as one string (version script, --exclude-libs, ...).")
@click.option("-j", "jobs", type=click.IntRange(min=1), help="Compiles at once.")
@click.option("--depfile", type=_PATH, help="Write what the library depends on, for make or ninja.")
def build(
    api: tuple[Path, ...],
    blob_dirs: tuple[Path, ...],
    compile_db: Path | None,
    flags: str | None,
    output: Path,
    verbose: bool,
    library: str,
    host_objects: tuple[Path, ...],
    link_flags: str,
    jobs: int | None,
    depfile: Path | None,
) -> None:
    """Rewrite, compile and link a lazy library. A second run does only what changed.

    \b
    Example:
      ck-post-build build --api gen/fmha_bwd_api.cpp --blob-dir gen \\
          --compile-db build --lib libmha_bwd.so -o lazy
    """
    from ck_post_build.build import BuildRequest
    from ck_post_build.build import build as build_library

    request = BuildRequest(
        api,
        blob_dirs,
        _flag_source(compile_db, flags),
        output,
        library,
        host_objects,
        flag_text.split(link_flags),
        jobs,
        depfile,
    )
    click.echo(str(build_library(request, verbose=verbose, progress=_progress(verbose))))


@main.command()
@click.option("--build-dir", type=_PATH, required=True, help="What ck-post-build build wrote with -o.")
@click.option("--prefix", type=_PATH, required=True, help="Where the library and its ck_jit directory go.")
def install(build_dir: Path, prefix: Path) -> None:
    """Install a built library with the blob sources, headers and script that it compiles kernels from.

    \b
    Example:
      ck-post-build install --build-dir lazy --prefix dist
    """
    from ck_post_build.install import install as install_library

    library = install_library(build_dir, prefix, lambda text: click.echo(f"note: {text}", err=True))
    click.echo(str(library))


@main.command()
@click.argument("target", type=_PATH)
def verify(target: Path) -> None:
    """Check that every kernel symbol that a site needs is predicted, and is in each compiled blob.

    TARGET is a build directory, or an installed library.

    \b
    Example:
      ck-post-build verify dist/libmha_fwd.so
    """
    from ck_post_build.verify import verify as verify_target

    result = verify_target(target)
    click.echo(
        f"{result.blobs} blobs, {result.symbols} symbols predicted, {result.compiled} compiled blobs hold theirs"
    )
    if result.size is not None:
        share = f", {result.size.manifest / result.size.file:.0%} of it manifest" if result.size.manifest >= 0 else ""
        click.echo(f"the library has {result.size.file / 2**20:.1f} MiB{share}")


if __name__ == "__main__":
    main()
