"""Small pieces of C++ in CK's shape, parsed as the rewriter would."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import TranslationUnit

from ck_post_build import libclang
from ck_post_build.api_rewriter import ApiFile
from ck_post_build.blob_index import BlobIndex, BlobSource, Instance, KernelSpecialisation, KernelTemplate, Parameter
from ck_post_build.flags import Flags
from ck_post_build.macros import macros_in, macros_naming
from ck_post_build.resolve import ResolvedSite, Unresolved, resolve_sites
from ck_post_build.sites import Site, find_sites
from ck_post_build.source import SourceFile
from ck_post_build.toolchain import Toolchain
from ck_post_build.wrappers import Wrapper, find_wrappers

HEADER = """
template <typename A, typename B> struct is_same_ { static constexpr bool value = false; };
template <typename A> struct is_same_<A, A> { static constexpr bool value = true; };
namespace std { template <typename A, typename B> inline constexpr bool is_same_v = is_same_<A, B>::value; }
struct gfx9 {};
struct args { int n; };
template <int HDim> struct traits {};
template <typename T, typename Arch = void> float fmha_fwd_(int, args);
template <typename T, typename Arch = void> const char *fmha_fwd_get_name_();
"""
KERNELS = ("fmha_fwd_", "fmha_fwd_get_name_")


@dataclass
class Parsed:
    """An API file with its parse."""

    source: SourceFile
    unit: TranslationUnit
    toolchain: Toolchain

    def wrappers(self) -> dict[str, Wrapper]:
        return find_wrappers(self.unit, self.source, KERNELS)

    def sites(self) -> list[Site]:
        def parse_text(text: str) -> TranslationUnit:
            return _parse(self.toolchain, self.source.path, text)

        twins = {name for name, wrapper in self.wrappers().items() if wrapper.problem is None}
        macros = macros_naming(macros_in([self.source.text]), KERNELS)
        return find_sites(self.unit, self.source, KERNELS, twins, macros, list, parse_text)

    def resolved(self, index: BlobIndex) -> tuple[list[ResolvedSite], list[Unresolved]]:
        return resolve_sites(self.sites(), self.source, index, self.wrappers())

    def api(self, index: BlobIndex) -> ApiFile:
        return ApiFile(self.source, self.resolved(index)[0], list(self.wrappers().values()))


def parsed(directory: Path, toolchain: Toolchain, body: str) -> Parsed:
    """Write an API file with `body` behind an include of the header, and parse it."""
    (directory / "ck.hpp").write_text(HEADER)
    path = directory / "fmha_fwd_api.cpp"
    path.write_text('#include "ck.hpp"\n' + textwrap.dedent(body))
    unit = _parse(toolchain, path, None)
    libclang.raise_on_errors(unit)
    return Parsed(SourceFile(path), unit, toolchain)


def _parse(toolchain: Toolchain, path: Path, text: str | None) -> TranslationUnit:
    return libclang.parse(toolchain.clang, path, ["-x", "c++", "-std=c++17", "-w"], text=text)


@dataclass
class IndexMaker:
    """Makes an index of blobs by hand; a blob is (name, template arguments), and defines both kernels for them."""

    index: BlobIndex = field(default_factory=BlobIndex)

    def add(self, name: str, *arguments: str) -> Instance:
        mangled = "".join({"gfx9": "4gfx9", "void": "v"}.get(a) or f"6traitsILi{a[7:-1]}EE" for a in arguments)
        kernels = (
            KernelSpecialisation("fmha_fwd_", arguments, f"_Z9fmha_fwd_I{mangled}Efi4args"),
            KernelSpecialisation("fmha_fwd_get_name_", arguments, f"_Z18fmha_fwd_get_name_I{mangled}EPKcv"),
        )
        instance = Instance(name, arguments, kernels)
        self.index.blobs[name] = BlobSource(Path("/blobs") / name, name, Flags(("-O3",), ()), "0" * 64)
        self.index.instances.append(instance)
        for kernel in kernels:
            self.index.by_symbol[kernel.symbol] = instance
            self.index.by_arguments[kernel.template, arguments] = instance
        return instance

    def done(self) -> BlobIndex:
        parameters = (Parameter("int", ""), Parameter("args", "a"))
        self.index.templates = {
            "fmha_fwd_": KernelTemplate("fmha_fwd_", "_Z9fmha_fwd_I", "float", parameters),
            "fmha_fwd_get_name_": KernelTemplate("fmha_fwd_get_name_", "_Z18fmha_fwd_get_name_I", "const char *", ()),
        }
        return self.index
