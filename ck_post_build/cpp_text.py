"""Pieces of C++ text: literals, parameter lists."""

from __future__ import annotations

from collections.abc import Sequence

from ck_post_build.blob_index import Parameter

# Canonical types of these starts are passed by value as they are; classes by reference up to the call of the kernel.
_SCALARS = ("bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "enum ")


def literal(text: str) -> str:
    """Return a C++ string literal with the bytes of `text` (surrogate escapes stand for undecodable bytes)."""
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
    if parameter_type.endswith(("&", "*", "*const")) or parameter_type.removeprefix("const ").startswith(_SCALARS):
        return parameter_type
    return f"const {parameter_type.removeprefix('const ')} &"


def parameter_names(parameters: Sequence[Parameter]) -> list[str]:
    """Return a distinct name for each parameter, its own where it has one."""
    return [parameter.name or f"ck_jit_{number}" for number, parameter in enumerate(parameters)]


def declare(parameter_type: str, name: str) -> str:
    """Return the declaration of `name` with a canonical type, function pointers included."""
    if "(*)" in parameter_type:
        return parameter_type.replace("(*)", f"(*{name})", 1)
    return f"{parameter_type} {name}" if not parameter_type.endswith(("&", "*")) else f"{parameter_type}{name}"
