"""Cuts a rewritten dispatcher into functions that a compiler can digest, by insertions alone.

CK's dispatchers are one function with up to 22,080 sites, and clang's time grows with the square of that. A block of a
dispatcher becomes the body of a lambda that is called on the spot and not inlined; a long ``else if`` chain gets such a
lambda every so many sites. ``return`` in the block gives the lambda a result, which the dispatcher then returns.
The rewritten file itself stays as it is; ``build`` compiles the cut copy.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence

from ck_post_build.api_rewriter import ApiFile, blocks_around
from ck_post_build.source import Edit
from ck_post_build.tables import Table, inside

SITES_IN_A_FUNCTION = 96
_WORTH_A_FUNCTION = 16

# A dispatcher with another result stays in one piece: ck_jit::Part holds values that can be made from nothing.
_RESULTS = frozenset({"void", "bool", "int", "unsigned int", "long", "unsigned long", "float", "double"})
_LEAVES_OTHERWISE = re.compile(r"\b(?:goto|co_return|co_await|co_yield)\b")
_OPEN = "if(const auto ck_jit_part = [&]() __attribute__((noinline)) -> ck_jit::Part<{}> {{ "
_CLOSE = " return {}; }(); ck_jit_part) return ck_jit_part.result();"
# A part of a function without a result says by a variable whether it came to its end.
_OPEN_VOID = "{ bool ck_jit_left = true; [&]() __attribute__((noinline)) { "
_CLOSE_VOID = " ck_jit_left = false; }(); if(ck_jit_left) return; }"


def outlined_name(name: str) -> str:
    """Return the name of the cut copy of the rewritten file `name`."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.outlined{dot}{suffix}"


def outline_edits(api: ApiFile, tables: Sequence[Table]) -> list[Edit]:
    """Return the insertions that cut the dispatchers in `api`; what became a table costs nothing and stays whole."""
    in_table = inside(tables)
    starts = [site.site.start for site in api.sites if not in_table(site.site.start)]

    def weight(start: int, end: int) -> int:
        return bisect.bisect_left(starts, end) - bisect.bisect_left(starts, start)

    leaves_otherwise = _LEAVES_OTHERWISE.search(api.source.text) is not None
    heavy = [block for block in blocks_around(api.sites) if weight(block.start, block.end) >= _WORTH_A_FUNCTION]
    with_heavy_child = {id(block.parent) for block in heavy}
    edits: list[Edit] = []
    for block in heavy:
        if block.result not in _RESULTS:
            continue
        if leaves_otherwise and _LEAVES_OTHERWISE.search(api.source.text, block.start, block.end):
            continue
        if block.parent is not None and id(block) not in with_heavy_child:
            before, behind = _brackets(block.result)
            edits.append(Edit(block.start + 1, block.start + 1, before))
            edits.append(Edit(block.end - 1, block.end - 1, behind))
        tails = [(link.start, link.end) for link in block.links if link.behind_else and not in_table(link.start)]
        edits += _chain_cuts(block.result, tails, weight)
    return edits


def _brackets(result: str) -> tuple[str, str]:
    """Return what stands before and behind a part of a function with this result type."""
    return (_OPEN_VOID, _CLOSE_VOID) if result == "void" else (_OPEN.format(result), _CLOSE)


def _chain_cuts(result: str, else_ifs: list[tuple[int, int]], weight: Callable[[int, int], int]) -> list[Edit]:
    """Return the cuts of a block's ``else if`` chains: one each time enough sites have gone by."""
    edits: list[Edit] = []
    chains: dict[int, list[int]] = {}
    for start, end in else_ifs:
        chains.setdefault(end, []).append(start)
    for end, tails in chains.items():
        last = None
        for start in sorted(tails):
            rest = weight(start, end)
            if rest < _WORTH_A_FUNCTION:
                break
            if last is None or weight(last, start) >= SITES_IN_A_FUNCTION:
                if last is not None:
                    before, behind = _brackets(result)
                    edits.append(Edit(start, start, "{ " + before))
                    edits.append(Edit(end, end, behind + " }"))
                last = start
    return edits
