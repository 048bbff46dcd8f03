"""Where the compiler flags of API files and blobs come from: a compile database, a configured build directory, or a string."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import ninja

from ck_post_build import flags
from ck_post_build.errors import CkPostBuildError

# Stands for the source file's name in a command that is shared by many.
_NAME = "\x01"


class _Command(msgspec.Struct):
    file: str
    directory: str = "."
    arguments: list[str] | None = None
    command: str | None = None


class FlagSource:
    """Gives the flags of a source file."""

    def of(self, path: Path) -> flags.Flags:
        """Return the flags of `path`. Raises CkPostBuildError when there are none for it."""
        raise NotImplementedError


class FixedFlags(FlagSource):
    """The same flags, given as one string, for every file."""

    def __init__(self, text: str) -> None:
        self._flags = flags.travelling(flags.split(text), Path.cwd())

    def of(self, path: Path) -> flags.Flags:
        """Return the one set of flags."""
        return self._flags


class CompileDatabase(FlagSource):
    """A ``compile_commands.json``, or a directory that CMake configured for Ninja (asked with ``ninja -t compdb``).

    Raises:
        CkPostBuildError: it cannot be read, or is no compile database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        data = self._ask_ninja(path) if path.is_dir() else self._read(path)
        try:
            commands = msgspec.json.decode(data, type=list[_Command])
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise CkPostBuildError(f"this is no compile database: {error}", file=path) from error
        self._directory = (path if path.is_dir() else path.parent).absolute()
        self._commands: dict[str, _Command] = {}
        for command in commands:
            self._commands.setdefault(str(_normal(self._directory / command.directory / command.file)), command)
        self._flags: dict[tuple[str, str | tuple[str, ...]], flags.Flags] = {}

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise CkPostBuildError(f"cannot read the compile database: {error.strerror}", file=path) from error

    def _ask_ninja(self, directory: Path) -> bytes:
        listed = directory / "compile_commands.json"
        if listed.is_file():
            return self._read(listed)
        program = Path(ninja.BIN_DIR) / "ninja"
        done = subprocess.run([program, "-C", directory, "-t", "compdb"], capture_output=True, check=False)
        if done.returncode != 0:
            reason = done.stderr.decode(errors="replace").strip()
            raise CkPostBuildError(
                f"ninja cannot list its commands ({reason}). Give a compile_commands.json or a directory configured for Ninja",
                file=directory,
            )
        return done.stdout

    def of(self, path: Path) -> flags.Flags:
        """Return the flags of `path`.

        Raises:
            CkPostBuildError: the database has no entry for the file.
        """
        command = self._commands.get(str(_normal(path)))
        if command is None:
            raise CkPostBuildError(
                f"the compile database {self._path} has no entry for this file. Configure the build that compiles it, "
                "or pass --flags instead",
                file=path,
            )
        return self._flags_of(command)

    def _flags_of(self, command: _Command) -> flags.Flags:
        """Split the command once for all files whose commands differ in the file's name only: shlex takes 1 ms each."""
        name = Path(command.file).name
        pattern: str | tuple[str, ...] = (command.command or "").replace(name, _NAME)
        if command.arguments is not None or _NAME not in pattern:  # or the name is written with quotes
            words = flags.split(command.command or "") if command.arguments is None else command.arguments
            pattern = tuple(word.replace(name, _NAME) for word in words)
        key = (command.directory, pattern)
        kept = self._flags.get(key)
        if kept is None:
            arguments = (flags.split(pattern) if isinstance(pattern, str) else pattern)[1:]
            own = frozenset(a for a in arguments if a.endswith(_NAME) and not a.startswith("-"))
            kept = self._flags[key] = flags.travelling(arguments, self._directory / command.directory, own)
        if any(_NAME in argument for argument in kept.arguments):
            return flags.Flags(tuple(a.replace(_NAME, name) for a in kept.arguments), kept.arches)
        return kept


def _normal(path: Path) -> Path:
    return path.absolute().resolve() if not path.is_absolute() else path.resolve()
