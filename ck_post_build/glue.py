"""The generated C++ around a rewritten API file: typed entry points, and the same by blob name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ck_post_build.api_rewriter import ApiFile
from ck_post_build.blob_index import Instance, KernelSpecialisation, KernelTemplate, Parameter
from ck_post_build.cpp_text import by_reference, declare, parameter_names
from ck_post_build.manifest import Manifest
from ck_post_build.names import entry_point, includable
from ck_post_build.overlay import Overlay
from ck_post_build.resources import template_environment
from ck_post_build.source import BYTE_ORDER_MARK, as_bytes, from_bytes
from ck_post_build.wrappers import Wrapper

# Mangled, as assembler wants it.
_SLOTS = "_ZN6ck_jit5slotsE"
STUBS = "ck_jit_stubs.S"

_INCLUDE = re.compile(rf"^(?:{BYTE_ORDER_MARK})?[ \t]*(#[ \t]*include[^\n]*)", re.MULTILINE)


def dispatch_header(manifest: Manifest) -> str:
    """Return the header with the slots, which all API files of the library share."""
    template = template_environment().get_template("ck_jit_dispatch.h.j2")
    return template.render(layout_hash=manifest.layout_hash, slot_count=len(manifest.index.instances))


def manifest_source(apis: Sequence[ApiFile]) -> str:
    """Return the source file that defines the slots, the manifest and the architecture query."""
    stubs = any(api.stub_sites for api in apis)
    return template_environment().get_template("ck_jit_manifest.cpp.j2").render(stubs=stubs)


def stub_source(apis: Sequence[ApiFile], manifest: Manifest) -> str:
    """Return the assembler file with the definitions of the kernels that sites reach through templates without a twin."""
    stubs = [
        {
            "symbol": kernel.symbol,
            "slot": manifest.slots[id(instance)],
            "kernel": manifest.kernel_numbers[kernel.template],
            "blob": includable(instance.blob),
        }
        for instance, kernel in _stubbed(apis, manifest)
    ]
    kernels = sorted({manifest.kernel_numbers[kernel.template] for _, kernel in _stubbed(apis, manifest)})
    template = template_environment().get_template("ck_jit_stubs.S.j2")
    return template.render(stubs=stubs, kernels=kernels, slots=_SLOTS)


def _stubbed(apis: Sequence[ApiFile], manifest: Manifest) -> list[tuple[Instance, KernelSpecialisation]]:
    symbols = {symbol for api in apis for site in api.stub_sites for symbol in site.symbols}
    return [(i, kernel) for i in manifest.index.instances for kernel in i.kernels if kernel.symbol in symbols]


def stub_failures(apis: Sequence[ApiFile], manifest: Manifest) -> dict[Path, list[KernelTemplate]]:
    """Return for each API file the kernel templates whose stubs' failure functions it defines: no other does."""
    left = set(manifest.index.templates)
    result: dict[Path, list[KernelTemplate]] = {}
    for api in apis:
        names = {kernel.template for _, kernel in _stubbed([api], manifest)} & left
        left -= names
        result[api.source.path] = [manifest.index.templates[name] for name in sorted(names)]
    return result


def entry_header(api: ApiFile, overlays: Sequence[Overlay], manifest: Manifest) -> str:
    """Return the header with the entry points that `api` calls: one for each kernel template and each twin.

    Those that the twins in a header need come from that header's own one.
    """
    elsewhere = {name for overlay in overlays for name in overlay.kernels}
    template = template_environment().get_template("entry_points.h.j2")
    return template.render(
        api_name=includable(api.source.path.name),
        includes=[overlay.entry_header_name for overlay in overlays],
        kernels=[_kernel(kernel, manifest) for kernel in _kernels(api, manifest) if kernel.name not in elsewhere],
        wrappers=[_wrapper(wrapper) for wrapper in api.own_wrappers if not wrapper.namespaces],
    )


def overlay_entry_header(overlay: Overlay, manifest: Manifest) -> str:
    """Return the header with the entry points that the twins in a header call."""
    template = template_environment().get_template("entry_points.h.j2")
    names = overlay.kernels
    return template.render(
        api_name=includable(overlay.name),
        includes=[],
        kernels=[_kernel(kernel, manifest) for name, kernel in manifest.index.templates.items() if name in names],
        wrappers=[],
    )


