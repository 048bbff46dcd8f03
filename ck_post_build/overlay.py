"""Copies of CK headers in which wrapper templates stand, with the wrappers' twins in them.

The rewritten API file includes such a copy instead of the header, because a quoted include looks beside the file first. In
the copy a twin stands right behind its wrapper, so that a twin of a member function is a member function as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ck_post_build.api_rewriter import ApiFile
from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import Edit, SourceFile
from ck_post_build.wrappers import Wrapper

_QUOTED_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Overlay:
    """A header with wrappers.

    Attributes:
        name: as API files include it; the copy goes under this name.
        source: the original.
        wrappers: in text order.
    """

    name: str
    source: SourceFile
    wrappers: tuple[Wrapper, ...]

    @property
    def kernels(self) -> set[str]:
        """The kernel templates that the twins call."""
        return {name for wrapper in self.wrappers for name, _ in wrapper.uses}

    @property
    def entry_header_name(self) -> str:
        """The name of the generated header that the copy includes."""
        return f"{Path(self.name).name.replace('.', '_')}_ck_jit.h"

    def text(self) -> str:
        """Return the text of the copy."""
        newline = self.source.newline()
        first = min(self.wrappers, key=lambda wrapper: wrapper.scope_start)
        place = self.source.line_start(first.scope_start)
        lines = ["}" * len(first.namespaces)] if first.namespaces else []
        lines.append(f'#include "{self.entry_header_name}"')
        lines += [f"namespace {namespace} {{" for namespace in first.namespaces]
        edits = [Edit(place, place, "".join(line + newline for line in lines))]
        edits += [Edit(w.end, w.end, newline + newline + w.twin()) for w in self.wrappers]
        return self.source.apply(edits)


def find_overlays(apis: Sequence[ApiFile]) -> dict[Path, list[Overlay]]:
    """Return, for each API file's path, the headers that it needs copies of.

    Raises:
        CkPostBuildError: an API file includes such a header only through another, where a copy would not be found.
    """
    wrappers: dict[Path, dict[str, Wrapper]] = {}
    for api in apis:
        for wrapper in api.wrappers:
            if wrapper.source.path != api.source.path:
                wrappers.setdefault(wrapper.source.path, {})[wrapper.name] = wrapper
    found: dict[Path, list[Overlay]] = {}
    for api in apis:
        names = _QUOTED_INCLUDE.findall(api.source.text)
        overlays = []
        for path in sorted({w.source.path for w in api.wrappers if w.source.path != api.source.path}):
            members = sorted(wrappers[path].values(), key=lambda wrapper: wrapper.start)
            name = next((name for name in names if _is_same(name, path)), None)
            if name is None or ".." in Path(name).parts or Path(name).is_absolute():
                raise CkPostBuildError(
                    f"{members[0].name} stands in {path}, which this file does not include directly and by name. Add "
                    f'#include "{path.name}" to it',
                    file=api.source.path,
                    line=1,
                )
            overlays.append(Overlay(name, members[0].source, tuple(members)))
        found[api.source.path] = overlays
    return found


def _is_same(name: str, path: Path) -> bool:
    parts = Path(name).parts
    return path.parts[-len(parts) :] == parts
