"""Lazy stubs: what serves sites that stay as they are, above all those whose kernels templates without a twin call.

Such a template stays as it is too. The object then refers to kernel specialisations that nothing defines;
each gets a definition that loads its blob and jumps (``templates/ck_jit_stubs.S.j2``). Which ones those are is read from
clang's syntax tree of the instantiated templates.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.blob_index import BlobIndex, Instance
from ck_post_build.demangle import template_arguments
from ck_post_build.names import direction
from ck_post_build.resolve import ResolvedSite, Unresolved
from ck_post_build.sites import Site
from ck_post_build.source import SourceFile, blanked
from ck_post_build.virtual_functions import parse_probes, probed, probes

_ENTITIES = libclang.FUNCTIONS | {CursorKind.VAR_DECL}


@dataclass(frozen=True)
class StubSite:
    """A line of an API file with expressions that stay as they are and reach kernels.

    Attributes:
        line: where.
        direction: of its kernels.
        symbols: the kernel symbols that it can reach, in order of the names.
        instances: what defines them, in order of the blobs' names.
    """

    line: int
    direction: str
    symbols: tuple[str, ...]
    instances: tuple[Instance, ...]

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of the blobs."""
        return tuple(instance.blob for instance in self.instances)


def _key(entity: Cursor) -> int:
    """Return what identifies the function, variable or class, whichever of its declarations `entity` is."""
    return int((entity.get_definition() or entity.canonical).data[0])


@dataclass
class _Node:
    """A function or variable: which others its definition refers to, and the kernel symbol if it is a kernel."""

    refers: list[_Node] = field(default_factory=list)
    kernel: str = ""
    template: str = ""
    reaches: bool = False


class _References:
    """Which functions and variables refer to which, in the unit's instantiated code."""

    def __init__(self, kernels: Collection[str], calls: _Calls, virtual: dict[int, Cursor]) -> None:
        """`virtual`: for a class, a function that names its virtual functions."""
        self.kernels = kernels
        self.calls = calls
        self.constructed: dict[int, Cursor] = {}
        self._virtual = virtual
        self._nodes: dict[int, _Node] = {}
        self._pending: list[tuple[_Node, Cursor]] = []

    def node(self, entity: Cursor) -> _Node:
        """Return the node of `entity`, with all that it leads to."""
        node = self._node(entity)
        while self._pending:
            caller, cursor = self._pending.pop()
            if cursor.kind == CursorKind.CONSTRUCTOR:
                self._construct(caller, cursor.semantic_parent)
            references = _references(cursor)
            caller.refers += [self._node(target) for place, target in references if not self.calls.has(place, target)]
        return node

    def _construct(self, constructor: _Node, cls: Cursor) -> None:
        key = _key(cls)
        self.constructed[key] = cls
        if key in self._virtual:
            constructor.refers.append(self._node(self._virtual[key]))

    def mark(self) -> None:
        """Set `reaches` of every node from which a kernel is reached."""
        callers: dict[int, list[_Node]] = defaultdict(list)
        for node in self._nodes.values():
            for target in node.refers:
                callers[id(target)].append(node)
        pending = [node for node in self._nodes.values() if node.kernel]
        while pending:
            node = pending.pop()
            if not node.reaches:
                node.reaches = True
                pending += callers[id(node)]

    def _node(self, entity: Cursor) -> _Node:
        definition = entity.get_definition()
        cursor = definition or entity.canonical
        key = _key(entity)
        if key not in self._nodes:
            node = self._nodes[key] = _Node()
            template = libclang.primary_template(cursor) if definition is None else None
            name = libclang.qualified_name(template) if template is not None else ""
            if name in self.kernels:
                node.kernel, node.template = cursor.mangled_name, name
            else:
                self._pending.append((node, cursor))
        return self._nodes[key]


def _references(cursor: Cursor) -> Iterator[tuple[Cursor, Cursor]]:
    """Yield the expressions below `cursor` that refer to a function or variable, each with that."""
    pending = [cursor]
    while pending:
        current = pending.pop()
        if current.kind.is_expression():
            target = current.referenced
            if target is not None and target.kind in _ENTITIES:
                yield current, target
        pending += libclang.children(current)


def _own_functions(cursor: Cursor, *, main_file_only: bool = True) -> Iterator[Cursor]:
    for child in libclang.children(cursor):
        if main_file_only and not libclang.is_in_main_file(child):
            continue
        if child.kind in _ENTITIES or child.kind == CursorKind.FIELD_DECL:
            yield child
        elif child.kind in libclang.SCOPES:
            yield from _own_functions(child, main_file_only=False)


