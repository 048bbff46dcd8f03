"""Turns runs of ``else if`` links that differ in conditions and slots only into tables, for the compiler's sake.

A dispatcher of 22,080 sites repeats a few dozen conditions a hundred thousand times. Where they can be evaluated in any
order, a run of links becomes one ``if``: each condition is evaluated once, into a bit, and the first row whose bits are
all set has the slots. The rewritten file itself stays as it is; ``build`` compiles the copy with the tables.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ck_post_build.api_rewriter import ApiFile, blocks_around, slot_arguments
from ck_post_build.declarations import strip_comments
from ck_post_build.pure_conditions import PureConditions
from ck_post_build.resolve import ResolvedSite
from ck_post_build.sites import Block, Link
from ck_post_build.source import Edit

_WORTH_A_TABLE = 8
_BITS = 64


@dataclass
class Table:
    """A run of links as rows.

    Attributes:
        start, end: the range of text that it replaces, from the first link's ``if`` to the last one's branch.
        name: of the table.
        branch: what each link's branch does, with expressions for the row's slots.
        parts: the conditions, each with its bit's number.
        rows: for each link the bits that it needs, and the slots.
    """

    start: int
    end: int
    name: str
    branch: str
    parts: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def definition(self) -> str:
        """Return the table's definition."""
        needed = ",\n".join(f"{{{', '.join(map(hex, words))}}}" for words in self._needed())
        rows = ",\n".join(f"{{{', '.join(map(str, slots))}}}" for _, slots in self.rows)
        size = f"{len(self.parts)}, {len(self.rows[0][1])}, {len(self.rows)}"
        return f"static constexpr ck_jit::Table<{size}> {self.name} = {{{{\n{needed}}}, {{\n{rows}}}}};\n"

    def _needed(self) -> list[list[int]]:
        """Return for each _BITS rows, and for each condition, the rows that need it, as bits."""
        words = []
        for first in range(0, len(self.rows), _BITS):
            group = [needs for needs, _ in self.rows[first : first + _BITS]]
            words.append(
                [sum((needs >> part & 1) << row for row, needs in enumerate(group)) for part in self.parts.values()]
            )
        return words

    def statement(self) -> str:
        """Return the ``if`` statement that takes the links' place; an ``else`` may follow."""
        bits = " |\n".join(f"ck_jit::bit<{number}>({part})" for part, number in self.parts.items())
        return f"if(const auto* ck_jit_row = ck_jit::first_row({self.name},\n{bits})) {self.branch}"

    def take(self, parts: Sequence[str], slots: tuple[int, ...]) -> bool:
        """Add a row, unless the conditions do not fit."""
        numbers = dict(self.parts)
        needs = 0
        for part in parts:
            needs |= 1 << numbers.setdefault(part, len(numbers))
        if len(numbers) > _BITS:
            return False
        self.parts = numbers
        self.rows.append((needs, slots))
        return True


def find_tables(api: ApiFile, edits: Sequence[Edit], slots: dict[int, int]) -> list[Table]:
    """Return the tables of `api`, in text order.

    Args:
        api: the file with its sites.
        edits: those of ``rewrite_api``.
        slots: from ``id(instance)`` to the number of its slot.
    """
    branches = _Branches(api, edits, slots)
    tables: list[Table] = []
    for block in blocks_around(api.sites):
        conditions = PureConditions(api.source.text)
        for chain in _chains(block, api.source.text):
            tables += _runs(chain, conditions, branches)
    tables.sort(key=lambda table: table.start)
    for number, table in enumerate(tables):
        table.name = f"ck_jit_rows_{number}"
    return tables


def inside(tables: Sequence[Table]) -> Callable[[int], bool]:
    """Return what tells whether an offset stands in text that one of `tables`, in text order, replaces."""
    starts = [table.start for table in tables]

    def in_table(offset: int) -> bool:
        number = bisect.bisect_right(starts, offset) - 1
        return number >= 0 and offset < tables[number].end

    return in_table


