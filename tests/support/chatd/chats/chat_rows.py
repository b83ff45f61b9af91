"""Chats in any state, put straight into PostgreSQL."""

from chatd.chats.domain.chat import ChatState
from chatd.chats.store.codec import error_to_json, pending_to_json, retry_to_json, revert_to_json
from chatd.primitives.domain.ids import Owner
from parley.postgres import Pool

INSERT = """
    WITH chat AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id,
            model_id, reasoning_effort, mode, mcp_server_ids, labels, pin_order, summary,
            last_turn_summary, client_tools, last_read_message_id, created_at)
        VALUES ($1, $2, $3, 'test', true, $1, '', '', '', '{}', '{}', 0, '', '', '[]', 0, now()))
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, worker_id, takeovers, pending, compactions, is_compaction_requested,
        deadline_at, last_error, retry, changed_at, changed_xid, revert)
    VALUES ($1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17::text::json, $18,
        $19, $20, $21::text::json, $22::text::json, now() - make_interval(secs => $23),
        pg_current_xact_id(), $24::text::json)
"""


async def insert_chat(pool: Pool, state: ChatState, owner: Owner, *, age_s: float = 0.0) -> None:
    """Store a chat without messages that last changed `age_s` ago."""
    await pool.execute(
        INSERT,
        state.chat_id,
        owner.id,
        owner.role,
        state.status,
        state.archived,
        state.snapshot_version,
        state.history_version,
        state.queue_version,
        state.retry_version,
        state.generation_attempt,
        state.next_message_id,
        state.turn_id,
        state.queue_length,
        state.owner_epoch,
        state.worker_id,
        state.takeovers,
        pending_to_json(state.pending),
        state.compactions,
        state.is_compaction_requested,
        state.deadline_at,
        error_to_json(state.last_error),
        retry_to_json(state.retry),
        age_s,
        revert_to_json(state.revert),
    )
