"""Reads an API file: its parse, and what stands in it of wrappers, sites, and definitions that sites may hide behind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build import libclang
from ck_post_build.flags import Flags
from ck_post_build.flat_chains import flatten
from ck_post_build.kept import Kept, names_to_kernels, templates_without_twin
from ck_post_build.macros import macros_naming, visible_macros
from ck_post_build.sites import Site, find_sites
from ck_post_build.source import SourceFile
from ck_post_build.toolchain import Toolchain
from ck_post_build.wrappers import Wrapper, find_wrappers


@dataclass(frozen=True)
class ParsedApi:
    """An API file and its parse; where that is of its FlatText, ``FlatText.continued``."""

    source: SourceFile
    unit: TranslationUnit
    continued: dict[int, int] | None


def parse_api(toolchain: Toolchain, path: Path, flags: Flags) -> ParsedApi:
    """Parse the API file at `path`, with its chains flat if it has any.

    Raises:
        CkPostBuildError: it cannot be read, or does not compile.
    """
    source = SourceFile(path)
    flat = flatten(source.text)
    if flat.continued:
        unit = _parse(toolchain, path, flags, flat.text)
        if libclang.first_error(unit) is None:
            return ParsedApi(source, unit, flat.continued)
    return _parse_true_text(toolchain, source, flags)


def _parse_true_text(toolchain: Toolchain, source: SourceFile, flags: Flags) -> ParsedApi:
    unit = _parse(toolchain, source.path, flags)
    libclang.raise_on_errors(unit)
    return ParsedApi(source, unit, None)


def _parse(toolchain: Toolchain, path: Path, flags: Flags, text: str | None = None, more: int = 0) -> TranslationUnit:
    return libclang.parse(toolchain.clang, path, _arguments(flags), options=libclang.INCOMPLETE | more, text=text)


def _arguments(flags: Flags) -> list[str]:
    return [*flags.arguments, *(f"--offload-arch={arch}" for arch in flags.arches[:1])]


@dataclass(frozen=True)
class Scan:
    """An API file with what was found in it.

    Attributes:
        arguments: those of its parse.
        wrappers: those that have a twin.
        stay: definitions without one; sites may hide behind them.
        naming: matches what a kernel may be behind.
        without_twin: the wrappers among them.
        macro_words: the words in the definitions of macros.
    """

    parsed: ParsedApi
    arguments: list[str]
    wrappers: dict[str, Wrapper]
    sites: list[Site]
    stay: list[Kept]
    naming: re.Pattern[str]
    without_twin: list[Wrapper]
    macro_words: frozenset[str]


def scan_api(toolchain: Toolchain, flags: Flags, parsed: ParsedApi, templates: set[str]) -> Scan:
    """Find what stands in a file, given the qualified names of the kernel templates.

    Raises:
        CkPostBuildError: a wrapper or a site is not understood.
    """
    source, unit = parsed.source, parsed.unit

    def skipped_ranges() -> list[tuple[int, int]]:
        return libclang.skipped_ranges(
            _parse(toolchain, source.path, flags, more=libclang.DETAILED_PREPROCESSING_RECORD)
        )

    def parse_text(text: str) -> TranslationUnit:
        return _parse(toolchain, source.path, flags, text)

    macros = visible_macros(unit, source.text)
    wrappers = find_wrappers(unit, source, templates)
    # Not those of members: macros of all kinds have an ``init`` in them.
    functions = [*templates, *(name for name, wrapper in wrappers.items() if not wrapper.member_of)]
    naming = macros_naming(macros, {name.rpartition("::")[2] for name in functions})
    left = templates_without_twin(unit, source, templates, wrappers, naming)
    twins = {name: wrapper for name, wrapper in wrappers.items() if wrapper.problem is None}
    without = [wrapper for wrapper in wrappers.values() if wrapper.problem is not None]
    sites = find_sites(unit, source, templates, twins, naming, skipped_ranges, parse_text, parsed.continued)
    if sites is None:
        return scan_api(toolchain, flags, _parse_true_text(toolchain, source, flags), templates)
    words: frozenset[str] = frozenset().union(*macros.values())
    names = names_to_kernels(templates, wrappers, naming)
    return Scan(parsed, _arguments(flags), twins, sites, left, names, without, words)
