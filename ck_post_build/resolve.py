"""Resolves each dispatch site to the kernel instances that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ck_post_build.blob_index import BlobIndex, Instance
from ck_post_build.demangle import template_arguments
from ck_post_build.names import direction
from ck_post_build.sites import Site
from ck_post_build.source import SourceFile
from ck_post_build.wrappers import Wrapper


@dataclass(frozen=True)
class ResolvedSite:
    """A site with what it calls.

    Attributes:
        instances: one for each slot of the entry point; None where the traits ask for no blob.
        symbols: the kernel symbols that the call can reach, in order of the names.
    """

    site: Site
    line: int
    direction: str
    instances: tuple[Instance | None, ...]
    symbols: tuple[str, ...]

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of the blobs, one for each slot that has one."""
        return tuple(instance.blob for instance in self.instances if instance is not None)


@dataclass(frozen=True)
class Unresolved:
    """A site without a blob.

    Attributes:
        line: where.
        template, arguments: the first specialisation of a kernel template that no blob defines.
        site: None for one that only stubs could serve.
    """

    line: int
    template: str
    arguments: tuple[str, ...]
    site: Site | None = None

    @property
    def may_be_left_out(self) -> bool:
        """Whether the compiler may discard it: under a false ``if constexpr``, or in a template."""
        return self.site is not None and (self.site.discarded or self.site.in_template)

    def message(self) -> str:
        """Return one sentence for the user."""
        traits = ", ".join(self.arguments)
        return (
            f"no blob defines {self.template}<{traits}>. Give every directory that generate.py wrote blobs to with "
            "--blob-dir, and generate API file and blobs in one run"
        )


def resolve_sites(
    sites: Sequence[Site], source: SourceFile, index: BlobIndex, wrappers: dict[str, Wrapper]
) -> tuple[list[ResolvedSite], list[Unresolved]]:
    """Return the sites with their instances, and those that no blob serves, each in text order."""
    resolved: list[ResolvedSite] = []
    unresolved: list[Unresolved] = []
    for site in sites:
        line = source.line_of(site.start)
        wrapper = wrappers.get(site.template)
        found = _of_wrapper(site, index, wrapper) if wrapper else _of_kernel(site, index)
        if isinstance(found, ResolvedSite):
            resolved.append(ResolvedSite(site, line, found.direction, found.instances, found.symbols))
        else:
            unresolved.append(Unresolved(line, *found, site))
    return resolved, unresolved


def named_arguments(site: Site) -> tuple[str, ...]:
    """Return the template arguments of the specialisation that stands at a site."""
    return site.arguments or template_arguments(site.symbol, site.template.rpartition("::")[2])


def _of_kernel(site: Site, index: BlobIndex) -> ResolvedSite | tuple[str, tuple[str, ...]]:
    instance = index.by_symbol.get(site.symbol)
    if instance is None:
        return site.template, named_arguments(site)
    return ResolvedSite(site, 0, direction(site.template), (instance,), (site.symbol,))


def _of_wrapper(site: Site, index: BlobIndex, wrapper: Wrapper) -> ResolvedSite | tuple[str, tuple[str, ...]]:
    arguments, lookup = site.arguments, index.by_arguments
    if arguments is None:
        arguments = template_arguments(site.symbol, wrapper.name.rpartition("::")[2])
        lookup = index.by_demangled_arguments({template for template, _ in wrapper.uses})
    instances: list[Instance | None] = []
    symbols: set[str] = set()
    for number, selection in enumerate(wrapper.selections):
        chosen = tuple(arguments[a] if isinstance(a, int) else a for a in selection.arguments)
        if any(isinstance(a, int) and a in wrapper.optional and arguments[a] == "void" for a in selection.arguments):
            instances.append(None)
            continue
        instance: Instance | None = None
        for template in (template for template, slot in wrapper.uses if slot == number):
            found = lookup.get((template, chosen))
            if found is None or (instance is not None and found is not instance):
                return template, chosen
            instance = found
            symbols.update(k.symbol for k in found.kernels if k.template == template)
        instances.append(instance)
    return ResolvedSite(site, 0, direction(site.template), tuple(instances), tuple(sorted(symbols)))
