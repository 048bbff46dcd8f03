"""The blobs as given, and the question that clang is asked about them: what does each define?

For each blob a translation unit holds a namespace with just the declarations that its specialisations need, and then declares
each specialisation: ``template <> float fmha_fwd_<ck_jit_blob_7::trait_0, ck_tile::gfx9_t>(…);``. Bodies are left out, so
thousands of blobs cost the time of one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build import libclang
from ck_post_build.compile_db import FlagSource
from ck_post_build.declarations import (
    BlobText,
    Declaration,
    Directive,
    Specialisation,
    SpecialisationHead,
    cut,
    identifiers,
    introduced_name,
)
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags
from ck_post_build.source import read_text

BLOB_SUFFIXES = (".cpp", ".cc", ".cxx", ".cu", ".hip")
UNIT_NAME = "ck_jit_blob_index.cpp"

# A unit of all 15,000 blobs takes half a gigabyte. Of smaller ones each is read and dropped before the next is parsed.
_MOST_BLOBS = 8000
_DEFINE = re.compile(r"#\s*define\s+(\w+)")


@dataclass(frozen=True)
class BlobSource:
    """A blob as given: its file, name, flags, and the SHA-256 of its bytes."""

    path: Path
    name: str
    flags: Flags
    source_hash: str


def read_blobs(paths: Iterable[Path], flags: FlagSource) -> tuple[dict[str, BlobSource], dict[str, BlobText]]:
    """Read and cut the blobs among the source files `paths`; return both by name, in ``strcmp`` order.

    Files that specialise no function template are no blobs and are left out.

    Raises:
        CkPostBuildError: a file cannot be read or is truncated, two blobs have one name, or there are no flags for one.
    """
    blobs: dict[str, BlobSource] = {}
    texts: dict[str, BlobText] = {}
    for path in paths:
        text = read_text(path)
        pieces = cut(text, path)
        if not pieces.specialisations:
            continue
        other = blobs.get(path.name)
        if other is not None:
            raise CkPostBuildError(
                f"two blobs have the name {path.name}; the other is {other.path}. Give each --blob-dir once, and each blob "
                "a name of its own",
                file=path,
            )
        digest = hashlib.sha256(text.encode("latin-1")).hexdigest()
        blobs[path.name] = BlobSource(path, path.name, flags.of(path), digest)
        texts[path.name] = _without_the_unneeded(pieces)
    names = sorted(blobs, key=lambda name: name.encode("utf-8", "surrogateescape"))
    return {name: blobs[name] for name in names}, {name: texts[name] for name in names}


@dataclass
class Unit:
    """The text of a translation unit, and which blob and specialisation stand on which of its lines."""

    lines: list[str] = field(default_factory=list)
    owners: dict[int, tuple[BlobSource, Specialisation | None]] = field(default_factory=dict)

    def add(self, text: str, blob: BlobSource, specialisation: Specialisation | None = None) -> None:
        for line in text.split("\n"):
            self.lines.append(line)
            self.owners[len(self.lines)] = (blob, specialisation)


@dataclass
class Question:
    """A translation unit that asks about the blobs of one set of flags and includes.

    Attributes:
        digests: for each blob's name, a hash of all that is asked about it. The same text has the same answer.
        asked: done when the unit is parsed.
        parsed: the parse; dropped once it is read, because it takes hundreds of megabytes.
    """

    unit: Unit
    blobs: Sequence[BlobSource]
    digests: dict[str, str]
    asked: Future[None] = field(init=False)
    parsed: TranslationUnit | None = None

    def ask(self, clang: libclang.Clang, pool: Executor) -> None:
        """Have `pool` parse the unit."""
        self.asked = pool.submit(self._parse, clang)

    def _parse(self, clang: libclang.Clang) -> None:
        path, text = self.blobs[0].path.parent / UNIT_NAME, "\n".join(self.unit.lines) + "\n"
        flags = self.blobs[0].flags.arguments
        self.parsed = libclang.parse(clang, path, flags, options=libclang.INCOMPLETE, text=text)


def write_questions(blobs: dict[str, BlobSource], texts: dict[str, BlobText]) -> list[Question]:
    """Write what clang is to be asked about `blobs`: one question for some thousands that share flags and includes."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[BlobSource]] = defaultdict(list)
    for blob in blobs.values():
        groups[blob.flags.arguments, texts[blob.name].prologue].append(blob)
    return [
        _question(prologue, members[first : first + _MOST_BLOBS], texts)
        for (_, prologue), members in groups.items()
        for first in range(0, len(members), _MOST_BLOBS)
    ]


