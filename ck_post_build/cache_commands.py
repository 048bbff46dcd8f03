"""The commands that fill, carry and look after the cache: prebuild, pack, unpack, cache, doctor."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ck_post_build.errors import CkPostBuildError

if TYPE_CHECKING:
    from ck_post_build.blob_selection import Target
    from ck_post_build.prebuild import Outcome

_PATH = click.Path(path_type=Path, readable=False)
_ROOT = click.option(
    "--root", type=_PATH, required=True, help="The installed library: its prefix, or the ck_jit directory in it."
)
_CACHE = click.option(
    "--cache-dir", type=_PATH, help="The cache. Default: CK_JIT_CACHE_DIR, or the one that the runtime would use."
)


def _shard(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Read ``I/N`` with 1 <= I <= N."""
    if text is None:
        return None
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise click.BadParameter(f"{text!r} is not I/N with 1 <= I <= N", context, option)
    return int(number), int(count)


@click.command("prebuild")
@_ROOT
@click.argument("patterns", metavar="[BLOB_OR_GLOB]...", nargs=-1)
@click.option("--from", "list_file", type=_PATH, help="A file of blob names, one a line, such as CK_JIT_RECORD writes.")
@click.option("--where", help="A condition on traits: hdim=128 and dtype in (bf16, fp16) and not mask.")
@click.option("--all", "everything", is_flag=True, help="All blobs.")
@click.option(
    "--shard",
    metavar="I/N",
    callback=_shard,
    help="The I-th of N parts, for job arrays. A blob is always in the same one.",
)
@click.option(
    "--arch",
    "arches",
    multiple=True,
    help="GPU to compile for. Repeats. Default: CK_JIT_ARCH, or all it was built for.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Compile on the workers of this Dask scheduler (tcp://HOST:PORT).")
@click.option("-j", "jobs", type=click.IntRange(min=1), help="Compiles at once on this machine. Default: all cores.")
@click.option("--list", "only_list", is_flag=True, help="Print what is selected, with its traits, and compile nothing.")
@_CACHE
def prebuild_command(
    root: Path,
    patterns: tuple[str, ...],
    list_file: Path | None,
    where: str | None,
    everything: bool,
    shard: tuple[int, int] | None,
    arches: tuple[str, ...],
    scheduler: str | None,
    jobs: int | None,
    only_list: bool,
    cache_dir: Path | None,
) -> None:
    """Compile blobs into the cache ahead of time. What is there already is skipped, so a run can be stopped and repeated.

    Exit status 0 means that all selected blobs are in the cache.

    \b
    Example:
      ck-post-build prebuild --root dist --where "hdim=128 and dtype=bf16" --arch gfx942
    """
    from ck_post_build import runtime_env
    from ck_post_build.blob_selection import Selection, select
    from ck_post_build.jit_root import find_root_manifests

    manifests = find_root_manifests(root)
    chosen = arches or runtime_env.chosen_arches()
    targets = select(manifests, Selection(patterns, list_file, where, everything, shard), chosen)
    if only_list:
        from ck_post_build.blob_traits import describe

        for target in targets:
            manifest = next(m for m in manifests if m.library == target.library)
            click.echo(f"{target.label} {describe(manifest, target.blob)}".rstrip())
        return
    _run_prebuild(root, targets, scheduler, jobs, cache_dir)


def _run_prebuild(
    root: Path, targets: Sequence[Target], scheduler: str | None, jobs: int | None, cache_dir: Path | None
) -> None:
    from ck_post_build import runtime_env
    from ck_post_build.cache_dir import open_cache
    from ck_post_build.jit_root import root_directory
    from ck_post_build.prebuild import State
    from ck_post_build.prebuild_progress import follow, summary

    started = time.monotonic()
    place = root_directory(root)
    cache = runtime_env.cache_dir(cache_dir)
    open_cache(cache)
    outcomes: Generator[Outcome, None, None]
    if scheduler is not None:
        from ck_post_build.dask_build import prebuild_on_workers

        outcomes = prebuild_on_workers(
            targets, cache, place, scheduler, lambda text: click.echo(f"note: {text}", err=True)
        )
    else:
        from ck_post_build.cache_key import compiler_id, compiler_key, read_script
        from ck_post_build.compile_blob import MANY, Compiler
        from ck_post_build.prebuild import prebuild

        by = compiler_id(runtime_env.find_hipcc())
        key = compiler_key(by.identity, read_script(place))
        compiler = Compiler(place, by.hipcc, runtime_env.compile_timeout(), key, many=len(targets) >= MANY)
        outcomes = prebuild(targets, cache, compiler, jobs or runtime_env.usable_cores())
    try:
        found = follow(outcomes, len(targets))
    finally:
        outcomes.close()
    click.echo(summary(found, time.monotonic() - started))
    if any(outcome.state is State.FAILED for outcome in found):
        sys.exit(1)


