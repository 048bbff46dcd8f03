"""Macros that name things: a dispatch site may come out of one, and then its name stands nowhere near it.

This is a lexer of ``#define`` lines, for looking twice: what a macro's use means, clang says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build.declarations import identifiers
from ck_post_build.source import blanked, read_text

_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\(?:\r\n|.))*)", re.DOTALL)

# Each macro's name with the identifiers of its definitions, parameters included.
Macros = dict[str, set[str]]


def visible_macros(unit: TranslationUnit, text: str) -> Macros:
    """Return the macros that the file with `text`, and the files that it includes, define anywhere."""
    paths = {include.include.name for include in unit.get_includes()}
    return macros_in([text, *(read_text(Path(path)) for path in sorted(paths))])


def macros_in(texts: Iterable[str]) -> Macros:
    """Return the macros that `texts` define."""
    found: Macros = {}
    for text in texts:
        for match in _DEFINE.finditer(text):
            found.setdefault(match.group(1), set()).update(identifiers(blanked(match.group(2))))
    return found


def macros_naming(macros: Macros, names: Collection[str]) -> set[str]:
    """Return the macros whose definitions mention one of `names`, directly or through each other."""
    found: set[str] = set()
    new = set(names)
    while new:
        new = {macro for macro, words in macros.items() if macro not in found and not words.isdisjoint(new)}
        found |= new
    return found
