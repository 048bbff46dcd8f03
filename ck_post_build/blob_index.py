"""Which specialisations does each blob define? One translation unit asks clang about all blobs at once.

For each blob the unit holds a namespace with just the declarations that its specialisations need, and then declares each
specialisation: ``template <> float fmha_fwd_<ck_jit_blob_7::trait_0, ck_tile::gfx9_t>(…);``. Bodies are left out, so
15,000 blobs cost the time of one. Kernel symbols are the mangled names of those declarations.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit

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
from ck_post_build.demangle import template_arguments
from ck_post_build.errors import CkPostBuildError
from ck_post_build.flags import Flags
from ck_post_build.source import read_text
from ck_post_build.trait_templates import TraitTemplates

BLOB_SUFFIXES = (".cpp", ".cc", ".cxx", ".cu", ".hip")

_UNIT_NAME = "ck_jit_blob_index.cpp"
_DEFINE = re.compile(r"#\s*define\s+(\w+)")
_FUNCTION_KINDS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD)


@dataclass(frozen=True)
class Parameter:
    """A function parameter: its canonical type and its name, which may be empty."""

    type: str
    name: str


@dataclass(frozen=True)
class KernelTemplate:
    """A function template that blobs specialise.

    Attributes:
        name: its qualified name, such as ``fmha_fwd_``.
        symbol_prefix: what each of its specialisations' mangled names starts with, ``_Z9fmha_fwd_I``.
        result: canonical result type.
        parameters: of the specialisations, which all have the same.
    """

    name: str
    symbol_prefix: str
    result: str
    parameters: tuple[Parameter, ...]

    def signature(self) -> tuple[str, ...]:
        """Return result and parameter types, without parameter names."""
        return (self.result, *(parameter.type for parameter in self.parameters))


@dataclass(frozen=True)
class KernelSpecialisation:
    """One specialisation that a blob defines: the template's name, its canonical arguments and its mangled name."""

    template: str
    arguments: tuple[str, ...]
    symbol: str


@dataclass(frozen=True)
class Instance:
    """The specialisations of one blob that share their template arguments. A blob nearly always has one."""

    blob: str
    arguments: tuple[str, ...]
    kernels: tuple[KernelSpecialisation, ...]


@dataclass(frozen=True)
class BlobSource:
    """A blob as given: its file, name, flags, and the SHA-256 of its bytes."""

    path: Path
    name: str
    flags: Flags
    source_hash: str


@dataclass
class BlobIndex:
    """All blobs with what they define.

    Attributes:
        blobs: by name, in ``strcmp`` order of the names.
        templates: the kernel templates by qualified name, in order of the names.
        instances: in order of the blobs' names, then of their arguments.
        by_symbol: the instance that defines a kernel symbol.
        by_arguments: the instance that defines (template, arguments).
        traits: what the kernels' template arguments are called.
    """

    blobs: dict[str, BlobSource] = field(default_factory=dict)
    templates: dict[str, KernelTemplate] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    by_symbol: dict[str, Instance] = field(default_factory=dict)
    by_arguments: dict[tuple[str, tuple[str, ...]], Instance] = field(default_factory=dict)
    traits: TraitTemplates = field(default_factory=TraitTemplates)
    _demangled: dict[frozenset[str], dict[tuple[str, tuple[str, ...]], Instance]] = field(default_factory=dict)

    def by_demangled_arguments(self, templates: Collection[str]) -> dict[tuple[str, tuple[str, ...]], Instance]:
        """Return `by_arguments` for some templates, with arguments as the demangler writes them."""
        key = frozenset(templates)
        if key not in self._demangled:
            self._demangled[key] = {
                (kernel.template, template_arguments(kernel.symbol, kernel.template.rpartition("::")[2])): instance
                for instance in self.instances
                for kernel in instance.kernels
                if kernel.template in key
            }
        return self._demangled[key]


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
        texts[path.name] = pieces
    names = sorted(blobs, key=lambda name: name.encode("utf-8", "surrogateescape"))
    return {name: blobs[name] for name in names}, {name: texts[name] for name in names}