@click.command("pack")
@click.option(
    "-o", "--output", type=_PATH, required=True, help="The archive; .tar.gz is compressed. With --wheel, a directory."
)
@_ROOT
@click.option("--arch", "arches", multiple=True, help="Take only entries for this GPU. Repeats.")
@click.option("--wheel", metavar="NAME==VERSION", help="Make a wheel: python -m NAME says where it is installed.")
@_CACHE
def pack_command(output: Path, root: Path, arches: tuple[str, ...], wheel: str | None, cache_dir: Path | None) -> None:
    """Pack the cache entries of a library into one archive, for machines that shall not compile.

    \b
    Example:
      ck-post-build pack -o kernels.tar.gz --root dist
      ck-post-build pack -o wheels --wheel my-kernels==1.0 --root dist
    """
    from contextlib import suppress

    from ck_post_build import runtime_env
    from ck_post_build.cache_key import compiler_id
    from ck_post_build.pack import pack_contents, write_pack
    from ck_post_build.pack_wheel import parse_wheel_name, write_wheel

    name = parse_wheel_name(wheel) if wheel is not None else None
    compiler = None
    with suppress(CkPostBuildError):
        compiler = compiler_id(runtime_env.find_hipcc())
    chosen = arches or runtime_env.chosen_arches()
    index, files = pack_contents(root, runtime_env.cache_dir(cache_dir), chosen, compiler)
    if name is not None:
        click.echo(str(write_wheel(files, name, output)))
    else:
        write_pack(files, output)
    total = sum(len(manifest.blobs) for manifest in index.libraries)
    packed = {(entry.library, entry.blob) for entry in index.entries}
    click.echo(f"{len(index.entries)} entries, for {len(packed)} of {total} blobs")


@click.command("unpack")
@click.argument("archive", type=_PATH)
@click.option("-o", "--output", type=_PATH, required=True, help="The directory, for CK_JIT_CACHE_PATH.")
@click.option("--root", type=_PATH, help="The installed library; refuse a pack for another build of it.")
def unpack_command(archive: Path, output: Path, root: Path | None) -> None:
    """Unpack what pack made into a directory for CK_JIT_CACHE_PATH. Every entry is checked.

    \b
    Example:
      ck-post-build unpack kernels.tar.gz -o /opt/kernels --root dist
      export CK_JIT_CACHE_PATH=/opt/kernels CK_JIT_COMPILE=0
    """
    from ck_post_build.pack import unpack

    index = unpack(archive, output, root)
    click.echo(f"{len(index.entries)} entries; use them with CK_JIT_CACHE_PATH={output.absolute()}")
    if root is None:
        click.echo("note: not compared with a library; --root does that", err=True)


@click.group("cache")
def cache_command() -> None:
    """Look after a cache of compiled blobs.

    \b
    Example:
      ck-post-build cache prune --max-size 20G --max-age 90d
    """


_LIBRARY = click.option("--root", type=_PATH, help="The installed library that the cache belongs to.")


@cache_command.command("path")
@_CACHE
def cache_path_command(cache_dir: Path | None) -> None:
    """Print the cache directory.

    \b
    Example:
      du -sh "$(ck-post-build cache path)"
    """
    from ck_post_build import runtime_env

    click.echo(runtime_env.cache_dir(cache_dir))


@cache_command.command("list")
@_CACHE
@_LIBRARY
def cache_list_command(cache_dir: Path | None, root: Path | None) -> None:
    """List the entries: size, days since they were used, name; with --root also whether the library would use them.

    \b
    Example:
      ck-post-build cache list --root dist
    """
    from ck_post_build.cache_upkeep import Upkeep

    for entry in (upkeep := Upkeep.open(cache_dir, root)).entries():
        state = f" {upkeep.state(entry)}" if root is not None else ""
        click.echo(f"{entry.size:>12,} {entry.days_unused:6.1f} d  {entry.path.name}{state}")
    click.echo(upkeep.totals())


