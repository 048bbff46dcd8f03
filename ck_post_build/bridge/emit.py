"""Turns a spec and a header into the text of the bridges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from ck_post_build.bridge import languages
from ck_post_build.bridge.conditions import Condition, ConditionError, parse_condition
from ck_post_build.bridge.ctypes_model import CType, Function
from ck_post_build.bridge.header import Header
from ck_post_build.bridge.record import Word, record_words
from ck_post_build.bridge.spec import FunctionSpec, Spec, spec_error
from ck_post_build.errors import CkPostBuildError
from ck_post_build.resources import template_environment


@dataclass(frozen=True)
class Bridge:
    """A spec that fits its header, ready to be written.

    Attributes:
        functions: the header's functions in the order of the spec.
        words: the ABI record; empty if the spec asks for none.
        statuses: names and values of the status codes.
    """

    spec: Spec
    spec_path: Path
    header: Header
    functions: list[Function]
    words: list[Word]
    statuses: list[tuple[str, int]]
    ok_value: int


def make_bridge(spec: Spec, spec_path: Path, header: Header) -> Bridge:
    """Check `spec` against `header`.

    Raises:
        CkPostBuildError: the header lacks something the spec names, or a function does not fit its role.
    """
    functions = [_function(item, spec, spec_path, header) for item in spec.functions]
    statuses, ok_value = _statuses(spec, spec_path, header)
    words = record_words(spec.abi.version, functions, header) if spec.abi else []
    return Bridge(spec, spec_path, header, functions, words, statuses, ok_value)


def _function(item: FunctionSpec, spec: Spec, path: Path, header: Header) -> Function:
    function = header.functions.get(item.name)
    if function is None:
        raise spec_error(path, f"{header.path.name} declares no function {item.name}", item.name)
    if item.role == "load" and function.parameters:
        raise spec_error(path, f"the load hook takes no argument, but it is {function.signature()}", item.name)
    for parameter in function.parameters:
        if parameter.name in languages.RESERVED or parameter.name == item.wrapper:
            message = (
                f"parameter {parameter.name!r} of {item.name} is a reserved word in one of the languages: rename it"
            )
            raise CkPostBuildError(message, file=header.path, line=function.line)
    if _is_status(item, function):
        if spec.status is None:
            message = f'{item.name} returns a status but the spec has no [status]; say returns = "value" if it is none'
            raise spec_error(path, message, item.name)
        if function.result.kind != "integer" or function.result.size > 4:
            message = (
                f'{item.name} returns {function.result.describe()}, which cannot be a status: say returns = "value"'
            )
            raise spec_error(path, message, item.name)
    return function


def _is_status(item: FunctionSpec, function: Function) -> bool:
    return item.returns == "status" and function.result.kind != "void"


def _statuses(spec: Spec, path: Path, header: Header) -> tuple[list[tuple[str, int]], int]:
    if spec.status is None:
        return [], 0
    values = header.enums.get(spec.status.enum)
    if values is None:
        raise spec_error(path, f"{header.path.name} defines no enum {spec.status.enum}", spec.status.enum)
    if spec.status.ok not in values:
        raise spec_error(path, f"enum {spec.status.enum} has no {spec.status.ok}", spec.status.ok)
    first_of_value = {value: name for name, value in reversed(values.items())}  # two names, one value: the first counts
    return [(name, value) for name, value in values.items() if first_of_value[value] == name], values[spec.status.ok]


def _checks(item: FunctionSpec, function: Function, path: Path) -> list[dict[str, str]]:
    types = {p.name: p.type for p in function.parameters}
    nonzero: set[str] = set()
    checks = []
    for requirement in item.requires:
        try:
            condition = parse_condition(requirement.that, types, nonzero)
        except ConditionError as error:
            raise spec_error(path, f"{item.name}: {error}", requirement.that) from error
        checks.append({"that": requirement.that, "why": requirement.why, **_condition_texts(condition)})
    return checks


def _condition_texts(condition: Condition) -> dict[str, str]:
    names = condition.names()

    def shown(pointer: Callable[[str], str], other: Callable[[str], str]) -> str:
        parts = [(n, pointer(n) if condition.types[n].kind == "pointer" else other(n)) for n in names]
        return ", ".join(f"{name} = {value}" for name, value in parts)

    return {
        "rust": condition.render("rust"),
        "cpp": condition.render("cpp"),
        "python": condition.render("python"),
        "rust_values": shown(lambda n: f"{{{n}:p}}", lambda n: f"{{{n}}}"),
        "cpp_values": ", ".join(f"{languages.c_string(n)}, {n}" for n in names),
        "python_values": shown(lambda n: f"{{{n}:#x}}", lambda n: f"{{{n}}}"),
    }


def _rust_doc(item: FunctionSpec, function: Function, is_status: bool) -> str:
    lines = [f"Calls `{function.name}`. From the header:", "", "```text", *function.comment.splitlines(), "```", ""]
    lines += ["# Errors", "[`Error::Unavailable`] and [`Error::Precondition`] before anything is called"]
    lines[-1] += "; [`Error::Status`] from the library." if is_status else "."
    duties = item.obligations or ["Every pointer must be what the header asks for, for as long as the library uses it."]
    lines += ["", "# Safety", *(f"- {duty}" for duty in duties)]
    return languages.verbatim("\n".join(lines), "/// ")


def _plain_doc(item: FunctionSpec, function: Function, prefix: str) -> str:
    lines = [*function.comment.splitlines()]
    if item.obligations:
        lines += ["", "The caller sees to it that:", *(f"- {duty}" for duty in item.obligations)]
    return languages.verbatim("\n".join(lines).replace("*/", "* /").strip(), prefix)


def _function_view(item: FunctionSpec, function: Function, path: Path) -> dict[str, Any]:
    is_status = _is_status(item, function)
    result = languages.rust_type(function.result)
    spelled = ", ".join(languages.cpp_spelling(p.spelling) for p in function.parameters)
    cpp_result = languages.cpp_spelling(function.result_spelling)
    return {
        "name": function.name,
        "wrapper": item.wrapper,
        "is_status": is_status,
        "checks": _checks(item, function, path),
        "params": [_parameter_view(p.name, p.type) for p in function.parameters],
        "rust_type": "".join(part.capitalize() for part in function.name.split("_")) + "Fn",
        "rust_arrow": "" if result == "()" else f" -> {result}",
        "rust_ok": "()" if is_status else result,
        "rust_doc": _rust_doc(item, function, is_status),
        "cpp_pointer": f"{cpp_result} (*)({spelled or 'void'})",
        "cpp_result": "void" if is_status else cpp_result,
        "cpp_parameters": languages.cpp_parameters([(p.spelling, p.name) for p in function.parameters]),
        "cpp_doc": _plain_doc(item, function, "// ") or f"// Calls {function.name}.",
        "python_result": languages.ctypes_type(function.result),
        "python_return": "None" if is_status or result == "()" else languages.python_hint(function.result),
        "python_doc": _plain_doc(item, function, "    ").replace("\\", "\\\\").replace('"""', "'''"),
    }