@dataclass
class _Unit:
    """The text under construction, and which blob and specialisation stand on which of its lines."""

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
        parsed: the parse; dropped once it is read, because it takes half a gigabyte.
    """

    unit: _Unit
    flags: tuple[str, ...]
    blobs: Sequence[BlobSource]
    digests: dict[str, str]
    asked: Future[None] = field(init=False)
    parsed: TranslationUnit | None = None

    def ask(self, clang: libclang.Clang, pool: Executor) -> None:
        """Have `pool` parse the unit."""
        self.asked = pool.submit(self._parse, clang)

    def _parse(self, clang: libclang.Clang) -> None:
        path, text = self.blobs[0].path.parent / _UNIT_NAME, "\n".join(self.unit.lines) + "\n"
        self.parsed = libclang.parse(clang, path, self.flags, options=libclang.INCOMPLETE, text=text)


def write_questions(blobs: dict[str, BlobSource], texts: dict[str, BlobText]) -> list[Question]:
    """Write what clang is to be asked about `blobs`: one question for all that share flags and includes."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[BlobSource]] = defaultdict(list)
    for blob in blobs.values():
        groups[blob.flags.arguments, texts[blob.name].prologue].append(blob)
    questions = []
    for (flags, prologue), members in groups.items():
        unit = _Unit(lines=list(prologue))
        digests = {}
        for number, blob in enumerate(members):
            space, first = f"ck_jit_blob_{number}", len(unit.lines)
            _write_blob(unit, space, blob, texts[blob.name])
            asked = "\n".join((*prologue, *unit.lines[first:])).replace(space, "")
            digests[blob.name] = hashlib.sha256(asked.encode("latin-1")).hexdigest()[:16]
        questions.append(Question(unit, flags, members, digests))
    return questions


def likely_templates(texts: dict[str, BlobText]) -> set[str]:
    """Return the names of the kernel templates as the blobs write them, before clang has said what they mean."""
    return {
        "::".join((*specialisation.declaration.namespaces, specialisation.head.template.removeprefix("::")))
        for text in texts.values()
        for specialisation in text.specialisations
    }


def index_blobs(blobs: dict[str, BlobSource], questions: Sequence[Question]) -> BlobIndex:
    """Read clang's answers: what do `blobs` define?

    Raises:
        CkPostBuildError: clang rejects a blob, or two blobs define the same symbol.
    """
    index = BlobIndex(blobs=blobs)
    found: dict[str, list[KernelSpecialisation]] = defaultdict(list)
    for question in questions:
        for blob, kernel, template in _answers(question, index.traits):
            found[blob.name].append(kernel)
            if template is not None:
                _add_template(index, template, blob)
        question.parsed = None
    index.templates = dict(sorted(index.templates.items()))
    for name in blobs:
        _add_instances(index, name, found[name])
    return index


def _add_template(index: BlobIndex, template: KernelTemplate, blob: BlobSource) -> None:
    known = index.templates.setdefault(template.name, template)
    if known.signature() != template.signature():
        raise CkPostBuildError(
            f"{template.name} has another signature here than in the other blobs: "
            f"{template.result}({', '.join(p.type for p in template.parameters)}). Are two CK versions mixed?",
            file=blob.path,
        )


def _add_instances(index: BlobIndex, name: str, kernels: Sequence[KernelSpecialisation]) -> None:
    by_arguments: dict[tuple[str, ...], list[KernelSpecialisation]] = defaultdict(list)
    for kernel in kernels:
        by_arguments[kernel.arguments].append(kernel)
    for arguments, members in sorted(by_arguments.items()):
        instance = Instance(name, arguments, tuple(sorted(members, key=lambda k: k.template)))
        index.instances.append(instance)
        for kernel in instance.kernels:
            other = index.by_symbol.get(kernel.symbol)
            if other is not None:
                raise CkPostBuildError(
                    f"the blob defines {kernel.symbol}, and so does {index.blobs[other.blob].path}. "
                    "Only one may: remove one of the two",
                    file=index.blobs[name].path,
                )
            index.by_symbol[kernel.symbol] = instance
            index.by_arguments[kernel.template, arguments] = instance


