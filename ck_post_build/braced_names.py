"""Names of kernels in braced initialisers, which libclang shows as written: without the specialisation that they mean.

An asterisk in front of such a name, ``{&fmha_fwd_<trait_>}`` to ``{&*fmha_fwd_<trait_>}``, means the same function and makes
clang choose it on the spot. So a copy of the file with asterisks is parsed, and the names are looked up there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build import libclang
from ck_post_build.source import Edit, SourceFile


def specialisations(
    source: SourceFile, offsets: Sequence[int], parse: Callable[[str], TranslationUnit], templates: Collection[str]
) -> Iterator[tuple[int, int, Cursor]]:
    """Yield for the names at `offsets` (ascending) start, end and the function of one of `templates` that is meant.

    Names that clang does not resolve so are left out.

    Args:
        source: the file.
        offsets: where in it the names stand.
        parse: parses another text of the file.
        templates: qualified names.
    """
    unit = parse(source.apply([Edit(offset, offset, "*") for offset in offsets]))
    if libclang.first_error(unit) is not None:
        return
    places = {offset + number + 1: number for number, offset in enumerate(offsets)}
    pending = [child for child in libclang.children(unit.cursor) if libclang.is_in_main_file(child)]
    while pending:
        cursor = pending.pop()
        pending += libclang.children(cursor)
        start, end = libclang.offsets(cursor)
        if cursor.kind != CursorKind.DECL_REF_EXPR or start not in places or cursor.referenced is None:
            continue
        template = libclang.primary_template(cursor.referenced)
        if template is not None and libclang.qualified_name(template) in templates:
            shift = places[start] + 1
            yield start - shift, end - shift, cursor.referenced