@cache_command.command("verify")
@_CACHE
@_LIBRARY
def cache_verify_command(cache_dir: Path | None, root: Path | None) -> None:
    """Check every byte of every entry; with --root also its functions and its device code. Changes nothing.

    \b
    Example:
      ck-post-build cache verify --root dist
    """
    from ck_post_build.cache_upkeep import Upkeep

    upkeep = Upkeep.open(cache_dir, root)
    problems = upkeep.problems()
    for path, problem in problems:
        click.echo(f"{path}: it {problem}")
    click.echo(f"{len(upkeep.entries())} entries, {len(problems)} bad")
    if problems:
        raise CkPostBuildError(
            f"{len(problems)} entries are bad; they are compiled again when they are needed. Remove them with "
            "ck-post-build cache prune --bad",
            file=upkeep.directory,
        )


@cache_command.command("prune")
@_CACHE
@_LIBRARY
@click.option(
    "--max-size", metavar="SIZE", help="Remove the entries that were unused longest, down to this size (20G)."
)
@click.option("--max-age", metavar="AGE", help="Remove entries that were unused for longer (90d, 12h).")
@click.option(
    "--stale", is_flag=True, help="Remove entries of this library's blobs that it would not use. Needs --root."
)
@click.option("--orphans", is_flag=True, help="Remove entries of no blob of this library. Needs --root.")
@click.option("--bad", is_flag=True, help="Remove entries that fail cache verify.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def cache_prune_command(
    cache_dir: Path | None,
    root: Path | None,
    max_size: str | None,
    max_age: str | None,
    stale: bool,
    orphans: bool,
    bad: bool,
    dry_run: bool,
) -> None:
    """Remove what is not needed: always temporary files of dead processes, files set aside, and logs without an entry
    that are older than a day; entries as the options say.

    \b
    Example:
      ck-post-build cache prune --root dist --stale --max-size 20G
    """
    from ck_post_build.cache_upkeep import Limits, Upkeep, parse_age, parse_size

    if (stale or orphans) and root is None:
        raise click.UsageError("--stale and --orphans need --root")
    limits = Limits(
        parse_size(max_size) if max_size else None, parse_age(max_age) if max_age else None, stale, orphans, bad
    )
    upkeep = Upkeep.open(cache_dir, root)
    _remove(upkeep.directory, upkeep.prunable(limits), dry_run)


@cache_command.command("clear")
@_CACHE
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def cache_clear_command(cache_dir: Path | None, dry_run: bool) -> None:
    """Remove all entries, logs, files set aside and remembered compilers. Other files in the directory stay.

    \b
    Example:
      ck-post-build cache clear
    """
    from ck_post_build.cache_upkeep import Upkeep

    upkeep = Upkeep.open(cache_dir, None)
    _remove(upkeep.directory, upkeep.everything(), dry_run)


def _remove(directory: Path, doomed: Sequence[tuple[Path, str]], dry_run: bool) -> None:
    from ck_post_build.cache_upkeep import remove

    size = 0
    for path, reason in doomed:
        size += path.lstat().st_size if path.exists() else 0
        if not dry_run:
            remove(path)
        click.echo(f"{'would remove' if dry_run else 'removed'} {path.relative_to(directory)}: {reason}")
    click.echo(f"{len(doomed)} files, {size:,} bytes")


@click.command("doctor")
@click.option("--root", type=_PATH, help="The installed library to compile for.")
@_CACHE
def doctor_command(root: Path | None, cache_dir: Path | None) -> None:
    """Check what compiling needs: compiler, ROCm, libclang, device, directories, space. Each line is ok or says the fix.

    \b
    Example:
      ck-post-build doctor --root dist
    """
    from ck_post_build.doctor import examine

    broken = 0
    for finding in examine(root, cache_dir):
        broken += finding.broken
        click.echo(f"{finding.mark:7} {finding.what}: {finding.text}")
    if broken:
        sys.exit(1)


COMMANDS: dict[str, click.Command] = {
    "prebuild": prebuild_command,
    "pack": pack_command,
    "unpack": unpack_command,
    "cache": cache_command,
    "doctor": doctor_command,
}
