"""Builds the two dispatchers over recording functions, and the driver that compares them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit, TypeKind
from elftools.elf.elffile import ELFFile

from ck_post_build import FixedFlags, Report, libclang, rewrite
from ck_post_build.build_info import FILE_NAME
from ck_post_build.resources import resource_dir
from ck_post_build.toolchain import Toolchain, find_toolchain

from .conditions import read_conditions
from .records import Field

HERE = Path(__file__).resolve().parent
_FLOATS = {TypeKind.FLOAT: "float", TypeKind.DOUBLE: "double", TypeKind.VOID: "void", TypeKind.BOOL: "bool"}


@dataclass
class Api:
    """An API file: its path, blob directory, flags without architectures, and clang's tree of it."""

    path: Path
    blob_dir: Path
    flags: FixedFlags
    toolchain: Toolchain

    def arguments(self) -> list[str]:
        flags = self.flags.of(self.path).arguments
        return ["-iquote", str(self.path.parent), *flags]

    def parse(self, path: Path | None = None) -> TranslationUnit:
        """Parse it, or another file with its flags."""
        flags = self.flags.of(self.path)
        words = [*flags.arguments, *(f"--offload-arch={arch}" for arch in flags.arches[:1])]
        unit = libclang.parse(self.toolchain.clang, path or self.path, words, options=libclang.INCOMPLETE)
        libclang.raise_on_errors(unit)
        return unit

    def functions(self, path: Path) -> list[Cursor]:
        """Return the definitions in a file that the linker sees."""
        return read_conditions(self.parse(path), path.read_bytes()).functions

    def rewrite(self, output: Path) -> Report:
        return rewrite([self.path], [self.blob_dir], output, self.flags, toolchain=self.toolchain)


def api(path: Path, blob_dir: Path, flags: str) -> Api:
    """Return the API file; the toolchain is that of the environment."""
    return Api(path, blob_dir, FixedFlags(flags), find_toolchain())


class Builder:
    """Compiles into one directory."""

    def __init__(self, api_: Api, directory: Path) -> None:
        self._api = api_
        self._directory = directory
        self._hipcc = api_.toolchain.require_hipcc()

    def original(self) -> Path:
        """Compile the original dispatcher, host pass only, not optimised; it takes minutes, so one that is there is kept."""
        output = self._directory / "original.o"
        command = self._compilation(self._api.path, output, self._host())
        digest = hashlib.sha256(repr(command).encode() + self._api.path.read_bytes()).hexdigest()
        stamp = output.with_suffix(".stamp")
        if not (output.exists() and stamp.exists() and stamp.read_text() == digest):
            self._run(command)
            stamp.write_text(digest)
        return output

    def rewritten(self, lazy: Path) -> list[Path]:
        """Compile what ck-post-build wrote to `lazy`: the dispatcher in the form that ``build`` compiles, the manifest."""
        includes = [f"-I{lazy}", f"-I{resource_dir('ck_jit_runtime')}", f"-I{HERE}", f"-Wa,-I{lazy}"]
        dispatcher = lazy / f"{self._api.path.stem}.outlined{self._api.path.suffix}"
        sources = (dispatcher, lazy / "ck_jit_manifest.cpp", HERE / "runtime.cpp")
        objects = [self._compile(source, f"{source.stem}.o", [*self._host(), *includes]) for source in sources]
        return objects + [self._compile(source, f"{source.stem}.o", includes) for source in lazy.glob("*.S")]

    def entry(self, source: Path) -> Path:
        """Compile a source file that calls the dispatcher."""
        return self._compile(source, "entry.o", self._host())

    def stubs(self, kinds: dict[str, str], blobs: dict[str, str]) -> Path:
        """Link a library with a recording function for each symbol of `kinds` (symbol → kind of result)."""
        assembly = [".text"]
        table = ['#include "recorder.h"', "namespace oracle {", "const char *const symbols[] = {"]
        for number, (symbol, kind) in enumerate(kinds.items()):
            register = "%esi" if kind == "text" else "%edi"
            assembly += [f".globl {symbol}", f".type {symbol},@function"]
            assembly += [f"{symbol}:", f"  movl ${number}, {register}", f"  jmp oracle_{kind}@PLT"]
            table.append(json.dumps(symbol) + ",")
        assembly.append('.section .note.GNU-stack,"",@progbits\n')
        table += ["};", "const char *const blobs[] = {", *(json.dumps(blobs[symbol]) + "," for symbol in kinds), "};"]
        table += [f"const int symbol_count = {len(kinds)};", "}\n"]
        sources = [self._write("stubs.s", assembly), self._write("symbols.cpp", table), HERE / "recorder.cpp"]
        library = self._directory / "libstubs.so"
        self._run([*self._plain(), "-shared", f"-I{HERE}", *sources, "-Wl,-soname,libstubs.so", "-o", library])
        return library

    def link(self, objects: Sequence[Path], stubs: Path, name: str) -> Path:
        """Link a dispatcher; it must have all that it refers to."""
        library = self._directory / name
        self._run([self._hipcc, "-shared", "-fPIC", "-Wl,--no-undefined", *objects, stubs, "-o", library])
        return library

    def driver(self, function: Cursor, fields: Sequence[Field], stubs: Path) -> Path:
        """Compile the driver for the parameters of `function`."""
        source = self._write("direction.cpp", _direction(function, fields))
        objects = [self._compile(source, "direction.o", [*self._host(), f"-I{HERE}"])]
        driver = self._directory / "driver"
        run_path = f"-Wl,-rpath,{self._directory}"
        words = ["-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", HERE / "driver.cpp", *objects, stubs, run_path]
        self._run([*self._plain(), *words, *self._hip_library(), "-ldl", "-lpthread", "-o", driver])
        return driver

    def _hip_library(self) -> list[str]:
        library = self._hipcc.parent.parent / "lib"
        return [f"-L{library}", "-lamdhip64", f"-Wl,-rpath,{library}"]

    def _host(self) -> list[str]:
        flags = [flag for flag in self._api.arguments() if not flag.startswith("-O")]
        return ["-x", "hip", "--cuda-host-only", "-O0", "-fPIC", "-w", *flags]

    def _plain(self) -> list[str | Path]:
        return [self._hipcc.parent / "amdclang++", "-std=c++20", "-fPIC"]

    def _compile(self, source: Path, name: str, flags: Sequence[str]) -> Path:
        output = self._directory / name
        self._run(self._compilation(source, output, flags))
        return output

    def _compilation(self, source: Path, output: Path, flags: Sequence[str]) -> list[str | Path]:
        # In a host-only pass clang names no unit by itself, and the units' symbols clash.
        return [self._hipcc, *flags, "-Xclang", f"-cuid={output.stem}", "-c", source, "-o", output]

    def _write(self, name: str, lines: Sequence[str]) -> Path:
        path = self._directory / name
        path.write_text("\n".join(lines))
        return path

    def _run(self, command: Sequence[str | Path]) -> None:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=dict(os.environ))
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))[:2000]}\n{done.stderr[:4000]}")


