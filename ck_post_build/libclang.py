"""Loads libclang, parses one translation unit, and reads cursors without the bindings' per-cursor overhead."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clang.cindex
from clang.cindex import Cursor, CursorKind, TranslationUnit

from ck_post_build.errors import CkPostBuildError
from ck_post_build.source import require_utf8

# CXTranslationUnit_Incomplete: leaves out the instantiations at the end of the file, which nobody reads.
INCOMPLETE = 0x02
DETAILED_PREPROCESSING_RECORD = 0x01
_PREAMBLE = 0x04 | 0x100  # of CXTranslationUnit_: precompile the first includes, at the first parse

# What a libclang of another version than its resource directory needs in order to read HIP's headers.
_FOREIGN_RESOURCES = ("-D__builtin_amdgcn_wavefrontsize()=64", "-D__builtin_amdgcn_fence(...)=((void)0)")

FUNCTIONS = frozenset(
    {
        CursorKind.FUNCTION_DECL,
        CursorKind.CXX_METHOD,
        CursorKind.CONSTRUCTOR,
        CursorKind.DESTRUCTOR,
        CursorKind.CONVERSION_FUNCTION,
    }
)
# What functions may be declared in.
SCOPES = frozenset(
    {
        CursorKind.NAMESPACE,
        CursorKind.STRUCT_DECL,
        CursorKind.CLASS_DECL,
        CursorKind.LINKAGE_SPEC,
        CursorKind.UNEXPOSED_DECL,
    }
)

_load_lock = threading.Lock()


class _SourceRangeList(ctypes.Structure):
    """CXSourceRangeList, which the bindings do not wrap."""

    _fields_ = [("count", ctypes.c_uint), ("ranges", ctypes.POINTER(clang.cindex.SourceRange))]


def _append_child(child: Cursor, _parent: Cursor, found: list[Any]) -> int:
    child._tu = found[0]
    found.append(child)
    return 1


# One callback object for all visits: making one for each costs more than the visit.
_APPEND_CHILD = clang.cindex.callbacks["cursor_visit"](_append_child)


@dataclass(frozen=True)
class Clang:
    """A libclang and the arguments with which it reads HIP host code.

    Attributes:
        library: the shared library; None: the one of the ``libclang`` package.
        arguments: driver arguments that come before those of a file.
    """

    library: Path | None
    arguments: tuple[str, ...]


def host_arguments(*, rocm_path: Path | None, resource_dir: Path | None, foreign: bool) -> tuple[str, ...]:
    """Return the arguments that make libclang read a file as HIP host code.

    Args:
        rocm_path: where HIP's headers are.
        resource_dir: the compiler's own headers.
        foreign: whether `resource_dir` belongs to another compiler version than the libclang in use.
    """
    arguments = ["-x", "hip", "--cuda-host-only", "-nogpulib", "-Wno-unused-command-line-argument"]
    # One error ends the parse: clang needs minutes to go on through 15,000 declarations after a header that failed.
    arguments.append("-Wfatal-errors")
    if rocm_path:
        # Named besides, since the driver puts a ROCm outside /opt behind /usr/include, where another HIP may be.
        arguments.append(f"--rocm-path={rocm_path}")
        if rocm_path != Path("/usr"):  # naming /usr/include would break the C++ library's #include_next
            arguments += ["-isystem", f"{rocm_path}/include"]
    if resource_dir:
        arguments += ["-resource-dir", str(resource_dir)]
    return (*arguments, *(_FOREIGN_RESOURCES if foreign else ()))


def load(library: Path | None) -> None:
    """Make the bindings use `library`. A process can use one libclang only; later calls must name the same.

    Raises:
        CkPostBuildError: it cannot be loaded, or another one is loaded already.
    """
    with _load_lock:
        config = clang.cindex.Config
        if config.loaded:
            if library is not None and not _same_file(config.library_file, library):
                loaded = config.library_file or "of the libclang package"
                raise CkPostBuildError(f"libclang {loaded} is loaded already; cannot use {library} too")
            return
        if library is not None:
            config.set_library_file(str(library))
        config.set_compatibility_check(False)
        try:
            lib = clang.cindex.conf.lib
        except clang.cindex.LibclangError as error:
            raise CkPostBuildError(
                f"cannot load libclang: {error}. Install the libclang of your HIP compiler, or pip install libclang, "
                "or set CK_POST_BUILD_LIBCLANG to the shared library"
            ) from error
        try:
            lib.clang_Cursor_Evaluate.argtypes = [Cursor]
        except AttributeError as error:
            raise CkPostBuildError("this is no libclang, or one older than version 9", file=library) from error
        lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
        lib.clang_EvalResult_getAsInt.argtypes = [ctypes.c_void_p]
        lib.clang_EvalResult_getKind.argtypes = [ctypes.c_void_p]
        lib.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
        lib.clang_EvalResult_dispose.restype = None
        lib.clang_getSkippedRanges.argtypes = [TranslationUnit, clang.cindex.File]
        lib.clang_getSkippedRanges.restype = ctypes.POINTER(_SourceRangeList)
        lib.clang_disposeSourceRangeList.argtypes = [ctypes.POINTER(_SourceRangeList)]
        lib.clang_disposeSourceRangeList.restype = None
        instantiation = lib.clang_getInstantiationLocation
        lib.clang_getFileLocation.argtypes, lib.clang_getFileLocation.restype = instantiation.argtypes, None
        lib.clang_Location_isFromMainFile.argtypes = [clang.cindex.SourceLocation]
        lib.clang_Location_isFromMainFile.restype = ctypes.c_int


def _same_file(loaded: str | None, library: Path) -> bool:
    """Tell whether both names lead to one library: a ROCm's may be a link to the system's."""
    return loaded is not None and os.path.realpath(loaded) == os.path.realpath(library)


def parse(
    clang_: Clang, path: Path, flags: Sequence[str], *, options: int = 0, text: str | None = None
) -> TranslationUnit:
    """Parse `path` (or `text` under that name, one character a byte) and return the translation unit, also when it has errors.

    Raises:
        CkPostBuildError: libclang cannot be loaded, gives no translation unit at all, or cannot be told a name in `flags`.
    """
    for word in (str(path), *flags):
        require_utf8(word)
    load(clang_.library)
    unsaved = None if text is None else [(str(path), text.encode("latin-1"))]
    try:
        return clang.cindex.Index.create().parse(
            str(path), args=[*clang_.arguments, *flags], unsaved_files=unsaved, options=options
        )
    except clang.cindex.TranslationUnitLoadError as error:
        raise CkPostBuildError(
            "libclang cannot read the file at all: check that it exists and that the flags are compiler flags",
            file=path,
        ) from error


def parse_each(
    clang_: Clang, path: Path, flags: Sequence[str], includes: Sequence[str], texts: Iterable[str]
) -> Iterator[TranslationUnit]:
    """Parse each text, with `includes` in front, under the name `path`; what is included is read once.

    Yields the unit of each text, which lasts until the next.

    Raises:
        CkPostBuildError: as ``parse``.
    """
    unit: TranslationUnit | None = None
    options = INCOMPLETE | _PREAMBLE
    # Without, what is precompiled counts as a C++20 module, where no two functions may differ only in their side.
    flags = [*flags, "-Xclang", "-fno-cxx-modules"]
    for rest in texts:
        # The declaration ends what is precompiled, which would otherwise go on with the directives of the text.
        text = "\n".join(includes) + "\nstatic_assert(true);\n" + rest
        if unit is None:
            unit = parse(clang_, path, flags, options=options, text=text)
        else:
            unit.reparse([(str(path), text.encode("latin-1"))], options)
        yield unit


def give_memory_back() -> None:
    """Have the C library return what dropped units took to the system: it keeps that for the thread that parsed them."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def first_error(unit: TranslationUnit) -> Any | None:
    """Return the first diagnostic of severity error or worse, or None."""
    return next((d for d in unit.diagnostics if d.severity >= clang.cindex.Diagnostic.Error), None)


