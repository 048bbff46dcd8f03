"""The headers that the compile script precompiles: what blobs include first, and the templates of one kernel, instantiated.

Most of a blob's compile is spent on instantiating CK's templates, and kernels that differ in a mask or a type share most of
them. A precompiled header that has instantiated one kernel halves the time of the others.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, TypeKind

from ck_post_build import libclang
from ck_post_build.declarations import BlobText, Directive, cut
from ck_post_build.flags import ROOT_PLACEHOLDER
from ck_post_build.jit_root import RootManifest
from ck_post_build.resources import template_environment
from ck_post_build.source import read_text
from ck_post_build.toolchain import Toolchain

DIRECTORY = "precompile"

_POINTERS = (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)
_IF = re.compile(r"#\s*if")
_ENDIF = re.compile(r"#\s*endif\b")
# What stands in the spelling of a type that cannot be named.
_UNNAMED = ("(anonymous", "(unnamed", "(lambda")


@dataclass(frozen=True)
class _Start:
    """How a blob starts: the suffix, by which hipcc tells HIP from C++, the flags, and what it includes before all else."""

    suffix: str
    flags: tuple[str, ...]
    includes: tuple[str, ...]


@dataclass(frozen=True)
class _Likeness:
    """What the blobs of one precompiled header have in common: how they start, and the templates that they specialise."""

    start: _Start
    templates: tuple[str, ...]


@dataclass
class _Example:
    """The first blob under some preprocessor conditions, and the types that its functions name."""

    source: Path
    conditions: tuple[str, ...]
    types: list[str] = field(default_factory=list)


def records_name(library: str) -> str:
    """Return the name, under the JIT root, of the file that says which header goes with which blob of `library`."""
    return f"{library}.precompile"


def precompile_files(
    root: Path, manifest: RootManifest, toolchain: Toolchain, note: Callable[[str], None]
) -> dict[str, bytes]:
    """Return the headers to precompile for the blobs of an installed library, and the records that assign them.

    Args:
        root: the JIT root with the blob sources and headers in place.
        manifest: the library's.
        toolchain: whose libclang tells which types blobs name.
        note: is told of a blob whose types it cannot tell; its header then only includes.

    Raises:
        CkPostBuildError: a blob cannot be read or is truncated.
    """
    groups: dict[_Likeness, list[str]] = defaultdict(list)
    examples: dict[_Likeness, dict[tuple[str, ...], _Example]] = defaultdict(dict)
    for blob in manifest.blobs:
        source = root / blob.source
        text = cut(read_text(source), source)
        start = _Start(source.suffix, tuple(blob.flags), _first_includes(text))
        if not start.includes:
            continue
        likeness = _Likeness(start, _templates(text))
        groups[likeness].append(blob.name)
        conditions = _conditions(text)
        examples[likeness].setdefault(conditions, _Example(source, conditions))
    for start in dict.fromkeys(likeness.start for likeness in examples):
        alike = [e for likeness, found in examples.items() if likeness.start == start for e in found.values()]
        _find_types(alike, start, root, toolchain, note)
    files: dict[str, bytes] = {}
    records: list[str] = []
    for likeness, names in groups.items():
        header = _header(likeness.start, examples[likeness].values())
        name = f"{DIRECTORY}/{hashlib.sha256(header).hexdigest()[:16]}{likeness.start.suffix}"
        files[name] = header
        records += [f"{blob}\t{name}\0" for blob in names]
    files[records_name(manifest.library)] = "".join(records).encode("utf-8", "surrogateescape")
    return files


def _first_includes(text: BlobText) -> tuple[str, ...]:
    """Return the ``#include`` lines that come before anything else."""
    return text.prologue[: min((item.ordinal for item in text.items), default=0)]


def _templates(text: BlobText) -> tuple[str, ...]:
    return tuple(sorted({specialisation.head.template for specialisation in text.specialisations}))


def _conditions(text: BlobText) -> tuple[str, ...]:
    """Return the preprocessor conditions around the first specialisation, outermost first."""
    first = min(specialisation.declaration.ordinal for specialisation in text.specialisations)
    nested: list[str] = []
    for item in text.items:
        if item.ordinal > first:
            break
        if isinstance(item, Directive):
            if _IF.match(item.text):
                nested.append(item.text)
            elif _ENDIF.match(item.text):
                nested.pop()
    return tuple(nested)


def _find_types(
    examples: Sequence[_Example], start: _Start, root: Path, toolchain: Toolchain, note: Callable[[str], None]
) -> None:
    """Fill in the classes that the functions of `examples`, which all start like `start`, name."""
    flags = [flag.replace(ROOT_PLACEHOLDER, str(root)) for flag in start.flags]
    texts = (read_text(example.source) for example in examples)
    units = libclang.parse_each(toolchain.clang, examples[0].source, flags, start.includes, texts)
    for example, unit in zip(examples, units, strict=True):
        error = libclang.first_error(unit)
        if error is not None:
            note(
                f"{example.source}: {error.spelling}. Nothing is instantiated in the precompiled header of this blob and its like"
            )
            continue
        found: set[str] = set()
        _collect(unit.cursor, found)
        example.types += sorted(found)


def _collect(scope: Cursor, found: set[str]) -> None:
    """Add the types that the functions of the main file below `scope` name."""
    for child in libclang.children(scope):
        if not libclang.is_in_main_file(child):
            continue
        if child.kind in libclang.FUNCTIONS:
            _collect_from_body(child, found)
        elif child.kind in libclang.SCOPES:
            _collect(child, found)


def _collect_from_body(cursor: Cursor, found: set[str]) -> None:
    if cursor.type.kind != TypeKind.INVALID:
        named = cursor.type.get_canonical()
        while named.kind in _POINTERS:
            named = named.get_pointee()
        if named.kind == TypeKind.RECORD and not any(mark in named.spelling for mark in _UNNAMED):
            found.add(named.spelling.removeprefix("const "))
    for child in libclang.children(cursor):
        _collect_from_body(child, found)


def _header(start: _Start, examples: Iterable[_Example]) -> bytes:
    def text(line: str) -> str:  # of a source, where a character is a byte; the types' spellings are UTF-8
        return line.encode("latin-1").decode("utf-8", "surrogateescape")

    shown = [{"conditions": [text(line) for line in e.conditions], "types": e.types} for e in examples]
    template = template_environment().get_template("precompile.h.j2")
    header = template.render(includes=[text(line) for line in start.includes], examples=shown)
    return header.encode("utf-8", "surrogateescape")
