"""Copies of headers: the twin behind its wrapper, the include in front of its scope, and which header is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_post_build import libclang
from ck_post_build.api_rewriter import ApiFile
from ck_post_build.errors import CkPostBuildError
from ck_post_build.overlay import find_overlays
from ck_post_build.source import SourceFile
from ck_post_build.toolchain import Toolchain
from ck_post_build.wrappers import find_wrappers

from .parsing import HEADER, KERNELS

LAUNCHER = """// before
namespace ck { namespace detail {
struct launcher {
    template <typename T> float init(args a) { return fmha_fwd_<T>(1, a); }
};
} }
"""


def overlaid(directory: Path, toolchain: Toolchain, include: str) -> ApiFile:
    """Return an API file that includes the launcher's header, which is `sub/launcher.hpp`, by `include`."""
    (directory / "sub").mkdir()
    (directory / "sub" / "launcher.hpp").write_text(LAUNCHER)
    (directory / "other.hpp").write_text('#include "sub/launcher.hpp"\n')
    path = directory / "api.cpp"
    path.write_text(f"{HEADER}{include}\n")
    unit = libclang.parse(toolchain.clang, path, ["-x", "c++", "-std=c++17", "-w", f"-I{directory / 'sub'}"])
    libclang.raise_on_errors(unit)
    source = SourceFile(path)
    return ApiFile(source, [], list(find_wrappers(unit, source, KERNELS).values()))


@pytest.mark.parametrize("name", ["sub/launcher.hpp", "launcher.hpp"])
def test_the_copy_has_the_twin_and_goes_under_the_name_that_is_included(
    tmp_path: Path, toolchain: Toolchain, name: str
) -> None:
    api = overlaid(tmp_path, toolchain, f' #  include "{name}"')
    (overlay,) = find_overlays([api])[api.source.path]
    assert overlay.name == name
    assert overlay.kernels == {"fmha_fwd_"}
    assert overlay.entry_header_name == "launcher_hpp_ck_jit.h"
    assert overlay.text() == (
        "// before\nnamespace ck { namespace detail {\n"
        '}}\n#include "launcher_hpp_ck_jit.h"\nnamespace ck {\nnamespace detail {\n'
        "struct launcher {\n"
        "    template <typename T> float init(args a) { return fmha_fwd_<T>(1, a); }\n\n"
        "    float ck_jit_init_call(ck_jit::Slot* T, const args& ck_jit_a) {\n"
        "        if(!ck_jit::ready(T))\n"
        "            return ck_jit::failed<float>();\n"
        "        args a = ck_jit_a; return ck_jit_fwd_call(T, 1, a); }\n"
        "};\n} }\n"
    )


@pytest.mark.parametrize(
    "include", ['#include "other.hpp"', "#include <launcher.hpp>", '#include "sub/../sub/launcher.hpp"']
)
def test_a_header_that_a_copy_cannot_stand_in_for_is_an_error(
    tmp_path: Path, toolchain: Toolchain, include: str
) -> None:
    api = overlaid(tmp_path, toolchain, include)
    with pytest.raises(
        CkPostBuildError, match=r'api.cpp:1: ck::detail::launcher::init stands in .*Add #include "launcher.hpp"'
    ):
        find_overlays([api])
