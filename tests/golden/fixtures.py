"""The fixtures: which files each one has, and how it is called.

A fixture is a directory under ``fixtures/`` with API files, blobs and the expected output of the tool. All text in it is the
project's own. Headers that fixtures share are under ``include/``, in one directory for each generation of CK.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Fixture:
    """One dispatcher shape.

    Attributes:
        name: its directory.
        shows: the shape, in a few words.
        generation: the directory of its CK headers under ``include/``.
        apis: its API files.
        blob_dirs: its blob directories.
        flags: more flags.
        driver: the program under ``drivers/`` that calls it.
        defines: macros of the driver.
        ninja: whether ``build.ninja`` is part of the expected output; it differs little between fixtures.
    """

    name: str
    shows: str
    apis: tuple[str, ...] = ("fmha_fwd_api.cpp",)
    generation: str = "2025"
    blob_dirs: tuple[str, ...] = ("blobs",)
    flags: tuple[str, ...] = ()
    driver: str = "forward.cpp"
    defines: tuple[str, ...] = ("CALL=fmha_fwd",)
    ninja: bool = False

    @property
    def directory(self) -> Path:
        """Where the fixture is in the repository."""
        return HERE / "fixtures" / self.name


def _bwd(name: str, shows: str, generation: str, call: str) -> Fixture:
    return Fixture(name, shows, ("fmha_bwd_api.cpp",), generation, driver="backward.cpp", defines=(f"CALL={call}",))


def _launcher(letter: str, shows: str) -> Fixture:
    return Fixture(
        f"bwd_launcher_2026{letter}",
        shows,
        ("fmha_bwd_api.cpp",),
        f"2026{letter}",
        driver="launcher.cpp",
        defines=(f"GENERATION='{letter}'",),
    )


_SPLITKV = {"apis": ("fmha_fwd_splitkv_api.cpp",), "defines": ("CALL=fmha_fwd_splitkv",)}

FIXTURES = (
    Fixture("fwd", "architecture tags, aliases shadowed block by block, constant expressions as arguments", ninja=True),
    Fixture("fwd_no_arch", "no architecture tag", generation="2024"),
    Fixture(
        "fwd_conditions", "`and` for `&&`, conditions and calls over several lines, the name in comments and texts"
    ),
    Fixture("fwd_crlf", "carriage returns"),
    Fixture("fwd_bom", "a byte order mark"),
    Fixture("fwd_bom_crlf", "both"),
    Fixture(
        "odd_paths",
        "blanks, quotes, backslashes and letters beyond ASCII in every path",
        apis=('fmha fwd "api".cpp',),
        blob_dirs=("blöbs of 'mine'",),
        ninja=True,
    ),
    Fixture("fwd_blob_conditions", "preprocessor conditions around blob bodies and sites", flags=("-DWITH_HDIM_64",)),
    Fixture("fwd_places", "sites in a switch, in lambdas, in conditions"),
    Fixture("fwd_table", "traits spelled inline, function pointers, calls in initialisers"),
    Fixture("pointer_in_braces", "function pointers in braced initialisers, which libclang shows unresolved"),
    Fixture(
        "fwd_traits",
        "aliases through several headers, nested traits, enum and bool constants, default arguments, several instances a blob",
        flags=("-I.",),
    ),
    Fixture(
        "fwd_stubs",
        "templates without a twin: arithmetic with traits, policies, classes, recursion; beside ordinary sites",
        flags=("-I.",),
        ninja=True,
    ),
    Fixture(
        "fwd_macros",
        "macros around sites, sites out of macros and in their arguments, code that the preprocessor leaves out",
        flags=("-I.",),
    ),
    Fixture(
        "fwd_templates",
        "sites in templates that do not depend on their arguments, virtual functions",
        flags=("-I.",),
    ),
    Fixture("inline_too", "a specialisation that a blob defines and a header too, inline", flags=("-I.",)),
    Fixture("fwd_footer", "fmha_fwd as a footer over fmha_fwd_v2 and fmha_fwd_v3 in namespaces, other parameter names"),
    Fixture(
        "fwd_long_chain",
        "so many sites that build cuts the dispatcher into functions",
        defines=("CALL=fmha_fwd", "HDIMS_TO=220"),
    ),
    Fixture("fwd_rows", "chains that build turns into tables, with links that must stay code"),
    Fixture(
        "two_api_files",
        "two API files in one library; the same trait in two directions",
        apis=("fmha_fwd_api.cpp", "fmha_batch_prefill_api.cpp"),
        blob_dirs=("fwd_blobs", "prefill_blobs"),
        generation="2024",
        defines=("CALL=fmha_fwd", "OTHER_CALL=fmha_batch_prefill"),
        ninja=True,
    ),
    Fixture(
        "two_dispatchers",
        "two dispatchers in one file, an alias with another use, one blob for both",
        defines=("CALL=fmha_fwd", "OTHER_CALL=fmha_batch_prefill"),
    ),
    Fixture(
        "fwd_appendkv", "the appendkv direction", ("fmha_fwd_appendkv_api.cpp",), defines=("CALL=fmha_fwd_appendkv",)
    ),
    Fixture(
        "pagedkv_prefill",
        "the pagedkv_prefill direction: arguments by reference",
        ("fmha_pagedkv_prefill_api.cpp",),
        defines=("CALL=fmha_fwd_pagedkv",),
    ),
    Fixture("fwd_splitkv", "a wrapper in the API file, nested `if (t.has_lse)`", **_SPLITKV),
    Fixture(
        "splitkv_discarded",
        "a site without a blob under a false `if constexpr`, a blob that no site reaches",
        **_SPLITKV,
    ),
    Fixture(
        "wrapper_of_wrapper", "wrappers that call wrappers, default template arguments, a void wrapper", **_SPLITKV
    ),
    Fixture(
        "wrapper_defaults",
        "wrappers that leave out arguments with a default, comments between a kernel's name and its brackets",
        **_SPLITKV,
    ),
    Fixture(
        "two_files_one_wrapper",
        "two API files with a wrapper of one name, and a kernel that both call",
        apis=("fmha_fwd_splitkv_api.cpp", "fmha_fwd_splitkv_more_api.cpp"),
        defines=("CALL=fmha_fwd_splitkv", "OTHER_CALL=fmha_batch_prefill"),
    ),
    Fixture(
        "splitkv_stubs",
        "a wrapper with a twin beside one without; names and launches out of stubs, in a switch",
        **_SPLITKV,
    ),
    _bwd("bwd_no_arch", "three blobs a site, a plain fmha_bwd", "2024", "fmha_bwd"),
    _bwd(
        "bwd", "`std::conditional_t` either way, shared blobs, `template <> float fmha_bwd<2>`", "2025", "fmha_bwd<2>"
    ),
    _launcher("a", "the launcher's constructor stores a lambda; the wrapper is in a header"),
    _launcher("b", "`init` in a header stores lambdas with and without captures"),
    _launcher("c", "`init` in a header stores a lambda that another thread calls"),
)
