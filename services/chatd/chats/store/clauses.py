"""Each kind of write as a clause of the statement that executes a decision.

Every clause selects from `guard`, the one UPDATE of the execution row, so that a lost race writes
nothing at all. Message ids are arguments: a decision numbers its messages itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from chatd.chats.domain.chat import NewMessage, RevertKind
from chatd.chats.domain.tool_results import synthetic_result
from chatd.chats.domain.writes import (
    AnswerPending,
    AppendMessages,
    CancelActions,
    CancelCalls,
    ChangeQueued,
    ClearQueue,
    DeleteMessagesFrom,
    DropQueued,
    EndActions,
    EnqueueMessage,
    EnterBill,
    MoveToHead,
    OpenActions,
    PromoteHead,
    RecordDispatches,
    RecordRevert,
    RememberCall,
    RestoreMessages,
    SetMode,
    StartDeadlines,
    StoreResult,
    Write,
)
from chatd.chats.store.codec import (
    CONTENT_VERSION,
    choice_to_json,
    parts_to_json,
    pending_to_json,
    result_to_json,
    text_as_stored,
)
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import MessageId
from chatd.spend.store.ledger import ENTER_BILL, entry_arguments
from chatd.spend.store.use_codec import use_to_json

ActionWrite = (
    OpenActions | StartDeadlines | EndActions | CancelActions | CancelCalls | RememberCall | SetMode
)


@dataclass(frozen=True, slots=True)
class Clause:
    """Text with placeholders `{p1}`, `{p2}`, ... for its arguments, and how many ids it uses."""

    text: str
    arguments: Sequence[object]
    message_count: int = 0
    is_choosing: bool = False  # Whether it returns the model of a turn as `chosen`.
    is_setting_mode: bool = False  # Whether it returns the mode of the chat as `next_mode`.


CHOICE = """
    json_build_object('model_id', chosen.model_id, 'reasoning_effort', chosen.reasoning_effort)
"""

APPEND_MESSAGES = """
    appended AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at, use,
            finish_reason, origin)
        SELECT chat_id, new.id, snapshot_version, role, visibility, content::json,
            {content_version}, is_compressed, false, created_by, changed_at, use::json,
            new.finish_reason, new.origin
        FROM guard, unnest({p1}::bigint[], {p2}::text[], {p3}::text[], {p4}::text[],
            {p5}::boolean[], {p6}::text[], {p7}::text[], {p8}::text[], {p9}::text[])
            AS new (id, role, visibility, content, is_compressed, created_by, use, finish_reason,
                origin))
"""
ANSWER_PENDING = """
    answered AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at)
        SELECT guard.chat_id, new.id, snapshot_version, 'tool', 'both',
            CASE WHEN new.is_given OR coalesce(calls.result, actions.result) IS NULL
                 THEN new.content::json
                 ELSE json_build_array(coalesce(calls.result, actions.result)) END,
            {content_version}, false, false,
            CASE WHEN new.is_given THEN {p5}::text ELSE coalesce(actions.ended_by, '') END,
            changed_at
        FROM guard, unnest({p1}::bigint[], {p2}::uuid[], {p3}::text[], {p4}::boolean[])
            AS new (id, execution_id, content, is_given)
        LEFT JOIN chat.tool_calls calls ON calls.execution_id = new.execution_id
        LEFT JOIN chat.chat_actions actions ON actions.id = new.execution_id)
"""
APPEND_TURN = f"""
    chosen AS (
        SELECT coalesce(nullif({{p5}}::text, ''), c.model_id) AS model_id,
            coalesce(nullif({{p6}}::text, ''), c.reasoning_effort) AS reasoning_effort
        FROM guard JOIN chat.chats c ON c.id = guard.chat_id),
    appended AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at, choice, origin)
        SELECT chat_id, {{p1}}::bigint, snapshot_version, 'user', {{p2}}::text, {{p3}}::text::json,
            {{content_version}}, false, false, {{p4}}::text, changed_at, {CHOICE}, {{p7}}::text
        FROM guard, chosen)
"""
RECORD_DISPATCHES = """
    dispatched AS (
        INSERT INTO chat.tool_calls (execution_id, chat_id, message_id, tool_call_id, tool_name,
            executor, owner_epoch, journal_generation, mode, arguments_digest, dispatched_at)
        SELECT new.execution_id, chat_id, {p1}::bigint, new.tool_call_id, new.tool_name,
            new.executor, owner_epoch, new.journal_generation, new.mode, new.arguments_digest,
            changed_at
        FROM guard, unnest({p2}::uuid[], {p3}::text[], {p4}::text[], {p5}::text[], {p6}::text[],
            {p7}::text[], {p8}::text[])
            AS new (execution_id, tool_call_id, tool_name, executor, journal_generation, mode,
                arguments_digest))
