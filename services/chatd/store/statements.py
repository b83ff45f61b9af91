"""The statements of the hot path: a decision becomes one guarded UPDATE and what hangs on it.

The guard is the only place where the execution row changes. Every other clause selects from its
RETURNING, so that a lost race writes nothing at all. The text depends only on which kinds of write
a decision has, so that each shape is prepared once per connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from chatd.domain.chat import ChatState
from chatd.domain.transitions import Decision
from chatd.domain.writes import AppendMessages, RecordDispatches, Write
from chatd.store.codec import error_to_json, parts_to_json

STATE_COLUMNS = """
    e.chat_id, e.status, e.snapshot_version, e.history_version, e.generation_attempt,
    e.next_message_id, e.owner_epoch, e.worker_id, e.last_error::text AS last_error, e.changed_at
"""

SELECT_STATE = f"SELECT {STATE_COLUMNS} FROM chat.chat_exec e WHERE e.chat_id = $1"

GUARD = """
    WITH guard AS (
        UPDATE chat.chat_exec SET
            status = $3, snapshot_version = $4, history_version = $5, generation_attempt = $6,
            next_message_id = $7, owner_epoch = $8, worker_id = $9, last_error = $10::text::json,
            changed_at = clock_timestamp()
        WHERE chat_id = $1 AND snapshot_version = $2
        RETURNING chat_id, snapshot_version, next_message_id, owner_epoch, changed_at)
"""

INSERT_CHAT = """
    WITH chat AS (
        INSERT INTO chat.chats (id, owner_id, title) VALUES ($1, $2, $3)
        ON CONFLICT DO NOTHING RETURNING id, created_at),
    execution AS (
        INSERT INTO chat.chat_exec (chat_id, status, snapshot_version, history_version,
            generation_attempt, next_message_id, owner_epoch, worker_id, changed_at)
        SELECT id, $4, $5, $6, $7, $8, $9, $10, created_at FROM chat),
    messages AS (
        INSERT INTO chat.chat_messages
            (chat_id, id, revision, role, content, created_by, created_at)
        SELECT id, 1, $5, 'user', $11::text::json, $12, created_at FROM chat)
    SELECT created_at FROM chat
"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its arguments."""

    text: str
    arguments: Sequence[object]


def decision_statement(seen_version: int, decision: Decision) -> Statement:
    """Return the one statement that executes `decision` if the chat is still at `seen_version`.

    It answers one row with `changed_at`, or none when somebody else moved the chat.
    """
    clauses = [GUARD]
    arguments: list[object] = [
        decision.state.chat_id,
        seen_version,
        *_state_arguments(decision.state),
    ]
    for write in decision.writes:
        clauses.append(_clause(write, len(arguments)))
        arguments.extend(_arguments(write))
    return Statement(",".join(clauses) + "SELECT changed_at FROM guard", arguments)


def _state_arguments(state: ChatState) -> tuple[object, ...]:
    return (
        state.status,
        state.snapshot_version,
        state.history_version,
        state.generation_attempt,
        state.next_message_id,
        state.owner_epoch,
        state.worker_id,
        error_to_json(state.last_error),
    )


def _clause(write: Write, offset: int) -> str:
    """Return the clause of `write`, whose arguments follow the first `offset`."""
    one, two, three, four = (f"${offset + place}" for place in (1, 2, 3, 4))
    match write:
        case AppendMessages():
            return f"""
    messages AS (
        INSERT INTO chat.chat_messages
            (chat_id, id, revision, role, content, created_by, created_at)
        SELECT chat_id, next_message_id - cardinality({one}::text[]) + place - 1,
            snapshot_version, role, content::json, created_by, changed_at
        FROM guard, unnest({one}::text[], {two}::text[], {three}::text[])
            WITH ORDINALITY AS new (role, content, created_by, place))
"""
        case RecordDispatches():
            return f"""
    dispatches AS (
        INSERT INTO chat.tool_calls (execution_id, chat_id, message_id, tool_name, executor,
            owner_epoch, journal_generation, dispatched_at)
        SELECT execution_id, chat_id, next_message_id - 1, tool_name, executor,
            owner_epoch, journal_generation, changed_at
        FROM guard, unnest({one}::uuid[], {two}::text[], {three}::text[], {four}::text[])
            AS new (execution_id, tool_name, executor, journal_generation))
"""
        case _:
            assert_never(write)


def _arguments(write: Write) -> tuple[object, ...]:
    match write:
        case AppendMessages(messages):
            return (
                [message.role for message in messages],
                [parts_to_json(message.content) for message in messages],
                [message.created_by for message in messages],
            )
        case RecordDispatches(dispatches):
            return (
                [dispatch.execution_id for dispatch in dispatches],
                [dispatch.call.tool_name for dispatch in dispatches],
                [dispatch.executor for dispatch in dispatches],
                [dispatch.journal_generation for dispatch in dispatches],
            )
        case _:
            assert_never(write)
