"""The statement that executes a decision: one guarded UPDATE and its dependent writes.

The guard is the only place where the execution row changes. The text depends only on which kinds of
write a decision has, so that each shape is prepared once per connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.writes import ClearQueue, EndActions
from chatd.chats.store.clauses import CHOICE, Clause, clause_of, numbered
from chatd.chats.store.codec import error_to_json, pending_to_json, retry_to_json, revert_to_json
from chatd.chats.store.rows import queue_column
from chatd.primitives.domain.ids import MessageId
from chatd.primitives.domain.requests import ClientKey

STATE_COLUMNS = """
    e.chat_id, e.status, e.archived, e.snapshot_version, e.history_version, e.queue_version,
    e.retry_version, e.generation_attempt, e.next_message_id, e.turn_id, e.queue_length,
    e.owner_epoch, e.worker_id, e.takeovers, e.pending::text AS pending, e.compactions,
    e.is_compaction_requested, e.deadline_at, e.last_error::text AS last_error,
    e.retry::text AS retry, e.revert::text AS revert, e.changed_at
"""

# The order in which a statement locks several executions `e`, against deadlocks: a chat before the
# agents below it, as a tool locks the execution of its chat and then that of an agent; chats of the
# same depth by id.
LOCK_ORDER = """
    ORDER BY (
        WITH RECURSIVE above AS (
            SELECT c.parent_chat_id FROM chat.chats c WHERE c.id = e.chat_id
            UNION ALL
            SELECT c.parent_chat_id FROM above JOIN chat.chats c ON c.id = above.parent_chat_id)
        SELECT count(*) FROM above), e.chat_id
"""

# May run: checked by Ownership, process.
SELECT_STATE = f"SELECT {STATE_COLUMNS} FROM chat.chat_exec e WHERE e.chat_id = $1"

# May run: checked by Ownership, process.
SELECT_KEY = "SELECT 1 FROM chat.client_keys WHERE chat_id = $1 AND key = $2"

# A worker may claim only while its lease is valid for some seconds more and it is not draining.
_GUARD = """
    WITH guard AS (
        UPDATE chat.chat_exec SET
            status = $3, archived = $4, snapshot_version = $5, history_version = $6,
            queue_version = $7, retry_version = $8, generation_attempt = $9,
            next_message_id = $10, turn_id = $11, queue_length = $12, owner_epoch = $13,
            worker_id = $14, takeovers = $15, pending = $16::text::json, compactions = $17,
            is_compaction_requested = $18,
            deadline_at = coalesce(clock_timestamp() + $19::float8 * interval '1 second', $20),
            last_error = $21::text::json, retry = $22::text::json, revert = $23::text::json,
            changed_at = clock_timestamp(), changed_xid = pg_current_xact_id()
        WHERE chat_id = $1 AND snapshot_version = $2
            AND ($24::uuid IS NULL OR EXISTS (SELECT 1 FROM chat.workers
                WHERE id = $24 AND NOT is_draining
                    AND lease_until > clock_timestamp() + interval '3 seconds')){held}
        RETURNING chat_id, snapshot_version, queue_version, turn_id, owner_epoch, changed_at,
            deadline_at)
"""
GUARD = _GUARD.format(held="")
# The same for what a tool of another chat does, which keeps its owner and turn until the commit:
# the agents of a chat that is interrupted were stopped, and a late message would start one again.
GUARD_UNDER_CLAIM = _GUARD.format(
    held="""
            AND EXISTS (SELECT 1 FROM chat.chat_exec acting
                WHERE acting.chat_id = $25 AND acting.owner_epoch = $26
                    AND acting.turn_id = $27 AND acting.status = 'running' FOR SHARE)"""
)

# The model of a turn is the choice of its message, completed by the chat's last one; the chat
# stores it for the next one. PostgreSQL executes only one of two updates of a row in one statement,
# so there is one for the model and the mode. The row is locked after its execution, as everywhere.
REMEMBER_MODEL = """
    remembered AS (
        UPDATE chat.chats c SET model_id = chosen.model_id,
            reasoning_effort = chosen.reasoning_effort
        FROM guard, chosen
        WHERE c.id = guard.chat_id
            AND (c.model_id, c.reasoning_effort) <> (chosen.model_id, chosen.reasoning_effort))
"""
STORE_MODE = """
    moded AS (
        UPDATE chat.chats c SET mode = next_mode.mode FROM guard, next_mode
        WHERE c.id = guard.chat_id)