def _question(prologue: tuple[str, ...], blobs: Sequence[BlobSource], texts: dict[str, BlobText]) -> Question:
    unit = Unit(lines=list(prologue))
    digests = {}
    for number, blob in enumerate(blobs):
        space, first = f"ck_jit_blob_{number}", len(unit.lines)
        _write_blob(unit, space, blob, texts[blob.name])
        asked = "\n".join((*prologue, *unit.lines[first:])).replace(space, "")
        digests[blob.name] = hashlib.sha256(asked.encode("latin-1")).hexdigest()[:16]
    return Question(unit, blobs, digests)


def likely_templates(texts: dict[str, BlobText]) -> set[str]:
    """Return the names of the kernel templates as the blobs write them, before clang has said what they mean."""
    return {
        "::".join((*specialisation.declaration.namespaces, specialisation.head.template.removeprefix("::")))
        for text in texts.values()
        for specialisation in text.specialisations
    }


def _write_blob(unit: Unit, space: str, blob: BlobSource, text: BlobText) -> None:
    """Append the namespace `space` with what the blob's specialisations need, and their declarations, to `unit`."""
    specialisations = {s.declaration.ordinal: s for s in text.specialisations}
    macros: list[str] = []
    local_names = frozenset(
        name
        for item in text.items
        if isinstance(item, Declaration) and item.ordinal not in specialisations and (name := introduced_name(item))
    )
    for item in text.items:
        if isinstance(item, Directive):
            unit.add(item.text, blob)
            if match := _DEFINE.match(item.text):
                macros.append(match.group(1))
        elif item.ordinal in specialisations:
            specialisation = specialisations[item.ordinal]
            unit.add(_declare(specialisation, space, local_names), blob, specialisation)
        else:
            inside = "::".join((*item.namespaces, space))
            unit.add(f"namespace {inside} {{ {item.text}; }}", blob)
    for macro in macros:
        unit.add(f"#undef {macro}", blob)


def _without_the_unneeded(text: BlobText) -> BlobText:
    """Return `text` without the declarations that clang need not see: most of them, and most of the memory."""
    ordinals = {item.ordinal for item in (*_needed(text), *(s.declaration for s in text.specialisations))}
    items = tuple(item for item in text.items if isinstance(item, Directive) or item.ordinal in ordinals)
    return replace(text, items=items)


def _needed(text: BlobText) -> list[Declaration]:
    """Return the declarations that the specialisations' heads refer to, directly or through one another."""
    declarations: dict[str, list[Declaration]] = defaultdict(list)
    always: list[Declaration] = []
    specialised = {s.declaration.ordinal for s in text.specialisations}
    for item in text.items:
        if isinstance(item, Directive) or item.ordinal in specialised:
            continue
        name = introduced_name(item)
        if name is not None:
            declarations[name].append(item)
        elif item.text.startswith("using"):
            always.append(item)
    chosen = {item.ordinal: item for item in always}
    pending: set[str] = set().union(*(identifiers(s.declaration.text) for s in text.specialisations))
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        seen.add(name)
        for item in declarations.get(name, ()):
            if item.ordinal not in chosen:
                chosen[item.ordinal] = item
                pending |= identifiers(item.text) - seen
    return list(chosen.values())


_LOCAL_NAME = re.compile(r"(?<![\w:.])(?<!::\s)[A-Za-z_]\w*")


@functools.lru_cache(maxsize=4096)  # like the heads themselves
def _declaration_pattern(head: SpecialisationHead, local_names: frozenset[str]) -> str:
    """Return the declaration of a specialisation, with a NUL for the namespace in front of the blob's own names."""

    def qualify(text: str) -> str:
        return _LOCAL_NAME.sub(
            lambda match: f"\0::{match.group()}" if match.group() in local_names else match.group(),
            " ".join(text.split()),
        )

    arguments = "" if head.arguments is None else f"<{qualify(head.arguments)}>"
    return f"template <> {qualify(head.result)} {head.template}{arguments}{qualify(head.parameters)} {head.trailer};"


def _declare(specialisation: Specialisation, space: str, local_names: frozenset[str]) -> str:
    """Return one line that declares `specialisation`, the blob's own names qualified by its namespace."""
    namespaces = specialisation.declaration.namespaces
    declared = _declaration_pattern(specialisation.head, local_names).replace("\0", "::".join((*namespaces, space)))
    return f"namespace {'::'.join(namespaces)} {{ {declared} }}" if namespaces else declared
