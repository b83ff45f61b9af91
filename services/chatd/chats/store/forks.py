"""Copies chats: rows, history and links to files, in one statement."""

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.forks import Fork
from chatd.chats.store.codec import CONTENT_VERSION, parts_to_json
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import ClientKey
from parley.postgres import Pool

# Copy a chat at rest, for its owner; nothing if the id exists, or if a message up to the last one
# changed after the version $6 that was read.
# May run: owner.
INSERT_FORK = """
    WITH source AS (
        SELECT c.* FROM chat.chats c
        WHERE c.id = $1 AND c.owner_id = $2 AND NOT EXISTS (
            SELECT 1 FROM chat.chat_messages later
            WHERE later.chat_id = c.id AND later.id <= $5::bigint AND later.revision > $6::bigint)),
    made AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id,
            model_id, reasoning_effort, mode, workspace_id, mcp_server_ids, labels, client_tools,
            pin_order, summary, last_turn_summary, last_read_message_id, created_at,
            owner_group_ids, is_unattended, fallback_model_id)
        SELECT $3, owner_id, owner_role, $4, true, $3, model_id, reasoning_effort,
            CASE mode WHEN 'explore' THEN '' ELSE mode END, $7::uuid, mcp_server_ids, labels,
            client_tools, 0, '', '', $8::bigint - 1, clock_timestamp(), owner_group_ids,
            is_unattended, fallback_model_id
        FROM source
        ON CONFLICT DO NOTHING RETURNING id, created_at),
    execution AS (
        INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
            queue_version, retry_version, generation_attempt, next_message_id, turn_id,
            queue_length, owner_epoch, worker_id, takeovers, pending, compactions,
            is_compaction_requested, changed_at, changed_xid)
        SELECT id, 'waiting', false, 1, 1, 0, 0, 0, $8::bigint, $9::bigint, 0, 1, NULL, 0, '[]', 0,
            false, created_at, pg_current_xact_id()
        FROM made),
    copied AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at, use, choice,
            finish_reason, origin)
        SELECT made.id, said.id, 1, role, visibility, content, content_version, is_compressed,
            false, created_by, said.created_at, use, choice, finish_reason, origin
        FROM made, chat.chat_messages said
        WHERE said.chat_id = $1 AND said.id <= $5::bigint AND NOT said.is_deleted),
    given_up AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at)
        SELECT made.id, $5::bigint + new.place, 1, 'tool', 'both', new.content::json, $11::int,
            false, false, '', made.created_at
        FROM made, unnest($10::text[]) WITH ORDINALITY AS new (content, place)),
    keyed AS (
        INSERT INTO chat.client_keys
            (chat_id, key, body_hash, snapshot_version, outcome, created_at)
        SELECT id, $12::text, $13::bytea, 1,
            json_build_object('turn_id', $9::bigint, 'is_queued', false), created_at
        FROM made),
    linked AS (
        INSERT INTO chat.chat_files (chat_id, file_id)
        SELECT made.id, file.file_id FROM made, chat.chat_files file WHERE file.chat_id = $1)
    SELECT id FROM made
"""


class Forks:
    """Copies of chats in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(
        self,
        source_id: ChatId,
        new_id: ChatId,
        fork: Fork,
        *,
        owner_id: OwnerId,
        seen_version: int,
        title: str,
        workspace_id: str,
        client_key: ClientKey,
    ) -> ChatState | None:
        """Copy a chat; return the state of the copy, None if it exists or the source changed."""
        made = await self._pool.fetchval(
            INSERT_FORK,
            source_id,
            owner_id,
            new_id,
            title,
            fork.last_id,
            seen_version,
            workspace_id or None,
            fork.next_message_id,
            fork.turn_id,
            [parts_to_json((result,)) for result in fork.given_up],
            CONTENT_VERSION,
            client_key.key,
            client_key.body_hash,
        )
        if made is None:
            return None
        return ChatState(
            chat_id=new_id,
            status=Status.WAITING,
            snapshot_version=1,
            history_version=1,
            generation_attempt=0,
            next_message_id=fork.next_message_id,
            owner_epoch=1,
            turn_id=fork.turn_id,
        )
