"""Pieces of C++ text: literals, parameter lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ck_post_build.blob_index import Parameter

# Needs no escape in a literal; nor does a question mark, but two and another character made a trigraph once.
_PLAIN = re.compile(r"[ !#->@-\[\]-~]*")

# The place of the name in a pointer or reference to a function, an array or a member.
_DECLARATOR = re.compile(r"\((?:[\w:]+::)?[*&]+(?: ?const)?(?=\))")
_INDIRECT = re.compile(r"[*&](?: ?(?:const|volatile|__restrict))*$")

# Canonical types of these starts are passed by value as they are; classes by reference up to the call of the kernel.
_SCALARS = ("bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "enum ")


def literal(text: str) -> str:
    """Return a C++ string literal with the bytes of `text` (surrogate escapes stand for undecodable bytes)."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    pieces = []
    for byte in text.encode("utf-8", "surrogateescape"):
        character = chr(byte)
        if character in '"\\':
            pieces.append("\\" + character)
        elif 32 <= byte < 127 and character != "?":
            pieces.append(character)
        else:
            pieces.append(f"\\{byte:03o}")
    return '"' + "".join(pieces) + '"'


def by_reference(parameter_type: str) -> str:
    """Return how an entry point takes a parameter of this canonical type: classes by reference to const."""
    scalar = parameter_type.removeprefix("const ").startswith(_SCALARS)
    if scalar or _INDIRECT.search(parameter_type) or _declarator(parameter_type):
        return parameter_type
    return f"const {parameter_type.removeprefix('const ')} &"


def parameter_names(parameters: Sequence[Parameter]) -> list[str]:
    """Return a distinct name for each parameter, its own where it has one."""
    return [parameter.name or f"ck_jit_{number}" for number, parameter in enumerate(parameters)]


def declare(parameter_type: str, name: str) -> str:
    """Return the declaration of `name` with a canonical type, function pointers included."""
    place = _declarator(parameter_type)
    if place:
        blank = " " if parameter_type[place - 1].isalnum() else ""
        return f"{parameter_type[:place]}{blank}{name}{parameter_type[place:]}"
    return f"{parameter_type} {name}" if not parameter_type.endswith(("&", "*")) else f"{parameter_type}{name}"


def _declarator(parameter_type: str) -> int:
    """Return the offset in a type such as ``float (*)(int)`` at which the name goes, or 0. Template arguments have theirs."""
    for match in _DECLARATOR.finditer(parameter_type):
        before = parameter_type[: match.start()]
        if before.count("<") == before.count(">"):
            return match.end()
    return 0
