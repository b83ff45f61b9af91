"""The columns of a chat for its readers, the permission to read it, and its conversion."""

from typing import Final

import asyncpg
import msgspec

from chatd.chats.domain.action_answers import expires_at
from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.tool_results import asking_call
from chatd.chats.domain.views import ChatView, EndedAction, OpenAction
from chatd.chats.store.access.break_glass import IS_OPEN
from chatd.chats.store.codec import parts_from_json
from chatd.chats.store.diffs import diff_status_of
from chatd.chats.store.rows import state_of
from chatd.chats.store.statements import STATE_COLUMNS
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.store.client_tools import tools_from_json
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.primitives.domain.requests import ADMINISTRATORS

# An administrator sees the chats of a user while they have an open break-glass access to them.
OPENED = f"""
    ('{ADMINISTRATORS}' = ANY ($3::uuid[]) AND EXISTS (SELECT 1 FROM chat.break_glass access
        WHERE access.owner_id = c.owner_id AND access.administrator_id = $2 AND {IS_OPEN}))
"""

# A reader sees their own chats and, through the root, those shared with them or their groups. The
# reader is $2 and their groups are $3 wherever this is used.
READABLE = f"""
    (c.owner_id = $2 OR EXISTS (SELECT 1 FROM chat.chat_shares share
        WHERE share.chat_id = c.root_chat_id
            AND ((share.grantee_kind = 'user' AND share.grantee_id = $2)
                OR (share.grantee_kind = 'group' AND share.grantee_id = ANY ($3::uuid[]))))
        OR {OPENED})
"""

HAS_UNREAD = """
    EXISTS (SELECT 1 FROM chat.chat_messages unread
        WHERE unread.chat_id = c.id AND unread.id > c.last_read_message_id
            AND unread.role = 'assistant' AND NOT unread.is_deleted
            AND unread.visibility <> 'model')
"""

# Waiting chats in the order of a sweep: interrupting ones first, then by oldest change.
PLACE_IN_LINE = """
    CASE WHEN e.worker_id IS NULL AND e.status IN ('running', 'interrupting') THEN (
        SELECT 1 + count(*) FROM chat.chat_exec ahead
        WHERE ahead.worker_id IS NULL AND ahead.status IN ('running', 'interrupting')
            AND (ahead.status <> 'interrupting', ahead.changed_at, ahead.chat_id)
                < (e.status <> 'interrupting', e.changed_at, e.chat_id)) ELSE 0 END
"""

# The notice of an ending by age, while nothing happened since.
NOTICE_HOLDS = """
    c.pin_order = 0 AND e.status IN ('waiting', 'error') AND e.changed_at <= c.retention_noticed_at
"""

# The message whose calls a client or a person has to answer.
ASKING = """
    CASE WHEN e.status = 'requires_action' THEN (
        SELECT asking.content::text FROM chat.chat_messages asking
        WHERE asking.chat_id = e.chat_id AND asking.role = 'assistant' AND NOT asking.is_deleted
        ORDER BY asking.id DESC LIMIT 1) END
"""

#: Ends of earlier actions are not read.
ENDED_ACTIONS_MAX: Final = 20

# How the newest actions ended that a chat waited for, in that order; NULL for none.
ENDED_ACTIONS = f"""(
    SELECT json_agg(json_build_object('id', past.id, 'kind', past.kind,
        'tool_call_id', past.tool_call_id, 'tool_name', past.tool_name, 'outcome', past.outcome,
        'ended_by', past.ended_by, 'ended_at', past.ended_at, 'version', past.ended_version)
        ORDER BY past.ended_version, past.id)
    FROM (SELECT * FROM chat.chat_actions a
        WHERE a.chat_id = e.chat_id AND a.ended_version IS NOT NULL AND a.asked_at IS NOT NULL
        ORDER BY a.ended_version DESC, a.id DESC LIMIT {ENDED_ACTIONS_MAX}) past)::text
"""

CHILD_COUNT = """
    (SELECT count(*) FROM chat.chats child
        WHERE child.root_chat_id = c.root_chat_id AND child.parent_chat_id = c.id)
"""