def _parameter_view(name: str, type_: CType) -> dict[str, Any]:
    return {
        "name": name,
        "rust": languages.rust_type(type_),
        "python": languages.ctypes_type(type_),
        "python_hint": languages.python_hint(type_),
        "python_convert": languages.python_conversion(name, type_),
    }


def _struct_views(header: Header) -> list[dict[str, Any]]:
    return [
        {
            "name": struct.name,
            "size": struct.size,
            "comment": f"/// `struct {struct.name}` of {header.path.name}.",
            "fields": [
                {
                    "name": field.name,
                    "offset": field.offset,
                    "rust": languages.rust_type(field.type),
                    "python": languages.ctypes_type(field.type),
                }
                for field in struct.fields
            ],
        }
        for struct in header.structs.values()
    ]


def _environment() -> jinja2.Environment:
    environment = template_environment()
    environment.filters |= {
        "rust_string": languages.rust_string,
        "rust_cstring": lambda text: f"c{languages.rust_string(text)}",
        "c_string": languages.c_string,
        "py_string": languages.py_string,
        "comment": languages.comment,
    }
    return environment


def render(bridge: Bridge) -> dict[str, str]:
    """Return the outputs: file name to text. The same bridge gives the same text.

    Raises:
        CkPostBuildError: a precondition of the spec is not one.
    """
    spec = bridge.spec
    views = [_function_view(i, f, bridge.spec_path) for i, f in zip(spec.functions, bridge.functions, strict=True)]
    calls = [view for view, item in zip(views, spec.functions, strict=True) if item.role == "call"]
    context = {
        "spec": spec,
        "spec_name": bridge.spec_path.name,
        "structs": _struct_views(bridge.header),
        "functions": views,
        "calls": calls,
        "hook": next((v for v, item in zip(views, spec.functions, strict=True) if item.role == "load"), None),
        "words": [dataclasses.asdict(word) for word in bridge.words],
        "statuses": bridge.statuses,
        "ok_value": bridge.ok_value,
        "has_checks": any(call["checks"] for call in calls),
        "has_finite": any("math." in check["python"] for call in calls for check in call["checks"]),
        "off_reason": f"{spec.opt_in.variable} is not {spec.opt_in.value}",
    }
    outputs = {f"{spec.name}{suffix}": f"bridge{suffix}.jinja" for suffix in (".rs", ".hpp", ".py")}
    if spec.abi:
        outputs[f"{spec.name}_abi.c"] = "abi_record.c.jinja"
    environment = _environment()
    return {name: environment.get_template(f"bridge/{template}").render(context) for name, template in outputs.items()}
