"""Lazy stubs: what serves sites whose kernels are called out of templates that have no twin.

Such a site stays as it is, and so do the templates. The object then refers to kernel specialisations that nothing defines;
each gets a definition that loads its blob and jumps (``templates/ck_jit_stubs.S.j2``). Which ones those are is read from
clang's syntax tree of the instantiated templates.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.blob_index import BlobIndex, Instance
from ck_post_build.demangle import template_arguments
from ck_post_build.names import direction
from ck_post_build.resolve import Unresolved
from ck_post_build.sites import Site
from ck_post_build.source import SourceFile
from ck_post_build.wrappers import Wrapper

_TEMPLATES = frozenset(
    {
        CursorKind.FUNCTION_TEMPLATE,
        CursorKind.CLASS_TEMPLATE,
        CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
    }
)
_FUNCTIONS = frozenset(
    {
        CursorKind.FUNCTION_DECL,
        CursorKind.CXX_METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.DESTRUCTOR,
        CursorKind.CONVERSION_FUNCTION,
    }
)
_ENTITIES = _FUNCTIONS | {CursorKind.VAR_DECL}
_NESTS = frozenset(
    {
        CursorKind.NAMESPACE,
        CursorKind.STRUCT_DECL,
        CursorKind.CLASS_DECL,
        CursorKind.LINKAGE_SPEC,
        CursorKind.UNEXPOSED_DECL,
    }
)


@dataclass(frozen=True)
class StubSite:
    """A line of an API file with expressions that reach kernels through templates without a twin.

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


def templates_without_twin(
    unit: TranslationUnit, api: SourceFile, kernels: Collection[str], wrappers: dict[str, Wrapper]
) -> bool:
    """Tell whether a definition that stays as it is names a kernel or wrapper template: sites may hide behind it."""
    if not kernels:
        return False
    mention = _any_of([*kernels, *wrappers])
    # A member's name, ``init``, says little: its class must be named in the file too.
    in_file = _any_of([*kernels, *(wrapper.member_of or name for name, wrapper in wrappers.items())])
    kept = {(str(w.source.path), w.start) for w in wrappers.values() if w.problem is None}
    texts: dict[str, str] = {str(api.path): api.text}

    def look(cursor: Cursor) -> bool:
        for child in libclang.children(cursor):
            if child.kind not in _TEMPLATES | _FUNCTIONS | _NESTS or child.location.file is None:
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
            if child.kind in _NESTS:
                if look(child):
                    return True
            elif child.kind in _TEMPLATES or path != str(api.path):
                return True
        return False

    return look(unit.cursor)


def _any_of(names: Sequence[str]) -> re.Pattern[str]:
    bare = sorted({name.rpartition("::")[2] for name in names})
    return re.compile(r"\b(?:" + "|".join(map(re.escape, bare)) + r")\b")


@dataclass
class _Node:
    """A function or variable: which others its definition refers to, and the kernel symbol if it is a kernel."""

    refers: list[_Node] = field(default_factory=list)
    kernel: str = ""
    template: str = ""
    reaches: bool = False


class _References:
    """Which functions and variables refer to which, in the unit's instantiated code."""

    def __init__(self, kernels: Collection[str]) -> None:
        self.kernels = kernels
        self._nodes: dict[int, _Node] = {}
        self._pending: list[tuple[_Node, Cursor]] = []

    def node(self, entity: Cursor) -> _Node:
        """Return the node of `entity`, with all that it leads to."""
        node = self._node(entity)
        while self._pending:
            caller, cursor = self._pending.pop()
            caller.refers += [self._node(target) for _, target in _references(cursor)]
        return node

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
        key = int(cursor.data[0])
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
        if child.kind in _ENTITIES:
            yield child
        elif child.kind in _NESTS:
            yield from _own_functions(child, main_file_only=False)


def find_stub_sites(
    unit: TranslationUnit, source: SourceFile, index: BlobIndex, sites: Sequence[Site]
) -> tuple[list[StubSite], list[Unresolved]]:
    """Return the sites of `source` that only stubs can serve, and those that no blob serves, in text order.

    Args:
        unit: the parse of the file with all templates instantiated.
        source: the file's text.
        index: all blobs.
        sites: those that become calls.
    """
    graph = _References(set(index.templates))
    own = list(_own_functions(unit.cursor))
    places = {int((c.get_definition() or c).data[0]) for c in own}
    called = {site.template: [s.start for s in sites if s.template == site.template] for site in sites}
    found: list[tuple[int, _Node]] = []
    for function in own:
        for expression, target in _references(function):
            if int((target.get_definition() or target).data[0]) in places or target.semantic_parent.kind in _FUNCTIONS:
                continue
            if not _is_call(expression, target, called):
                found.append((source.line_of(libclang.offsets(expression)[0]), graph.node(target)))
    graph.mark()
    kernels: dict[int, dict[str, str]] = defaultdict(dict)
    for line, node in found:
        if node.reaches:
            kernels[line].update(_kernels(node))
    return _resolve(kernels, index)


def _is_call(expression: Cursor, target: Cursor, called: dict[str, list[int]]) -> bool:
    """Tell whether the expression is a site that becomes a call."""
    template = libclang.primary_template(target)
    starts = called.get(libclang.qualified_name(template), []) if template is not None else []
    start, end = libclang.offsets(expression)
    return any(start <= place < end for place in starts)


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
            unresolved.append(Unresolved(line, template, arguments, False))
            continue
        instances = {id(i): i for i in (index.by_symbol[symbol] for symbol in symbols)}
        ordered = sorted(instances.values(), key=lambda i: (i.blob, i.arguments))
        sites.append(StubSite(line, direction(min(symbols.values())), tuple(sorted(symbols)), tuple(ordered)))
    return sites, unresolved