VIEW_COLUMNS = f"""
    c.id AS view_id, c.owner_id, c.owner_role, c.title, c.has_own_title, c.parent_chat_id,
    c.root_chat_id, c.model_id, c.reasoning_effort, c.mode, c.workspace_id, c.mcp_server_ids,
    c.fallback_model_id,
    c.labels::text AS labels, c.pin_order, c.summary, c.last_turn_summary,
    c.client_tools::text AS client_tools, c.last_read_message_id, c.created_at AS chat_created_at,
    c.diff_status::text AS diff_status, c.instructions_drifted,
    {HAS_UNREAD} AS has_unread, {CHILD_COUNT} AS child_count,
    EXISTS (SELECT 1 FROM chat.chat_shares share WHERE share.chat_id = c.root_chat_id) AS is_shared,
    CASE WHEN {NOTICE_HOLDS} THEN c.archives_at END AS archives_at,
    CASE WHEN {NOTICE_HOLDS} THEN c.purges_at END AS purges_at,
    EXISTS (SELECT 1 FROM chat.break_glass access
        WHERE access.owner_id = c.owner_id AND {IS_OPEN}) AS is_break_glass_open,
    {PLACE_IN_LINE} AS place_in_line, {STATE_COLUMNS}
"""

CHATS = "chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id"

_encoder = msgspec.json.Encoder()
_labels_decoder = msgspec.json.Decoder(dict[str, str])
_ended_decoder = msgspec.json.Decoder(tuple[EndedAction, ...])


def view_of(row: asyncpg.Record) -> ChatView:
    """Return a chat as its readers see it."""
    parent, workspace = row["parent_chat_id"], row["workspace_id"]
    chosen = row["mcp_server_ids"]
    return ChatView(
        state=state_of(row),
        owner=Owner(OwnerId(str(row["owner_id"])), row["owner_role"]),
        title=row["title"],
        has_own_title=row["has_own_title"],
        parent_chat_id=None if parent is None else ChatId(str(parent)),
        root_chat_id=ChatId(str(row["root_chat_id"])),
        model_id=row["model_id"],
        reasoning_effort=ReasoningEffort(row["reasoning_effort"]),
        mode=ChatMode(row["mode"]),
        workspace_id="" if workspace is None else str(workspace),
        mcp_server_ids=None if chosen is None else tuple(map(str, chosen)),
        labels=_labels_decoder.decode(row["labels"]),
        pin_order=row["pin_order"],
        summary=row["summary"],
        last_turn_summary=row["last_turn_summary"],
        client_tools=tools_from_json(row["client_tools"]),
        last_read_message_id=MessageId(row["last_read_message_id"]),
        has_unread=row["has_unread"],
        is_shared=row["is_shared"],
        child_count=row["child_count"],
        is_break_glass_open=row["is_break_glass_open"],
        place_in_line=row["place_in_line"],
        created_at=row["chat_created_at"],
        updated_at=row["changed_at"],
        diff_status=diff_status_of(row["diff_status"]),
        instructions_drifted=row["instructions_drifted"],
        archives_at=row["archives_at"],
        purges_at=row["purges_at"],
        fallback_model_id=row["fallback_model_id"],
    )


def asking_of(state: ChatState, content: str | None) -> tuple[OpenAction, ...]:
    """Return the calls of a message that nobody has answered yet."""
    if content is None:
        return ()
    asked = {call.tool_call_id: call for call in state.pending if call.is_asked}
    return tuple(
        OpenAction(
            asked[part.tool_call_id],
            asking_call(asked[part.tool_call_id], part),
            expires_at(state, asked[part.tool_call_id]),
        )
        for part in parts_from_json(content)
        if isinstance(part, ToolCall) and part.tool_call_id in asked
    )


def ended_actions_of(text: str | None) -> tuple[EndedAction, ...]:
    """Return how actions ended, from the value of `ENDED_ACTIONS`."""
    return () if text is None else _ended_decoder.decode(text)


def labels_to_json(labels: dict[str, str]) -> str:
    """Return the stored form of labels."""
    return _encoder.encode(labels).decode()
