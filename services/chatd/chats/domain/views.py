"""Chats as their readers see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b

import msgspec

from chatd.chats.domain.chat import ChatState, PendingCall
from chatd.chats.domain.diffs import DiffStatus
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import ClientTool, PendingKind
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.users.domain.grantees import Grantee

FILES_MAX = 50
ETAG_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file without its bytes."""

    id: str
    owner_id: OwnerId
    name: str
    media_type: str
    size_bytes: int
    sha256: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ChatView:
    """A chat with all fields that users see."""

    state: ChatState
    owner: Owner
    title: str
    has_own_title: bool
    parent_chat_id: ChatId | None
    root_chat_id: ChatId
    model_id: str
    reasoning_effort: ReasoningEffort
    mode: ChatMode
    workspace_id: str
    mcp_server_ids: tuple[str, ...] | None  # None for those that are on by default.
    labels: Mapping[str, str]
    pin_order: int
    summary: str
    last_turn_summary: str
    client_tools: tuple[ClientTool, ...]
    last_read_message_id: MessageId
    has_unread: bool
    is_shared: bool
    place_in_line: int
    created_at: datetime
    updated_at: datetime
    diff_status: DiffStatus | None = None
    instructions_drifted: bool = False
    child_count: int = 0
    archives_at: datetime | None = None
    purges_at: datetime | None = None
    is_break_glass_open: bool = False
    fallback_model_id: str = ""  # Empty for the installation's.
    asking: tuple["OpenAction", ...] = ()  # What it waits for, if that was read.

    @property
    def etag(self) -> str:
        """Return a value that changes with each field that an update or deletion overwrites.

        It is computed from the values, so that no statement can forget to increment a version.
        """
        arranged = (
            self.title,
            sorted(self.labels.items()),
            self.pin_order,
            self.mode,
            self.model_id,
            self.reasoning_effort,
            self.workspace_id,
            self.mcp_server_ids,
            self.fallback_model_id,
        )
        digest = blake2b(msgspec.json.encode(arranged), digest_size=ETAG_DIGEST_BYTES)
        return f"{self.state.snapshot_version}-{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class OpenAction:
    """A call that waits for a client or a person, and when it expires."""

    pending: PendingCall
    call: ToolCall
    deadline_at: datetime | None


@dataclass(frozen=True, slots=True)
class EndedAction:
    """How an action ended that a chat waited for.

    Attributes:
        ended_by: The user who answered; empty if nobody did.
        version: The snapshot version of the chat that ended it.
    """

    id: str
    kind: PendingKind
    tool_call_id: str
    tool_name: str
    outcome: ActionOutcome
    ended_by: str
    ended_at: datetime
    version: int


@dataclass(frozen=True, slots=True)
class Share:
    """A permission to read a chat and its children."""

    grantee: Grantee
    created_at: datetime