"""
STORE_BOTH = """
    remembered AS (
        UPDATE chat.chats c SET model_id = chosen.model_id,
            reasoning_effort = chosen.reasoning_effort, mode = coalesce(next_mode.mode, c.mode)
        FROM guard CROSS JOIN chosen LEFT JOIN next_mode ON true
        WHERE c.id = guard.chat_id)
"""
CHANGES_OF_CHAT = {
    (True, False): (REMEMBER_MODEL,),
    (False, True): (STORE_MODE,),
    (True, True): (STORE_BOTH,),
    (False, False): (),
}

# The data for the response to a repeated request: the turn's message, and whether the queue changed
# instead. The time is that of all rows that the statement writes.
_STORE_KEY = """
    keyed AS (
        INSERT INTO chat.client_keys
            (chat_id, key, body_hash, snapshot_version, outcome, created_at)
        SELECT chat_id, {{p1}}::text, {{p2}}::bytea, snapshot_version,
            json_build_object(
                'turn_id', turn_id, 'is_queued', queue_version = snapshot_version,
                'answered', {{p3}}::text{dropped}),
            changed_at
        FROM guard)
"""
STORE_KEY = _STORE_KEY.format(dropped="")
# The same for a statement that drops the queue: its content, which its snapshot still shows.
STORE_KEY_DROPPING = _STORE_KEY.format(dropped=f", 'dropped', {queue_column('guard.chat_id')}")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its arguments."""

    text: str
    arguments: Sequence[object]


def decision_statement(
    seen: ChatState, decision: Decision, client_key: ClientKey | None = None
) -> Statement:
    """Return the one statement that executes `decision` if the chat is still as `seen`.

    It returns one row with `changed_at`, `deadline_at` and the model `choice` of a turn that it
    starts, or none when the chat has changed, the claiming worker may not claim, or the claim of
    the decision is lost.
    """
    arguments = [seen.chat_id, seen.snapshot_version, *_state_arguments(seen, decision)]
    if decision.claim is not None:
        claim = decision.claim
        arguments += (claim.chat_id, claim.owner_epoch, claim.turn_id)
    clauses: list[Clause] = []
    next_id = seen.next_message_id
    for write in decision.writes:
        clause = clause_of(write, next_id)
        clauses.append(clause)
        next_id = MessageId(next_id + clause.message_count)
    if client_key is not None:
        is_dropping = any(isinstance(write, ClearQueue) for write in decision.writes)
        store_key = STORE_KEY_DROPPING if is_dropping else STORE_KEY
        answered = next(
            (each.answers[0].action_id for each in decision.writes if isinstance(each, EndActions)),
            None,
        )
        clauses.append(Clause(store_key, (client_key.key, client_key.body_hash, answered)))
    shape = tuple((clause.text, len(clause.arguments)) for clause in clauses)
    is_choosing = any(clause.is_choosing for clause in clauses)
    is_setting_mode = any(clause.is_setting_mode for clause in clauses)
    guard = GUARD if decision.claim is None else GUARD_UNDER_CLAIM
    text = _text(
        guard, shape, len(arguments), is_choosing=is_choosing, is_setting_mode=is_setting_mode
    )
    for clause in clauses:
        arguments.extend(clause.arguments)
    return Statement(text, tuple(arguments))


# There are few shapes, and a cache of prepared statements finds an identical string faster than an
# equal one.
@lru_cache(maxsize=256)
def _text(
    guard: str,
    shape: tuple[tuple[str, int], ...],
    offset: int,
    *,
    is_choosing: bool,
    is_setting_mode: bool,
) -> str:
    """Return the statement of clauses with these texts and numbers of arguments."""
    clauses = [guard]
    for clause, count in shape:
        clauses.append(numbered(clause, count, offset))
        offset += count
    clauses += CHANGES_OF_CHAT[is_choosing, is_setting_mode]
    choice = f"(SELECT {CHOICE} FROM chosen)" if is_choosing else "NULL"
    answer = f"SELECT changed_at, deadline_at, {choice}::text AS choice FROM guard"
    return ",".join(clauses) + answer


def _state_arguments(seen: ChatState, decision: Decision) -> tuple[object, ...]:
    state = decision.state
    is_claimed_anew = state.worker_id is not None and state.owner_epoch != seen.owner_epoch
    return (
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
        decision.deadline_s,
        state.deadline_at,
        error_to_json(state.last_error),
        retry_to_json(state.retry),
        revert_to_json(state.revert),
        state.worker_id if is_claimed_anew else None,
    )
