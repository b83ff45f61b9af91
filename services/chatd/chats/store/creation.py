"""Creates chats: the row, its execution, its first messages, files and key, in one statement."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import asyncpg
import msgspec

from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.store.codec import CONTENT_VERSION, choice_to_json, parts_to_json
from chatd.chats.store.view_rows import labels_to_json
from chatd.content.domain.errors import FileNotFound
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.content.domain.tools import ClientTool
from chatd.content.store.client_tools import tools_to_json
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, WorkerId
from chatd.primitives.domain.requests import ClientKey
from chatd.primitives.store.constraints import Constraint
from parley.postgres import Connection, Pool

# Create a running chat, for its owner; an existing id inserts nothing. As everywhere, a worker may
# claim only while its lease is valid for some seconds more and it is not draining.
# May run: owner.
INSERT_CHAT = """
    WITH claim AS MATERIALIZED (
        SELECT id FROM chat.workers WHERE id = $13::uuid AND NOT is_draining
            AND lease_until > clock_timestamp() + interval '3 seconds'),
    made AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id,
            model_id, reasoning_effort, mode, workspace_id, mcp_server_ids, labels, client_tools,
            pin_order, summary, last_turn_summary, last_read_message_id, created_at,
            owner_group_ids, is_unattended, parent_chat_id, fallback_model_id, orders)
        VALUES ($1, $2, $3, $4, $5, coalesce($26::uuid, $1), $6, $7, $8, $9, $10,
            $11::text::jsonb, $12::text::json, 0, '', '', 0, clock_timestamp(), $23, $24, $25, $27,
            $28::text::json)
        ON CONFLICT DO NOTHING RETURNING id, owner_id, created_at),
    execution AS (
        INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
            queue_version, retry_version, generation_attempt, next_message_id, turn_id,
            queue_length, owner_epoch, worker_id, takeovers, pending, compactions,
            is_compaction_requested, changed_at, changed_xid)
        SELECT id, 'running', false, 1, 1, 0, 0, (SELECT count(*) FROM claim),
            1 + cardinality($14::text[]), cardinality($14::text[]), 0, 1, (SELECT id FROM claim),
            0, '[]', 0, false, created_at, pg_current_xact_id()
        FROM made),
    messages AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at, choice, origin)
        SELECT made.id, first.id, 1, first.role, first.visibility, first.content::json, $18::int,
            false, false, first.created_by, made.created_at, first.choice::json, first.origin
        FROM made, unnest($14::text[], $15::text[], $16::text[], $17::text[], $22::text[],
                $29::text[])
            WITH ORDINALITY AS first (role, visibility, content, created_by, choice, origin, id)),
    keyed AS (
        INSERT INTO chat.client_keys
            (chat_id, key, body_hash, snapshot_version, outcome, created_at)
        SELECT id, $19::text, $20::bytea, 1,
            json_build_object('turn_id', cardinality($14::text[]), 'is_queued', false), created_at
        FROM made WHERE $19::text IS NOT NULL),
    linked AS (
        INSERT INTO chat.chat_files (chat_id, file_id)
        SELECT made.id, file.id FROM made JOIN chat.files file
            ON file.owner_id = made.owner_id AND file.id = ANY ($21::uuid[]))
    SELECT (SELECT id FROM claim) AS worker_id FROM made
"""


@dataclass(frozen=True, slots=True)
class NewChat:
    """A chat to create; the last of its messages starts its first turn."""

    id: ChatId
    owner: Owner
    title: str
    has_own_title: bool
    messages: tuple[NewMessage, ...]
    model_id: str = ""
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT
    mode: ChatMode = ChatMode.ORDINARY
    workspace_id: str = ""
    mcp_server_ids: tuple[str, ...] | None = ()  # None for those that are on by default.
    labels: Mapping[str, str] = field(default_factory=dict)
    client_tools: tuple[ClientTool, ...] = ()
    file_ids: tuple[str, ...] = ()
    owner_group_ids: tuple[str, ...] = ()  # For spend limits.
    is_unattended: bool = False  # Nobody will answer questions.
    parent_chat_id: ChatId | None = None  # The chat that starts it, if it is a child.
    root_chat_id: ChatId | None = None  # The root of that one's tree.
    fallback_model_id: str = ""  # Empty for the installation's, `none` for none.
    orders: AgentOrders = NO_ORDERS  # Those of an agent.


async def insert_chat(
    pool: "Pool | Connection",
    new: NewChat,
    *,
    claimed_by: WorkerId | None,
    client_key: ClientKey | None,
) -> ChatState | None:
    """Create a running chat; return its state, or None if its id exists already.

    Raises:
        FileNotFound: One of its files was deleted concurrently.
    """
    with _removed_files(new.file_ids):
        row = await pool.fetchrow(
            INSERT_CHAT,
            new.id,
            new.owner.id,
            new.owner.role,
            new.title,
            new.has_own_title,
            new.model_id,
            new.reasoning_effort,
            new.mode,
            new.workspace_id or None,
            new.mcp_server_ids,
            labels_to_json(dict(new.labels)),
            tools_to_json(new.client_tools),
            claimed_by,
            [message.role for message in new.messages],
            [message.visibility for message in new.messages],
            [parts_to_json(message.content) for message in new.messages],
            [message.created_by for message in new.messages],
            CONTENT_VERSION,
            None if client_key is None else client_key.key,
            None if client_key is None else client_key.body_hash,
            new.file_ids,
            [choice_to_json(message.choice) for message in new.messages],
            new.owner_group_ids,
            new.is_unattended,
            new.parent_chat_id,
            new.root_chat_id,
            new.fallback_model_id,
            None if new.orders == NO_ORDERS else msgspec.json.encode(new.orders).decode(),
            [message.stored_origin for message in new.messages],
        )
    return None if row is None else _state_of_new(new, row["worker_id"])


@contextmanager
def _removed_files(file_ids: tuple[str, ...]) -> Iterator[None]:
    """Raise FileNotFound for a file that housekeeping deleted while the statement ran."""
    try:
        yield
    except asyncpg.ForeignKeyViolationError as violation:
        if violation.constraint_name != Constraint.CHAT_FILES_FILE_FKEY:
            raise
        raise FileNotFound(file_ids[0]) from violation


def _state_of_new(new: NewChat, worker_id: object) -> ChatState:
    """Return the state that the statement wrote."""
    return ChatState(
        chat_id=new.id,
        status=Status.RUNNING,
        snapshot_version=1,
        history_version=1,
        generation_attempt=int(worker_id is not None),
        next_message_id=MessageId(1 + len(new.messages)),
        owner_epoch=1,
        worker_id=None if worker_id is None else WorkerId(str(worker_id)),
        turn_id=MessageId(len(new.messages)),
    )
