"""What must be true of everything that is stored when a simulation is over."""

import json
from collections import Counter
from collections.abc import Iterator

from chatd.audit.histories import HISTORY_INVARIANTS, DispatchedCall
from chatd.audit.histories import StoredChat as AuditedChat
from chatd.audit.pairing import paired
from chatd.chats.domain.chat import ChatState, Message, Status
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch
from chatd.primitives.domain.ids import ExecutionId, MessageId
from support.chatd.chats.chat_machine import text_of
from support.chatd.chats.in_memory_chats import StoredAction, StoredChat
from support.simulation.database import SimulatedDatabase
from support.simulation.users import Request

OWNED = (Status.RUNNING, Status.INTERRUPTING)


def ownerless(database: SimulatedDatabase) -> Iterator[str]:
    """Find chats that should run and that nobody alive runs."""
    now = database.clock.now()
    for chat in database.chats.chats.values():
        state = chat.state
        row = None if state.worker_id is None else database.workers.rows.get(state.worker_id)
        if state.status in OWNED and (row is None or row.lease_until <= now):
            yield f"nobody runs it: {state}"


def violations(
    database: SimulatedDatabase,
    starts: Counter[ExecutionId],
    waiting: set[ExecutionId],
    requests: list[Request],
) -> Iterator[str]:
    """Find everything that is wrong at the end; `waiting` calls ask something at the executor."""
    yield from database.witness.violations
    known = {
        call.execution_id
        for chat in database.chats.chats.values()
        for call in chat.state.pending
        if call.is_suspended
    }
    for chat in database.chats.chats.values():
        known |= chat.cancelled
    for execution_id in waiting - known:
        yield f"execution {execution_id} waits for an answer that nobody is asked for"
    for execution_id, times in starts.items():
        if times > 1:
            yield f"execution {execution_id} was started {times} times"
    for chat in database.chats.chats.values():
        yield from _of_history(chat)
        yield from _of_numbers(chat)
        yield from _of_executions(chat, starts)
        yield from _of_actions(chat, starts)
        yield from _of_messages(chat, database)
        yield from _of_ledger(chat)
    for request in requests:
        yield from _of_request(request, database)
        yield from _of_answer(request, database)


def _of_history(chat: StoredChat) -> Iterator[str]:
    live = chat.live()
    audited = AuditedChat(
        chat.state,
        tuple(chat.messages),
        tuple(_row(chat, dispatch) for dispatch in chat.dispatches.values()),
        frozenset(),
        paired(live),
    )
    for invariant in HISTORY_INVARIANTS:
        for offender in invariant.check(audited):
            yield f"{invariant.name}: {offender} in {_told(live)}"


def _row(chat: StoredChat, dispatch: Dispatch) -> DispatchedCall:
    message_id = next(m.id for m in chat.messages if dispatch.call in m.content)
    return DispatchedCall(
        dispatch.execution_id,
        message_id,
        dispatch.call.tool_call_id,
        dispatch.call.tool_name,
        chat.results.get(dispatch.execution_id),
    )


def _of_numbers(chat: StoredChat) -> Iterator[str]:
    state = chat.state
    if [message.id for message in chat.messages] != list(range(1, state.next_message_id)):
        yield f"the messages are not numbered without a gap: {state}"
    revisions = [message.revision for message in chat.live()]
    if revisions != sorted(revisions) or any(each > state.history_version for each in revisions):
        yield f"the revisions do not grow with the history: {state}"
    if state.status is Status.WAITING and state.pending:
        yield f"it waits and owes results: {state}"
    if state.status not in OWNED and not _is_clean(state):
        yield f"it rests with something under way: {state}"


def _is_clean(state: ChatState) -> bool:
    episode = (state.generation_attempt, state.takeovers, state.retry, state.worker_id)
    return episode == (0, 0, None, None) and not state.is_compaction_requested


