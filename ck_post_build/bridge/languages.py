"""How C's types, names and texts are written in each generated language."""

from __future__ import annotations

import json
import keyword
import re
import textwrap

from ck_post_build.bridge.ctypes_model import CType

# Names that cannot be a parameter in one of the languages; Python's come from its own list.
_RUST = (
    "as async await box break const continue crate do dyn else enum extern fn for if impl in let loop macro match mod "
    "move mut pub ref return self static struct super trait true type unsafe use where while yield abstract become final "
    "override priv try typeof unsized virtual"
)
_CPP = (
    "alignas alignof and asm auto bool catch char class compl concept constexpr decltype default delete double explicit "
    "export float friend goto inline int long mutable namespace new noexcept not nullptr operator or private protected "
    "public register requires short signed sizeof switch template this thread_local throw typename union unsigned using "
    "virtual void volatile wchar_t xor"
)
_OURS = "library require status_name detail std ctypes math loaded_ code_ result_ kCall CALL"  # what wrappers mention
RESERVED = frozenset([*_RUST.split(), *_CPP.split(), *_OURS.split(), *keyword.kwlist])


def rust_type(type_: CType) -> str:
    """Return `type_` in Rust."""
    if type_.kind == "pointer":
        inner = rust_type(type_.target) if type_.target and type_.target.kind != "void" else "c_void"
        return f"*{'const' if type_.const else 'mut'} {inner}"
    if type_.kind == "array":
        assert type_.target
        return f"[{rust_type(type_.target)}; {type_.count}]"
    if type_.kind == "integer":
        return f"{'i' if type_.signed else 'u'}{8 * type_.size}"
    if type_.kind == "float":
        return f"f{8 * type_.size}"
    return {"void": "()", "bool": "bool"}.get(type_.kind, type_.name)


def ctypes_type(type_: CType) -> str:
    """Return `type_` as a ctypes expression. Every pointer is an address: what it points to is the caller's business."""
    if type_.kind == "array":
        assert type_.target
        return f"{ctypes_type(type_.target)} * {type_.count}"
    if type_.kind == "integer":
        return f"ctypes.c_{'int' if type_.signed else 'uint'}{8 * type_.size}"
    if type_.kind == "float":
        return "ctypes.c_float" if type_.size == 4 else "ctypes.c_double"
    simple = {"void": "None", "bool": "ctypes.c_bool", "pointer": "ctypes.c_void_p"}
    return simple.get(type_.kind, type_.name)


def python_hint(type_: CType) -> str:
    """Return the annotation of a parameter of `type_`."""
    return {"integer": "int", "float": "float", "bool": "bool", "struct": type_.name}.get(type_.kind, "Any")


def python_conversion(name: str, type_: CType) -> str | None:
    """Return the expression that turns an argument into what ctypes passes unchanged."""
    if type_.kind == "pointer":
        return f"_pointer({py_string(name)}, {name})"
    if type_.kind == "integer":
        return f"_integer({py_string(name)}, {name}, {8 * type_.size}, {type_.signed})"
    if type_.kind == "float" and type_.size == 4:
        return f"ctypes.c_float({name}).value"  # so that a condition sees what the library gets
    return None


def cpp_spelling(spelling: str) -> str:
    """Return a canonical C type in C++."""
    return re.sub(r"\s*\b(?:__)?restrict\b", "", spelling).replace("_Bool", "bool").strip()


def cpp_parameters(parameters: list[tuple[str, str]]) -> str:
    """Return a parameter list, in lines that fit."""
    text = ", ".join(f"{cpp_spelling(spelling)} {name}".replace("* ", "*") for spelling, name in parameters)
    return "\n    ".join(textwrap.wrap(text, 90, break_long_words=False))


def rust_string(text: str) -> str:
    """Return `text` as a Rust literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{{{ord(m[0]):x}}}", escaped) + '"'


def c_string(text: str) -> str:
    """Return `text` as a C and C++ literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\{ord(m[0]):03o}", escaped) + '"'


def py_string(text: str) -> str:
    """Return `text` as a Python literal with double quotes."""
    return json.dumps(text)


def comment(text: str, prefix: str, width: int = 110) -> str:
    """Return `text` as a line comment. No line ends in a backslash, which C++ would take as a continuation."""
    lines = textwrap.wrap(" ".join(text.split()), width - len(prefix)) or [""]
    return "\n".join(f"{prefix}{line}".rstrip().rstrip("\\") for line in lines)


def verbatim(text: str, prefix: str) -> str:
    """Return `text` as a line comment, line by line."""
    return "\n".join(f"{prefix}{line}".rstrip().rstrip("\\") for line in text.splitlines())