"""
STORE_RESULT = """
    recorded AS (
        UPDATE chat.tool_calls SET result = {p2}::text::json, finished_at = guard.changed_at
        FROM guard WHERE execution_id = {p1}::uuid)
"""
OPEN_ACTIONS = """
    opened AS (
        INSERT INTO chat.chat_actions (id, chat_id, message_id, tool_call_id, tool_name,
            mcp_server_id, kind, arguments, reason, mode, deadline_s, created_at)
        SELECT new.id, chat_id, {p1}::bigint, new.tool_call_id, new.tool_name, new.mcp_server_id,
            new.kind, new.arguments::json, new.reason, new.mode, new.deadline_s, changed_at
        FROM guard, unnest({p2}::uuid[], {p3}::text[], {p4}::text[], {p5}::text[], {p6}::text[],
            {p7}::text[], {p8}::text[], {p9}::text[], {p10}::float8[])
            AS new (id, tool_call_id, tool_name, mcp_server_id, kind, arguments, reason, mode,
                deadline_s))
"""
START_DEADLINES = """
    asked AS (
        UPDATE chat.chat_actions SET asked_at = guard.changed_at,
            deadline_at = guard.deadline_at + interval '1 second' * (deadline_s
                - (SELECT min(first.deadline_s) FROM chat.chat_actions first
                    WHERE first.chat_id = guard.chat_id AND first.ended_at IS NULL))
        FROM guard WHERE chat_actions.chat_id = guard.chat_id AND ended_at IS NULL)
"""
END_ACTIONS = """
    ended AS (
        UPDATE chat.chat_actions SET ended_at = guard.changed_at,
            ended_version = guard.snapshot_version, outcome = {p1}::text,
            ended_by = {p2}::text, answer = told.answer::json, result = told.result::json
        FROM guard, unnest({p3}::uuid[], {p4}::text[], {p5}::text[]) AS told (id, answer, result)
        WHERE chat_actions.id = told.id AND ended_at IS NULL)
"""
CANCEL_ACTIONS = """
    cancelled AS (
        UPDATE chat.chat_actions SET ended_at = guard.changed_at,
            ended_version = guard.snapshot_version, outcome = 'cancelled'
        FROM guard WHERE chat_actions.chat_id = guard.chat_id AND ended_at IS NULL)
"""
# Repeated cancellations of a call are one. Calls of this service end with the task that runs them.
CANCEL_CALLS = """
    given_up AS (
        INSERT INTO chat.cancelled_calls (execution_id, chat_id, owner_id, owner_role,
            tool_call_id, tool_name, executor, journal_generation, owner_epoch, created_at, try_at)
        SELECT t.execution_id, t.chat_id, c.owner_id, c.owner_role, t.tool_call_id, t.tool_name,
            t.executor, t.journal_generation, guard.owner_epoch, changed_at, changed_at
        FROM guard JOIN chat.chats c ON c.id = guard.chat_id
        JOIN chat.tool_calls t ON t.chat_id = guard.chat_id AND t.execution_id = ANY ({p1}::uuid[])
            AND t.executor <> 'chatd'
        ON CONFLICT (execution_id) DO NOTHING)
"""
REMEMBER_CALL = """
    kept AS (
        INSERT INTO chat.approval_rules (scope, user_id, chat_id, id, effect, tool, server_id,
            modes, command, arguments, reason, is_rememberable, is_for_tainted, digest, version,
            request_hash, created_at)
        SELECT 'chat', NULL, {p2}::uuid, {p1}::uuid, 'allow', {p3}::text,
            nullif({p4}::text, '')::uuid, '{{}}', '', '{{}}', {p5}::text, false, {p6}::boolean,
            {p7}::text, 1, '', changed_at
        FROM guard WHERE {p8}::bigint > (SELECT count(*) FROM chat.approval_rules
            WHERE chat_id = {p2}::uuid AND id <> {p1}::uuid)
        ON CONFLICT (id) DO UPDATE SET reason = excluded.reason,
            is_for_tainted = excluded.is_for_tainted, version = approval_rules.version + 1)
"""
SET_MODE = """
    next_mode AS (SELECT {p1}::text AS mode FROM guard)
