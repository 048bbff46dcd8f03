"""``python -m tests.oracle.symbols``: are the predicted kernel symbols of all blobs those that the compiler makes?

The blobs' own text is compiled, host pass, many blobs to a translation unit, with function bodies replaced by a trap: a body
does not matter to a symbol, and is what takes a blob's compile its time. Each blob has a section of its own in the object,
which says whose symbols are whose.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from clang.cindex import TokenKind, TranslationUnit
from elftools.elf.elffile import ELFFile

from ck_post_build import libclang
from ck_post_build.build_info import BlobInfo, read_build_info

from .build import Api, api

BATCH = 200


def bodiless(text: str) -> tuple[str, list[str]]:
    """Return a blob's text with traps for function bodies, and the names of its aliases. clang cuts it into tokens."""
    unit = TranslationUnit.from_source("blob.cpp", ["-x", "c++"], unsaved_files=[("blob.cpp", _without_includes(text))])
    pieces: list[str] = []
    aliases: list[str] = []
    data = _without_includes(text).encode()
    depth, copied, begun, previous = 0, 0, "", ""
    for token in unit.get_tokens(extent=unit.cursor.extent):
        if token.kind == TokenKind.COMMENT:
            continue
        mark = token.spelling
        if mark == "{":
            depth += 1
            if depth == 1 and begun == "(":
                pieces.append(data[copied : token.extent.start.offset].decode() + "{ __builtin_trap(); }")
        elif mark == "}":
            depth -= 1
            if depth == 0 and begun == "(":
                copied = token.extent.end.offset
                begun = ""
        elif depth == 0:
            if mark in ("(", ";"):
                begun = mark
            if previous == "using" and mark != "namespace":
                aliases.append(mark)
        previous = mark
    return "".join(pieces) + data[copied:].decode(), aliases


def _without_includes(text: str) -> str:
    """Blank the includes: the tokens of a blob are wanted, not those of CK's headers."""
    return "\n".join("" if line.startswith("#include") else line for line in text.split("\n"))


def unit_text(blobs: Sequence[BlobInfo]) -> str:
    """Return a translation unit of many blobs. Aliases of the same name are told apart by a macro."""
    texts = [Path(blob.source).read_text() for blob in blobs]
    lines = dict.fromkeys(line for text in texts for line in text.split("\n") if line.startswith("#include"))
    parts = [*lines]
    for number, text in enumerate(texts):
        body, aliases = bodiless(text)
        parts.append(f'#pragma clang section text=".blob_{number}"')
        parts += [f"#define {alias} {alias}_{number}" for alias in aliases]
        parts.append(body)
        parts += [f"#undef {alias}" for alias in aliases]
    return "\n".join(parts) + "\n"


def compiled_symbols(api_: Api, blobs: Sequence[BlobInfo], directory: Path) -> Iterator[tuple[BlobInfo, set[str]]]:
    """Compile `blobs` together and yield what each defines.

    Raises:
        SystemExit: they do not compile.
    """
    source, output = directory / "batch.cpp", directory / "batch.o"
    source.write_text(unit_text(blobs))
    command = [str(api_.toolchain.require_hipcc()), "-x", "hip", "--cuda-host-only", "-w", *api_.arguments()]
    command += ["-O0", "-c", str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    if done.returncode:
        raise SystemExit(done.stderr[:4000])
    found: dict[str, set[str]] = {f".blob_{number}": set() for number in range(len(blobs))}
    with output.open("rb") as stream:
        file = ELFFile(stream)
        names = [section.name for section in file.iter_sections()]
        for symbol in file.get_section_by_name(".symtab").iter_symbols():
            index = symbol["st_shndx"]
            if symbol["st_info"]["bind"] == "STB_GLOBAL" and isinstance(index, int) and names[index] in found:
                found[names[index]].add(symbol.name)
    for number, blob in enumerate(blobs):
        yield blob, found[f".blob_{number}"]


@click.command()
@click.option("--api", "path", type=click.Path(path_type=Path, exists=True), required=True, help="The API file.")
@click.option("--flags", required=True, help="Compiler flags, as for ck-post-build.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Directory to work in.")
def main(path: Path, flags: str, output: Path) -> None:
    """Compare predicted and compiled symbols of all blobs beside an API file. Exit status 1: they differ."""
    started = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    api_ = api(path.absolute(), path.absolute().parent, flags)
    libclang.load(api_.toolchain.clang.library)
    api_.rewrite(output / "lazy")
    blobs = read_build_info(output / "lazy").blobs
    wrong = symbols = 0
    for first in range(0, len(blobs), BATCH):
        for blob, found in compiled_symbols(api_, blobs[first : first + BATCH], output):
            symbols += len(found)
            if found != set(blob.symbols):
                wrong += 1
                click.echo(f"{blob.name}: predicted {sorted(blob.symbols)}, compiled {sorted(found)}")
    took = time.monotonic() - started
    click.echo(f"{path.name}: {len(blobs)} blobs, {symbols} symbols compiled, {wrong} blobs differ, {took:.0f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
