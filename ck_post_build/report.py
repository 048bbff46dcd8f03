"""The report of a rewrite, as Python objects and as JSON."""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """One site: where it is, kernel symbols and blobs that it can reach, and mode: ``call``, or ``stub``: left as it is."""

    file: str
    line: int
    direction: str
    symbols: list[str]
    blobs: list[str]
    mode: str = "call"


class LeftOut(msgspec.Struct, frozen=True):
    """One site that was not rewritten: where it is and which specialisation has no blob."""

    file: str
    line: int
    template: str
    arguments: list[str]


class Report(msgspec.Struct, frozen=True):
    """What a rewrite found.

    Attributes:
        sites: number of dispatch sites, discarded ones included.
        blobs: number of blobs.
        unresolved: always empty in a report that was written; a site without a blob is an error.
        discarded: sites without a blob in branches that the compiler discards.
        unreferenced_blobs: names of blobs that no site reaches.
        entries: the rewritten sites.
    """

    sites: int
    blobs: int
    unresolved: list[LeftOut]
    discarded: list[LeftOut]
    unreferenced_blobs: list[str]
    entries: list[Entry]

    def to_json(self) -> bytes:
        """Return the report as indented JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"