"""
ENQUEUE_MESSAGE = """
    enqueued AS (
        INSERT INTO chat.chat_queue (chat_id, id, position, content, content_version, created_by,
            created_at, choice, origin)
        SELECT chat_id, {p1}::uuid, 1 + coalesce((SELECT max(position) FROM chat.chat_queue behind
                WHERE behind.chat_id = guard.chat_id), 0),
            {p2}::text::json, {content_version}, {p3}::text, changed_at, {p4}::text::json,
            {p5}::text
        FROM guard)
"""
DROP_QUEUED = """
    dropped AS (
        DELETE FROM chat.chat_queue USING guard
        WHERE chat_queue.chat_id = guard.chat_id AND id = {p1}::uuid)
"""
# Of the others the n-th gets the position 2n, so that odd positions are between them.
CHANGE_QUEUED = """
    changed AS (
        UPDATE chat.chat_queue SET
            position = CASE WHEN {p4}::integer IS NULL THEN chat_queue.position
                ELSE placed.position END,
            content = CASE WHEN placed.is_meant THEN coalesce({p2}::text::json, chat_queue.content)
                ELSE chat_queue.content END,
            content_version = CASE WHEN placed.is_meant AND {p2}::text IS NOT NULL
                THEN {content_version} ELSE chat_queue.content_version END,
            choice = CASE WHEN placed.is_meant THEN coalesce({p3}::text::json, chat_queue.choice)
                ELSE chat_queue.choice END,
            origin = CASE WHEN placed.is_meant THEN coalesce({p5}::text, chat_queue.origin)
                ELSE chat_queue.origin END
        FROM guard, LATERAL (
            SELECT each.id, each.id = {p1}::uuid AS is_meant,
                CASE WHEN each.id = {p1}::uuid THEN 2 * {p4}::integer - 1
                    ELSE 2 * row_number() OVER (PARTITION BY each.id = {p1}::uuid
                        ORDER BY each.position, each.id) END AS position
            FROM chat.chat_queue each WHERE each.chat_id = guard.chat_id) placed
        WHERE chat_queue.chat_id = guard.chat_id AND chat_queue.id = placed.id
            AND (placed.is_meant OR {p4}::integer IS NOT NULL))
"""
MOVE_TO_HEAD = """
    reordered AS (
        UPDATE chat.chat_queue SET position = (SELECT min(position) - 1
            FROM chat.chat_queue before WHERE before.chat_id = guard.chat_id)
        FROM guard WHERE chat_queue.chat_id = guard.chat_id AND id = {p1}::uuid)
"""
PROMOTE_HEAD = f"""
    head AS (
        DELETE FROM chat.chat_queue USING guard
        WHERE chat_queue.chat_id = guard.chat_id
            AND id = coalesce({{p2}}::uuid, (SELECT first.id FROM chat.chat_queue first
                WHERE first.chat_id = guard.chat_id ORDER BY position, id LIMIT 1))
        RETURNING content, chat_queue.content_version, created_by, choice, origin),
    chosen AS (
        SELECT coalesce(nullif(head.choice ->> 'model_id', ''), c.model_id) AS model_id,
            coalesce(nullif(head.choice ->> 'reasoning_effort', ''), c.reasoning_effort)
                AS reasoning_effort
        FROM head, guard JOIN chat.chats c ON c.id = guard.chat_id),
    promoted AS (
        INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
            content_version, is_compressed, is_deleted, created_by, created_at, choice, origin)
        SELECT chat_id, {{p1}}::bigint, snapshot_version, 'user', 'both', head.content,
            head.content_version, false, false, head.created_by, changed_at, {CHOICE}, head.origin
        FROM guard, head, chosen)
"""
CLEAR_QUEUE = """
    cleared AS (
        DELETE FROM chat.chat_queue USING guard WHERE chat_queue.chat_id = guard.chat_id)
"""
DELETE_MESSAGES = """
    deleted AS (
        UPDATE chat.chat_messages SET is_deleted = true, revision = guard.snapshot_version
        FROM guard
        WHERE chat_messages.chat_id = guard.chat_id AND id >= {p1}::bigint AND NOT is_deleted)
"""
RESTORE_MESSAGES = """
    restored AS (
        UPDATE chat.chat_messages SET is_deleted = false, revision = guard.snapshot_version
        FROM guard
        WHERE chat_messages.chat_id = guard.chat_id AND is_deleted AND revision = {p1}::bigint)
