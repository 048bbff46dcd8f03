"""The ABI record: a short array of 64-bit words that a library exports and a bridge compares before it calls anything.

The words are a mark, their number, the version, a hash of each function's signature, and size and offsets of each
struct. The library's side computes sizes and offsets with its own compiler; a record written for another header differs
in a hash even where no struct is involved.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ck_post_build.bridge.ctypes_model import Function
from ck_post_build.bridge.header import Header

MARK = int.from_bytes(b"CKPBABI1", "big")


@dataclass(frozen=True)
class Word:
    """One word: what it means, what the header says, and how C computes it."""

    label: str
    value: int
    c_expression: str


def signature_hash(function: Function) -> int:
    """Return 64 bits that change with the types of `function`, not with its parameters' names."""
    return int.from_bytes(hashlib.sha256(function.abi().encode()).digest()[:8], "big")


def record_words(version: int, functions: list[Function], header: Header) -> list[Word]:
    """Return the record that the bridge expects."""
    body = [Word("ABI version", version, f"{version}u")]
    for function in functions:
        value = signature_hash(function)
        body.append(Word(f"signature of {function.name}", value, f"{value:#018x}u"))
    for struct in header.structs.values():
        body.append(Word(f"size of struct {struct.name}", struct.size, f"sizeof({_c_name(struct.name, header)})"))
        for field in struct.fields:
            expression = f"offsetof({_c_name(struct.name, header)}, {field.name})"
            body.append(Word(f"offset of {struct.name}.{field.name}", field.offset, expression))
    mark = Word("mark of the record", MARK, f"{MARK:#018x}u")
    count = len(body) + 2
    return [mark, Word("number of words", count, f"{count}u"), *body]


def _c_name(name: str, header: Header) -> str:
    return f"struct {name}" if name in header.tags else name
