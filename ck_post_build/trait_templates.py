"""The names behind the template arguments of kernels: of the parameters of trait templates, and of enumerators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clang.cindex import Cursor, CursorKind

from ck_post_build import libclang

_PARAMETERS = (
    CursorKind.TEMPLATE_TYPE_PARAMETER,
    CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
    CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
)


@dataclass
class TraitTemplates:
    """What is known of the class templates that kernels are specialised for.

    Attributes:
        parameters: by the template's qualified name, the names of its parameters, which may be empty.
        enums: by the qualified name of an enumeration among the parameters' types, its enumerators by number.
    """

    parameters: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, dict[str, str]] = field(default_factory=dict)

    def note(self, specialisation: Cursor, arguments: Sequence[str]) -> None:
        """Look into the templates among the arguments of a function's specialisation that are not known yet.

        Args:
            specialisation: the function.
            arguments: its template arguments in canonical spelling, as ``libclang.template_arguments`` gives them.
        """
        for number, argument in enumerate(arguments):
            name, bracket, _ = argument.partition("<")
            if bracket and name not in self.parameters:
                declaration = specialisation.get_template_argument_type(number).get_canonical().get_declaration()
                self._add(name, libclang.primary_template(declaration))

    def _add(self, name: str, template: Cursor | None) -> None:
        parameters = [c for c in libclang.children(template) if c.kind in _PARAMETERS] if template is not None else []
        self.parameters[name] = [parameter.spelling for parameter in parameters]
        for parameter in parameters:
            declaration = parameter.type.get_canonical().get_declaration()
            if declaration.kind == CursorKind.ENUM_DECL:
                self.enums[libclang.qualified_name(declaration)] = {
                    str(constant.enum_value): constant.spelling
                    for constant in libclang.children(declaration)
                    if constant.kind == CursorKind.ENUM_CONSTANT_DECL
                }
