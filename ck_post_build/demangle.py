"""Template arguments out of mangled names, for the specialisations whose arguments libclang does not give: member functions."""

from __future__ import annotations

import ctypes
import functools
import re

from ck_post_build.errors import CkPostBuildError

_OPENING = "<([{"
_CLOSING = ">)]}"
# What is worth a look: names have thousands of characters, and libraries tens of thousands of names.
_IN_ARGUMENTS = re.compile(r"[<>()\[\]{},]")
_IN_NAME = re.compile(r"[<>()\[\]{} ]")


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
    except OSError as error:
        raise CkPostBuildError(f"cannot load the C++ library, which demangles names: {error}") from error
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    c_library = ctypes.CDLL(None)
    c_library.free.argtypes = [ctypes.c_void_p]
    return runtime, c_library


def demangle(symbol: str) -> str:
    """Return the C++ name of `symbol`. Raises ValueError when it is no mangled name."""
    runtime, c_library = _libraries()
    status = ctypes.c_int()
    pointer = runtime.__cxa_demangle(symbol.encode(), None, None, ctypes.byref(status))
    if not pointer:
        raise ValueError(f"{symbol} is no mangled name")
    try:
        return ctypes.string_at(pointer).decode()
    finally:
        c_library.free(pointer)


def template_arguments(symbol: str, name: str) -> tuple[str, ...]:
    """Return the template arguments of the function called `name` (unqualified) in the mangled name `symbol`.

    Two symbols have equal arguments exactly if the strings are equal, since one demangler writes both.
    """
    text = demangle(symbol)
    return split_arguments(text[text.index(f"{name}<") + len(name) :])


@functools.lru_cache(maxsize=1 << 14)  # kernels of a blob have the same ones
def split_arguments(text: str) -> tuple[str, ...]:
    """Return the arguments of the list in angle brackets that `text` starts with."""
    pieces: list[str] = []
    depth, piece_start = 0, 1
    for match in _IN_ARGUMENTS.finditer(text):
        position, character = match.start(), match[0]
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        if (character == "," and depth == 1) or depth == 0:
            pieces.append(text[piece_start:position].strip())
            piece_start = position + 1
        if depth == 0:
            break
    return tuple(pieces)


def function_name(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the qualified name of the function in the C++ name `text`, and its template arguments."""
    depth, start = 0, 0
    text = text.replace("(anonymous namespace)", "<unnamed>")
    for match in _IN_NAME.finditer(text):
        position, character = match.start(), match[0]
        if depth == 0 and character == " ":
            start = position + 1  # a result type stands in front
        elif depth == 0 and character == "(":
            text = text[:position]
            break
        depth += (character in _OPENING) - (character in _CLOSING)
    name, bracket, rest = text[start:].removeprefix("<unnamed>::").partition("<")
    return name, split_arguments(bracket + rest) if bracket else ()
