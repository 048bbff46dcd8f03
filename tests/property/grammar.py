"""A grammar of small libraries in CK's shape: a header, dispatchers and blobs, written in the many ways that C++ allows.

A `Library` is text with the places marked that a rewrite may change, so that a test can tell a site from what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

# Marks in generated text, taken out again by `unmarked`: around the callee of a site, around an alias declaration, in front of a
# site that stays as it is and needs stubs, and in front of what hides one.
SITE, SITE_END, ALIAS, ALIAS_END, STAYS, HIDES = "\x01", "\x02", "\x03", "\x04", "\x05", "\x06"

HEADER = """#pragma once
#include <cstdio>
#include <initializer_list>
#include <type_traits>

#define DEPTH(n) n
#define TAKE(...) __VA_ARGS__

struct Fp16 {};
struct Bf16 {};
struct Half {
    using type = Fp16;
    struct Brain { using type = Bf16; };
};
enum class Bias { none, alibi };
template <bool Value> struct Flag { static constexpr bool value = Value; };
template <int Value> struct Depth { static constexpr int value = Value; };
inline constexpr int k16 = 16, k32 = 32, k64 = 64, k128 = 128;

namespace ck_tile {
struct gfx9_t {};
struct gfx950_t {};
struct stream_config { int stream_id_ = 0; int log_level_ = 0; };
template <typename... Calls> float launch_kernel(const stream_config &s, Calls &&...calls) {
    (calls(s), ...);
    return s.stream_id_ + 0.5f;
}
} // namespace ck_tile

struct call_traits { int hdim; int dtype; bool group; int bias; int arch; };
struct call_args { int seqlen; };

inline float say(const char *blob, const char *kernel, const ck_tile::stream_config &s, int argument) {
    std::printf("%s %s (%d) on stream %d\\n", blob, kernel, argument, s.stream_id_);
    return static_cast<float>(argument) / 2;
}

template <int HDim, typename Type, bool IsGroup, Bias B = Bias::none>
struct fmha_fwd_traits_ { static constexpr int hdim = HDim; };
template <int HDim, typename Type, bool IsGroup, Bias B> struct fmha_bwd_dot_do_o_traits_ {};
template <int HDim, typename Type, bool IsGroup, Bias B> struct fmha_bwd_dq_dk_dv_traits_ {};
template <int HDim, typename Type, bool IsGroup, Bias B> struct fmha_bwd_convert_dq_traits_ {};

template <typename Traits, typename Arch = void> float fmha_fwd_(const ck_tile::stream_config &, call_args);
template <typename Traits, typename Arch = void> void fmha_bwd_dot_do_o_oneshot_(const ck_tile::stream_config &, call_args);
template <typename Traits, typename Arch = void> void fmha_bwd_dq_dk_dv_oneshot_(const ck_tile::stream_config &, call_args);
template <typename Traits, typename Arch = void> const char *fmha_bwd_dq_dk_dv_get_name_();
template <typename Traits, typename Arch = void> void fmha_bwd_convert_dq_oneshot_(const ck_tile::stream_config &, call_args);

#define LAUNCH_FWD(...) fmha_fwd_<__VA_ARGS__>(s, a)
#define LAUNCH_BWD(...) fmha_bwd_<__VA_ARGS__>(s, a)

template <typename T, typename Arch = void> float stays_fwd(const ck_tile::stream_config &s, call_args a) {
    a.seqlen += T::hdim;
    return fmha_fwd_<T, Arch>(s, a);
}
struct any_runner {
    virtual ~any_runner() = default;
    virtual float run(const ck_tile::stream_config &s, call_args a) const = 0;
};
template <typename T, typename Arch = void> struct runner : any_runner {
    float run(const ck_tile::stream_config &s, call_args a) const override { return fmha_fwd_<T, Arch>(s, a); }
};
"""

# @S@: a blank or a comment. @ARCH@: an argument that hands the architecture on, where there is one.
_WRAPPER = """template <typename T0, typename T1, typename T2@DEFAULT@@PARAMETER@>
float fmha_bwd_(const ck_tile::stream_config &s, call_args a)
{
    if(s.log_level_ > 0)
        std::printf(", %s\\n", fmha_bwd_dq_dk_dv_get_name_@S@<@S@T1@ARCH@@S@>@S@());
    if constexpr(!std::is_same_v<T2@S@, void>) {
        return ck_tile::launch_kernel(
            s,
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dot_do_o_oneshot_<T0@ARCH@>@S@(@S@s_, a); },
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dq_dk_dv_oneshot_<T1@S@@ARCH@>(s_, a); },
            [=](const ck_tile::stream_config &s_) { fmha_bwd_convert_dq_oneshot_@S@<T2@ARCH@>(s_, a); });
    } else {
        return ck_tile::launch_kernel(
            s,
            [=](const ck_tile::stream_config &s_) { fmha_bwd_dot_do_o_oneshot_<T0@ARCH@>(s_, a); },
            [s, @S@a](const ck_tile::stream_config &s_) { (void)s; fmha_bwd_dq_dk_dv_oneshot_<T1@ARCH@>@S@(s_, a); });
    }
}

