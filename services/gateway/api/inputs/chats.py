"""The bodies of requests about chats and service tokens.

In a patch an absent field is not changed, and null removes its value.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

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


class TextInput(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"
):
    """Text that a person or a program wrote."""

    text: Annotated[str, msgspec.Meta(min_length=1, pattern=r"\S", description=NOT_BLANK)]


class FileInput(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="file"
):
    """A file that was uploaded before."""

    file_id: Uuid


class FileReferenceInput(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="file-reference"
):
    """Lines of a file that the writer points at."""

    file_name: Annotated[
        str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"\S", description=NOT_BLANK)
    ]
    start_line: Line
    end_line: Line
    content: str


ContentInput = TextInput | FileInput | FileReferenceInput
Content = Annotated[tuple[ContentInput, ...], msgspec.Meta(min_length=1, max_length=100)]


class BusyBehavior(StrEnum):
    """What to do with a message that meets a busy chat."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"


class Effort(StrEnum):
    """How hard a model thinks."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Mode(StrEnum):
    """A way of working that users choose."""

    PLAN = "plan"


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that says all by its path."""


class ClientToolInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that the client executes itself."""

    name: Annotated[
        str,
        msgspec.Meta(
            pattern="^[A-Za-z0-9_-]{1,64}$", description="1 to 64 letters, digits, '_' or '-'"
        ),
    ]
    input_schema: JsonObject
    description: Annotated[str, msgspec.Meta(max_length=8192)] = ""


class NewChat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats."""

    content: Content
    title: Title = ""
    model_id: ModelId | None = None
    reasoning_effort: Effort | None = None
    mode: Mode | None = None
    workspace_id: OptionalUuid | None = None
    mcp_server_ids: Uuids = ()
    labels: Labels = {}
    system_prompt: Annotated[str, msgspec.Meta(max_length=SYSTEM_PROMPT_CHARACTERS_MAX)] = ""
    client_tools: Annotated[tuple[ClientToolInput, ...], msgspec.Meta(max_length=250)] = ()


class ChatPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /chats/{chat_id}; labels are replaced as a whole."""

    title: (
        Annotated[
            str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S", description=NOT_BLANK)
        ]
        | UnsetType
    ) = UNSET
    labels: Labels | UnsetType | None = UNSET
    pin_order: Place | UnsetType | None = UNSET
    mode: Mode | UnsetType | None = UNSET
    model_id: ModelId | UnsetType | None = UNSET
    reasoning_effort: Effort | UnsetType | None = UNSET
    workspace_id: OptionalUuid | UnsetType | None = UNSET
    mcp_server_ids: Uuids | UnsetType | None = UNSET


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/messages."""

    content: Content
    busy_behavior: BusyBehavior = BusyBehavior.QUEUE
    model_id: ModelId = ""
    reasoning_effort: Effort | None = None


class MessageEdit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PATCH /chats/{chat_id}/messages/{message_id}."""

    content: Content
    model_id: ModelId = ""
    reasoning_effort: Effort | None = None


class TurnToInterrupt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/interrupt; 0 means whichever turn runs."""

    turn_message_id: Count = 0


class ToolResultInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of one tool that the client executed; any JSON value."""

    tool_call_id: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    output: msgspec.Raw
    is_error: bool = False


class ToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /chats/{chat_id}/tool-results."""

    results: Annotated[tuple[ToolResultInput, ...], msgspec.Meta(min_length=1, max_length=1000)]


class ReadMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /chats/{chat_id}/read."""

    last_message_id: Count


class ShareInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whom a chat is shared with: a user or a group."""

    #: Exactly one of these is given.
    either: ClassVar[tuple[str, ...]] = ("user_id", "group_id")

    user_id: OptionalUuid = ""
    group_id: OptionalUuid = ""

    def __post_init__(self) -> None:
        """Reject none and both.

        Raises:
            ValueError: there is not exactly one.
        """
        if sum(bool(getattr(self, name)) for name in self.either) != 1:
            raise ValueError(f"give either {' or '.join(self.either)}")


class NewShares(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of PUT /chats/{chat_id}/shares."""

    shares: Annotated[tuple[ShareInput, ...], msgspec.Meta(max_length=100)]


class NewServiceToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /service-tokens."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    scopes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=32)]
    user_id: Name = ""
    lifetime_s: Annotated[int, msgspec.Meta(ge=0, le=366 * 24 * 3600)] = 0
