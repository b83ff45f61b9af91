"""Helpers of the conversion of request bodies to protos."""

from typing import Any

import msgspec
from msgspec import UNSET


def given_fields(patch: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that a patch contains, in the order of its type."""
    values = ((name, getattr(patch, name)) for name in patch.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}