def entry_source(api: ApiFile, manifest: Manifest, failures: Sequence[KernelTemplate], taken: set[str]) -> str:
    """Return the source file with the entry points by blob name, and with what the stubs of some kernels jump to on failure.

    Entry points whose names are in `taken` are left to the API file that took them; adds the others.
    """
    template = template_environment().get_template("entry_points.cpp.j2")
    entries = [
        _by_name(entry_point(k.name.rpartition("::")[2]), k.result, k.parameters, [("blob", k.name)], manifest)
        for k in _direct(api, manifest)
    ]
    for wrapper in api.wrappers:
        if wrapper.member_of or wrapper.namespaces:
            continue
        first_use = {slot: name for name, slot in reversed(wrapper.uses)}
        slots = [(selection.name, first_use[number]) for number, selection in enumerate(wrapper.selections)]
        entries.append(_by_name(wrapper.entry, wrapper.result, wrapper.parameters, slots, manifest))
    entries = [entry for entry in entries if entry["entry"] not in taken]
    taken.update(entry["entry"] for entry in entries)
    return template.render(
        api_name=includable(api.source.path.name),
        includes=[from_bytes(line.strip()) for line in _INCLUDE.findall(api.source.text)],
        header_name=api.header_name,
        entries=entries,
        stub_failures=[
            {
                "name": kernel.name,
                "number": manifest.kernel_numbers[kernel.name],
                "result": kernel.result,
                "failed": _failed(kernel.result),
            }
            for kernel in failures
        ],
    )


def include_entry_source(api: ApiFile) -> str:
    """Return the end of the compiled copy of an API file: one parse of CK's headers serves it and its entry points."""
    newline = api.source.newline()
    return f'{newline}#include "{as_bytes(api.entry_source_name)}"{newline}'


def _kernels(api: ApiFile, manifest: Manifest) -> list[KernelTemplate]:
    """Return the kernel templates that the file reaches, directly or through a wrapper."""
    names = {site.site.template for site in api.sites} | {name for w in api.wrappers for name, _ in w.uses}
    return [template for name, template in manifest.index.templates.items() if name in names]


def _direct(api: ApiFile, manifest: Manifest) -> list[KernelTemplate]:
    names = {site.site.template for site in api.sites}
    return [template for name, template in manifest.index.templates.items() if name in names]


def _failed(result: str) -> str:
    return "" if result == "void" else f" ck_jit::failed<{result}>()"


def _listed(pieces: Sequence[str]) -> str:
    """Return the pieces as the rest of an argument list that has begun."""
    return "".join(f", {piece}" for piece in pieces)


def _reference_parameters(parameters: Sequence[Parameter]) -> list[str]:
    return [
        declare(by_reference(p.type), name) for p, name in zip(parameters, parameter_names(parameters), strict=True)
    ]


def _kernel(kernel: KernelTemplate, manifest: Manifest) -> dict[str, Any]:
    names = parameter_names(kernel.parameters)
    return {
        "name": kernel.name,
        "number": manifest.kernel_numbers[kernel.name],
        "entry": entry_point(kernel.name.rpartition("::")[2]),
        "result": kernel.result,
        "failed": _failed(kernel.result),
        "types": ", ".join(p.type for p in kernel.parameters),
        "parameters": ", ".join(declare(p.type, name) for p, name in zip(kernel.parameters, names, strict=True)),
        "reference_parameters": _listed(_reference_parameters(kernel.parameters)),
        "arguments": ", ".join(names),
        "passed": _listed(names),
    }


def _wrapper(wrapper: Wrapper) -> dict[str, Any]:
    return {
        "name": wrapper.name,
        "entry": wrapper.entry,
        "linkage": "static" if wrapper.file_local else '__attribute__((visibility("hidden")))',
        "result": wrapper.result,
        "slots": ", ".join(f"ck_jit::Slot* {selection.name}" for selection in wrapper.selections),
        "reference_parameters": _listed(_reference_parameters(wrapper.parameters)),
    }


def _by_name(
    entry: str, result: str, parameters: Sequence[Parameter], slots: Sequence[tuple[str, str]], manifest: Manifest
) -> dict[str, Any]:
    names = parameter_names(parameters)
    return {
        "entry": entry,
        "result": result,
        "failed": _failed(result),
        "names": ", ".join(f"const char* {name}" for name, _ in slots),
        "parameters": _listed([declare(p.type, name) for p, name in zip(parameters, names, strict=True)]),
        "slots": [{"name": name, "kernel": manifest.kernel_numbers[kernel]} for name, kernel in slots],
        "passed": _listed(names),
    }
