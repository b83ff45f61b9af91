"""The bodies of requests about chats and service tokens.

In a patch an absent field is not changed, and null removes its value.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

# A larger number in JSON loses precision in some clients.
INTEGER_MAX = 2**53 - 1

Name = Annotated[str, msgspec.Meta(max_length=128)]
Count = Annotated[int, msgspec.Meta(ge=0, le=INTEGER_MAX)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
UUID_PATTERN = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
Uuid = Annotated[str, msgspec.Meta(pattern=rf"^{UUID_PATTERN}\Z", description="a UUID")]
OptionalUuid = Annotated[
    str, msgspec.Meta(pattern=rf"^(?:{UUID_PATTERN})?\Z", description='a UUID, or "" for none')
]
#: A JSON object whose members are not decoded.
JsonObject = dict[str, msgspec.Raw]


class Effort(StrEnum):
    """How hard a model thinks."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that says all by its path."""


class NewServiceToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /service-tokens."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    scopes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=32)]
    user_id: Name = ""
    lifetime_s: Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 3600)] = 0
