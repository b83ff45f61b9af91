"""Fills in the names of users, in the fields whose options say whose name they show."""

from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor

from parley.contract.json_fields import json_fields

#: Returns the name that a user shows, by their id; empty if there is no such user.
NameOf = Callable[[str], str]


class NameFields:
    """The fields of a type of message, and of the messages in it, that show names of users."""

    def __init__(self, message: Descriptor) -> None:
        self._own = tuple(
            (field.descriptor.name, field.options.user_name_of)
            for field in json_fields(message)
            if field.options.user_name_of
        )
        self._inner = tuple(
            (field.descriptor.name, field.message, field.descriptor.is_repeated)
            for field in json_fields(message)
            if field.descriptor.message_type is not None
            and not field.is_map
            and _shows_names(field.message, frozenset())
        )

    def fill(self, message: Any, name_of: NameOf) -> None:
        """Set the names in a message."""
        for field, id_field in self._own:
            setattr(message, field, name_of(getattr(message, id_field)))
        for field, kind, is_repeated in self._inner:
            if is_repeated:
                for each in getattr(message, field):
                    name_fields(kind).fill(each, name_of)
            elif message.HasField(field):
                name_fields(kind).fill(getattr(message, field), name_of)


@cache
def name_fields(message: Descriptor) -> NameFields:
    """Return the fields of a type of message that show names."""
    return NameFields(message)


def _shows_names(message: Descriptor, above: frozenset[str]) -> bool:
    """Return whether messages of a type contain a name; a type inside itself is looked at once."""
    if message.full_name in above:
        return False
    inside = above | {message.full_name}
    return any(
        field.options.user_name_of
        or (
            field.descriptor.message_type is not None
            and not field.is_map
            and _shows_names(field.message, inside)
        )
        for field in json_fields(message)
    )