def _answers(
    question: Question, traits: TraitTemplates
) -> Iterable[tuple[BlobSource, KernelSpecialisation, KernelTemplate | None]]:
    """Yield what the blobs of one question define; with the template where a new one turns up. Adds to `traits`."""
    question.asked.result()
    parsed, unit = question.parsed, question.unit
    assert parsed is not None
    _raise_on_errors(parsed, unit, question.blobs[0])
    templates: dict[str, str] = {}
    arguments: dict[tuple[str, str | None], tuple[str, ...] | None] = {}
    for cursor in libclang.children(parsed.cursor):
        if cursor.kind not in _FUNCTION_KINDS or not libclang.is_in_main_file(cursor):
            continue
        blob, specialisation = unit.owners[cursor.location.line]
        assert specialisation is not None
        written = specialisation.head.template
        key = (blob.name, specialisation.head.arguments)
        values = arguments[key] if key in arguments and key[1] else libclang.template_arguments(cursor)
        arguments[key] = values
        if values is None:
            raise CkPostBuildError(
                f"{written} has a template argument that is neither a type nor an integer", file=blob.path
            )
        traits.note(cursor, values)
        template = None
        if written not in templates:
            template = _kernel_template(cursor)
            templates[written] = template.name
        yield blob, KernelSpecialisation(templates[written], values, cursor.mangled_name), template


def _kernel_template(cursor: Cursor) -> KernelTemplate:
    primary = libclang.primary_template(cursor) or cursor
    prefix = re.match(rf"_ZN?.*?{len(cursor.spelling)}{re.escape(cursor.spelling)}I", cursor.mangled_name)
    if prefix is None:
        raise CkPostBuildError(f"unexpected mangled name {cursor.mangled_name} of {cursor.spelling}")
    return KernelTemplate(
        name=libclang.qualified_name(primary),
        symbol_prefix=prefix.group(),
        result=cursor.result_type.get_canonical().spelling,
        parameters=tuple(
            Parameter(parameter.type.get_canonical().spelling, parameter.spelling)
            for parameter in cursor.get_arguments()
        ),
    )


def _raise_on_errors(parsed: TranslationUnit, unit: _Unit, first: BlobSource) -> None:
    error = libclang.first_error(parsed)
    if error is None:
        return
    place = error.location
    message = f"libclang: {error.spelling}. Check the flags, and that blobs and headers are of one CK version"
    if place.file is not None and place.file.name.endswith(_UNIT_NAME) and place.line in unit.owners:
        blob, specialisation = unit.owners[place.line]
        line = None
        if specialisation is not None:
            line = read_text(blob.path).count("\n", 0, specialisation.declaration.offset) + 1
        raise CkPostBuildError(message, file=blob.path, line=line)
    raise CkPostBuildError(message, file=place.file.name if place.file else first.path, line=place.line or None)


def _write_blob(unit: _Unit, space: str, blob: BlobSource, text: BlobText) -> None:
    """Append the namespace `space` with what the blob's specialisations need, and their declarations, to `unit`."""
    needed = _needed(text)
    specialisations = {s.declaration.ordinal: s for s in text.specialisations}
    macros: list[str] = []
    local_names = frozenset(name for item in needed if (name := introduced_name(item)))
    needed_ordinals = {item.ordinal for item in needed}
    for item in text.items:
        if isinstance(item, Directive):
            unit.add(item.text, blob)
            if match := _DEFINE.match(item.text):
                macros.append(match.group(1))
        elif item.ordinal in specialisations:
            specialisation = specialisations[item.ordinal]
            unit.add(_declare(specialisation, space, local_names), blob, specialisation)
        elif item.ordinal in needed_ordinals:
            inside = "::".join((*item.namespaces, space))
            unit.add(f"namespace {inside} {{ {item.text}; }}", blob)
    for macro in macros:
        unit.add(f"#undef {macro}", blob)


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
