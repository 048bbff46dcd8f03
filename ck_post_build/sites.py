"""Finds the dispatch sites of an API file: the expressions that name a specialisation some blob is behind.

Of an ``if`` only the branches are walked, because a dispatcher is mostly conditions. So that nothing is missed by that, the
places where a template's name stands in the text are counted against what was found; a name left over makes the walk look
into everything, and one that is then still unaccounted for is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.braced_names import specialisations
from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import BLANK, COMMENT_OR_TEXT, SourceFile, blanked

_TEMPLATES = frozenset({CursorKind.FUNCTION_TEMPLATE, CursorKind.CLASS_TEMPLATE})
_NOT_CUT = frozenset(
    {
        CursorKind.LAMBDA_EXPR,
        CursorKind.SWITCH_STMT,
        CursorKind.FOR_STMT,
        CursorKind.CXX_FOR_RANGE_STMT,
        CursorKind.WHILE_STMT,
        CursorKind.DO_STMT,
        CursorKind.LABEL_STMT,
        CursorKind.CXX_TRY_STMT,
    }
)
_VARIABLES = frozenset({CursorKind.VAR_DECL, CursorKind.FIELD_DECL})
_ALIASES = frozenset({CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPEDEF_DECL})
_REFERENCES = frozenset({CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR})
_OPEN_PAREN = re.compile(rf"{BLANK}\(", re.DOTALL)
_ALIAS = re.compile(r"(?:using|typedef|(?:static\s+)?constexpr|constexpr\s+static)\b")
_IF_CONSTEXPR = re.compile(r"if\s+constexpr\b")


@dataclass
class Alias:
    """A block-local type alias, or a ``constexpr`` variable: its name, and the range of its declaration with the semicolon."""

    name: str
    start: int
    end: int


@dataclass
class Link:
    """An ``if`` statement ``[start, end)`` with one condition: a link of an ``else if`` chain, or a chain of its own.

    Attributes:
        end: where its chain ends.
        condition: the condition's cursor.
        branch: the range of the statement that the condition guards.
        behind_else: whether it is the branch of an ``else``.
    """

    start: int
    end: int
    condition: Cursor
    branch: tuple[int, int]
    behind_else: bool


@dataclass
class Block:
    """A compound statement ``[start, end)`` inside `parent`.

    Attributes:
        result: the result type of the function around it, where the block may become a function of its own: not in a
            lambda, a loop or a switch, whose ``return``, ``break`` or labels mean something else then. "" otherwise.
        aliases: those that it declares.
        links: the plain ``if`` statements in it, but for those in deeper blocks.
    """

    start: int
    end: int
    parent: Block | None
    result: str = ""
    aliases: list[Alias] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


@dataclass(frozen=True)
class _Context:
    """What surrounds a cursor: the innermost block, whether it is discarded, Block.result, whether by an ``else``, and
    whether in a template; and whether the cursor is a statement of the block itself, not deeper."""

    block: Block | None
    discarded: bool
    result: str
    behind_else: bool = False
    in_template: bool = False
    in_block: bool = False


@dataclass
class Site:
    """One dispatch site.

    Attributes:
        start, end: the range of the callee, ``fmha_fwd_<trait_, ck_tile::gfx9_t>``.
        template: the qualified name of the template that it specialises.
        arguments: canonical template arguments; None for a member function, or when one is neither type nor integer.
        symbol: the mangled name of the specialisation; "" for a wrapper's whose arguments are known.
        called: whether a call follows; otherwise it is named, as for a function pointer.
        block: the innermost compound statement around it; None outside function bodies.
        discarded: whether a false ``if constexpr`` excludes it.
        in_template: whether it stands in a template, on whose arguments it does not depend.
        stays: whether it cannot become a call with slots: it comes out of a macro, or names a wrapper without calling it.
    """

    start: int
    end: int
    template: str
    arguments: tuple[str, ...] | None
    symbol: str
    called: bool
    block: Block | None
    discarded: bool
    in_template: bool = False
    stays: bool = False


def find_sites(
    unit: TranslationUnit,
    source: SourceFile,
    kernels: Collection[str],
    wrappers: Collection[str],
    macros: Collection[str],
    skipped_ranges: Callable[[], list[tuple[int, int]]],
    parse_text: Callable[[str], TranslationUnit],
    continued: Mapping[int, int] | None = None,
) -> list[Site] | None:
    """Return the sites of `source` that name a specialisation of one of some templates (qualified names), in text order.

    None if the unit is the parse of a FlatText and need not mean what the file means.

    Args:
        unit: the parse of the file, or of its FlatText.
        source: the same file's text.
        kernels, wrappers: the templates that matter.
        macros: the names of macros that name one of them.
        skipped_ranges: tells which text the preprocessor left out; asked only if a template's name is unaccounted for.
        parse_text: parses another text of the file; asked only for names that are unaccounted for then.
        continued: FlatText.continued.

    Raises:
        CkPostBuildError: one of the templates is named in compiled code in a way that is not understood.
    """
    names = {name.rpartition("::")[2] for name in (*kernels, *wrappers)}
    written = names | set(macros)
    finder = _Finder(source, set(kernels), set(wrappers), names, continued or {})
    functions = list(_functions(unit.cursor, main_file_only=True))
    templates_in_file = [libclang.offsets(cursor) for cursor in functions if cursor.kind in _TEMPLATES]
    for cursor in functions:
        finder.walk(cursor)
    if not finder.join_chains():
        return None
    missed = _unaccounted(source, written, finder, templates_in_file, [libclang.offsets(c) for c in functions])
    if missed:
        finder.look_everywhere(functions, missed)
        missed = _unaccounted(source, written, finder, templates_in_file, [libclang.offsets(c) for c in functions])
        skipped = skipped_ranges()
        missed = [offset for offset in missed if not any(start <= offset < end for start, end in skipped)]
    if missed:
        named = [offset for offset in missed if _word_at(source.text, offset) in names]
        for start, end, function in specialisations(source, named, parse_text, finder.templates):
            finder.add_named(start, end, function)
        missed = [offset for offset in missed if offset not in finder.sites]
    if missed:
        raise CkPostBuildError(
            f"{_word_at(source.text, missed[0])} is used in a way that is not understood here. "
            "Write it as a plain call",
            file=source.path,
            line=source.line_of(missed[0]),
        )
    return sorted([*finder.sites.values(), *finder.out_of_macros.values()], key=lambda site: site.start)


def _word_at(text: str, offset: int) -> str:
    word = re.compile(r"\w*").match(text, offset)
    return word.group() if word else ""


def _functions(cursor: Cursor, *, main_file_only: bool) -> Iterator[Cursor]:
    """Yield the functions, variables, members with initialisers and templates below `cursor`."""
    for child in cursor.get_children():
        if main_file_only and not libclang.is_in_main_file(child):
            continue
        if child.kind in libclang.FUNCTIONS or child.kind in _TEMPLATES or child.kind in _VARIABLES:
            yield child
        elif child.kind in libclang.SCOPES:
            yield from _functions(child, main_file_only=False)


class _Finder:
    """Walks functions and collects sites by their start."""

    def __init__(
        self, source: SourceFile, kernels: set[str], wrappers: set[str], names: set[str], continued: Mapping[int, int]
    ) -> None:
        self.source = source
        self.kernels = kernels
        self.wrappers = wrappers
        self.templates = kernels | wrappers
        self.names = names
        self.sites: dict[int, Site] = {}
        self.out_of_macros: dict[tuple[int, str, str], Site] = {}
        self.others: set[int] = set()
        self.everywhere = False
        self.blocks: list[Block] = []
        self._pending: list[tuple[Cursor, _Context]] = []
        self._template_names: dict[int, str] = {}
        self._continued = continued
        self._behind_else = set(continued.values())
        self._joined: dict[int, Link] = {}
        self._ends: dict[int, int] = {}

    def join_chains(self) -> bool:
        """Give the links of flat chains the ends of their chains. False if some chain must not have been made flat."""
        if self._joined.keys() != self._continued.keys():
            return False
        for place, link in sorted(self._joined.items(), reverse=True):
            link.end = self._ends[link.start] = self._ends[self._continued[place]]
        return True

    def look_everywhere(self, functions: list[Cursor], missed: list[int]) -> None:
        """Walk the functions around the offsets `missed` again, conditions included."""
        self.everywhere = True
        for cursor in functions:
            start, end = libclang.offsets(cursor)
            if cursor.kind not in _TEMPLATES and any(start <= offset < end for offset in missed):
                self.walk(cursor)

    def add_named(self, start: int, end: int, function: Cursor) -> None:
        """Add a site that names `function` without calling it."""
        arguments, name = libclang.template_arguments(function), self._template_name(function)
        # Of the blocks around it the innermost starts last.
        around = [block for block in self.blocks if block.start <= start and end <= block.end]
        block = max(around, key=lambda block: block.start, default=None)
        site = Site(start, end, name, arguments, function.mangled_name, False, block, False)
        self.sites[start] = replace(site, stays=name not in self.kernels)

    def walk(self, function: Cursor) -> None:
        """Collect the sites in `function`. A stack, since an ``else if`` chain nests a thousand deep."""
        result = function.result_type.get_canonical().spelling if function.kind in libclang.FUNCTIONS else ""
        self._pending = [(function, _Context(None, False, result, in_template=function.kind in _TEMPLATES))]
        while self._pending:
            self._visit(*self._pending.pop())

    def _push(self, cursors: list[Cursor], context: _Context) -> None:
        self._pending += [(cursor, context) for cursor in cursors]

    def _visit(self, cursor: Cursor, context: _Context) -> None:
        kind = cursor.kind
        if self.everywhere and kind.is_declaration() and cursor.spelling in self.names:
            self.others.add(cursor.location.offset)
        if kind == CursorKind.COMPOUND_STMT:
            block = Block(*libclang.offsets(cursor), context.block, context.result)
            self.blocks.append(block)
            inside = replace(context, block=block, behind_else=False, in_block=True)
            self._push(libclang.children(cursor), inside)
        elif kind == CursorKind.IF_STMT:
            self._if(cursor, context)
        elif kind == CursorKind.DECL_STMT:
            self._declaration(cursor, context)
        elif kind == CursorKind.CALL_EXPR and cursor.spelling in self.names:
            self._call(cursor, context)
        elif kind in _REFERENCES and cursor.spelling in self.names:
            self._reference(cursor, cursor.referenced, False, context)
        else:
            result = "" if kind in _NOT_CUT else context.result
            if context.in_block or result != context.result:
                context = replace(context, result=result, in_block=False)
            self._push(libclang.children(cursor), context)

    def _if(self, cursor: Cursor, context: _Context) -> None:
        parts = libclang.children(cursor)
        branches = parts[-2:] if _else_between(self.source.text, parts) else parts[-1:]
        conditions = parts[: len(parts) - len(branches)]
        if self.everywhere or len(conditions) > 1 or context.in_template:
            self._push(conditions, context)
        start, end = libclang.offsets(cursor)
        value = None
        if conditions and _IF_CONSTEXPR.match(self.source.text, start):
            value = None if context.in_template else libclang.evaluate(conditions[-1])
        elif len(conditions) == 1 and context.block is not None:
            behind_else = context.behind_else or start in self._behind_else
            link = Link(start, end, conditions[0], libclang.offsets(branches[0]), behind_else)
            if not context.in_template:
                context.block.links.append(link)
            plain = branches[0].kind == CursorKind.COMPOUND_STMT and not _declares(conditions[0])
            if link.branch[1] in self._continued and context.in_block and plain:
                self._joined[link.branch[1]] = link
        self._ends[start] = end
        for number, branch in enumerate(branches):
            dead = context.discarded or (value is not None and bool(value) == bool(number))
            behind_else = bool(number) and branch.kind == CursorKind.IF_STMT
            inside = replace(context, discarded=dead, behind_else=behind_else, in_block=False)
            self._pending.append((branch, inside))

    def _declaration(self, cursor: Cursor, context: _Context) -> None:
        children = libclang.children(cursor)
        for child in children:
            if child.kind not in _ALIASES:
                self._pending.append((child, context))
        if context.block is None or len(children) != 1 or children[0].kind not in (*_ALIASES, CursorKind.VAR_DECL):
            return
        start, end = libclang.offsets(cursor)
        # Else a macro declares it, and perhaps more than that.
        if _ALIAS.match(self.source.text, start) and self.source.text[end - 1] == ";":
            context.block.aliases.append(Alias(children[0].spelling, start, end))

    def _call(self, cursor: Cursor, context: _Context) -> None:
        parts = libclang.children(cursor)
        callee = parts[0] if parts else None
        while callee is not None and callee.kind == CursorKind.UNEXPOSED_EXPR:
            callee = next(iter(libclang.children(callee)), None)
        if callee is None or callee.kind not in _REFERENCES:
            self._push(parts, context)
            return
        self._reference(callee, cursor.referenced, True, context)
        self._push(parts[1:], context)

    def _reference(self, callee: Cursor, function: Cursor | None, called: bool, context: _Context) -> None:
        if function is None:
            return
        name = self._template_name(function)
        if name not in self.templates:
            self.others.add(self._name_start(callee, *libclang.offsets(callee)))
            return
        start, end = libclang.offsets(callee)
        arguments = libclang.template_arguments(function)
        if callee.kind == CursorKind.MEMBER_REF_EXPR:
            start = self._name_start(callee, start, end)
        site = Site(
            start,
            end,
            name,
            arguments,
            function.mangled_name if arguments is None or name in self.kernels else "",
            called,
            context.block,
            context.discarded,
            context.in_template,
        )
        if self._is_written_out(site):
            named = name in self.wrappers and not (called and _OPEN_PAREN.match(self.source.text, end))
            self.sites[start] = replace(site, stays=named)
            return
        self.others |= {start, libclang.written_at(callee)}
        self.out_of_macros[start, name, function.mangled_name] = replace(site, stays=True)

    def _is_written_out(self, site: Site) -> bool:
        """Tell whether the callee stands in the text as such, and not in a macro or an argument of one."""
        bare = site.template.rpartition("::")[2]
        name = re.compile(rf"(?:::\s*)?(?:\w+\s*::\s*)*{re.escape(bare)}\b").match(
            self.source.text, site.start, site.end
        )
        return name is not None and (name.end() == site.end or self.source.text[site.end - 1] == ">")

    def _template_name(self, function: Cursor) -> str:
        template = libclang.primary_template(function)
        if template is None:
            return ""
        name = self._template_names.get(template.hash)
        if name is None:
            name = self._template_names[template.hash] = libclang.qualified_name(template)
        return name

    def _name_start(self, callee: Cursor, start: int, end: int) -> int:
        """Return where the name itself starts in ``this->init<…>`` or ``ck::init``."""
        found = re.compile(rf"\b{re.escape(callee.spelling)}\b").search(self.source.text, start, end)
        return found.start() if found else start


def _declares(condition: Cursor) -> bool:
    return bool(condition.kind.is_declaration()) or condition.kind == CursorKind.DECL_STMT


def _else_between(text: str, children: list[Cursor]) -> bool:
    if len(children) < 3:
        return False
    between = text[children[-2].extent.end.offset : children[-1].extent.start.offset]
    return bool(re.search(r"\belse\b", blanked(between)))


def _unaccounted(
    source: SourceFile,
    names: set[str],
    finder: _Finder,
    templates: list[tuple[int, int]],
    functions: list[tuple[int, int]],
) -> list[int]:
    """Return the offsets inside function bodies at which a template's name stands and no site was found."""
    if not names:
        return []
    pattern = re.compile(
        COMMENT_OR_TEXT
        + r"|#[ \t]*define(?:[^\n\\]|\\(?:\r\n|.))*|\b(?P<name>"
        + "|".join(map(re.escape, sorted(names)))
        + r")\b",
        re.DOTALL,
    )
    ranges = sorted((site.start, site.end) for site in (*finder.sites.values(), *finder.out_of_macros.values()))
    result = []
    position = 0
    for match in pattern.finditer(source.text):
        if not match.group("name"):
            continue
        offset = match.start()
        while position < len(ranges) and ranges[position][1] <= offset:
            position += 1
        if offset in finder.others or (position < len(ranges) and ranges[position][0] <= offset):
            continue
        if any(start <= offset < end for start, end in templates):
            continue
        if any(
            source.text.find("{", start, end) >= 0 and source.text.find("{", start, end) < offset < end
            for start, end in functions
        ):
            result.append(offset)
    return result
