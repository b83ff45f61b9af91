"""Parses the text of settings by their type."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from parley.settings.fields import Field
from parley.settings.secret import Secret

TRUE: Final = frozenset({"true", "yes", "on", "1"})
FALSE: Final = frozenset({"false", "no", "off", "0"})


def parse(field: Field, text: str) -> object:
    """Return the value of `field` for `text`.

    Raises:
        ValueError: `text` is invalid; the message says what is accepted.
    """
    value = _value(field.type, text)
    if field.at_least is not None and isinstance(value, int | float) and value < field.at_least:
        raise ValueError(f"is {text!r}, give at least {field.at_least:g}")
    return value


def _value(value_type: Any, text: str) -> object:
    if value_type is str:
        return text
    if value_type is Secret:
        return Secret(text)
    if value_type is Path:
        return Path(text).expanduser()
    if value_type is bool:
        return _bool(text)
    if value_type is int:
        return _int(text)
    if value_type is float:
        return _float(text)
    if get_origin(value_type) is tuple:
        return _several(get_args(value_type)[0], text)
    if isinstance(value_type, type) and issubclass(value_type, StrEnum):
        return _member(value_type, text)
    if hasattr(value_type, "parse"):
        return _parsed(value_type, text)
    raise TypeError(f"no setting can have the type {value_type}")


def _several(value_type: Any, text: str) -> tuple[object, ...]:
    """Parse a comma-separated list, all entries of which must be valid; some types have ranges."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if hasattr(value_type, "expanded"):
        try:
            parts = [each for part in parts for each in value_type.expanded(part)]
        except ValueError as error:
            raise ValueError(f"cannot be used: {error}") from None
    return tuple(_value(value_type, part) for part in parts)


def _bool(text: str) -> bool:
    if text.lower() in TRUE:
        return True
    if text.lower() in FALSE:
        return False
    raise ValueError(f"is {text!r}, give true or false")


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"is {text!r}, give a whole number") from None


def _float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"is {text!r}, give a number")
    return number


def _member(choices: type[StrEnum], text: str) -> StrEnum:
    try:
        return choices(text.lower())
    except ValueError:
        raise ValueError(f"is {text!r}, give {' or '.join(choices)}") from None


def _parsed(value_type: Any, text: str) -> object:
    try:
        return value_type.parse(text)
    except ValueError as error:
        raise ValueError(f"cannot be used: {error}") from None