def _of_executions(chat: StoredChat, starts: Counter[ExecutionId]) -> Iterator[str]:
    """Find results of calls that never ran, and results that came in another order."""
    places: dict[MessageId, list[int]] = {}
    answers = {
        part.tool_call_id: place
        for place, message in enumerate(chat.messages)
        for part in message.content
        if isinstance(part, ToolResult)
    }
    asked = {action.asked.pending.execution_id for action in chat.actions.values()}
    for dispatch in _in_order_of_calls(chat):
        result = chat.results.get(dispatch.execution_id)
        is_done = result is not None and result.outcome is ToolOutcome.DONE
        if is_done and starts[dispatch.execution_id] != 1:
            yield f"{dispatch} is done but was never started"
        is_asking = dispatch.execution_id in asked and dispatch.execution_id not in chat.actions
        if dispatch.call.tool_call_id in answers and not is_asking:
            called_in = next(m.id for m in chat.messages if dispatch.call in m.content)
            places.setdefault(called_in, []).append(answers[dispatch.call.tool_call_id])
    for message_id, order in places.items():
        if order != sorted(order):
            yield f"results of message {message_id} are out of order in {_told(chat.live())}"


def _in_order_of_calls(chat: StoredChat) -> Iterator[Dispatch]:
    """Yield dispatches as their calls were made; of a message, those that were asked come last."""
    yield from (each for key, each in chat.dispatches.items() if key not in chat.actions)
    yield from (chat.dispatches[key] for key in chat.actions if key in chat.dispatches)


def _of_actions(chat: StoredChat, starts: Counter[ExecutionId]) -> Iterator[str]:
    """Find actions that are open at rest, and calls that ran without permission."""
    for action_id, action in chat.actions.items():
        if action.outcome is None:
            yield f"{action} is open and its chat rests: {chat.state}"
        if starts[action_id] and not _is_allowed(action):
            yield f"{action} ran without permission"


def _is_allowed(action: StoredAction) -> bool:
    if action.outcome is not ActionOutcome.ANSWERED:
        return False
    said = json.loads(action.answer_json)
    return isinstance(said, dict) and said.get("accepted") is True


def _of_messages(chat: StoredChat, database: SimulatedDatabase) -> Iterator[str]:
    witness, chat_id = database.witness, chat.state.chat_id
    live = [
        text_of(message.content)
        for message in chat.live()
        if message.role is Role.USER and not message.is_compressed
    ]
    stored = Counter(live + [text_of(queued.content) for queued in chat.queue])
    taken = {text for chat_of, text in witness.taken if chat_of == chat_id}
    expected = Counter(text for text in taken if (chat_id, text) not in witness.withdrawn)
    if stored != expected:
        yield f"messages of users are lost or doubled: {stored - expected}, {expected - stored}"


def _of_ledger(chat: StoredChat) -> Iterator[str]:
    answers = [message.id for message in chat.messages if message.use is not None]
    billed = [entry.message_id for entry in chat.ledger.values() if entry.message_id is not None]
    if sorted(billed) != answers:
        yield f"the answers {answers} and the bills for {sorted(billed)} do not agree"


def _of_request(request: Request, database: SimulatedDatabase) -> Iterator[str]:
    if not request.text:
        return
    times = database.witness.taken[request.chat_id, request.text]
    if times > 1:
        yield f"{request} was taken {times} times"
    if request.is_acknowledged and times == 0:
        yield f"{request} was acknowledged and is lost"
    if request.is_refused and not request.was_unanswered and times:
        yield f"{request} was refused and happened"
    for message in database.chat(request.chat_id).messages:
        is_its_own = message.role is Role.USER and text_of(message.content) == request.text
        if is_its_own and message.origin is not request.origin:
            yield f"{request} is stored with another origin: {message.origin}"


def _of_answer(request: Request, database: SimulatedDatabase) -> Iterator[str]:
    """Find answers that were acknowledged and are not stored, or were refused and are."""
    if request.answered is None:
        return
    action = database.chat(request.chat_id).actions[request.answered]
    answer = (ActionOutcome.ANSWERED, request.person, request.answer_json)
    is_stored = (action.outcome, action.ended_by, action.answer_json) == answer
    if request.is_acknowledged and not is_stored:
        yield f"{request} was acknowledged and another answer is stored: {action}"
    if request.is_refused and not request.was_unanswered and is_stored:
        yield f"{request} was refused and is stored: {action}"


def _told(live: list[Message]) -> list[tuple[int, str, tuple[object, ...]]]:
    return [(message.id, message.role.value, message.content) for message in live]
