"""``ck-post-build bridge``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from ck_post_build.bridge.abi import AbiReport, check_library
from ck_post_build.bridge.emit import Bridge, make_bridge, render
from ck_post_build.bridge.header import read_header
from ck_post_build.bridge.spec import Spec, read_spec
from ck_post_build.errors import CkPostBuildError


def generate(spec_path: Path, output: Path, library: Path | None = None) -> tuple[list[Path], AbiReport | None]:
    """Write the bridges of the spec at `spec_path` into `output`.

    Nothing is written unless everything holds: spec, header and, if it is given, the built library.

    Returns:
        The files, and what was compared with the library.

    Raises:
        CkPostBuildError: the spec, the header or the library is wrong, or a file cannot be written.
    """
    spec = read_spec(spec_path)
    directory = spec_path.parent
    header = read_header(directory / spec.library.header, [f.name for f in spec.functions], _flags(spec, directory))
    bridge = make_bridge(spec, spec_path, header)
    texts = render(bridge)
    report = _check(bridge, library) if library else None
    try:
        output.mkdir(parents=True, exist_ok=True)
        return [_write(output / name, text) for name, text in texts.items()], report
    except OSError as error:
        raise CkPostBuildError(f"cannot write the bridges: {error.strerror}", file=error.filename or output) from error


def _flags(spec: Spec, directory: Path) -> list[str]:
    """Return the spec's flags with relative include paths made absolute, so that the caller's directory is no matter."""
    return [
        f"-I{directory.absolute() / flag[2:]}" if flag.startswith("-I") and len(flag) > 2 else flag
        for flag in spec.library.flags
    ]


def _check(bridge: Bridge, library: Path) -> AbiReport:
    record = bridge.spec.abi.record if bridge.spec.abi else None
    report = check_library(library, bridge.header, bridge.functions, record)
    if record and bridge.spec.abi and bridge.spec.abi.required and not report.record:
        raise CkPostBuildError(
            f"the library exports no {record}, which the spec requires. Compile {bridge.spec.name}_abi.c into it",
            file=library,
        )
    return report


def _write(path: Path, text: str) -> Path:
    """Write `text` unless it stands there already, so that a build system sees no change where there is none."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return path
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as temporary:
        temporary.write(text)
    Path(temporary.name).chmod(0o666 & ~_umask())
    Path(temporary.name).replace(path)
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@click.command("bridge")
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where to write.")
@click.option(
    "--library",
    type=click.Path(path_type=Path),
    help="The built library: compare its exports and, if it has debug information, its signatures with the header.",
)
def bridge_command(spec: Path, output: Path, library: Path | None) -> None:
    """Generate loaders for a prebuilt kernel library: Rust, C++ and Python.

    SPEC is a TOML file that names the library's C header, its functions and what their arguments must fulfil;
    docs/bridge.md lists its keys. Files are written only if everything fits.

    \b
    Example:
      ck-post-build bridge examples/gdn/gdn.toml -o build/bridge --library build/gdn/libatlasgdn.so
    """
    try:
        files, report = generate(spec, output, library)
    except CkPostBuildError as error:
        raise click.ClickException(str(error)) from error
    for file in files:
        click.echo(f"wrote {file}")
    if report is not None:
        click.echo(f"{library}: {len(report.signatures)} signatures match the header")
        for name in report.unseen:
            click.echo(f"{library}: {name} is exported, but has no debug information: signature not compared")