def find_stub_sites(
    unit: TranslationUnit,
    source: SourceFile,
    index: BlobIndex,
    sites: Sequence[Site],
    parse: Callable[[str], TranslationUnit],
    naming: re.Pattern[str],
) -> tuple[list[StubSite], list[Unresolved]]:
    """Return the sites of `source` that only stubs can serve, and those that no blob serves, in text order.

    Args:
        unit: the parse of the file with all templates instantiated.
        source: the file's text.
        index: all blobs.
        sites: those that are known.
        parse: parses the file with another text at its end.
        naming: matches the name of a template or macro behind which a kernel may be.
    """
    calls = _Calls(source, sites)
    graph = _References(set(index.templates), calls, {})
    found = _found(unit, source, graph)
    texts = {str(source.path): source.text}

    def names_kernel(function: Cursor) -> bool:
        path = function.location.file.name
        if path not in texts:
            texts[path] = SourceFile(Path(path)).text
        start, end = libclang.offsets(function)
        return naming.search(blanked(texts[path][start:end])) is not None

    virtual = probes(graph.constructed.values(), names_kernel)
    if virtual:
        unit = parse_probes(virtual, source, parse)
        graph = _References(set(index.templates), calls, {_key(cls): function for function, cls in probed(unit)})
        found = _found(unit, source, graph)
    graph.mark()
    kernels: dict[int, dict[str, str]] = defaultdict(dict)
    for line, node in found:
        if node.reaches:
            kernels[line].update(_kernels(node))
    return _resolve(kernels, index)


def _found(unit: TranslationUnit, source: SourceFile, graph: _References) -> list[tuple[int, _Node]]:
    """Return the lines of expressions that may be sites, with what they refer to."""
    named = {_key(function) for function, _ in probed(unit)}
    own = [function for function in _own_functions(unit.cursor) if _key(function) not in named]
    places = {_key(function) for function in own}
    found: list[tuple[int, _Node]] = []
    for function in own:
        for expression, target in _references(function):
            if _key(target) in places or target.semantic_parent.kind in libclang.FUNCTIONS:
                continue
            if not graph.calls.has(expression, target):
                found.append((source.line_of(libclang.offsets(expression)[0]), graph.node(target)))
    return found


class _Calls:
    """The sites that are known without a look into templates, by template."""

    def __init__(self, source: SourceFile, sites: Sequence[Site]) -> None:
        self._path = str(source.path)
        self._starts: dict[str, list[int]] = defaultdict(list)
        for site in sites:
            self._starts[site.template].append(site.start)

    def has(self, expression: Cursor, target: Cursor) -> bool:
        """Tell whether `expression`, which names `target`, is one of the sites."""
        template = libclang.primary_template(target)
        starts = self._starts.get(libclang.qualified_name(template)) if template is not None else None
        # Not libclang's own test for the main file, which is false for what comes out of a macro.
        if not starts or expression.location.file is None or expression.location.file.name != self._path:
            return False
        start, end = libclang.offsets(expression)
        return any(start <= place < max(end, start + 1) for place in starts)


def as_stub_sites(sites: Sequence[ResolvedSite]) -> list[StubSite]:
    """Return resolved sites that stay as they are in the form of those that only stubs can serve."""
    return [
        StubSite(site.line, site.direction, site.symbols, tuple(i for i in site.instances if i is not None))
        for site in sites
    ]


def by_line(sites: Sequence[StubSite]) -> list[StubSite]:
    """Return one site for each line of `sites`, in text order."""
    lines: dict[int, list[StubSite]] = defaultdict(list)
    for site in sites:
        lines[site.line].append(site)
    return [_joined(lines[line]) for line in sorted(lines)]


def _joined(sites: Sequence[StubSite]) -> StubSite:
    symbols = sorted({symbol for site in sites for symbol in site.symbols})
    instances = _ordered(instance for site in sites for instance in site.instances)
    return StubSite(sites[0].line, min(site.direction for site in sites), tuple(symbols), instances)


def _ordered(instances: Iterable[Instance]) -> tuple[Instance, ...]:
    """Return each of `instances` once, in order of the blobs' names."""
    different = {id(instance): instance for instance in instances}
    return tuple(sorted(different.values(), key=lambda instance: (instance.blob, instance.arguments)))


def _kernels(root: _Node) -> dict[str, str]:
    """Return the symbols of the kernels that `root` reaches, with their templates."""
    seen = {id(root)}
    pending, found = [root], {}
    while pending:
        node = pending.pop()
        if node.kernel:
            found[node.kernel] = node.template
        for target in node.refers:
            if target.reaches and id(target) not in seen:
                seen.add(id(target))
                pending.append(target)
    return found


def _resolve(kernels: dict[int, dict[str, str]], index: BlobIndex) -> tuple[list[StubSite], list[Unresolved]]:
    sites: list[StubSite] = []
    unresolved: list[Unresolved] = []
    for line, symbols in sorted(kernels.items()):
        missing = sorted(symbols.keys() - index.by_symbol.keys())
        if missing:
            template = symbols[missing[0]]
            arguments = template_arguments(missing[0], template.rpartition("::")[2])
            unresolved.append(Unresolved(line, template, arguments))
            continue
        instances = _ordered(index.by_symbol[symbol] for symbol in symbols)
        sites.append(StubSite(line, direction(min(symbols.values())), tuple(sorted(symbols)), instances))
    return sites, unresolved