def with_tables(edits: Sequence[Edit], tables: Sequence[Table], place: int) -> list[Edit]:
    """Return `edits` with the tables in place of what they replace; their rows go to the offset `place`."""
    in_table = inside(tables)
    kept = [edit for edit in edits if not in_table(edit.start)]
    kept += [Edit(place, place, table.definition()) for table in tables]
    return kept + [Edit(table.start, table.end, table.statement()) for table in tables]


def _chains(block: Block, text: str) -> list[list[Link]]:
    """Return the block's ``else if`` chains, each in order and without a gap."""
    chains: list[list[Link]] = []
    for link in sorted(block.links, key=lambda link: link.start):
        last = chains[-1][-1] if chains else None
        follows = last is not None and link.behind_else and last.end == link.end
        if follows and last is not None and _only_else(text[last.branch[1] : link.start]):
            chains[-1].append(link)
        else:
            chains.append([link])
    return chains


def _only_else(text: str) -> bool:
    return strip_comments(text) == "else"


def _runs(chain: Sequence[Link], conditions: PureConditions, branches: _Branches) -> list[Table]:
    """Return the runs of at least _WORTH_A_TABLE links."""
    if len(chain) < _WORTH_A_TABLE:
        return []
    runs: list[Table] = []
    open_run: Table | None = None
    for link in chain:
        branch = branches.of(link)
        parts = conditions.parts(link.condition) if branch is not None else None
        if branch is None or parts is None:
            open_run = None
            continue
        text, slots = branch
        if open_run is None or open_run.branch != text or not open_run.take(parts, slots):
            open_run = Table(link.start, link.end, "", text)
            open_run.take(parts, slots)
            runs.append(open_run)
        open_run.end = link.branch[1]
    return [run for run in runs if len(run.rows) >= _WORTH_A_TABLE]


class _Branches:
    """What the rewritten branches of links do, apart from their slots."""

    def __init__(self, api: ApiFile, edits: Sequence[Edit], slots: dict[int, int]) -> None:
        self._text = api.source.text
        self._edits = sorted(edits, key=lambda edit: (edit.start, edit.end))
        self._edit_starts = [edit.start for edit in self._edits]
        self._sites = api.sites
        self._site_starts = [resolved.site.start for resolved in api.sites]
        self._slots = slots

    def of(self, link: Link) -> tuple[str, tuple[int, ...]] | None:
        """Return the branch's text with ``ck_jit_row->slot(N)`` for its slots, and their numbers, -1 for none.

        None where the branch is no block of plain calls.
        """
        start, end = link.branch
        if self._text[start] != "{" or self._text[end - 1] != "}" or "#" in self._text[link.start : end]:
            return None
        sites = self._sites[bisect.bisect_left(self._site_starts, start) : bisect.bisect_left(self._site_starts, end)]
        if not sites:
            return None
        numbers: list[int] = []
        pieces: list[str] = []
        position, waiting = start, list(sites)
        edits = self._edits[bisect.bisect_left(self._edit_starts, start) : bisect.bisect_left(self._edit_starts, end)]
        for edit in edits:
            text = edit.text
            if waiting and edit.start == edit.end:
                written = slot_arguments(waiting[0], self._slots)
                if text.startswith(written):
                    text = self._columns(waiting.pop(0), numbers) + text[len(written) :]
            pieces += (self._text[position : edit.start], text)
            position = edit.end
        if waiting or position > end:
            return None
        return "".join([*pieces, self._text[position:end]]), tuple(numbers)

    def _columns(self, resolved: ResolvedSite, numbers: list[int]) -> str:
        """Append the numbers of a site's slots, and return the arguments that stand for them."""
        names = []
        for instance in resolved.instances:
            names.append(f"ck_jit_row->slot({len(numbers)})")
            numbers.append(-1 if instance is None else self._slots[id(instance)])
        return ", ".join(names)
