"""Definitions that stay as they are, behind which dispatch sites hide: templates without a twin, and functions of headers."""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.errors import CkPostBuildError
from ck_post_build.sites import Site
from ck_post_build.source import SourceFile, blanked
from ck_post_build.wrappers import Wrapper

_TEMPLATES = frozenset(
    {
        CursorKind.FUNCTION_TEMPLATE,
        CursorKind.CLASS_TEMPLATE,
        CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    }
)


@dataclass(frozen=True)
class Kept:
    """A definition that stays as it is: its name, where it starts (None: in a header), and its text."""

    name: str
    start: int | None
    text: str


def names_to_kernels(kernels: Collection[str], wrappers: Collection[str], macros: Collection[str]) -> re.Pattern[str]:
    """Return what matches one of the macros, or the bare name of a kernel or wrapper template."""
    names = {name.rpartition("::")[2] for name in (*kernels, *wrappers)}
    return re.compile(r"\b(?:" + "|".join(map(re.escape, sorted({*names, *macros}))) + r")\b")


def templates_without_twin(
    unit: TranslationUnit,
    api: SourceFile,
    kernels: Collection[str],
    wrappers: dict[str, Wrapper],
    macros: Collection[str],
) -> list[Kept]:
    """Return the definitions that stay as they are and name a kernel or wrapper template: sites may hide behind them.

    Args:
        unit: the parse of the API file.
        api: its text.
        kernels, wrappers: the templates, by qualified name.
        macros: the names of macros that name one of them.
    """
    if not kernels:
        return []
    mention = names_to_kernels(kernels, wrappers, macros)
    # A member's name, ``init``, says little: its class must be named in the file too.
    classes = [wrapper.member_of or name for name, wrapper in wrappers.items()]
    in_file = names_to_kernels(kernels, classes, macros)
    kept = {(str(w.source.path), w.start) for w in wrappers.values() if w.problem is None}
    texts: dict[str, str] = {str(api.path): api.text}
    found: list[Kept] = []

    def look(cursor: Cursor) -> None:
        for child in libclang.children(cursor):
            if child.kind not in _TEMPLATES | libclang.FUNCTIONS | libclang.SCOPES or child.location.file is None:
                continue
            path = child.location.file.name
            if path not in texts:
                whole = SourceFile(Path(path)).text
                texts[path] = whole if in_file.search(whole) else ""
            if not texts[path]:
                continue
            start, end = libclang.offsets(child)
            text = texts[path][start:end]
            if (path, start) in kept or not mention.search(text, max(text.find("{"), 0)) or "{" not in text:
                continue
            if child.kind in libclang.SCOPES:
                look(child)
            elif child.kind in _TEMPLATES or path != str(api.path):
                found.append(Kept(child.spelling, start if path == str(api.path) else None, text))

    look(unit.cursor)
    return found


def with_hidden_sites(kept: Sequence[Kept], sites: Sequence[Site], naming: re.Pattern[str]) -> list[Kept]:
    """Return those of `kept` in which a name stands that `naming` matches and that is not one of `sites`."""
    spans = sorted((site.start, site.end) for site in sites if not site.stays)
    starts = [start for start, _ in spans]

    def is_site(offset: int) -> bool:
        number = bisect.bisect_right(starts, offset) - 1
        return number >= 0 and offset < spans[number][1]

    def hides(definition: Kept) -> bool:
        if definition.start is None:
            return True
        names = naming.finditer(blanked(definition.text), max(definition.text.find("{"), 0))
        return not all(is_site(definition.start + name.start()) for name in names)

    return [definition for definition in kept if hides(definition)]


def raise_on_explicit_instantiation(source: SourceFile, kept: Sequence[Kept]) -> None:
    """Raise CkPostBuildError for an explicit instantiation of one of `kept`: libclang does not show what it calls."""
    names = "|".join(sorted({re.escape(definition.name) for definition in kept}))
    instantiation = rf"(?:^|[;{{}}])[ \t]*(template\s+(?![\s<])[^;{{}}()]*?\b({names})\s*[<(])"
    found = re.search(instantiation, blanked(source.text), re.MULTILINE)
    if found:
        raise CkPostBuildError(
            f"{found.group(2)} is instantiated explicitly here, and what it calls then is not known. Leave that to its callers",
            file=source.path,
            line=source.line_of(found.start(1)),
        )