template <typename T0, typename T1, typename T2@DEFAULT@@PARAMETER@>
float stays_bwd(const ck_tile::stream_config &s, call_args a)
{
    a.seqlen += static_cast<int>(sizeof(T0));
    return fmha_bwd_<T0, T1, T2@HAND_ON@>(s, a);
}
"""

HDIMS = (32, 64, 128)
ARCHES = ("ck_tile::gfx9_t", "ck_tile::gfx950_t")
STAGES = ("dot_do_o", "dq_dk_dv", "convert_dq")


@dataclass(frozen=True)
class Point:
    """What a blob is for. `kind`: "fwd", or a stage of the backward direction."""

    kind: str
    hdim: int
    dtype: int
    group: bool
    bias: int
    arch: int

    @property
    def stem(self) -> str:
        return f"{self.kind}_d{self.hdim}_t{self.dtype}_g{self.group:d}_b{self.bias}_a{self.arch}"


@dataclass
class Library:
    """The text of a library.

    Attributes:
        header: the text of the header that all include.
        apis: marked text of API files by file name.
        blobs: blob text by file name.
        dispatchers: the names of the functions that the API files define.
        sites: number of sites that need a blob and become calls, those in discarded branches left out.
    """

    header: str = HEADER
    apis: dict[str, str] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    dispatchers: list[str] = field(default_factory=list)
    sites: int = 0


@dataclass
class Marks:
    """What marks say about a text: ranges of callees and of aliases, and the lines of what stays."""

    sites: list[tuple[int, int]] = field(default_factory=list)
    aliases: list[tuple[int, int]] = field(default_factory=list)
    stays: set[int] = field(default_factory=set)


def unmarked(text: str) -> tuple[str, Marks]:
    """Return the text without marks, and what they say."""
    clean: list[str] = []
    open_at: dict[str, int] = {}
    marks = Marks()
    for character in text:
        if character in (SITE, ALIAS):
            open_at[character] = len(clean)
        elif character == SITE_END:
            marks.sites.append((open_at[SITE], len(clean)))
        elif character == ALIAS_END:
            marks.aliases.append((open_at[ALIAS], len(clean)))
        elif character in (STAYS, HIDES):
            marks.stays.add(clean.count("\n") + 1)
        else:
            clean.append(character)
    return "".join(clean), marks


def _either(draw: DrawFn, *choices: str) -> str:
    return draw(st.sampled_from(choices))


def _hdim(draw: DrawFn, value: int) -> str:
    half, log = value // 2, value.bit_length() - 1
    return _either(
        draw, f"{value}", f"({half} + {half})", f"(1 << {log})", f"DEPTH({value})", f"k{value}", f"0x{value:x}",
        f"Depth<{value}>::value", f"static_cast<int>({value}u)", f"sizeof(char[{value}])", f"({value} > 1 ? {value} : 0)",
    )  # fmt: skip


def _dtype(draw: DrawFn, value: int) -> str:
    name, other = ("Fp16", "Bf16") if value == 0 else ("Bf16", "Fp16")
    nested = "Half::type" if value == 0 else "Half::Brain::type"
    return _either(
        draw, name, f"::{name}", nested, f"std::conditional_t<(8 > 0), {name}, {other}>", f"decltype({name}{{}})",
        f"std::conditional_t<false, {other}, {name}>", f"std::remove_const_t<const {name}>",
    )  # fmt: skip


def _bool(draw: DrawFn, value: bool) -> str:
    if value:
        return _either(draw, "true", "(8 > 0)", "!false", "(1 < 2)", "Flag<true>::value", "std::is_same_v<Fp16, Fp16>")
    return _either(draw, "false", "(0 > 8)", "not true", "(2 < 1)", "Flag<(1 > 2)>::value", "std::is_void_v<Fp16>")


def _bias(draw: DrawFn, value: int) -> str:
    name = ("none", "alibi")[value]
    return _either(draw, f"Bias::{name}", f"::Bias::{name}", f"static_cast<Bias>({value})", f"Bias({value})")


def _space(draw: DrawFn) -> str:
    return _either(draw, "", "", " ", "\n            ", " /* fmha_fwd_<int>(s, a) */ ", " // fmha_bwd_<int>\n  ")


def _traits(draw: DrawFn, point: Point) -> str:
    template = "fmha_fwd_traits_" if point.kind == "fwd" else f"fmha_bwd_{point.kind}_traits_"
    arguments = [_hdim(draw, point.hdim), _dtype(draw, point.dtype), _bool(draw, point.group)]
    if point.kind != "fwd" or point.bias or draw(st.booleans()):
        arguments.append(_bias(draw, point.bias))
    return f"{_either(draw, '', '::')}{template}<{', '.join(arguments)}>"


_NOISE = (
    "",
    "// template <> float fmha_fwd_<trait_0>(s, a) {\n",
    "/* using trait_ = int; return fmha_fwd_<trait_>(s, a); } */\n",
    "[[maybe_unused]] static const char *const note_@N@ = \"return fmha_fwd_<trait_>(s, a); } // \\\" /*\";\n",
    "[[maybe_unused]] static const char *const raw_@N@ = R\"x(template <> float fmha_fwd_<int>(x) { )\" // )x\";\n",
    "#if 0\nfloat broken() { return fmha_fwd_<nothing>(\"; }\n#endif\n",
    "#define NOTE_@N@(x) \\\n    do { (void)(x); } while(0)\n",
    "[[maybe_unused]] static constexpr int big_@N@ = 1'000'000 + '{' + '\"' + '\\'';\n",
    "struct Unrelated_@N@ { int fmha_fwd_ = 3; };\n",
    "namespace { [[maybe_unused]] int helper_@N@() { return '}'; } }\n",
)  # fmt: skip


def _noise(draw: DrawFn, number: int) -> str:
    return draw(st.sampled_from(_NOISE)).replace("@N@", str(number))


class _Writer:
    """Draws the statements of dispatchers, and notes which points they need."""

    def __init__(self, draw: DrawFn, kind: str, tagged: bool, defaults: bool) -> None:
        """`defaults`: whether the wrapper's last parameters have default arguments."""
        self.draw, self.kind, self.tagged, self.defaults = draw, kind, tagged, defaults
        self.points: dict[str, Point] = {}
        self.sites = 0

    def point(self, kind: str, arch: int) -> Point:
        draw = self.draw
        point = Point(
            kind,
            draw(st.sampled_from(HDIMS)),
            draw(st.integers(0, 1)),
            draw(st.booleans()),
            draw(st.integers(0, 1)),
            arch,
        )
        return self.points.setdefault(point.stem, point)

    def operands(self) -> tuple[list[Point | None], int]:
        arch = self.draw(st.integers(0, 1)) if self.tagged else 0
        if self.kind == "fwd":
            return [self.point("fwd", arch)], arch
        points: list[Point | None] = [self.point(stage, arch) for stage in STAGES[:2]]
        points.append(self.point(STAGES[2], arch) if self.draw(st.booleans()) else None)
        return points, arch

    def arguments(self, names: Sequence[str], arch: int, points: Sequence[Point | None] = ()) -> str:
        """Return the template arguments of a call; perhaps without what has a default."""
        words = [*names, ARCHES[arch]] if self.tagged else list(names)
        if self.kind == "bwd" and self.defaults and not arch and self.draw(st.booleans()):
            words = words[: len(names)]
            if points and points[-1] is None and self.draw(st.booleans()):
                words.pop()
        return f",{_space(self.draw)}".join(words)

    def callee(self, arguments: str) -> str:
        template = f"{_either(self.draw, '', '::')}fmha_{self.kind}_"
        return f"{SITE}{template}{_space(self.draw)}<{_space(self.draw)}{arguments}>{SITE_END}{_space(self.draw)}"

    def written(self, point: Point | None) -> str:
        if point is not None:
            return _traits(self.draw, point)
        return _either(self.draw, "void", "std::conditional_t<false, Fp16, void>", "decltype(void())")

    def aliased(self, depth: int) -> tuple[str, str]:
        """Return alias declarations and the callee that uses them."""
        aliases, arguments = self.declared(depth)
        self.sites += 1
        return aliases, self.callee(arguments)

    def staying(self, depth: int) -> str:
        """Return statements that end in a return, whose expression only stubs can serve."""
        aliases, arguments = self.declared(depth)
        pad = "    " * depth
        form = self.draw(st.integers(0, 3))
        if form == 0:
            return f"{aliases}{pad}return {STAYS}LAUNCH_{self.kind.upper()}({arguments});\n"
        callee = self.callee(arguments).replace(SITE, "").replace(SITE_END, "")
        if form == 1:
            return f"{aliases}{pad}return {STAYS}TAKE({callee}(s, a));\n"
        if form == 2:
            return f"{aliases}{pad}return {HIDES}stays_{self.kind}<{arguments}>(s, a);\n"
        if self.kind == "fwd":
            return f"{aliases}{pad}const runner<{arguments}> {HIDES}r{{}};\n{pad}const any_runner &any = r;\n{pad}return any.run(s, a);\n"  # noqa: E501
        return f"{aliases}{pad}float (*const f)(const ck_tile::stream_config &, call_args) = &{STAYS}{callee};\n{pad}return f(s, a);\n"  # noqa: E501

    def declared(self, depth: int) -> tuple[str, str]:
        """Return alias declarations and the template arguments that use them."""
        points, arch = self.operands()
        lines, names = [], []
        for number, point in enumerate(points):
            name = f"trait_{number}"
            form = self.draw(st.integers(0, 4))
            if form == 0:
                names.append(self.written(point))
            elif form == 1:
                lines.append(f"{ALIAS}typedef {self.written(point)} {name};{ALIAS_END}")
                names.append(name)
            elif form == 2:
                lines.append(f"{ALIAS}using base_{number} = {self.written(point)};{ALIAS_END}")
                lines.append(f"{ALIAS}using {name} = base_{number};{ALIAS_END}")
                names.append(name)
            elif form == 3:
                constant = f"static constexpr bool pick_{number} = (8 > 0);"
                lines.append(_either(self.draw, f"[[maybe_unused]] {constant}", f"{ALIAS}{constant}{ALIAS_END}"))
                lines.append(
                    f"{ALIAS}using {name} = std::conditional_t<pick_{number}, {self.written(point)}, void>;{ALIAS_END}"
                )
                names.append(name)
            else:
                lines.append(f"{ALIAS}using {name} = {self.written(point)};{ALIAS_END}")
                names.append(name)
        pad = "    " * depth
        return "".join(f"{pad}{line}\n" for line in lines), self.arguments(names, arch, points)

    def leaf(self, depth: int) -> str:
        """Return statements that end in a return and hold one site or two."""
        pad = "    " * depth
        form = self.draw(st.integers(0, 12))
        if form > 10:
            return self.staying(depth)
        aliases, callee = self.aliased(depth)
        call = f"{callee}(s,{_space(self.draw)}a)"
        if form == 0:
            return f"{aliases}{pad}const float r = {call};\n{pad}return r;\n"
        if form == 1:
            return f"{aliases}{pad}const auto go = [&] {{ return {call}; }};\n{pad}return go();\n"
        if form == 2:
            inner_aliases, inner = self.aliased(depth + 1)
            return f"{aliases}{pad}if(a.seqlen % 2) {{\n{inner_aliases}{pad}    return {inner}(s, a);\n{pad}}}\n{pad}return {call};\n"  # noqa: E501
        if form == 3:
            return f"{aliases}{pad}switch(a.seqlen % 3) {{\n{pad}case 0: return {call};\n{pad}default: break;\n{pad}}}\n{pad}return 7;\n"  # noqa: E501
        if form == 4:
            return f"{aliases}{pad}if({call} > 3) return 2;\n{pad}return 1;\n"
        if form == 5:
            return f"{aliases}{pad}return a.seqlen > 4 ? {call} : -2.f;\n"
        if form == 6 and self.kind == "fwd":
            return f"{aliases}{pad}float (*const f)(const ck_tile::stream_config &, call_args) = &{callee};\n{pad}return f(s, a);\n"  # noqa: E501
        if form == 7:
            missing = self.callee(self.arguments(self.missing(), 0))
            return (
                f"{aliases}{pad}if constexpr((2 > 1)) {{ return {call}; }}\n{pad}else {{ return {missing}(s, a); }}\n"
            )
        if form == 8:
            return f"{aliases}{pad}for(int n = 0; n < 2; ++n) {{ if(n == 1) return {call}; }}\n{pad}return 3;\n"
        if form == 9:
            return f"#if 1\n{aliases}{pad}return {call};\n#else\n{pad}return fmha_fwd_<nothing>(s, a);\n#endif\n"
        return f"{aliases}{pad}return {call};\n"

    def missing(self) -> list[str]:
        """Return traits that no blob is for."""
        if self.kind == "fwd":
            return ["fmha_fwd_traits_<48, Fp16, false, Bias::none>"]
        return [f"fmha_bwd_{stage}_traits_<48, Fp16, false, Bias::none>" for stage in STAGES]

    def tree(self, depth: int, budget: int) -> str:
        """Return an ``if`` chain with `budget` leaves at most, some of them further chains."""
        pad = "    " * depth
        text, word = "", "if"
        for number in range(self.draw(st.integers(1, max(1, min(3, budget))))):
            condition = self.condition(number)
            nested = depth < 4 and self.draw(st.booleans())
            inside = self.tree(depth + 1, budget // 2) if nested else self.leaf(depth + 1)
            text += f"{pad}{word}({condition}) {{\n{inside}{pad}}}\n"
            word = _either(self.draw, "else if", "else  if", "else /* no else */ if", "if")
        if self.draw(st.booleans()):
            text += f"{pad}else {{\n{self.leaf(depth + 1)}{pad}}}\n"
        return text

    def condition(self, number: int) -> str:
        value = self.draw(st.sampled_from(HDIMS))
        both = _either(self.draw, "and", "&&")
        return _either(
            self.draw,
            f"t.hdim <= {value} {both} t.dtype == {number % 2}",
            f"(t.group == (8 > {value % 2 * 9})) {both}\n        (t.bias != {number % 2})",
            f"t.arch == {number % 2} /* fmha_fwd_<trait_>(s, a) */",
            "const bool g = t.group; g",
            "t.hdim % 8 == 0 or not t.group",
        )


def _blob(draw: DrawFn, points: Sequence[Point], file: str, tagged: bool, number: int) -> str:
    pieces = [_noise(draw, number * 10), '#include "fmha.hpp"\n']
    conditional = draw(st.booleans())
    if conditional:
        pieces.append("#if !defined(__HIP_DEVICE_COMPILE__) || defined(__gfx9__)\n")
    for place, point in enumerate(points):
        name = f"trait_{place}"
        arch = f", {ARCHES[point.arch]}" if tagged else ""
        pieces.append(_noise(draw, number * 10 + place + 1))
        if draw(st.booleans()):
            dtype = f"fmha_dtype_{place}"
            pieces.append(f"using {dtype} = {_dtype(draw, point.dtype)};\n")
            template = "fmha_fwd_traits_" if point.kind == "fwd" else f"fmha_bwd_{point.kind}_traits_"
            arguments = f"{_hdim(draw, point.hdim)}, {dtype}, {_bool(draw, point.group)}, {_bias(draw, point.bias)}"
            pieces.append(f"using {name} = {template}<{arguments}>;\n")
        elif draw(st.booleans()):
            pieces.append(f"typedef {_traits(draw, point)} {name};\n")
        else:
            name = _traits(draw, point)
        pieces += [
            _definition(draw, point, kernel, result, f"{name}{arch}", file) for kernel, result in _kernels(point)
        ]
    if conditional:
        pieces.append("#endif\n")
    return "".join(pieces)


def _kernels(point: Point) -> list[tuple[str, str]]:
    if point.kind == "fwd":
        return [("fmha_fwd_", "float")]
    kernels = [(f"fmha_bwd_{point.kind}_oneshot_", "void")]
    return [*kernels, ("fmha_bwd_dq_dk_dv_get_name_", "const char *")] if point.kind == "dq_dk_dv" else kernels


def _definition(draw: DrawFn, point: Point, kernel: str, result: str, arguments: str, file: str) -> str:
    stem, quoted = point.stem, file.replace("\\", "\\\\").replace('"', '\\"')
    if kernel.endswith("get_name_"):
        return f'template <> {result}{kernel}<{arguments}>() {{ return "{quoted} {stem}"; }}\n'
    parameters = "(const ck_tile::stream_config &s, call_args a)"
    head = f"{result} {kernel}{_either(draw, '', ' ')}<{arguments}>{parameters}"
    if draw(st.booleans()):
        head = f"auto {kernel}<{arguments}>{parameters} -> {result}"
    back = "return " if result != "void" else ""
    body = _either(draw, "", "if(a.seqlen < 0) { } ", "/* } */ ", "const char c = '}'; (void)c; ")
    return (
        f'template <>{_either(draw, " ", chr(10))}{head}\n{{ {body}{back}say("{quoted}", "{stem}", s, a.seqlen); }}\n'
    )


_ODD = ("", " with blank", "'quote", "-ünï", "$HOME", "(1)", "&and", "%25", "#x", "+")


@st.composite
def libraries(draw: DrawFn) -> Library:
    """Draw a library: one or two API files, each with one or two dispatchers, and their blobs."""
    library = Library()
    tagged = draw(st.booleans())
    if not tagged and draw(st.booleans()):  # as in 2024; else there is a tag with a default, which nobody gives
        library.header = re.sub(r", typename Arch = void(?=> .*fmha_bwd_)", "", HEADER)
    points: dict[str, Point] = {}
    kinds = draw(st.sampled_from([("fwd",), ("bwd",), ("fwd", "bwd")]))
    for kind in kinds:
        defaults = draw(st.booleans())
        writer = _Writer(draw, kind, tagged, defaults)
        functions = ""
        for number in range(draw(st.integers(1, 2))):
            name = f"call_{kind}_{number}"
            library.dispatchers.append(name)
            functions += _noise(draw, 900 + number) + _dispatcher(name, writer.tree(1, 4), draw(st.integers(0, 3)) == 0)
        head = f'{_noise(draw, 990)}#include "fmha.hpp"\n{_noise(draw, 991)}'
        wrapper = "" if kind == "fwd" else _wrapper(draw, tagged, defaults)
        file = f"fmha_{kind}_api{draw(st.sampled_from(_ODD))}.cpp"
        library.apis[file] = _encoded(draw, head + wrapper + functions)
        library.sites += writer.sites
        points |= writer.points
    _blobs(draw, library, list(points.values()), tagged)
    return library


def _dispatcher(name: str, tree: str, as_template: bool) -> str:
    """Return a dispatcher; as a template, and a function that calls it, perhaps."""
    body = f"{{\n{tree}    return -1;\n}}\n"
    if not as_template:
        return f"float {name}(call_traits t, call_args a, const ck_tile::stream_config& s)\n{body}"
    # What is hidden from a template is listed where that is instantiated.
    mark = HIDES if HIDES in body else ""
    return (
        f"template <typename Traits>\nfloat {name}_of(Traits t, call_args a, const ck_tile::stream_config& s)\n"
        f"{body.replace(HIDES, '')}"
        f"float {name}(call_traits t, call_args a, const ck_tile::stream_config& s)\n"
        f"{{\n    return {mark}{name}_of(t, a, s);\n}}\n"
    )


def _wrapper(draw: DrawFn, tagged: bool, defaults: bool) -> str:
    arch = f"{_space(draw)}, {_space(draw)}Arch" if tagged else ""
    default = " = ck_tile::gfx9_t" if defaults else ""
    text = _WRAPPER.replace("@DEFAULT@", " = void" if defaults else "").replace("@HAND_ON@", ", Arch" if tagged else "")
    text = text.replace("@PARAMETER@", f", typename Arch{default}" if tagged else "").replace("@ARCH@", arch)
    return re.sub("@S@", lambda _: _space(draw), text)


def _blobs(draw: DrawFn, library: Library, points: list[Point], tagged: bool) -> None:
    """Deal the points out to blobs, of which some have several, and add blobs that no site needs.

    One of them is a third kernel of the backward direction: a wrapper whose kernel no blob specialises has no twin.
    """
    spare = "fwd" if points[0].kind == "fwd" else STAGES[2]
    points += [
        Point(kind, 16, 0, False, 0, 0) for kind in sorted({spare, *(STAGES[2] for p in points if p.kind != "fwd")})
    ]
    number = 0
    while points:
        count = draw(st.sampled_from((1, 1, 1, 2)))
        members, points = points[:count], points[count:]
        file = f"{members[0].stem}{draw(st.sampled_from(_ODD))}.cpp"
        library.blobs[file] = _encoded(draw, _blob(draw, members, file, tagged, number))
        number += 1


def _encoded(draw: DrawFn, text: str) -> str:
    """Return the text with a byte order mark or carriage returns, sometimes."""
    form = draw(st.integers(0, 7))
    text = text.replace("\n", "\r\n") if form in (0, 1) else text
    return "\ufeff" + text if form in (1, 2) else text
