"""The report as one HTML page: no network, all data within, the same bytes for the same contents."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ck_post_build.blob_traits import Traits, Value
from ck_post_build.library_size import library_size
from ck_post_build.report_data import ReportData
from ck_post_build.resources import template_environment

_SWITCHES = frozenset({"true", "false"})
_TEMPLATE = "report_page.html.j2"


def render(data: ReportData, title: str) -> bytes:
    """Return the page for `data`. Raises CkPostBuildError when a library cannot be read."""
    packed = zlib.compress(msgspec.json.encode(_columns(data, title)), 9)
    text = template_environment().get_template(_TEMPLATE).render(data=base64.b64encode(packed).decode("ascii"))
    return text.encode("utf-8", "surrogateescape")


def _columns(data: ReportData, title: str) -> dict[str, Any]:
    """Return the contents column by column, which packs well; the page's script reads it."""
    blobs = list(data.traits)
    numbers = {name: number for number, name in enumerate(blobs)}
    libraries = sorted(data.libraries)
    arches = sorted({kernel.arch for kernel in data.kernels})
    return {
        "title": title,
        "libraries": [{"name": name, **_sizes(data, name)} for name in libraries],
        "blobs": [name.encode("utf-8", "replace").decode() for name in blobs],
        "traits": [_trait_column(name, data.traits, blobs) for name in _trait_names(data.traits)],
        "arches": arches,
        "used": None if data.used is None else [int(_is_named(name, data.used)) for name in blobs],
        "unreached": [int(name in data.unreached) for name in blobs],
        "kernels": {
            "blob": [numbers[kernel.blob] for kernel in data.kernels],
            "library": [libraries.index(kernel.library) for kernel in data.kernels],
            "arch": [arches.index(kernel.arch) for kernel in data.kernels],
            "size": [-1 if kernel.size is None else kernel.size for kernel in data.kernels],
            "seconds": [-1 if kernel.seconds is None else round(kernel.seconds, 1) for kernel in data.kernels],
        },
    }


def _is_named(blob: str, used: frozenset[str]) -> bool:
    return blob in used or blob.rpartition(".")[0] in used


def _sizes(data: ReportData, library: str) -> dict[str, int]:
    file = data.libraries[library]
    if file is None:
        return {"size": -1, "manifest": -1}
    sizes = library_size(file)
    return {"size": sizes.file, "manifest": sizes.manifest}


def _trait_names(traits: dict[str, Traits]) -> list[str]:
    """Return the traits in the order in which users name them, then as they come."""
    first = ("direction", "arch", "dtype", "hdim", "mask", "bias")
    found = dict.fromkeys(name for blob in traits.values() for name in blob)
    return [*(name for name in first if name in found), *(name for name in found if name not in first)]


def _trait_column(name: str, traits: dict[str, Traits], blobs: Sequence[str]) -> dict[str, Any]:
    sets = [traits[blob].get(name, frozenset()) for blob in blobs]
    labels = _labels(set(sets))
    values = sorted({labels[value] for value in sets}, key=_natural)
    places = {value: place for place, value in enumerate(values)}
    return {"name": name, "values": values, "index": [places[labels[value]] for value in sets]}


def _labels(sets: set[frozenset[Value]]) -> dict[frozenset[Value], str]:
    """Return a text for each set of values: for a type and its switch the switch alone, if that tells all types apart."""
    short = {values: sorted(map(str, values & _SWITCHES or values)) for values in sets}
    if len({tuple(text) for text in short.values()}) < len(sets):
        short = {values: sorted(map(str, values - _SWITCHES or values)) for values in sets}
    return {values: ", ".join(text) or "–" for values, text in short.items()}


def _natural(text: str) -> tuple[int, int, str]:
    """Numbers by value, before words; a missing value last."""
    return (0, int(text), "") if text.isdecimal() else (2 if text == "–" else 1, 0, text)
