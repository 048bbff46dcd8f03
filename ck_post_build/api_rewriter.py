"""Rewrites one API file: dispatches become ``ck_jit_*`` calls, and the aliases that they alone used go.

Every other byte stays, but for three insertions: the include of the entry points, the check that the manifest is the one
that the file was rewritten for, and each wrapper's twin behind the wrapper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ck_post_build.blob_index import Instance
from ck_post_build.declarations import identifiers
from ck_post_build.errors import CkPostBuildError
from ck_post_build.names import entry_point, includable
from ck_post_build.resolve import ResolvedSite
from ck_post_build.sites import Alias, Block
from ck_post_build.source import BLANK, BYTE_ORDER_MARK, Edit, SourceFile, as_bytes, blanked
from ck_post_build.stubs import StubSite
from ck_post_build.wrappers import Wrapper

_DIRECTIVE = re.compile(rf"^(?:{BYTE_ORDER_MARK})?[ \t]*#[ \t]*(include|if|endif)[^\n]*\n", re.MULTILINE)
_OPEN_PAREN = re.compile(rf"{BLANK}\({BLANK}", re.DOTALL)


@dataclass
class ApiFile:
    """An API file with what was found in it.

    Attributes:
        source: its text.
        sites: the resolved sites, in text order.
        wrappers: the wrapper templates that its sites use, with those that these call.
        stub_sites: the sites that stay as they are.
        macro_words: the words in the definitions of macros, which may mean aliases of the file.
    """

    source: SourceFile
    sites: list[ResolvedSite]
    wrappers: list[Wrapper] = field(default_factory=list)
    stub_sites: list[StubSite] = field(default_factory=list)
    macro_words: frozenset[str] = frozenset()

    @property
    def own_wrappers(self) -> list[Wrapper]:
        """The wrappers that stand in the file itself, not in a header."""
        return [wrapper for wrapper in self.wrappers if wrapper.source.path == self.source.path]

    @property
    def entry_source_name(self) -> str:
        """The name of the generated source with the entry points by blob name."""
        return Path(self.header_name).with_suffix(".cpp").name

    @property
    def header_name(self) -> str:
        """The name of the generated header with the entry points."""
        return f"{includable(self.source.path.stem)}_ck_jit.h"

    @property
    def start(self) -> int:
        """The offset before which the entry points must be declared."""
        own = [wrapper.end for wrapper in self.wrappers if wrapper.source.path == self.source.path]
        return min([len(self.source.text), *own, *(site.site.start for site in self.sites)])


def rewrite_api(api: ApiFile, slots: dict[int, int], manifest_hash: str) -> list[Edit]:
    """Return the edits that rewrite `api`.

    Args:
        api: the file with its sites.
        slots: from ``id(instance)`` to the number of its slot.
        manifest_hash: 16 hexadecimal digits that the manifest header carries too.
    """
    edits: list[Edit] = []
    for resolved in api.sites:
        edits += _site_edits(api, resolved, slots)
    edits += _alias_edits(api)
    newline = api.source.newline()
    for wrapper in api.own_wrappers:
        edits.append(Edit(wrapper.end, wrapper.end, newline + newline + wrapper.twin()))
    place = include_place(api.source, api.start)
    head = [
        f'#include "{as_bytes(api.header_name)}"',
        f"static_assert(ck_jit::kManifestHash == 0x{manifest_hash}ULL, "
        '"this file and the ck_jit manifest are of different runs of ck-post-build");',
    ]
    edits.append(Edit(place, place, "".join(line + newline for line in head)))
    return edits


def include_place(source: SourceFile, end: int) -> int:
    """Return the offset of the line after the last unconditional ``#include`` before `end`."""
    depth, place, seen_in_condition = 0, None, False
    for match in _DIRECTIVE.finditer(source.text, 0, end):
        word = match.group(1)
        if word == "if":
            depth += 1
        elif word == "endif":
            depth -= 1
            if depth == 0 and seen_in_condition:
                place, seen_in_condition = match.end(), False
        elif depth == 0:
            place = match.end()
        else:
            seen_in_condition = True
    if place is None:
        raise CkPostBuildError("this is no API file: it includes no header that declares kernels", file=source.path)
    return place


