"""What libclang tells about templates only on a second look: defaults of their parameters, and overloaded names."""

from __future__ import annotations

import clang.cindex
from clang.cindex import Cursor, CursorKind, TokenKind

from ck_post_build import libclang

PARAMETERS = (CursorKind.TEMPLATE_TYPE_PARAMETER, CursorKind.TEMPLATE_NON_TYPE_PARAMETER)
# Default arguments whose canonical spelling is what stands there.
_PLAIN_TYPES = frozenset({"void", "bool", "char", "int", "float", "double"})


def template_defaults(template: Cursor) -> tuple[str | None, ...]:
    """Return for each parameter of `template` the canonical type that it defaults to; None: none, or not a plain one."""
    parameters = [
        [c for c in libclang.children(declaration) if c.kind in PARAMETERS]
        for declaration in (template.canonical, template)
    ]
    return tuple(_default(first) or _default(last) for first, last in zip(*parameters, strict=True))


def _default(parameter: Cursor) -> str | None:
    words: list[str] = [token.spelling for token in parameter.get_tokens() if token.kind != TokenKind.COMMENT]
    if "=" not in words or parameter.kind != CursorKind.TEMPLATE_TYPE_PARAMETER:
        return None
    default = words[words.index("=") + 1 :]
    if len(default) == 1 and default[0] in _PLAIN_TYPES:
        return default[0]
    references = [child.referenced for child in libclang.children(parameter) if child.kind == CursorKind.TYPE_REF]
    if len(references) != 1 or references[0].kind in PARAMETERS or default[-1] != references[0].spelling:
        return None
    return str(references[0].type.get_canonical().spelling)


def referenced_count(cursor: Cursor) -> int:
    """Return how many declarations an overloaded reference may mean."""
    return int(clang.cindex.conf.lib.clang_getNumOverloadedDecls(cursor))


def overloaded(cursor: Cursor, number: int) -> Cursor:
    """Return one of the declarations that an overloaded reference may mean."""
    found: Cursor = clang.cindex.conf.lib.clang_getOverloadedDecl(cursor, number)
    return found
