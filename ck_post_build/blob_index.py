"""Which specialisations does each blob define? Clang's answers to `blob_questions`: kernel symbols are the mangled names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.blob_questions import UNIT_NAME, BlobSource, Question, Unit
from ck_post_build.demangle import template_arguments
from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import read_text
from ck_post_build.trait_templates import TraitTemplates

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

    def symbols(self) -> dict[str, list[str]]:
        """Return for each blob's name its kernels' symbols, sorted."""
        found: dict[str, list[str]] = {name: [] for name in self.blobs}
        for instance in self.instances:
            found[instance.blob] += [kernel.symbol for kernel in instance.kernels]
        return {name: sorted(symbols) for name, symbols in found.items()}

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


class Answers:
    """Clang's answers as they come in.

    Args:
        blobs: all blobs that are asked about.
    """

    def __init__(self, blobs: dict[str, BlobSource]) -> None:
        self._index = BlobIndex(blobs=blobs)
        self._found: dict[str, list[KernelSpecialisation]] = defaultdict(list)

    def read(self, question: Question) -> None:
        """Read the answer to `question`, and drop its parse.

        Raises:
            CkPostBuildError: clang rejects a blob, or one has another signature than others.
        """
        for blob, kernel, template in _answers(question, self._index.traits):
            self._found[blob.name].append(kernel)
            if template is not None:
                _add_template(self._index, template, blob)
        question.parsed = None
        libclang.give_memory_back()

    def index(self) -> BlobIndex:
        """Return what the blobs define, once all answers are read.

        Raises:
            CkPostBuildError: two blobs define the same symbol.
        """
        self._index.templates = dict(sorted(self._index.templates.items()))
        for name in self._index.blobs:
            _add_instances(self._index, name, self._found[name])
        return self._index


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


def _raise_on_errors(parsed: TranslationUnit, unit: Unit, first: BlobSource) -> None:
    error = libclang.first_error(parsed)
    if error is None:
        return
    place = error.location
    message = f"libclang: {error.spelling}. Check the flags, and that blobs and headers are of one CK version"
    if place.file is not None and place.file.name.endswith(UNIT_NAME) and place.line in unit.owners:
        blob, specialisation = unit.owners[place.line]
        line = None
        if specialisation is not None:
            line = read_text(blob.path).count("\n", 0, specialisation.declaration.offset) + 1
        raise CkPostBuildError(message, file=blob.path, line=line)
    raise CkPostBuildError(message, file=place.file.name if place.file else first.path, line=place.line or None)