"""
RECORD_REVERT = """
    reverted AS (
        INSERT INTO chat.chat_reverts (id, chat_id, kind, message_id, restores_files, undone_id,
            undone_version, open_calls, version, report, created_at, replacement_id,
            deleted_version)
        SELECT {p1}::uuid, chat_id, {p2}::text, {p3}::bigint, {p4}::boolean, {p5}::uuid,
            {p6}::bigint, {p7}::text::json, snapshot_version, {p8}::bytea, changed_at,
            {p9}::bigint, {p10}::bigint
        FROM guard)
"""
# Accepting a plan ends plan mode. A chat that goes back to before that is in the mode in which the
# first of the plans was proposed; when it comes back, the plan is accepted again. The undo of an
# edit does both: a plan that comes back counts more than one of the turn that it deletes.
ACCEPTED_PLANS = """
    SELECT a.mode, m.is_deleted FROM chat.chat_actions a
    JOIN chat.chat_messages m ON m.chat_id = a.chat_id AND m.id = a.message_id
    WHERE a.chat_id = guard.chat_id AND a.kind = 'plan' AND a.answer ->> 'accepted' = 'true'
"""
RECORD_REVERT_OF = {
    RevertKind.EDIT: RECORD_REVERT,
    RevertKind.HISTORY: f"""
    next_mode AS (
        SELECT plan.mode FROM guard, LATERAL ({ACCEPTED_PLANS}
            AND m.id >= {{p3}}::bigint AND NOT m.is_deleted ORDER BY m.id LIMIT 1) plan),
    {RECORD_REVERT}""",
    RevertKind.UNDO: f"""
    next_mode AS (
        SELECT CASE WHEN plan.is_deleted THEN '' ELSE plan.mode END AS mode
        FROM guard, LATERAL ({ACCEPTED_PLANS}
            AND (m.is_deleted AND m.revision = {{p6}}::bigint
                OR NOT m.is_deleted AND {{p9}}::bigint > 0 AND m.id >= {{p9}}::bigint)
            ORDER BY m.is_deleted DESC, m.id LIMIT 1) plan),
    {RECORD_REVERT}""",
}


def clause_of(write: Write, next_id: MessageId) -> Clause:
    """Return the clause of a write whose first message gets `next_id`."""
    if isinstance(write, ActionWrite):
        return _action_clause(write)
    match write:
        case AppendMessages((NewMessage(choice=ModelChoice() as choice) as message,)):
            return _append_turn(message, choice, next_id)
        case AppendMessages(messages):
            return _append(messages, next_id)
        case AnswerPending():
            return _answer_pending(write, next_id)
        case RecordDispatches(message_id, dispatches):
            called = [dispatch.call for dispatch in dispatches]
            return Clause(
                RECORD_DISPATCHES,
                (
                    message_id,
                    [dispatch.execution_id for dispatch in dispatches],
                    [call.tool_call_id for call in called],
                    [call.tool_name for call in called],
                    [dispatch.executor for dispatch in dispatches],
                    [dispatch.journal_generation for dispatch in dispatches],
                    [dispatch.mode for dispatch in dispatches],
                    [dispatch.arguments_digest for dispatch in dispatches],
                ),
            )
        case StoreResult(call, result):
            return Clause(STORE_RESULT, (call.execution_id, result_to_json(result)))
        case EnqueueMessage() | DropQueued() | ChangeQueued() | MoveToHead() | ClearQueue():
            return _queue_clause(write)
        case PromoteHead(head):
            return Clause(PROMOTE_HEAD, (next_id, head), 1, is_choosing=True)
        case DeleteMessagesFrom(message_id):
            return Clause(DELETE_MESSAGES, (message_id,))
        case RestoreMessages(version):
            return Clause(RESTORE_MESSAGES, (version,))
        case RecordRevert(revert, report):
            return Clause(
                RECORD_REVERT_OF[revert.kind],
                (
                    revert.revert_id,
                    revert.kind,
                    revert.message_id,
                    revert.restores_files,
                    revert.undone_id,
                    revert.undone_version,
                    pending_to_json(revert.open_calls),
                    report,
                    revert.replacement_id,
                    revert.deleted_version,
                ),
                is_setting_mode=revert.kind is not RevertKind.EDIT,
            )
        case EnterBill(entry):
            return Clause(ENTER_BILL, entry_arguments(entry))
        case _:
            assert_never(write)


def _answer_pending(write: AnswerPending, next_id: MessageId) -> Clause:
    calls = write.calls
    given = {result.tool_call_id: result for result in write.given}
    contents = [
        parts_to_json((given.get(call.tool_call_id) or synthetic_result(call, write.reason),))
        for call in calls
    ]
    arguments = (
        list(range(next_id, next_id + len(calls))),
        [call.execution_id for call in calls],
        contents,
        [call.tool_call_id in given for call in calls],
        write.given_by,
    )
    return Clause(ANSWER_PENDING, arguments, len(calls))


def _queue_clause(
    write: EnqueueMessage | DropQueued | ChangeQueued | MoveToHead | ClearQueue,
) -> Clause:
    match write:
        case EnqueueMessage(queued_message_id, message):
            content = parts_to_json(message.content)
            wish = choice_to_json(message.choice)
            sender = (message.created_by, wish, message.origin)
            return Clause(ENQUEUE_MESSAGE, (queued_message_id, content, *sender))
        case DropQueued(queued_message_id):
            return Clause(DROP_QUEUED, (queued_message_id,))
        case ChangeQueued(queued_message_id, new, wanted, place, origin):
            text = None if new is None else parts_to_json(new)
            changed = (text, choice_to_json(wanted), place, origin)
            return Clause(CHANGE_QUEUED, (queued_message_id, *changed))
        case MoveToHead(queued_message_id):
            return Clause(MOVE_TO_HEAD, (queued_message_id,))
        case ClearQueue():
            return Clause(CLEAR_QUEUE, ())
        case _:
            assert_never(write)


def _action_clause(
    write: ActionWrite,
) -> Clause:
    match write:
        case OpenActions(message_id, asked):
            pending = [each.pending for each in asked]
            return Clause(
                OPEN_ACTIONS,
                (
                    message_id,
                    [call.action_id for call in pending],
                    [call.tool_call_id for call in pending],
                    [call.tool_name for call in pending],
                    [call.mcp_server_id for call in pending],
                    [call.kind for call in pending],
                    [text_as_stored(each.call.args_json) for each in asked],
                    [call.reason for call in pending],
                    [each.mode for each in asked],
                    [call.deadline_s for call in pending],
                ),
            )
        case StartDeadlines():
            return Clause(START_DEADLINES, ())
        case EndActions(answers, outcome, ended_by):
            results = [each.result for each in answers]
            return Clause(
                END_ACTIONS,
                (
                    outcome,
                    ended_by,
                    [each.action_id for each in answers],
                    [text_as_stored(each.answer_json) for each in answers],
                    [None if each is None else result_to_json(each) for each in results],
                ),
            )
        case CancelActions():
            return Clause(CANCEL_ACTIONS, ())
        case CancelCalls(execution_ids):
            return Clause(CANCEL_CALLS, (list(execution_ids),))
        case RememberCall(call):
            return Clause(
                REMEMBER_CALL,
                (
                    call.rule_id,
                    call.root_chat_id,
                    call.tool,
                    call.server_id,
                    call.reason,
                    call.is_for_tainted,
                    call.digest,
                    call.rules_max,
                ),
            )
        case SetMode(mode):
            return Clause(SET_MODE, (mode,), is_setting_mode=True)
        case _:
            assert_never(write)


def numbered(text: str, count: int, offset: int) -> str:
    """Return a clause's text for arguments after the first `offset` of a statement."""
    places = {f"p{place}": f"${offset + place}" for place in range(1, count + 1)}
    return text.format_map({**places, "content_version": str(CONTENT_VERSION)})


def _append_turn(message: NewMessage, choice: ModelChoice, next_id: MessageId) -> Clause:
    """Return the clause of the one message that begins a turn."""
    arguments = (
        next_id,
        message.visibility,
        parts_to_json(message.content),
        message.created_by,
        choice.model_id,
        choice.reasoning_effort,
        message.origin,
    )
    return Clause(APPEND_TURN, arguments, 1, is_choosing=True)


def _append(messages: tuple[NewMessage, ...], next_id: MessageId) -> Clause:
    return Clause(
        APPEND_MESSAGES,
        (
            list(range(next_id, next_id + len(messages))),
            [message.role for message in messages],
            [message.visibility for message in messages],
            [parts_to_json(message.content) for message in messages],
            [message.is_compressed for message in messages],
            [message.created_by for message in messages],
            [use_to_json(message.use) for message in messages],
            [message.finish_reason for message in messages],
            [message.stored_origin for message in messages],
        ),
        len(messages),
    )
