"""Reads function signatures and struct layouts out of a library's debug information."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ck_post_build.bridge.ctypes_model import VOID, CType, Field, Function, Parameter, Struct

_QUALIFIERS = {
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
    "DW_TAG_typedef",
}
_ENCODINGS = {  # DWARF 5, section 7.8
    2: "bool",
    4: "float",
    5: "signed",
    6: "signed",
    7: "unsigned",
    8: "unsigned",
    16: "unsigned",
}


class DwarfReader:
    """Signatures of one library's functions by name, and the structs those reach."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self.structs: dict[str, Struct] = {}

    def functions(self, names: set[str]) -> dict[str, Function]:
        """Return the signatures of the functions in `names` that the library defines."""
        found: dict[str, Function] = {}
        for unit in self.info.iter_CUs():
            for entry in unit.get_top_DIE().iter_children():
                if entry.tag != "DW_TAG_subprogram" or "DW_AT_declaration" in entry.attributes:
                    continue
                name = _name(entry)
                if name in names and name not in found:
                    found[name] = self._function(name, entry)
        return found

    def _function(self, name: str, entry: Any) -> Function:
        parameters = tuple(
            Parameter(_name(child), self._type(child), "")
            for child in entry.iter_children()
            if child.tag == "DW_TAG_formal_parameter"
        )
        return Function(name, self._type(entry), parameters)

    def _type(self, entry: Any) -> CType:
        """Return the type of a variable, function, pointer or typedef entry."""
        target = _reference(entry, "DW_AT_type")
        name = ""
        while target is not None and target.tag in _QUALIFIERS:
            if target.tag == "DW_TAG_typedef":
                name = _name(target)
            target = _reference(target, "DW_AT_type")
        return VOID if target is None else self._concrete(target, name)

    def _concrete(self, entry: Any, typedef: str) -> CType:
        size = _number(entry, "DW_AT_byte_size")
        if entry.tag == "DW_TAG_base_type":
            return _base_type(entry, size)
        if entry.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type"):
            # a pointer's size is often left out when it is the machine's
            return CType("pointer", size or entry.cu["address_size"], target=self._pointee(entry))
        if entry.tag == "DW_TAG_enumeration_type":
            underlying = self._type(entry)
            return underlying if underlying.kind == "integer" else CType("integer", size)
        if entry.tag in ("DW_TAG_structure_type", "DW_TAG_class_type"):
            return self._struct(entry, _name(entry) or typedef, size)
        if entry.tag == "DW_TAG_array_type":
            return self._array(entry)
        return CType("struct", size, name=f"{entry.tag.removeprefix('DW_TAG_')} {_name(entry)}".strip())

    def _pointee(self, entry: Any) -> CType | None:
        target = _reference(entry, "DW_AT_type")
        while target is not None and target.tag in _QUALIFIERS:
            target = _reference(target, "DW_AT_type")
        if target is not None and (target.tag == "DW_TAG_subroutine_type" or "DW_AT_declaration" in target.attributes):
            return None  # an opaque handle, or a callback: nothing to compare
        return self._type(entry)

    def _struct(self, entry: Any, name: str, size: int) -> CType:
        result = CType("struct", size, name=name)
        if name not in self.structs:
            self.structs[name] = Struct(name, size, 0, ())  # stops a list from recursing
            members = [c for c in entry.iter_children() if c.tag == "DW_TAG_member"]
            fields = tuple(Field(_name(m), self._type(m), _number(m, "DW_AT_data_member_location")) for m in members)
            self.structs[name] = Struct(name, size, 0, fields)
        return result

    def _array(self, entry: Any) -> CType:
        element = self._type(entry)
        for dimension in reversed([c for c in entry.iter_children() if c.tag == "DW_TAG_subrange_type"]):
            count = _number(dimension, "DW_AT_count") or _number(dimension, "DW_AT_upper_bound") + 1
            element = CType("array", element.size * count, target=element, count=count)
        return element


def _base_type(entry: Any, size: int) -> CType:
    encoding = _ENCODINGS.get(_number(entry, "DW_AT_encoding"), "")
    if encoding in ("bool", "float"):
        return CType("bool" if encoding == "bool" else "float", size)
    return CType("integer", size, encoding == "signed")


def _origins(entry: Any) -> Iterator[Any]:
    """Yield `entry` and the entries that hold what it leaves out: a definition refers to its declaration."""
    current: Any | None = entry
    while current is not None:
        yield current
        current = _link(current, "DW_AT_specification") or _link(current, "DW_AT_abstract_origin")


def _link(entry: Any, attribute: str) -> Any | None:
    return entry.get_DIE_from_attribute(attribute) if attribute in entry.attributes else None


def _reference(entry: Any, attribute: str) -> Any | None:
    return next((_link(e, attribute) for e in _origins(entry) if attribute in e.attributes), None)


def _name(entry: Any) -> str:
    value = next((e.attributes["DW_AT_name"].value for e in _origins(entry) if "DW_AT_name" in e.attributes), b"")
    return str(value.decode("utf-8", "replace"))


def _number(entry: Any, attribute: str) -> int:
    value = entry.attributes[attribute].value if attribute in entry.attributes else 0
    return value if isinstance(value, int) else 0
