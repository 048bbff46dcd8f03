"""Wrapper templates: what stands between a dispatch site and the kernels, and how its non-template twin is made.

A wrapper such as ``fmha_bwd_<T0, T1, T2, Arch>`` calls blob specialisations with its own template parameters. Its twin takes a
slot (a blob's place at run time) for each set of parameters that selects a blob, and is otherwise the wrapper's own source:
launch order, printed text and the rest stay what that CK version wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit, TypeKind

from ck_post_build import libclang
from ck_post_build.blob_index import Parameter
from ck_post_build.names import entry_point
from ck_post_build.source import BLANK, Edit, SourceFile, blanked
from ck_post_build.template_cursors import PARAMETERS, overloaded, referenced_count, template_defaults

_NAMES = frozenset({CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR})
_VOID_TEST = re.compile(
    r"(?:std\s*::\s*)?"
    r"(?:is_same(?:_v)?\s*<\s*(?P<type>\w+)\s*,\s*void\s*>|is_void(?:_v)?\s*<\s*(?P<type2>\w+)\s*>)(?:\s*::\s*value)?$"
)

_ATTRIBUTES = re.compile(r"(?:\[\[.*?\]\]\s*)*", re.DOTALL)
_OPEN_PAREN = re.compile(rf"{BLANK}\({BLANK}", re.DOTALL)

# A template argument of a call inside a wrapper: the number of one of the wrapper's parameters, or a canonical type.
Argument = int | str


@dataclass(frozen=True)
class Selection:
    """What selects one blob: the arguments of the calls that reach it, and the name of the slot parameter for it."""

    arguments: tuple[Argument, ...]
    name: str


@dataclass
class Wrapper:
    """A wrapper template.

    Attributes:
        name: its qualified name.
        source: the file it stands in.
        start, end: its range there, from ``template`` to the closing brace.
        result: canonical result type.
        parameters: the function parameters.
        entry: the name of its twin.
        member_of: the class that it is a member of, or "".
        scope_start: where the outermost class around it starts; its own start for a function that is no member.
        namespaces: the named namespaces around it, outermost first.
        calls: the wrappers that it calls.
        selections: one for each slot of the twin.
        uses: which template is reached with which selection.
        optional: the numbers of parameters that may be ``void`` ("no blob").
        defaults: what each template parameter defaults to, as far as that is understood.
        edits: what turns its source into the twin's, all within ``[start, end)``.
        problem: why there can be no twin; None when there is one.
        file_local: whether another API file has a twin of that name too, so that both need internal linkage.
    """

    name: str
    source: SourceFile
    start: int
    end: int
    result: str
    parameters: tuple[Parameter, ...]
    entry: str
    member_of: str
    scope_start: int
    namespaces: tuple[str, ...]
    calls: set[str] = field(default_factory=set)
    selections: list[Selection] = field(default_factory=list)
    uses: list[tuple[str, int]] = field(default_factory=list)
    optional: set[int] = field(default_factory=set)
    defaults: tuple[str | None, ...] = ()
    edits: list[Edit] = field(default_factory=list)
    problem: str | None = None
    problem_offset: int = 0
    file_local: bool = False

    @property
    def qualified_entry(self) -> str:
        """The twin's name as a caller outside its namespace writes it."""
        return "::".join([*(name for name in self.namespaces if name), self.entry])

    def twin(self) -> str:
        """Return the source of the twin, indented like the wrapper."""
        shifted = [Edit(e.start - self.start, e.end - self.start, e.text) for e in self.edits]
        text = _Slice(self.source.text[self.start : self.end]).apply(shifted)
        if self.file_local and not self.member_of:
            text = _ATTRIBUTES.sub(r"\g<0>static ", text, count=1)
        return self.indentation() + text

    def indentation(self) -> str:
        """Return the blanks in front of the wrapper."""
        before = self.source.text[self.source.line_start(self.start) : self.start]
        return before if not before.strip() else ""


