"""The rules of fields, read from their buf.validate options.

Only standard rules are supported; there are no CEL expressions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from google.protobuf.descriptor import FieldDescriptor

from buf.validate import validate_pb2
from parley.api.contract.v1 import options_pb2

UUID_PATTERN = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
#: A larger number in JSON loses precision in some clients.
JSON_INTEGER_MAX = 2**53 - 1
INT32_MAX = 2**31 - 1
#: The bounds of integers that declare none.
JSON_INTEGERS: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.CPPTYPE_INT32: (-INT32_MAX - 1, INT32_MAX),
    FieldDescriptor.CPPTYPE_INT64: (-JSON_INTEGER_MAX, JSON_INTEGER_MAX),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, JSON_INTEGER_MAX),
}
NOT_BLANK = r"\S"

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "uint32",
    FieldDescriptor.CPPTYPE_UINT64: "uint64",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one value: of a field, of an item, or of a key or value of a map.

    Attributes:
        is_required: Whether it has to be given.
        ignores_zero: Whether the rules do not apply to the zero value.
        length_min: Smallest number of characters, bytes, items or entries.
        length_max: The largest; None without a bound.
        bytes_max: Largest number of bytes of a string.
        pattern: Regular expression of a string; None for any.
        pattern_description: What a matching value is, in words that follow "Give".
        is_uuid: Whether it is a UUID.
        least: Smallest number.
        most: Largest number.
        is_declared: Whether only declared values of an enum are accepted.
        excluded: Numbers of enum values that are not accepted.
        is_unique: Whether items may not repeat.
        items: The rules of items, or of the values of a map.
        keys: The rules of the keys of a map.
    """

    is_required: bool = False
    ignores_zero: bool = False
    length_min: int = 0
    length_max: int | None = None
    bytes_max: int | None = None
    pattern: str | None = None
    pattern_description: str = ""
    is_uuid: bool = False
    least: float | None = None
    most: float | None = None
    is_declared: bool = False
    excluded: frozenset[int] = frozenset()
    is_unique: bool = False
    items: "Rules | None" = None
    keys: "Rules | None" = None

    @property
    def may_be_empty(self) -> bool:
        """Whether the empty value satisfies the rules."""
        return not (self.is_required or self.length_min) and self.pattern != NOT_BLANK


@cache
def rules_of(field: FieldDescriptor) -> Rules:
    """Return the rules of a field."""
    options = field.GetOptions()
    declared = options.Extensions[validate_pb2.field]
    described = options.Extensions[options_pb2.json].pattern_description
    found = _rules(declared, field, described)
    is_ignored = declared.ignore == validate_pb2.IGNORE_IF_ZERO_VALUE
    return replace(found, ignores_zero=is_ignored) if is_ignored else found


def _rules(
    declared: validate_pb2.FieldRules,
    field: FieldDescriptor,
    described: str,
    *,
    is_item: bool = False,
) -> Rules:
    if field.is_repeated and not is_item:
        return _collection_rules(declared, field, described)
    required = declared.required
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            found = declared.bytes
            most = found.max_len if found.HasField("max_len") else None
            return Rules(is_required=required, length_min=found.min_len, length_max=most)
        case FieldDescriptor.CPPTYPE_STRING:
            return _string_rules(declared, described)
        case FieldDescriptor.CPPTYPE_ENUM:
            return Rules(
                is_required=required,
                is_declared=declared.enum.defined_only,
                excluded=frozenset(declared.enum.not_in),
            )
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return _number_rules(required, declared.double)
        case kind if kind in _INTEGERS:
            return _number_rules(required, getattr(declared, _INTEGERS[kind]))
        case _:
            return Rules(is_required=required)


def _string_rules(declared: validate_pb2.FieldRules, described: str) -> Rules:
    found = declared.string
    return Rules(
        is_required=declared.required,
        length_min=found.min_len,
        length_max=found.max_len if found.HasField("max_len") else None,
        bytes_max=found.max_bytes if found.HasField("max_bytes") else None,
        pattern=_pattern(found.pattern) if found.HasField("pattern") else None,
        pattern_description=described or ("more than spaces" if found.pattern == NOT_BLANK else ""),
        is_uuid=found.uuid,
    )


def _pattern(text: str) -> str:
    """Return a pattern of RE2, in which `$` is the end of the text, for Python.

    In Python `$` alone also matches before a trailing line break.
    """
    return rf"{text.removesuffix('$')}(?!\n)$" if text.endswith("$") else text


def _number_rules(
    is_required: bool, found: validate_pb2.Int64Rules | validate_pb2.DoubleRules
) -> Rules:
    return Rules(
        is_required=is_required,
        least=found.gte if found.HasField("gte") else None,
        most=found.lte if found.HasField("lte") else None,
    )


def _collection_rules(
    declared: validate_pb2.FieldRules, field: FieldDescriptor, described: str
) -> Rules:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        found = declared.map
        return Rules(
            is_required=declared.required,
            length_min=found.min_pairs,
            length_max=found.max_pairs if found.HasField("max_pairs") else None,
            keys=_rules(found.keys, entry.fields_by_name["key"], described),
            items=_rules(found.values, entry.fields_by_name["value"], ""),
        )
    listed = declared.repeated
    return Rules(
        is_required=declared.required,
        length_min=listed.min_items,
        length_max=listed.max_items if listed.HasField("max_items") else None,
        is_unique=listed.unique,
        items=_rules(listed.items, field, described, is_item=True),
    )
