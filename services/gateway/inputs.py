"""The bodies that requests may carry."""

from enum import StrEnum
from typing import Annotated

import msgspec

Title = Annotated[str, msgspec.Meta(max_length=200)]
Name = Annotated[str, msgspec.Meta(max_length=128)]


class TextInput(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"
):
    """Text that a person or a program wrote."""

    text: Annotated[str, msgspec.Meta(min_length=1)]


Content = Annotated[tuple[TextInput, ...], msgspec.Meta(min_length=1, max_length=100)]


class BusyBehavior(StrEnum):
    """What to do with a message that meets a busy chat."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"


class NewChat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats."""

    content: Content
    title: Title = ""
    model_id: Name = ""


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/messages."""

    content: Content
    busy_behavior: BusyBehavior = BusyBehavior.QUEUE
    model_id: Name = ""


class NewServiceToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /service-tokens."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    scopes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=32)]
    user_id: Name = ""
    lifetime_s: Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 3600)] = 0