class _Slice(SourceFile):
    """A piece of a file's text, to apply edits to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.path = Path("slice")


def find_wrappers(unit: TranslationUnit, api: SourceFile, kernels: Collection[str]) -> dict[str, Wrapper]:
    """Return the wrapper templates that `unit` can see, by qualified name: those that reach templates in `kernels`.

    A wrapper that calls a wrapper is one too. Those without a possible twin have their `problem` set.
    """
    wrappers: dict[str, Wrapper] = {}
    names = {name.rpartition("::")[2] for name in kernels}
    candidates = list(_templates(unit, api, names))
    grew = True
    while grew:
        grew = False
        for cursor, source in candidates:
            name = libclang.qualified_name(cursor)
            if name in wrappers:
                continue
            reader = _Reader(cursor, source, set(kernels), wrappers)
            wrapper = reader.read()
            if wrapper is not None:
                wrappers[name] = wrapper
                grew = True
    return wrappers


def _templates(unit: TranslationUnit, api: SourceFile, names: set[str]) -> Iterator[tuple[Cursor, SourceFile]]:
    """Yield the function templates with bodies in the files that mention one of `names`."""
    sources: dict[str, SourceFile | None] = {str(api.path): api}
    mention = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(names))) + r")\b")

    def source_of(cursor: Cursor) -> SourceFile | None:
        file = cursor.location.file
        if file is None:
            return None
        if file.name not in sources:
            source = SourceFile(Path(file.name))
            sources[file.name] = source if mention.search(source.text) else None
        return sources[file.name]

    def walk(cursor: Cursor) -> Iterator[tuple[Cursor, SourceFile]]:
        for child in libclang.children(cursor):
            if child.kind != CursorKind.FUNCTION_TEMPLATE and child.kind not in libclang.SCOPES:
                continue
            source = source_of(child)
            if source is None:
                continue
            if child.kind in libclang.SCOPES:
                yield from walk(child)
            elif child.is_definition():
                yield child, source

    return walk(unit.cursor)


@dataclass(frozen=True)
class _Target:
    """A template that is named: its qualified name, what its parameters default to, and whether no argument is dependent."""

    name: str
    defaults: tuple[str | None, ...]
    fixed: bool = False


class _Reader:
    """Reads one function template: which kernels it reaches, and what its twin needs changed."""

    def __init__(self, cursor: Cursor, source: SourceFile, kernels: set[str], wrappers: dict[str, Wrapper]) -> None:
        self.cursor = cursor
        self.source = source
        self.kernels = kernels
        self.wrappers = wrappers
        self.parameters = [c for c in libclang.children(cursor) if c.kind in PARAMETERS]
        self.covered: list[tuple[int, int]] = []
        self.lambdas: list[tuple[int, set[str]]] = []
        # calls that do not depend on the wrapper's parameters
        self.fixed: list[tuple[int, str]] = []
        parent = cursor.semantic_parent
        is_member = parent is not None and parent.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
        start, end = libclang.offsets(cursor)
        self.wrapper = Wrapper(
            name=libclang.qualified_name(cursor),
            source=source,
            start=start,
            end=end,
            result=cursor.result_type.get_canonical().spelling,
            parameters=tuple(
                Parameter(p.type.get_canonical().spelling, p.spelling)
                for p in libclang.children(cursor)
                if p.kind == CursorKind.PARM_DECL
            ),
            entry=entry_point(cursor.spelling),
            member_of=libclang.qualified_name(parent) if is_member else "",
            scope_start=start,
            namespaces=(),
            defaults=template_defaults(cursor),
        )
        self.code = blanked(source.text[start:end])
        self._scope(cursor)

    def _code(self, start: int, end: int) -> str:
        """Return a piece of the file inside the wrapper, without comments and texts."""
        return self.code[start - self.wrapper.start : end - self.wrapper.start]

    def _scope(self, cursor: Cursor) -> None:
        namespaces: list[str] = []
        parent = cursor.semantic_parent
        while parent is not None and parent.kind != CursorKind.TRANSLATION_UNIT:
            if parent.kind == CursorKind.NAMESPACE:
                namespaces.insert(0, parent.spelling)
            else:
                self.wrapper.scope_start = libclang.offsets(parent)[0]
            parent = parent.semantic_parent
        self.wrapper.namespaces = tuple(namespaces)

    def read(self) -> Wrapper | None:
        """Return the wrapper, or None when it reaches no kernel through its template parameters."""
        if not self._mentions():
            return None
        bodies = [c for c in libclang.children(self.cursor) if c.kind == CursorKind.COMPOUND_STMT]
        if not bodies:
            return None
        self._visit(bodies[0], [])
        if not self.wrapper.uses and self.wrapper.problem is None:
            return None
        for offset, target in self.fixed:
            self._fail(f"it calls one specialisation of {target} whatever its own arguments are", offset)
        self._order_selections()
        self._check_all_covered()
        if self.wrapper.problem is None:
            self._signature(bodies[0])
            self._captures()
        return self.wrapper

    def _order_selections(self) -> None:
        """Put the slots in the order of the template parameters, which is the order that callers know."""
        old = self.wrapper.selections
        order = sorted(range(len(old)), key=lambda n: [a if isinstance(a, int) else -1 for a in old[n].arguments])
        self.wrapper.selections = [old[n] for n in order]
        self.wrapper.uses = sorted({(template, order.index(n)) for template, n in self.wrapper.uses})

    def _mentions(self) -> bool:
        names = {name.rpartition("::")[2] for name in (*self.kernels, *self.wrappers)}
        return any(name in names for name in re.findall(r"\w+", self.code[self.code.find("{") :]))

    def _fail(self, reason: str, offset: int) -> None:
        if self.wrapper.problem is None:
            self.wrapper.problem, self.wrapper.problem_offset = reason, offset

    def _visit(self, cursor: Cursor, lambdas: list[tuple[int, set[str]]]) -> None:
        if cursor.kind == CursorKind.LAMBDA_EXPR:
            self.lambdas.append((libclang.offsets(cursor)[0], set()))
            lambdas = [*lambdas, self.lambdas[-1]]
        elif cursor.kind in _NAMES and self._name(cursor, lambdas):
            return
        elif cursor.kind == CursorKind.IF_STMT:
            self._if_constexpr(cursor)
        for child in libclang.children(cursor):
            self._visit(child, lambdas)

    def _name(self, cursor: Cursor, lambdas: list[tuple[int, set[str]]]) -> bool:
        """Treat `cursor` if it names a template: a kernel, a wrapper or a test for void."""
        start, end = libclang.offsets(cursor)
        text = self._code(start, end)
        if test := _VOID_TEST.match(text):
            number = self._parameter(test.group("type") or test.group("type2"))
            if number is None:
                return False
            self.wrapper.optional.add(number)
            self.covered.append((start, end))
            self.wrapper.edits.append(Edit(start, end, f"({self.parameters[number].spelling} == nullptr)"))
            return True
        target = self._target(cursor)
        if target is None:
            return False
        bare = re.escape(target.name.rpartition("::")[2])
        if re.match(rf"(?:this\s*->\s*)?(?:template\s+)?(?:::\s*)?(?:\w+\s*::\s*)*{bare}\s*<.*>$", text, re.DOTALL):
            self._call(cursor, start, end, target, lambdas)
        else:
            self._fail(f"it names {target.name} through a macro or without template arguments", start)
        return True

    def _target(self, cursor: Cursor) -> _Target | None:
        """Return the kernel or wrapper template that `cursor` names, or None."""
        known = {*self.kernels, *self.wrappers}
        referenced = cursor.referenced
        if referenced is None:
            written = re.match(r"(?:this\s*->\s*)?(?:template\s+)?(\w+)", self._code(*libclang.offsets(cursor)))
            member = f"{self.wrapper.member_of}::{written.group(1)}" if written else ""
            return _Target(member, self.wrappers[member].defaults) if member in self.wrappers else None
        if referenced.kind == CursorKind.OVERLOADED_DECL_REF:
            meant = [overloaded(referenced, number) for number in range(referenced_count(referenced))]
            template = next((c for c in meant if libclang.qualified_name(c) in known), None)
            return _Target(libclang.qualified_name(template), template_defaults(template)) if template else None
        template = libclang.primary_template(referenced)
        name = libclang.qualified_name(template or referenced)
        return _Target(name, (), fixed=True) if name in known else None

    def _call(self, cursor: Cursor, start: int, end: int, called: _Target, lambdas: list[tuple[int, set[str]]]) -> None:
        target = called.name
        arguments = None if called.fixed else self._arguments(cursor, start, end, called.defaults)
        if called.fixed or (arguments and not any(isinstance(argument, int) for argument in arguments)):
            self.fixed.append((start, target))
            return
        if arguments is None:
            self._fail(f"a template argument of {target} is neither a parameter of the wrapper nor a plain type", start)
            return
        self.covered.append((start, end))
        inner = self.wrappers.get(target)
        if inner is None:
            slots = [self._slot(arguments, target)]
        else:
            slots = []
            self.wrapper.calls.add(target)
            if any(isinstance(a, int) and a >= len(arguments) for s in inner.selections for a in s.arguments):
                self._fail(f"it leaves a template argument of {target} out", start)
                return
            for number, selection in enumerate(inner.selections):
                passed = tuple(arguments[a] if isinstance(a, int) else a for a in selection.arguments)
                slots.append(self._slot(passed, None))
                self.wrapper.uses += [(t, slots[-1]) for t, s in inner.uses if s == number]
            passed_on = [arguments[number] for number in inner.optional if number < len(arguments)]
            self.wrapper.optional.update(argument for argument in passed_on if isinstance(argument, int))
            if inner.problem is not None:
                self._fail(f"it calls {target}, for which there is no twin: {inner.problem}", start)
        names = [self.wrapper.selections[slot].name for slot in slots]
        for _, captured in lambdas:
            captured.update(names)
        self._replace_call(start, end, target, names)

    def _replace_call(self, start: int, end: int, target: str, slots: list[str]) -> None:
        open_paren = _OPEN_PAREN.match(self.source.text, end)
        name_start = start
        if match := re.match(r"this\s*->\s*(?:template\s+)?", self._code(start, end)):
            name_start += match.end()
        inner = self.wrappers.get(target)
        entry = inner.qualified_entry if inner else entry_point(target.rpartition("::")[2])
        if open_paren is not None:
            separator = "" if self.source.text[open_paren.end()] == ")" else ", "
            self.wrapper.edits.append(Edit(name_start, end, entry))
            self.wrapper.edits.append(Edit(open_paren.end(), open_paren.end(), ", ".join(slots) + separator))
        elif inner is None:
            before = self.source.text[self.wrapper.start : name_start].rstrip()
            start = self.wrapper.start + len(before) - 1 if before.endswith("&") else name_start
            self.wrapper.edits.append(Edit(start, end, f"{entry}_pointer({slots[0]})"))
        else:
            self._fail(f"{target} is named without being called", start)

    def _slot(self, arguments: tuple[Argument, ...], target: str | None) -> int:
        """Return the number of the selection with `arguments`, a new one if need be, and note `target` as its use."""
        known = [selection.arguments for selection in self.wrapper.selections]
        number = known.index(arguments) if arguments in known else len(known)
        if number == len(known):
            first = next(argument for argument in arguments if isinstance(argument, int))
            name = self.parameters[first].spelling
            if any(selection.name == name for selection in self.wrapper.selections):
                name = f"{name}_{number}"
            self.wrapper.selections.append(Selection(arguments, name))
        if target is not None:
            self.wrapper.uses.append((target, number))
        return number

    def _arguments(
        self, cursor: Cursor, start: int, end: int, defaults: tuple[str | None, ...]
    ) -> tuple[Argument, ...] | None:
        """Return what stands between the angle brackets, and the defaults of what does not; None if not understood."""
        text = self._code(start, end)
        inside = text[text.index("<") + 1 : text.rindex(">")]
        references = [c for c in libclang.children(cursor) if c.kind == CursorKind.TYPE_REF]
        result: list[Argument] = []
        position = start + text.index("<") + 1
        for piece in inside.split(","):
            number = self._parameter(piece.strip())
            if number is not None:
                result.append(number)
            else:
                inner = [c for c in references if position <= libclang.offsets(c)[0] < position + len(piece)]
                declared = inner[-1].referenced if len(inner) == 1 else None
                if declared is None or declared.kind in PARAMETERS or re.search(r"[<(]", piece):
                    return None
                result.append(declared.type.get_canonical().spelling)
            position += len(piece) + 1
        left_out = defaults[len(result) :]
        return None if None in left_out else (*result, *(default for default in left_out if default is not None))

    def _parameter(self, name: str) -> int | None:
        return next((n for n, parameter in enumerate(self.parameters) if parameter.spelling == name), None)

    def _if_constexpr(self, cursor: Cursor) -> None:
        """Make ``if constexpr`` on a test for void an ordinary ``if``."""
        start = libclang.offsets(cursor)[0]
        head = re.compile(r"if\s+constexpr\b").match(self.source.text, start)
        condition = libclang.children(cursor)[0]
        if head and re.search(r"\bvoid\b|\bis_void", self.source.text[slice(*libclang.offsets(condition))]):
            self.wrapper.edits.append(Edit(start, head.end(), "if"))

    def _check_all_covered(self) -> None:
        """Note a problem if the body uses a template parameter in a way that the twin cannot."""

        def walk(cursor: Cursor) -> None:
            for child in libclang.children(cursor):
                if child.kind in (CursorKind.TYPE_REF, CursorKind.DECL_REF_EXPR):
                    target = child.referenced
                    start = libclang.offsets(child)[0]
                    if (
                        target is not None
                        and target.kind in PARAMETERS
                        and not any(a <= start < b for a, b in self.covered)
                    ):
                        self._fail(
                            f"its template parameter {target.spelling} is used other than to select a blob", start
                        )
                walk(child)

        for child in libclang.children(self.cursor):
            if child.kind not in PARAMETERS:
                walk(child)

    def _signature(self, body: Cursor) -> None:
        """Drop the template head, name the twin, add the slot parameters and the check that all blobs are there."""
        text, wrapper = self.source.text, self.wrapper
        name = self.cursor.location.offset
        head_end = wrapper.start + _template_head_end(self.code)
        open_paren = wrapper.start + self.code.index("(", name - wrapper.start)
        slots = ", ".join(f"ck_jit::Slot* {selection.name}" for selection in wrapper.selections)
        separator = "" if not wrapper.parameters else ", "
        prefix = "" if wrapper.member_of else "inline " if self._is_in_header() else ""
        specifiers = (
            re.sub(r"\b(?:static|inline)\s+", "", text[head_end:name]) if not wrapper.member_of else text[head_end:name]
        )
        wrapper.edits.append(
            Edit(wrapper.start, name + len(self.cursor.spelling), prefix + specifiers.lstrip() + wrapper.entry)
        )
        wrapper.edits.append(Edit(open_paren + 1, open_paren + 1, slots + separator))
        copies = self._by_value_parameters()
        body_start = libclang.offsets(body)[0] + 1
        names = ", ".join(selection.name for selection in wrapper.selections)
        failed = "" if wrapper.result == "void" else f" ck_jit::failed<{wrapper.result}>()"
        newline = self.source.newline()
        lines = [f"if(!ck_jit::ready({names}))", f"    return{failed};", *copies]
        indented = "".join(f"{newline}{wrapper.indentation()}    {line}" for line in lines)
        wrapper.edits.append(Edit(body_start, body_start, indented))

    def _is_in_header(self) -> bool:
        return not libclang.is_in_main_file(self.cursor)

    def _by_value_parameters(self) -> list[str]:
        """Pass class parameters by reference and copy them in the twin: a dispatcher with a copy at each of 22,080 sites
        takes minutes to compile. Returns the lines that copy."""
        lines = []
        for parameter in libclang.children(self.cursor):
            if parameter.kind != CursorKind.PARM_DECL or parameter.type.get_canonical().kind != TypeKind.RECORD:
                continue
            start, end = libclang.offsets(parameter)
            written = self.source.text[start:end]
            name = parameter.spelling
            if not name or not written.endswith(name) or "=" in written:
                continue
            type_text = written[: -len(name)].rstrip()
            bare = type_text.removeprefix("const ")
            self.wrapper.edits.append(Edit(start, end, f"const {bare}& ck_jit_{name}"))
            lines.append(f"{type_text} {name} = ck_jit_{name};")
        return lines

    def _captures(self) -> None:
        """Let the lambdas that use slots capture them by value."""
        for start, names in self.lambdas:
            if not names:
                continue
            close = self.wrapper.start + self.code.index("]", start - self.wrapper.start)
            captures = self._code(start + 1, close).strip()
            if captures.startswith("="):
                continue
            listed = ", ".join(sorted(names))
            self.wrapper.edits.append(Edit(close, close, f", {listed}" if captures else listed))


def _template_head_end(text: str) -> int:
    """Return the offset after the ``template <…>`` that `text`, which has no comments, starts with."""
    depth = 0
    for position in range(text.index("<"), len(text)):
        if text[position] == "<":
            depth += 1
        elif text[position] == ">":
            depth -= 1
            if depth == 0:
                return position + 1
    raise ValueError("template head without end")
