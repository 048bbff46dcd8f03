"""Which bytes of a kernel's argument struct are values, and which are padding.

CK builds the struct on the stack and leaves its padding as it was: the same call in the same library passes other bytes
there from one run to the next. Clang says where the members are (``-fdump-record-layouts``); the rest is padding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_RECORD = "*** Dumping AST Record Layout"
_MEMBER = re.compile(r"^ *(?P<offset>\d+) \| (?P<indent> *)(?P<text>\S.*)$")
_SIZE = re.compile(r"\[sizeof=(\d+),")
_SIZES = {
    "bool": 1,
    "_Bool": 1,
    "uint8_t": 1,
    "int": 4,
    "float": 4,
    "int32_t": 4,
    "uint32_t": 4,
    "ck_tile::index_t": 4,
    "ck_tile::GenericAttentionMaskEnum": 4,
    "uint64_t": 8,
    "unsigned long": 8,
    "ck_tile::long_index_t": 8,
}

# Name and size of a struct → the offsets of its value bytes.
Layouts = dict[tuple[str, int], frozenset[int]]


def parse_layouts(dump: str) -> Layouts:
    """Return the layouts of the kernel argument structs (all are called ...Kargs) in clang's dump."""
    found: Layouts = {}
    for record in dump.split(_RECORD)[1:]:
        lines = record.strip().splitlines()
        name = lines[0].rpartition("::")[2]
        size = _SIZE.search(record)
        if not name.endswith("Kargs") or size is None:
            continue
        key = (name, int(size.group(1)))
        values = frozenset(_value_bytes(lines[1:]))
        assert found.setdefault(key, values) == values, f"two structs are called {name}"
    return found


def _value_bytes(lines: list[str]) -> Iterator[int]:
    members = [match for line in lines if (match := _MEMBER.match(line))]
    for member, after in zip(members, [*members[1:], None], strict=True):
        contains = after is not None and len(after["indent"]) > len(member["indent"])
        if contains or member["text"].endswith("(empty)"):
            continue
        kind = member["text"].rpartition(" ")[0].removeprefix("const ").removeprefix("enum ")
        size = 8 if kind.endswith("*") else _SIZES[kind]
        yield from range(int(member["offset"]), int(member["offset"]) + size)


def without_padding(launch: dict[str, Any], layouts: Layouts) -> dict[str, Any]:
    """Return the record of a launch with ``--`` for each padding byte of its argument structs."""
    return launch | {"args": [_masked(launch["kernel"], argument, layouts) for argument in launch["args"]]}


def _masked(kernel: str, argument: dict[str, Any], layouts: Layouts) -> dict[str, Any]:
    if argument["kind"] != "by_value":
        return argument
    fitting = [
        values
        for (name, size), values in layouts.items()
        if size == argument["size"] and f"{len(name)}{name}" in kernel
    ]
    assert len(fitting) == 1, f"{len(fitting)} structs of {argument['size']} bytes for {kernel}"
    text = argument["bytes"]
    return argument | {
        "bytes": "".join(text[2 * n : 2 * n + 2] if n in fitting[0] else "--" for n in range(len(text) // 2))
    }