def raise_on_errors(unit: TranslationUnit) -> None:
    """Raise CkPostBuildError with the place and text of the unit's first error, if it has one."""
    error = first_error(unit)
    if error is not None:
        place = error.location
        raise CkPostBuildError(
            f"libclang: {error.spelling}. A file is only read when it compiles: check the flags and the CK version",
            file=place.file.name if place.file else unit.spelling,
            line=place.line or None,
        )


def is_in_main_file(cursor: Cursor) -> bool:
    """Tell whether `cursor` stands in the file that was parsed, not in one that it includes."""
    return bool(clang.cindex.conf.lib.clang_Location_isFromMainFile(cursor.location))


def children(cursor: Cursor) -> list[Cursor]:
    """Return the children of `cursor`, as ``get_children`` does, in a fraction of its time."""
    found: list[Any] = [cursor._tu]
    clang.cindex.conf.lib.clang_visitChildren(cursor, _APPEND_CHILD, found)
    return found[1:]


def skipped_ranges(unit: TranslationUnit) -> list[tuple[int, int]]:
    """Return the offsets ``[start, end)`` of the main file's text that the preprocessor left out.

    The unit must have been parsed with DETAILED_PREPROCESSING_RECORD.
    """
    lib = clang.cindex.conf.lib
    ranges = lib.clang_getSkippedRanges(unit, unit.get_file(unit.spelling))
    try:
        found = [ranges.contents.ranges[number] for number in range(ranges.contents.count)]
        return [(r.start.offset, r.end.offset) for r in found]
    finally:
        lib.clang_disposeSourceRangeList(ranges)


