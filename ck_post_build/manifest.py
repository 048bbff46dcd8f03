"""The manifest: the tables that are compiled into the library, and the hashes that tie its parts together."""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ck_post_build import flags as flag_text
from ck_post_build.blob_index import BlobIndex, Instance
from ck_post_build.cpp_text import literal
from ck_post_build.resources import template_environment

SOURCE_DIRECTORY = "blobs/"
HEADER = "ck_jit_manifest_embedded.h"


@dataclass(frozen=True)
class FlagSet:
    """Flags as they travel, paths under ``@CK_JIT_ROOT@``, and the hash of the headers that they reach."""

    arguments: tuple[str, ...]
    headers_hash: str


class Manifest:
    """What the manifest header says.

    Args:
        index: all blobs.
        flag_sets: for each blob's name, its flags.
        arches: what ``--offload-arch`` named, in order.
    """

    def __init__(self, index: BlobIndex, flag_sets: dict[str, FlagSet], arches: Sequence[str]) -> None:
        self.index = index
        self.flag_sets = flag_sets
        self.arches = tuple(arches)
        self.kernel_numbers = {name: number for number, name in enumerate(index.templates)}
        self.slots = {id(instance): number for number, instance in enumerate(index.instances)}
        self.layout_hash = _digest(self._layout())[:16]

    def _layout(self) -> Iterable[str]:
        """Yield what slot and kernel numbers depend on."""
        for template in self.index.templates.values():
            yield f"{template.name} {template.result} {[p.type for p in template.parameters]}"
        for instance in self.index.instances:
            yield instance.blob
            yield from (kernel.symbol for kernel in instance.kernels)

    def tables(self) -> dict[str, Any]:
        """Return what stands in the tables of the manifest header, in the words of its template."""
        flag_sets = list(dict.fromkeys(self.flag_sets[name] for name in self.index.blobs))
        numbers = {flags: number for number, flags in enumerate(flag_sets)}
        split = [_split_symbols(instance, self.index) for instance in self.index.instances]
        suffixes = sorted({suffix for _, parts in split for suffix in parts})
        suffix_numbers = {suffix: number for number, suffix in enumerate(suffixes)}
        symbols: list[str] = []
        instances: list[dict[str, Any]] = []
        spans: dict[str, list[int]] = {}
        blob_numbers = {name: number for number, name in enumerate(self.index.blobs)}
        count = 0
        for number, (instance, (middle, parts)) in enumerate(zip(self.index.instances, split, strict=True)):
            spans.setdefault(instance.blob, [number, 0])[1] += 1
            instances.append(
                {"blob": blob_numbers[instance.blob], "first": count, "count": len(parts), "middle": literal(middle)}
            )
            rows = (
                f"{{{self.kernel_numbers[kernel.template]}, {suffix_numbers[part]}}},"
                for kernel, part in zip(instance.kernels, parts, strict=True)
            )
            symbols.append(" ".join(rows))
            count += len(parts)
        return {
            "layout_hash": self.layout_hash,
            "kernels": [
                {"name": literal(t.name), "symbol_prefix": literal(t.symbol_prefix)}
                for t in self.index.templates.values()
            ],
            "suffixes": [literal(suffix) for suffix in suffixes],
            "flag_sets": [literal(flag_text.join(f.arguments)) for f in flag_sets],
            "header_hashes": [f.headers_hash for f in flag_sets],
            "arches": [literal(arch) for arch in self.arches],
            "blobs": [
                {
                    "source": literal(SOURCE_DIRECTORY + name),
                    "flags": numbers[self.flag_sets[name]],
                    "hash": blob.source_hash[:32],
                    "first": spans[name][0],
                    "count": spans[name][1],
                }
                for name, blob in self.index.blobs.items()
            ],
            "symbols": symbols,
            "instances": instances,
        }

    def records(self) -> bytes:
        """Return the manifest that ``ck_jit_compile.sh --blob`` reads: NUL-terminated ``name TAB source TAB flags``."""
        lines = (
            f"{name}\t{SOURCE_DIRECTORY}{name}\t{flag_text.join(self.flag_sets[name].arguments)}\0"
            for name in self.index.blobs
        )
        return "".join(lines).encode("utf-8", "surrogateescape")


def manifest_header(tables: dict[str, Any]) -> str:
    """Return the text of the manifest header, given what ``Manifest.tables`` returns."""
    template = template_environment().get_template("ck_jit_manifest_embedded.h.j2")
    content = _digest([repr(sorted(tables.items()))])[:32]
    return template.render(tables, content_hash=content, source_directory_length=len(SOURCE_DIRECTORY))


def _split_symbols(instance: Instance, index: BlobIndex) -> tuple[str, list[str]]:
    """Return what the instance's symbols have in common behind their templates' prefixes, and the rest of each."""
    rests = [kernel.symbol.removeprefix(index.templates[kernel.template].symbol_prefix) for kernel in instance.kernels]
    middle = os.path.commonprefix(rests)  # noqa: RUF071  (characters are what is wanted)
    return middle, [rest[len(middle) :] for rest in rests]


def _digest(pieces: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()
