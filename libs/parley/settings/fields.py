"""The fields of a settings dataclass: how they are declared, named and described."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from parley.settings.secret import Secret

DOC: Final = "parley.settings.doc"
AT_LEAST: Final = "parley.settings.at_least"
FILE_SUFFIX: Final = "_FILE"

KINDS: Final[Mapping[object, str]] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    Secret: "secret",
}


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One line of the configuration reference."""

    name: str
    type: str
    default: str | None
    doc: str
    is_required: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: the variable it is read from and its type."""

    attribute: str
    name: str
    type: Any  # A class or a generic alias, as annotated.
    is_required: bool
    default: object
    at_least: float | None
    doc: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return every variable that may set this field."""
        if self.type is Secret:
            return (self.name, self.name + FILE_SUFFIX)
        return (self.name,)

    @property
    def kind(self) -> str:
        """Return the name of the type, for the reference."""
        if isinstance(self.type, type) and issubclass(self.type, StrEnum):
            return " or ".join(self.type)
        if typing.get_origin(self.type) is tuple:
            return "comma-separated list"
        name = getattr(self.type, "__name__", str(self.type)).lower()
        return KINDS.get(self.type, getattr(self.type, "SETTING_KIND", name))


def setting(doc: str, *, default: Any = MISSING, at_least: float | None = None) -> Any:
    """Declare a field of a settings dataclass.

    Args:
        doc: One sentence for the reference: what it decides, with its unit.
        default: The value when the variable is not set; without one it must be set, unless the
            type allows None.
        at_least: The smallest number allowed.
    """
    metadata = {DOC: doc, AT_LEAST: at_least}
    return dataclasses.field(default=default, metadata=metadata)


def fields_of(settings_type: type, *, prefix: str) -> tuple[Field, ...]:
    """Return the fields of `settings_type`, in the order they are declared."""
    hints = typing.get_type_hints(settings_type)
    return tuple(
        _field(declared, hints[declared.name], prefix)
        for declared in dataclasses.fields(settings_type)
        if declared.init
    )


def describe(settings_type: type, *, prefix: str) -> tuple[SettingLine, ...]:
    """Return the reference of `settings_type`, one line per variable."""
    return tuple(
        SettingLine(
            name=" or ".join(field.names),
            type=field.kind,
            default=None if field.is_required else _spelled(field.default),
            doc=field.doc,
            is_required=field.is_required,
        )
        for field in fields_of(settings_type, prefix=prefix)
    )


def _field(declared: "dataclasses.Field[Any]", hint: Any, prefix: str) -> Field:
    value_type, is_optional = _without_none(hint)
    has_default = declared.default is not MISSING or declared.default_factory is not MISSING
    default: object = None
    if declared.default is not MISSING:
        default = declared.default
    elif declared.default_factory is not MISSING:
        default = declared.default_factory()
    return Field(
        attribute=declared.name,
        name=f"{prefix}_{declared.name.upper()}",
        type=value_type,
        is_required=not has_default and not is_optional,
        default=default,
        at_least=declared.metadata.get(AT_LEAST),
        doc=declared.metadata.get(DOC, ""),
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return hint, False
    members = [member for member in typing.get_args(hint) if member is not types.NoneType]
    if len(members) != 1:
        raise TypeError(f"a setting has one type, or one type and None, not {hint}")
    return members[0], True


def _spelled(value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
