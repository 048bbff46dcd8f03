"""Wrappers: what selects their blobs, and the text of their twins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ck_post_build.toolchain import Toolchain
from ck_post_build.wrappers import Wrapper

from .parsing import parsed


def of(directory: Path, toolchain: Toolchain, body: str, name: str = "w") -> Wrapper:
    return parsed(directory, toolchain, body).wrappers()[name]


def test_twin_of_a_wrapper(tmp_path: Path, toolchain: Toolchain) -> None:
    wrapper = of(
        tmp_path,
        toolchain,
        """
        template <typename T0, typename T1, typename Arch>
        inline float w(int s, args a)
        {
            fmha_fwd_get_name_<T1, Arch>();
            if constexpr(!std::is_same_v<T1, void>)
                return [=](int s_) { return fmha_fwd_ /* <T1> */ <T1, Arch> /* ( */ (s_, a); }(s);
            return fmha_fwd_<T0, Arch>(s, a);
        }""",
    )
    assert wrapper.problem is None
    assert [selection.arguments for selection in wrapper.selections] == [(0, 2), (1, 2)]
    assert wrapper.uses == [("fmha_fwd_", 0), ("fmha_fwd_", 1), ("fmha_fwd_get_name_", 1)]
    assert wrapper.optional == {1}
    assert wrapper.twin().split("\n") == [
        "float ck_jit_w_call(ck_jit::Slot* T0, ck_jit::Slot* T1, int s, const args& ck_jit_a)",
        "{",
        "    if(!ck_jit::ready(T0, T1))",
        "        return ck_jit::failed<float>();",
        "    args a = ck_jit_a;",
        "    ck_jit_fwd_get_name_call(T1);",
        "    if(!(T1 == nullptr))",
        "        return [=](int s_) { return ck_jit_fwd_call /* ( */ (T1, s_, a); }(s);",
        "    return ck_jit_fwd_call(T0, s, a);",
        "}",
    ]


def test_comments_in_the_head_and_in_captures(tmp_path: Path, toolchain: Toolchain) -> None:
    body = """
    template /* <( */ <typename T /* > */>
    static float w /* ( */ (args a) { return [/* ] */ a // ]\n    ](int s) { return fmha_fwd_<T>(s, a); }(1); }
    """
    lines = of(tmp_path, toolchain, body).twin().split("\n")
    assert lines[0] == "float ck_jit_w_call /* ( */ (ck_jit::Slot* T, const args& ck_jit_a) {"
    assert lines[-1].strip() == ", T](int s) { return ck_jit_fwd_call(T, s, a); }(1); }"


def test_lambdas_capture_the_slots_that_they_use(tmp_path: Path, toolchain: Toolchain) -> None:
    body = "template <typename T> float w(args a) { return [](args b) { return fmha_fwd_<T>(1, b); }(a); }\n"
    assert "return [T](args b) { return ck_jit_fwd_call(T, 1, b); }(a);" in of(tmp_path, toolchain, body).twin()
    body = body.replace("[](args b)", "[a](args b)")
    assert "return [a, T](args b)" in of(tmp_path, toolchain, body).twin()


def test_default_arguments_of_kernels_and_wrappers(tmp_path: Path, toolchain: Toolchain) -> None:
    body = """
    template <typename T, typename Arch = gfx9> float inner(args a) { return fmha_fwd_<T, Arch>(1, a); }
    template <typename T> float w(args a) { return inner<T>(a) + fmha_fwd_<T>(1, a); }
    """
    assert {selection.arguments for selection in of(tmp_path, toolchain, body).selections} == {(0, "gfx9"), (0, "void")}
    assert of(tmp_path, toolchain, body, "inner").defaults == (None, "gfx9")


def test_a_function_in_several_files_gets_internal_linkage(tmp_path: Path, toolchain: Toolchain) -> None:
    wrapper = of(
        tmp_path, toolchain, "template <typename T> [[nodiscard]] float w(args a) { return fmha_fwd_<T>(1, a); }\n"
    )
    wrapper.file_local = True
    assert wrapper.twin().startswith("[[nodiscard]] static float ck_jit_w_call(ck_jit::Slot* T, ")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("return fmha_fwd_<T>(sizeof(T), a);", "its template parameter T is used other than to select a blob"),
        ("return fmha_fwd_<traits<sizeof(T)>>(1, a);", "a template argument of fmha_fwd_ is neither"),
        ("return fmha_fwd_<T>(1, a) + fmha_fwd_<traits<1>>(1, a);", "it calls one specialisation of fmha_fwd_"),
        ("return SAME(fmha_fwd_<T>(1, a)) + fmha_fwd_<T>(1, a);", "it names fmha_fwd_ through a macro"),
        ("return CALL(same<T>) + fmha_fwd_<T>(1, a);", "it names fmha_fwd_ through a macro"),
        ("return CALL(traits<1>) + fmha_fwd_<T>(1, a);", "it names fmha_fwd_ through a macro"),
        (
            "return deduced(T(), a) + fmha_fwd_<T>(1, a);",
            "it names deduced through a macro or without template arguments",
        ),
    ],
)
def test_what_has_no_twin(tmp_path: Path, toolchain: Toolchain, body: str, problem: str) -> None:
    text = """
    #define SAME(...) __VA_ARGS__
    #define CALL(X) fmha_fwd_<X>(1, a)
    template <typename X> using same = traits<sizeof(X)>;
    template <typename T> float deduced(T, args a) { return fmha_fwd_<T>(1, a); }
    template <typename T> float w(args a) { BODY }
    """
    assert problem in (of(tmp_path, toolchain, text.replace("BODY", body)).problem or "")


def test_a_template_that_calls_no_kernel_is_none(tmp_path: Path, toolchain: Toolchain) -> None:
    text = "template <typename T> float w(T t) { return fmha_fwd_<traits<1>>(1, {}); }\n"
    assert parsed(tmp_path, toolchain, text).wrappers() == {}