def offsets(cursor: Cursor) -> tuple[int, int]:
    """Return the byte offsets ``[start, end)`` of `cursor` in its file."""
    lib = clang.cindex.conf.lib
    extent = lib.clang_getCursorExtent(cursor)
    start, end = ctypes.c_uint(), ctypes.c_uint()
    # Without the file, line and column that the bindings would make objects of.
    lib.clang_getInstantiationLocation(lib.clang_getRangeStart(extent), None, None, None, ctypes.byref(start))
    lib.clang_getInstantiationLocation(lib.clang_getRangeEnd(extent), None, None, None, ctypes.byref(end))
    return start.value, end.value


def written_at(cursor: Cursor) -> int:
    """Return the offset of the name of `cursor` in its file's text: for what is in an argument of a macro, there."""
    offset = ctypes.c_uint()
    clang.cindex.conf.lib.clang_getFileLocation(cursor.location, None, None, None, ctypes.byref(offset))
    return offset.value


def primary_template(cursor: Cursor) -> Cursor | None:
    """Return the template that `cursor` specialises, or None."""
    template = clang.cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    return template if template is not None and template.kind != CursorKind.INVALID_FILE else None


def qualified_name(cursor: Cursor) -> str:
    """Return the name of `cursor` with the namespaces and classes around it."""
    names = [cursor.spelling]
    parent = cursor.semantic_parent
    while parent is not None and parent.kind != CursorKind.TRANSLATION_UNIT:
        if parent.spelling:
            names.append(parent.spelling)
        parent = parent.semantic_parent
    return "::".join(reversed(names))


def template_arguments(cursor: Cursor) -> tuple[str, ...] | None:
    """Return the template arguments of a specialisation in canonical spelling.

    None if one is neither type nor integer, and for member functions, whose arguments libclang does not tell.
    """
    if cursor.get_num_template_arguments() < 0:
        return None
    result = []
    for number in range(cursor.get_num_template_arguments()):
        try:
            kind = cursor.get_template_argument_kind(number)
        except ValueError:  # a kind that the bindings do not know: a template, an expression, a pack
            return None
        if kind == clang.cindex.TemplateArgumentKind.TYPE:
            result.append(cursor.get_template_argument_type(number).get_canonical().spelling)
        elif kind == clang.cindex.TemplateArgumentKind.INTEGRAL:
            result.append(str(cursor.get_template_argument_value(number)))
        else:
            return None
    return tuple(result)


def evaluate(cursor: Cursor) -> int | None:
    """Return the value of a constant integral or boolean expression, or None."""
    lib = clang.cindex.conf.lib
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        return int(lib.clang_EvalResult_getAsInt(result)) if lib.clang_EvalResult_getKind(result) == 1 else None
    finally:
        lib.clang_EvalResult_dispose(result)
