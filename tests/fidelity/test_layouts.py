"""Telling padding from values: a mistake here would hide a difference between the two libraries, or invent one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from layouts import Layouts, parse_layouts, without_padding

DUMP = """
*** Dumping AST Record Layout
         0 | struct ck_tile::Kernel<int>::CommonKargs
         0 |   const void * q_ptr
         8 |   ck_tile::index_t seqlen_q
           | [sizeof=16, dsize=12, align=8,
           |  nvsize=12, nvalign=8]

*** Dumping AST Record Layout
         0 | struct ck_tile::Kernel<int>::BatchModeKargs
         0 |   struct ck_tile::Kernel<int>::CommonKargs (base)
         0 |     const void * q_ptr
         8 |     ck_tile::index_t seqlen_q
         0 |   struct ck_tile::Kernel<int>::EmptyKargs<0> (base) (empty)
        16 |   bool is_gappy
        20 |   float scale
        24 |   union ck_tile::Kernel<int>::ValueOrPointer drop_seed
        24 |     uint64_t val
        24 |     const uint64_t * ptr
           | [sizeof=32, dsize=32, align=8,
           |  nvsize=32, nvalign=8]

*** Dumping AST Record Layout
         0 | struct Other
         0 |   mystery_t what
           | [sizeof=4, dsize=4, align=4,
           |  nvsize=4, nvalign=4]
"""
PADDING = {12, 13, 14, 15, 17, 18, 19}


@pytest.fixture
def layouts() -> Layouts:
    return parse_layouts(DUMP)


def launch(
    data: bytes, kernel: str = "_ZN7ck_tile6kentryINS_6KernelIiEEJNS2_14BatchModeKargsEEEEvDpT2_"
) -> dict[str, Any]:
    return {"kernel": kernel, "grid": [1, 1, 1], "args": [{"kind": "by_value", "size": len(data), "bytes": data.hex()}]}


def test_bases_unions_and_gaps_are_read_from_clangs_dump(layouts: Layouts) -> None:
    assert layouts == {
        ("CommonKargs", 16): frozenset(range(12)),
        ("BatchModeKargs", 32): frozenset(range(32)) - PADDING,
    }


@pytest.mark.parametrize("at", range(32))
def test_every_byte_of_a_value_counts_and_none_of_the_padding(layouts: Layouts, at: int) -> None:
    zeros = bytes(32)
    other = bytes(index == at for index in range(32))
    same = without_padding(launch(other), layouts) == without_padding(launch(zeros), layouts)
    assert same == (at in PADDING)


def test_what_is_not_an_argument_struct_stays(layouts: Layouts) -> None:
    pointer = {"kernel": "k", "args": [{"kind": "global_buffer", "size": 8, "bytes": "00"}]}
    assert without_padding(pointer, layouts) == pointer


def test_a_struct_that_clang_did_not_list_is_an_error(layouts: Layouts) -> None:
    with pytest.raises(AssertionError, match="0 structs of 40 bytes"):
        without_padding(launch(bytes(40)), layouts)


def test_a_member_of_unknown_size_is_an_error() -> None:
    with pytest.raises(KeyError, match=re.escape("mystery_t")):
        parse_layouts(DUMP.replace("struct Other", "struct OtherKargs"))