def undefined_symbols(path: Path) -> list[str]:
    """Return the names that an object refers to and does not define."""
    with path.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        return sorted({s.name for s in table.iter_symbols() if s["st_shndx"] == "SHN_UNDEF" and s.name})


def blobs_by_symbol(lazy: Path) -> dict[str, str]:
    """Return the blob that defines each kernel symbol, as ck-post-build says."""
    blobs = json.loads((lazy / FILE_NAME).read_bytes())["blobs"]
    return {symbol: blob["name"] for blob in blobs for symbol in blob["symbols"]}


def result_kinds(unit: TranslationUnit, symbols: Sequence[str]) -> dict[str, str]:
    """Return what each kernel returns, as clang declares its template."""
    prefixes: dict[str, str] = {}
    for cursor in libclang.children(unit.cursor):
        if cursor.kind == CursorKind.FUNCTION_TEMPLATE:
            prefixes[f"_Z{len(cursor.spelling)}{cursor.spelling}I"] = _kind(cursor)
    found = {}
    for symbol in symbols:
        found[symbol] = next(kind for prefix, kind in prefixes.items() if symbol.startswith(prefix))
    return found


def _kind(function: Cursor) -> str:
    result = function.result_type.get_canonical()
    if result.kind == TypeKind.RECORD and result.get_declaration().spelling == "basic_string":
        return "text"
    return _FLOATS.get(result.kind, "integer")


def _direction(function: Cursor, fields: Sequence[Field]) -> list[str]:
    """Return a source file that holds the parameters and sets each field by number."""
    types = [argument.type for argument in function.get_arguments()]
    bare = [f"std::remove_cvref_t<{type_.get_canonical().spelling}>" for type_ in types]
    headers = {_header(type_.get_canonical()) for type_ in types}
    lines = ['#include "direction.h"', *(f'#include "{header}"' for header in sorted(headers)), "namespace {"]
    lines.append("struct Parameters final : oracle::Input {")
    lines += [f"  {type_} p{number}{{}};" for number, type_ in enumerate(bare)]
    lines.append("  void clear() override { " + " ".join(f"p{n} = {t}{{}};" for n, t in enumerate(bare)) + " }")
    lines.append("  void set(int field, double number, const std::string &text) override { switch (field) {")
    for number, field in enumerate(fields):
        member = f"p{field.parameter}.{field.path.partition('.')[2]}"
        lines.append(f"    case {number}: oracle::assign({member}, number, text); break;")
    lines.append("  } }")
    spelled = ", ".join(type_.get_canonical().spelling for type_ in types)
    arguments = ", ".join(f"given.p{number}" for number in range(len(types)))
    result = function.result_type.get_canonical().spelling
    # A copy: parameters may be references, and both dispatchers have to get the same values.
    lines.append("  double call(void *f) const override { Parameters given = *this;")
    lines.append(f"    return reinterpret_cast<{result} (*)({spelled})>(f)({arguments}); }}")
    lines += ["};", "}", "namespace oracle {", "Input *make_input() { return new Parameters; }"]
    lines += [f'const char *function_symbol() {{ return "{function.mangled_name}"; }}', "}\n"]
    return lines


def _header(type_: object) -> str:
    if type_.kind in (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE):  # type: ignore[attr-defined]
        type_ = type_.get_pointee()  # type: ignore[attr-defined]
    return str(type_.get_declaration().location.file.name)  # type: ignore[attr-defined]
