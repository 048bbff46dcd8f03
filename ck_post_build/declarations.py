"""Cuts a blob's source into declarations, so that clang need not compile its function bodies.

This is a lexer and a bracket matcher: it says where a declaration starts and ends and what name it introduces. What the
declarations mean, clang alone says (`blob_index`); a blob that is cut wrongly does not compile there and is an error.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import BLANK, BYTE_ORDER_MARK

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# Every branch starts with a literal character: Python's matcher then skips to the next candidate, five times as fast.
_NOT_CODE = r"""
      //(?:[^\n\\]|\\(?:\r\n|.))*                  # line comment; a backslash continues it
    | /\*.*?\*/                                    # block comment
    | R"([^\s()\\]{0,16})\(.*?\)\1"                # raw string
    | "(?:[^"\\\n]|\\(?:\r\n|.))*"                 # string
    | '(?:(?<=[0-9A-Fa-f]')(?=[0-9A-Fa-f])|(?:[^'\\\n]|\\.)+')   # digit separator, or character
    | \#(?:[^\n\\/]+|\\(?:\r\n|.)|/(?!\*)|/\*.*?\*/)*   # preprocessor directive, continuation lines included
"""
_SIGNIFICANT = re.compile(_NOT_CODE + r"| [{};]", re.VERBOSE | re.DOTALL)
_IN_BRACES = re.compile(_NOT_CODE + r"| [{}]", re.VERBOSE | re.DOTALL)
_BLANK = re.compile(BLANK, re.DOTALL)
_INCLUDE = re.compile(r"#\s*include\b")
_IF = re.compile(r"#\s*if")
_ENDIF = re.compile(r"#\s*endif\b")
_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:\s]*)$")
_TYPE = re.compile(r"(?:typedef\s+)?(?:struct|class|union|enum)\b")
_TEMPLATE_HEAD = re.compile(r"template\s*(?=<)")
_EXPLICIT_SPECIALISATION = re.compile(r"template\s*<\s*>")
_EXPLICIT_INSTANTIATION = re.compile(r"template\s*(?!<)(?=[\w:\[])")
_NAME_OR_BRACKET = re.compile(r"((?:::\s*)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)|[<(]")
_ALIAS = re.compile(r"using\s+([A-Za-z_]\w*)\s*(?:\[\[.*?\]\]\s*)?=")
_USING_DIRECTIVE = re.compile(r"using\s+(?:namespace|enum)\b")
_USING_DECLARATION = re.compile(r"using\s.*?([A-Za-z_]\w*)\s*$", re.DOTALL)
_LAST_NAME = re.compile(r"([A-Za-z_]\w*)\W*$")
_TYPE_NAME = re.compile(
    r"(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\s*\(.*?\)\s*)?([A-Za-z_]\w*)"
)
_VARIABLE = re.compile(r"([A-Za-z_]\w*)\s*(?:\[.*\]\s*)?(?:=|\{|$)")
_NOT_A_PARAMETER_LIST = {"__attribute__", "alignas", "decltype", "noexcept", "explicit", "__declspec"}
_SPECIFIERS = re.compile(r"\b(?:inline|static|extern|constexpr|consteval|__host__|__global__|__forceinline__)\b")
_ATTRIBUTE = re.compile(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)", re.DOTALL)


@dataclass(frozen=True)
class Declaration:
    """One declaration at namespace scope.

    Attributes:
        text: the declaration up to its ``;`` or its function body.
        offset: where it starts in the file.
        namespaces: the named namespaces around it, outermost first; unnamed ones are left out.
        ordinal: its position among declarations and directives.
    """

    text: str
    offset: int
    namespaces: tuple[str, ...]
    ordinal: int


@dataclass(frozen=True)
class Directive:
    """A conditional, macro or pragma line that stays where it is."""

    text: str
    ordinal: int


@dataclass(frozen=True)
class SpecialisationHead:
    """The head of an explicit specialisation or explicit instantiation of a function template, in pieces.

    Attributes:
        template: the template's name as written, perhaps qualified.
        arguments: the text between the angle brackets; None when it relies on deduction.
        result: the text of the result type.
        parameters: the text of the parameter list with its parentheses.
        trailer: what follows the parameter list (``const``, ``noexcept``, ``-> T``).
    """

    template: str
    arguments: str | None
    result: str
    parameters: str
    trailer: str


@dataclass(frozen=True)
class Specialisation:
    """A declaration that specialises or instantiates a function template, with its head."""

    head: SpecialisationHead
    declaration: Declaration


@dataclass(frozen=True)
class BlobText:
    """A blob in pieces.

    Attributes:
        prologue: its ``#include`` lines, with the directives around them where an include is conditional.
        items: directives and declarations in their order.
        specialisations: those of the declarations that specialise function templates.
    """

    prologue: tuple[str, ...]
    items: tuple[Declaration | Directive, ...]
    specialisations: tuple[Specialisation, ...]


def cut(text: str, path: Path) -> BlobText:
    """Cut the source `text` of the blob at `path` into its declarations.

    Raises:
        CkPostBuildError: brackets do not match, as in a truncated file.
    """
    prologue: list[str] = []
    items: list[Declaration | Directive] = []
    specialisations: list[Specialisation] = []
    directives: list[str] = []
    nesting, conditional_include = 0, False
    for item in _items(text, path):
        if isinstance(item, Directive):
            directives.append(item.text)
            nesting += bool(_IF.match(item.text)) - bool(_ENDIF.match(item.text))
            if _INCLUDE.match(item.text):
                prologue.append(item.text)
                conditional_include |= nesting > 0
                continue
        items.append(item)
        if isinstance(item, Declaration):
            head = _specialisation_head(item.text)
            if head is not None:
                specialisations.append(Specialisation(head, item))
    return BlobText(tuple(directives if conditional_include else prologue), tuple(items), tuple(specialisations))


def _items(text: str, path: Path) -> Iterator[Declaration | Directive]:
    """Yield the directives and the declarations at namespace scope, in order."""
    position = start = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    scopes: list[str] = []
    ordinal = 0
    while token := _SIGNIFICANT.search(text, position):
        position = token.end()
        mark = token.group()
        if mark[0] == "#":
            yield Directive(mark.strip(), ordinal)
            ordinal += 1
            start = position
        elif mark == "{":
            head = strip_comments(text[start : token.start()])
            namespace = _NAMESPACE.match(head)
            if namespace or head.startswith('extern "C'):
                scopes.append(namespace.group(1).replace(" ", "") if namespace else "")
                start = position
                continue
            position = _closing_brace(text, position, path)
            if head.count("(") > head.count(")"):
                continue  # a braced argument, or the body of a lambda that is one
            if _is_function_head(head):
                yield Declaration(head, _first(text, start), _named(scopes), ordinal)
                ordinal += 1
                start = position
        elif mark == "}":
            if not scopes:
                raise CkPostBuildError("a bracket closes that was never opened", file=path, line=_line(text, token))
            scopes.pop()
            start = position
        elif mark == ";":
            declaration = strip_comments(text[start : token.start()])
            if declaration:
                yield Declaration(declaration, _first(text, start), _named(scopes), ordinal)
                ordinal += 1
            start = position
    if scopes or strip_comments(text[start:]):
        raise _truncated(text, path)


def _closing_brace(text: str, position: int, path: Path) -> int:
    """Return the offset behind the brace that closes the one before `position`."""
    depth = 1
    for token in _IN_BRACES.finditer(text, position):
        mark = token.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    raise _truncated(text, path)


def _truncated(text: str, path: Path) -> CkPostBuildError:
    return CkPostBuildError(
        "the file ends inside a declaration: it is truncated. Generate it again",
        file=path,
        line=text.count("\n", 0, len(text.rstrip())) + 1,
    )


def _first(text: str, start: int) -> int:
    """Return the offset of the first character at or after `start` that is neither blank nor in a comment."""
    match = _BLANK.match(text, start)
    return match.end() if match else start


def _named(scopes: list[str]) -> tuple[str, ...]:
    return tuple(scope for scope in scopes if scope)


def _line(text: str, token: re.Match[str]) -> int:
    return text.count("\n", 0, token.start()) + 1


def strip_comments(text: str) -> str:
    """Return `text` without comments and without directives inside it, stripped."""
    if "/" not in text and "#" not in text:
        return text.strip()

    def keep(match: re.Match[str]) -> str:
        mark = match.group()
        return " " if mark.startswith(("//", "/*")) else mark

    return _SIGNIFICANT.sub(keep, text).strip()


def _is_function_head(head: str) -> bool:
    """Tell whether a brace after `head` opens a function body (and not a type, or an initialiser)."""
    return "(" in head and not _is_type(head) and not _has_top_level_assignment(head)


def _is_type(text: str) -> bool:
    """Tell whether the declaration `text` is one of a class, union or enumeration, or of a template of them."""
    while match := _TEMPLATE_HEAD.match(text):
        end = _closing(text, match.end())
        if end < 0:
            return False
        text = text[end + 1 :].lstrip()
    return _TYPE.match(text) is not None


def _has_top_level_assignment(head: str) -> bool:
    depth = 0
    for token in re.finditer(r"[()<>]|(?<![=!<>])=(?!=)", head):
        mark = token.group()
        if mark in "(<":
            depth += 1
        elif mark in ")>":
            depth -= 1
        elif depth <= 0 and "operator" not in head:
            return True
    return False


@functools.lru_cache(maxsize=4096)  # blobs name their traits alike, so a few hundred heads serve 15,000 of them
def _specialisation_head(text: str) -> SpecialisationHead | None:
    """Return the parts of the declaration `text` if it specialises or instantiates a function template, else None."""
    introducer = _EXPLICIT_SPECIALISATION.match(text) or _EXPLICIT_INSTANTIATION.match(text)
    if introducer is None or _TYPE.match(text[introducer.end() :].lstrip()):
        return None
    head = _ATTRIBUTE.sub(" ", text[introducer.end() :])
    parts = _declarator(head)
    if parts is None:
        return None
    name_start, name_end, arguments, open_paren, close_paren = parts
    return SpecialisationHead(
        template=head[name_start:name_end].replace(" ", ""),
        arguments=arguments,
        result=_SPECIFIERS.sub(" ", head[:name_start]).strip(),
        parameters=head[open_paren : close_paren + 1],
        trailer=head[close_paren + 1 :].strip(),
    )


def _declarator(head: str) -> tuple[int, int, str | None, int, int] | None:
    """Find ``name<arguments>(parameters)`` in a function head.

    Returns the range of the name, the text of the arguments, and the offsets of the parameter list's parentheses; None
    when there is no parameter list outside angle brackets (a class template, say).
    """
    position = 0
    name: tuple[int, int] | None = None
    arguments: str | None = None
    for _ in range(len(head)):
        match = _NAME_OR_BRACKET.search(head, position)
        if match is None:
            return None
        position = match.end()
        if match.group(1):
            if match.group(1) not in _NOT_A_PARAMETER_LIST:
                name, arguments = match.span(1), None
            else:
                name = None
            continue
        end = _closing(head, match.start())
        if end < 0:
            return None
        if match.group() == "<":
            arguments = head[match.end() : end].strip()
        elif name is not None:
            return (*name, arguments, match.start(), end)
        position = end + 1
    return None


def _closing(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one at `start`, or -1. Angles inside parentheses do not count."""
    stack: list[str] = []
    pairs = {"(": ")", "<": ">", "[": "]", "{": "}"}
    for token in re.finditer(r"[()<>\[\]{}]|->", text[start:]):
        mark = token.group()
        if mark == "->" or (mark in "<>" and stack and stack[-1] != ">"):
            continue
        if mark in pairs:
            stack.append(pairs[mark])
        elif stack and stack[-1] == mark:
            stack.pop()
            if not stack:
                return start + token.start()
        else:
            return -1
    return -1


def introduced_name(declaration: Declaration) -> str | None:
    """Return the name that a declaration introduces; None for a using directive and for what is not understood."""
    text = declaration.text
    if match := _ALIAS.match(text):
        return match.group(1)
    if text.startswith("using"):
        match = None if _USING_DIRECTIVE.match(text) else _USING_DECLARATION.match(text)
    elif text.startswith("typedef"):
        match = _LAST_NAME.search(text)
    elif _is_type(text):
        match = _TYPE_NAME.search(text)
    else:
        match = _VARIABLE.search(text)
    return match.group(1) if match else None


@functools.lru_cache(maxsize=4096)
def identifiers(text: str) -> frozenset[str]:
    """Return every identifier in `text`."""
    return frozenset(_IDENTIFIER.findall(text))
