"""Compiler flags: how they are split, which of them travel with a blob, and how paths in them become relocatable."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ck_post_build.errors import CkPostBuildError
from ck_post_build.headers import header_place

ROOT_PLACEHOLDER = "@CK_JIT_ROOT@"

# Options that say where output and dependency files go, or what to do: they belong to the build, not to the code.
_DROPPED_ALONE = frozenset(
    {"-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MG", "-MP", "-fsyntax-only", "-shared", "-pie", "-fPIE", "-fpie"}
)
_DROPPED_WITH_VALUE = frozenset({"-o", "-MF", "-MT", "-MQ", "-MJ", "-Xlinker", "--serialize-diagnostics"})
_DROPPED_PREFIXES = ("-o=", "-MF", "-MT", "-MQ", "-Wl,", "-fvisibility", "-fdiagnostics-color", "-fcolor-diagnostics")
_ARCH = "--offload-arch="
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^")
_PATH_OPTIONS = ("-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-include-pch")


@dataclass(frozen=True)
class Flags:
    """Flags of a blob: what travels, and the architectures that ``--offload-arch`` named."""

    arguments: tuple[str, ...]
    arches: tuple[str, ...]


def split(text: str) -> list[str]:
    """Split a string of flags as a shell would, without running one.

    Raises:
        CkPostBuildError: a quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise CkPostBuildError(f"cannot split the flags {text!r}: {error}") from error


def join(arguments: Iterable[str]) -> str:
    """Join arguments with blanks; a backslash makes each byte ordinary that could be taken for anything else."""
    return " ".join("".join(c if c in _PLAIN or ord(c) > 127 else "\\" + c for c in a) for a in arguments)


def travelling(arguments: Sequence[str], directory: Path, sources: frozenset[str] = frozenset()) -> Flags:
    """Drop what belongs to the build, make relative paths absolute, and keep the rest in order.

    Args:
        arguments: as in a compile command, without the compiler.
        directory: what relative paths are relative to.
        sources: arguments that name the source file itself.
    """
    kept: list[str] = []
    arches: list[str] = []
    pending = iter(arguments)
    for argument in pending:
        if argument in sources or argument in _DROPPED_ALONE:
            continue
        if argument in _DROPPED_WITH_VALUE:
            next(pending, None)
        elif argument.startswith(_ARCH):
            arches += [arch for arch in argument.removeprefix(_ARCH).split(",") if arch]
        elif argument in _PATH_OPTIONS:
            kept += [argument, _absolute(next(pending, ""), directory)]
        elif option := next(
            (o for o in _PATH_OPTIONS if argument.startswith(o) and not argument.startswith("-include-")), None
        ):
            kept.append(option + _absolute(argument.removeprefix(option), directory))
        elif not argument.startswith(_DROPPED_PREFIXES):
            kept.append(argument)
    return Flags(tuple(kept), tuple(dict.fromkeys(arches)))


def _absolute(path: str, directory: Path) -> str:
    return path if path.startswith(("=", "/")) else str(directory / path)


@dataclass
class HeaderTree:
    """The header directories and files that flags refer to, and their places under the JIT root.

    Attributes:
        rocm: paths below it are the compiler's, and stay as they are.
        places: from the path on this machine to the path relative to the JIT root, in order of first appearance.
    """

    rocm: Path | None
    places: dict[Path, str] = field(default_factory=dict)

    def relocate(self, flags: Sequence[str]) -> tuple[tuple[str, ...], tuple[Path, ...]]:
        """Return `flags` with paths to headers under ``@CK_JIT_ROOT@``, and those paths as they are on this machine."""
        result: list[str] = []
        used: list[Path] = []
        pending = iter(flags)
        for argument in pending:
            if argument in _PATH_OPTIONS:
                result += [argument, self._place(next(pending, ""), used)]
            elif option := next((o for o in _PATH_OPTIONS if argument.startswith(o + "/")), None):
                result.append(option + self._place(argument.removeprefix(option), used))
            else:
                result.append(argument)
        return tuple(result), tuple(used)

    def _place(self, text: str, used: list[Path]) -> str:
        path = Path(text)
        if not path.is_absolute() or (self.rocm is not None and path.is_relative_to(self.rocm)):
            return text
        used.append(path)
        if path not in self.places:
            self.places[path] = header_place(path)
        return f"{ROOT_PLACEHOLDER}/{self.places[path]}"
