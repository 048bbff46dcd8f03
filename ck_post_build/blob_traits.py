"""What a blob is for, by name: ``hdim``, ``dtype`` and so on, from the template arguments of its kernel symbols."""

from __future__ import annotations

import functools
import re

from ck_post_build.demangle import demangle, function_name, split_arguments
from ck_post_build.jit_root import RootBlob, RootManifest
from ck_post_build.names import direction

Value = int | str
Traits = dict[str, frozenset[Value]]

# Shorter names, and those that users of attention have for CK's.
ALIASES = {"data_type": "dtype", "fmha_pipeline_enum": "pipeline", "bias_enum": "bias", "fmha_mask": "mask"}

_ENUM_VALUE = re.compile(r"\(([A-Za-z_][\w:]*)\)(-?\d+)")
_SWITCH = re.compile(r"<(true|false)\b")
_ARCH_TAG = re.compile(r"(?:\w+::)*(gfx\w+)_t")


@functools.cache
def trait_name(parameter: str) -> str:
    """Return the name that stands for a template parameter: ``HDim_`` gives ``hdim``, ``kIsGroupMode_`` ``is_group_mode``."""
    name = re.sub(r"^k(?=[A-Z])", "", parameter.strip("_")).replace("HDim", "Hdim")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return ALIASES.get(name, name)


def blob_traits(manifest: RootManifest, blob: RootBlob) -> Traits:
    """Return the traits of a blob. A trait has several values where the blob defines several specialisations."""
    found: dict[str, set[Value]] = {}
    for symbol in blob.symbols:
        for name, value in _symbol_traits(symbol, manifest):
            found.setdefault(name, set()).add(value)
    return {name: frozenset(values) for name, values in found.items()}


def describe(manifest: RootManifest, blob: RootBlob) -> str:
    """Return the traits of a blob as text: ``dtype=bf16 hdim=128``."""
    traits = sorted(blob_traits(manifest, blob).items())
    return " ".join(f"{name}={','.join(sorted(map(str, values)))}" for name, values in traits)


def _symbol_traits(symbol: str, manifest: RootManifest) -> list[tuple[str, Value]]:
    """Return the traits in one kernel symbol: its direction, its tag, and the arguments of its trait templates."""
    try:
        text = demangle(symbol)
    except ValueError:
        return []
    function, arguments = function_name(text)
    traits: list[tuple[str, Value]] = [("direction", direction(function))]
    for argument in arguments:
        traits += _argument_traits(argument, manifest)
    return traits


def _argument_traits(argument: str, manifest: RootManifest) -> list[tuple[str, Value]]:
    if tag := _ARCH_TAG.fullmatch(argument):
        return [("arch", tag.group(1))]
    template, bracket, rest = argument.partition("<")
    names = manifest.parameters.get(template, [])
    traits: list[tuple[str, Value]] = []
    for name, text in zip(names, split_arguments(bracket + rest) if names else (), strict=False):
        value = trait_value(text, manifest.enums)
        traits.append((trait_name(name), value))
        # Whether there is a mask is the mask type's first argument.
        if isinstance(value, str) and (switch := _SWITCH.search(value)):
            traits.append((trait_name(name), switch.group(1)))
    return traits


def trait_value(text: str, enums: dict[str, dict[str, str]]) -> Value:
    """Return a demangled argument as a user would write it.

    An integer is one; all else is a word in lower case: ``true``, an enumerator's name, a type without its scope and
    without CK's family name (``FmhaFwdBf16`` gives ``bf16``).
    """
    if number := re.fullmatch(r"(-?\d+)[uUlL]*", text):
        return int(number.group(1))
    if enumerator := _ENUM_VALUE.fullmatch(text):
        return enums.get(enumerator.group(1), {}).get(enumerator.group(2), enumerator.group(2)).lower()
    return re.sub(r"^fmha(?:fwd|bwd)?(?=\w)", "", re.sub(r"(?:\w+::)+", "", text).lower())
