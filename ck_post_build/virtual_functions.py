"""Virtual functions that call kernels: code refers to a class's constructor, and never to the function by name.

libclang shows the instantiated body of a class template's member only behind an expression that names it. So a copy of the file
with such expressions at its end is parsed, one function for each class that is constructed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import SourceFile

_PREFIX = "ck_jit_virtual_functions_of_"
# Their names may be private.
FLAG = "-fno-access-control"


def probes(classes: Iterable[Cursor], names_kernel: Callable[[Cursor], bool]) -> list[tuple[Cursor, str]]:
    """Return those of `classes` with virtual functions, inherited ones too, for which `names_kernel` holds.

    Each with a line of C++ that names these functions.
    """
    found: list[tuple[Cursor, str]] = []
    for cls in classes:
        names = sorted({method.spelling for method in _virtual_functions(cls) if names_kernel(method)})
        if names:
            spelling = re.sub(r"\(anonymous (?:namespace|class)\)::", "", cls.type.get_canonical().spelling)
            body = " ".join(f"(void)&{spelling}::{name};" for name in names)
            found.append((cls, f"static void {_PREFIX}{len(found)}({spelling}*) {{ {body} }}\n"))
    return found


def parse_probes(
    found: Sequence[tuple[Cursor, str]], source: SourceFile, parse: Callable[[str], TranslationUnit]
) -> TranslationUnit:
    """Return what `parse` gives for the lines of `probes`, which it adds at the end of `source`.

    Raises:
        CkPostBuildError: a function of a class cannot be named so.
    """
    unit = parse("".join(text for _, text in found))
    error = libclang.first_error(unit)
    if error is not None:
        cls = found[min(max(error.location.line - source.text.count("\n") - 2, 0), len(found) - 1)][0]
        raise CkPostBuildError(
            f"virtual functions of {cls.spelling} call kernels, and clang cannot name them ({error.spelling}). Give each of them "
            "a name of its own, and the class a name outside functions",
            file=cls.location.file.name,
            line=cls.location.line,
        )
    return unit


def probed(unit: TranslationUnit) -> Iterator[tuple[Cursor, Cursor]]:
    """Yield the functions of `probes` in the parse of a text with them, each with its class."""
    for cursor in libclang.children(unit.cursor):
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.spelling.startswith(_PREFIX):
            yield cursor, next(cursor.get_arguments()).type.get_canonical().get_pointee().get_declaration()


def _virtual_functions(cls: Cursor) -> Iterator[Cursor]:
    """Yield the virtual functions in the definitions of `cls` and of its bases, for an instantiated one in its template."""
    for child in libclang.children(libclang.primary_template(cls) or cls):
        if child.kind == CursorKind.CXX_METHOD and child.is_virtual_method():
            yield child.get_definition() or child
        elif child.kind == CursorKind.CXX_BASE_SPECIFIER:
            for base in _bases(child):
                yield from _virtual_functions(base)


def _bases(specifier: Cursor) -> Iterator[Cursor]:
    declared = specifier.type.get_canonical().get_declaration()
    if declared.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL):
        yield declared
    for child in libclang.children(specifier):
        if child.kind == CursorKind.TEMPLATE_REF and child.referenced.kind == CursorKind.CLASS_TEMPLATE:
            yield child.referenced.get_definition() or child.referenced
