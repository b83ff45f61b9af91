"""The bodies of requests about chats and service tokens.

In a patch an absent field is not changed, and null removes its value.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

# A larger number in JSON loses precision in some clients.
INTEGER_MAX = 2**53 - 1
SYSTEM_PROMPT_CHARACTERS_MAX = 128 * 1024

Title = Annotated[str, msgspec.Meta(max_length=200)]
Name = Annotated[str, msgspec.Meta(max_length=128)]
ModelId = Annotated[str, msgspec.Meta(max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=INTEGER_MAX)]
Place = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Line = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
UUID_PATTERN = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
Uuid = Annotated[str, msgspec.Meta(pattern=rf"^{UUID_PATTERN}\Z", description="a UUID")]
OptionalUuid = Annotated[
    str, msgspec.Meta(pattern=rf"^(?:{UUID_PATTERN})?\Z", description='a UUID, or "" for none')
]
Uuids = Annotated[tuple[Uuid, ...], msgspec.Meta(max_length=100)]
NOT_BLANK = "more than spaces"
LabelKey = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=64,
        pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._/-]*$",
        description="letters, digits, '.', '_', '/' or '-', beginning with a letter or digit",
    ),
]
LabelValue = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Labels = Annotated[dict[LabelKey, LabelValue], msgspec.Meta(max_length=50)]
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
