"""Reads a bridge's TOML spec into typed values. What it says about the header is checked later, against the header."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from ck_post_build.errors import CkPostBuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the library is and what it declares.

    Attributes:
        header: the C header, relative to the spec.
        file: the library's file name, which the dynamic loader looks up when nothing else names it.
        override: the environment variable that names the library instead.
        directories: absolute directories tried first, in order.
        flags: compiler flags the header needs, such as ``-D`` and ``-I``; relative paths start at the spec.
    """

    header: str
    file: str
    override: str
    directories: list[str] = []
    flags: list[str] = []


class OptIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The environment variable, and its value, without which the library is never loaded."""

    variable: str
    value: str = "1"


class Abi(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The library's own record of its ABI.

    Attributes:
        version: what both sides must agree on; raise it when a meaning changes and no signature does.
        record: the symbol that holds the record.
        required: whether a library without a record is unusable.
    """

    version: int
    record: str
    required: bool = True


class Status(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The enumeration that names the status codes, and the one that means success."""

    enum: str
    ok: str


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on the arguments of a call, with its reason."""

    that: str
    why: str


class FunctionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One function of the header.

    Attributes:
        role: ``load`` runs once, right after the library is loaded; ``call`` gets a wrapper.
        alias: the wrapper's name; the C name without it.
        returns: whether an integer result is a status or just a value.
        obligations: what the caller must see to, because nothing here can check it.
        requires: what is checked before each call.
    """

    name: str
    role: Literal["load", "call"]
    alias: str | None = None
    returns: Literal["status", "value"] = "status"
    obligations: list[str] = []
    requires: list[Requirement] = []

    @property
    def wrapper(self) -> str:
        """The name of the generated function."""
        return self.alias or self.name


class Leak(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is never given back on purpose, and why."""

    what: str
    why: str


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole spec; `name` is the module's name and the outputs' file name."""

    name: str
    library: Library
    opt_in: OptIn
    functions: list[FunctionSpec]
    abi: Abi | None = None
    status: Status | None = None
    leaks: list[Leak] = []

    @property
    def calls(self) -> list[FunctionSpec]:
        """The functions that get a wrapper."""
        return [f for f in self.functions if f.role == "call"]

    @property
    def load_hook(self) -> FunctionSpec | None:
        """The function that runs once after loading."""
        return next((f for f in self.functions if f.role == "load"), None)


def line_of(path: Path, word: str) -> int | None:
    """Return the first line of `path` that quotes `word`, to point a message at it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((n for n, line in enumerate(lines, 1) if f'"{word}"' in line or f"'{word}'" in line), None)


def spec_error(path: Path, message: str, word: str) -> CkPostBuildError:
    """Return an error about the place where the spec says `word`."""
    return CkPostBuildError(message, file=path, line=line_of(path, word))


def _parse(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return document
    except OSError as error:
        raise CkPostBuildError(f"cannot read the spec: {error.strerror}", file=path) from error
    except UnicodeDecodeError as error:
        raise CkPostBuildError("the spec is not UTF-8 text", file=path) from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+)", str(error))
        raise CkPostBuildError(f"not valid TOML: {error}", file=path, line=int(place[1]) if place else None) from error


def _check_names(spec: Spec, path: Path) -> None:
    if not _IDENTIFIER.fullmatch(spec.name):
        raise spec_error(path, f"name {spec.name!r} must be a lower-case identifier: it names the modules", spec.name)
    for variable in (spec.library.override, spec.opt_in.variable):
        if not _VARIABLE.fullmatch(variable):
            raise spec_error(path, f"{variable!r} is not the name of an environment variable", variable)
    if "/" in spec.library.file or not spec.library.file:
        raise spec_error(
            path, "library.file is a file name; put its directory into library.directories", spec.library.file
        )
    for directory in spec.library.directories:
        if not directory.startswith("/"):
            raise spec_error(path, f"directory {directory!r} must be absolute: a process can start anywhere", directory)
    if spec.abi and not 0 < spec.abi.version < 2**32:
        raise CkPostBuildError("abi.version must be from 1 to 4294967295", file=path)


def _check_functions(spec: Spec, path: Path) -> None:
    taken = {"available", "unavailable_reason"}
    for function in spec.functions:
        if not _VARIABLE.fullmatch(function.wrapper):
            raise spec_error(path, f"{function.wrapper!r} is not an identifier", function.wrapper)
        if function.wrapper in taken:
            raise spec_error(
                path, f"{function.wrapper!r} is used twice: give one of them another alias", function.wrapper
            )
        taken.add(function.wrapper)
        if function.role == "load" and (function.requires or function.obligations or function.alias):
            raise spec_error(
                path, f"{function.name} is the load hook: it takes no alias and no conditions", function.name
            )
    if sum(f.role == "load" for f in spec.functions) > 1:
        raise CkPostBuildError("more than one function has the role load; one library has one load hook", file=path)
    if not spec.calls:
        raise CkPostBuildError('no function has the role call: add a [[functions]] entry with role = "call"', file=path)


def read_spec(path: Path) -> Spec:
    """Read and check the spec at `path`.

    Raises:
        CkPostBuildError: it cannot be read, is not TOML, lacks or adds a key, or contradicts itself.
    """
    try:
        spec = msgspec.convert(_parse(path), Spec)
    except msgspec.ValidationError as error:
        raise CkPostBuildError(f"the spec does not fit: {error}. docs/bridge.md lists every key", file=path) from error
    _check_names(spec, path)
    _check_functions(spec, path)
    return spec