def blocks_around(sites: Sequence[ResolvedSite]) -> list[Block]:
    """Return the blocks that some of `sites` stand in, each once."""
    blocks: dict[int, Block] = {}
    for resolved in sites:
        block = resolved.site.block
        while block is not None and block.start not in blocks:
            blocks[block.start] = block
            block = block.parent
    return list(blocks.values())


def slot_argument(instance: Instance | None, slots: dict[int, int]) -> str:
    """Return the expression for an instance's slot, with the blob's name as a comment."""
    if instance is None:
        return "nullptr"
    return f"ck_jit::slots + {slots[id(instance)]} /* {as_bytes(instance.blob).replace('*/', '* /')} */"


def slot_arguments(resolved: ResolvedSite, slots: dict[int, int]) -> str:
    """Return the arguments that a site's call begins with."""
    return ", ".join(slot_argument(instance, slots) for instance in resolved.instances)


def _site_edits(api: ApiFile, resolved: ResolvedSite, slots: dict[int, int]) -> list[Edit]:
    site, text = resolved.site, api.source.text
    wrapper = next((w for w in api.wrappers if w.name == site.template), None)
    entry = wrapper.qualified_entry if wrapper else entry_point(site.template.rpartition("::")[2])
    arguments = slot_arguments(resolved, slots)
    open_paren = _OPEN_PAREN.match(text, site.end)
    if site.called and open_paren:
        separator = "" if text[open_paren.end()] == ")" else ", "
        return [
            Edit(site.start, site.end, entry),
            Edit(open_paren.end(), open_paren.end(), arguments + separator),
        ]
    instance = resolved.instances[0]
    assert instance is not None
    return [Edit(site.start, site.end, f"{entry}_at<{slots[id(instance)]}>")]


def _alias_edits(api: ApiFile) -> list[Edit]:
    """Return the removals of block-local aliases and constants that only rewritten callees (or what is removed) mentioned."""
    text = api.source.text
    gone = bytearray(len(text))
    mentioned: set[str] = set()
    for resolved in api.sites:
        site = resolved.site
        gone[site.start : site.end] = b"\1" * (site.end - site.start)
        mentioned |= identifiers(text[site.start : site.end])
    candidates = [(alias, block) for block in blocks_around(api.sites) for alias in block.aliases]
    edits = []
    # Later aliases first: an alias may be used by later ones only, and goes when all of those go.
    for alias, block in sorted(candidates, key=lambda pair: -pair[0].start):
        if alias.name in mentioned and alias.name not in api.macro_words and _only_in(gone, text, alias, block):
            edits.append(_removal(api.source, alias))
            gone[alias.start : alias.end] = b"\1" * (alias.end - alias.start)
            mentioned |= identifiers(text[alias.start : alias.end])
    return edits


def _only_in(gone: bytearray, text: str, alias: Alias, block: Block) -> bool:
    pattern = re.compile(rf"\b{re.escape(alias.name)}\b")
    left = next((m.start() for m in pattern.finditer(text, alias.end, block.end) if not gone[m.start()]), None)
    if left is None:
        return True
    code = blanked(text[alias.end : block.end])  # not of the whole block unless need be: it may be megabytes
    return all(gone[alias.end + match.start()] for match in pattern.finditer(code, left - alias.end))


def _removal(source: SourceFile, alias: Alias) -> Edit:
    """Remove the alias, with its line or lines where nothing else stands on them."""
    text = source.text
    start = source.line_start(alias.start)
    line_end = text.find("\n", alias.end)
    line_end = len(text) if line_end < 0 else line_end + 1
    if text[start : alias.start].strip() or text[alias.end : line_end].strip():
        return Edit(alias.start, alias.end, "")
    return Edit(start, line_end, "")


def reached_instances(apis: Sequence[ApiFile]) -> set[int]:
    """Return the ``id`` of every instance that some site reaches."""
    called = {id(instance) for api in apis for site in api.sites for instance in site.instances if instance is not None}
    return called | {id(instance) for api in apis for site in api.stub_sites for instance in site.instances}
