"""Invariants between the state of a chat, its history and its dispatched calls."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chatd.audit.pairing import Pairing
from chatd.chats.domain.chat import ChatState, Message
from chatd.chats.domain.transitions import impossibility
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import File, ToolCall, ToolResult
from chatd.primitives.domain.ids import ExecutionId, MessageId


@dataclass(frozen=True, slots=True)
class DispatchedCall:
    """A row of `tool_calls`."""

    execution_id: ExecutionId
    message_id: MessageId
    tool_call_id: str
    tool_name: str
    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class StoredChat:
    """All stored data of one chat whose consistency is checked."""

    state: ChatState
    messages: tuple[Message, ...]  # Includes deleted messages, in order.
    dispatches: tuple[DispatchedCall, ...]
    held_file_ids: frozenset[str]
    pairing: Pairing  # Of the live messages.

    def message(self, message_id: MessageId) -> Message | None:
        """Return the message with this number."""
        return next((each for each in self.messages if each.id == message_id), None)

    def id_of(self, message_id: MessageId) -> str:
        """Return the id of a message as reports show it."""
        return f"{self.state.chat_id}/{message_id}"


@dataclass(frozen=True, slots=True)
class HistoryInvariant:
    """An invariant of a chat, with a check that yields the ids of the violations."""

    name: str
    sentence: str
    check: Callable[[StoredChat], Iterator[str]]


def _impossible(chat: StoredChat) -> Iterator[str]:
    if impossibility(chat.state) is not None:
        yield chat.state.chat_id


def _uncalled(chat: StoredChat) -> Iterator[str]:
    for placed in chat.pairing.uncalled:
        yield f"{chat.id_of(placed.message_id)}/{placed.result.tool_call_id}"


def _repeated(chat: StoredChat) -> Iterator[str]:
    for placed in chat.pairing.repeated:
        yield f"{chat.id_of(placed.message_id)}/{placed.result.tool_call_id}"


def _passed_over(chat: StoredChat) -> Iterator[str]:
    for placed in chat.pairing.passed_over:
        yield f"{chat.id_of(placed.message_id)}/{placed.call.tool_call_id}"


def _wrongly_pending(chat: StoredChat) -> Iterator[str]:
    in_history = Counter(
        (each.call.tool_call_id, each.call.tool_name) for each in chat.pairing.open
    )
    if in_history != Counter((call.tool_call_id, call.tool_name) for call in chat.state.pending):
        yield chat.state.chat_id


def _not_dispatched(chat: StoredChat) -> Iterator[str]:
    """Find open calls without the `tool_calls` row that a takeover needs to find their outcome."""
    open_in = {each.message_id for each in chat.pairing.open}
    rows = {row.execution_id: row for row in chat.dispatches}
    for call in chat.state.pending:
        if call.execution_id is None or not call.is_dispatched:
            continue
        row = rows.get(call.execution_id)
        if (
            row is None
            or row.tool_call_id != call.tool_call_id
            or call.is_recorded != (row.result is not None)
            or (open_in and row.message_id not in open_in)
        ):
            yield call.execution_id


def _not_called(chat: StoredChat) -> Iterator[str]:
    for row in chat.dispatches:
        message = chat.message(row.message_id)
        if message is None or message.role is not Role.ASSISTANT or not _calls(message, row):
            yield row.execution_id


def _dispatched_again(chat: StoredChat) -> Iterator[str]:
    """Find calls that were dispatched more often than the message contains them."""
    dispatched = Counter(
        (row.message_id, row.tool_call_id, row.tool_name) for row in chat.dispatches
    )
    for row in chat.dispatches:
        times = dispatched.pop((row.message_id, row.tool_call_id, row.tool_name), 0)
        message = chat.message(row.message_id)
        if message is not None and times > max(_calls(message, row), 1):
            yield f"{chat.id_of(row.message_id)}/{row.tool_call_id}"


def _calls(message: Message, row: DispatchedCall) -> int:
    """Count the calls of a message that match a row."""
    return sum(
        isinstance(part, ToolCall)
        and (part.tool_call_id, part.tool_name) == (row.tool_call_id, row.tool_name)
        for part in message.content
    )


def _not_as_recorded(chat: StoredChat) -> Iterator[str]:
    by_call: dict[tuple[MessageId, str], list[ToolResult]] = {}
    for placed, result in chat.pairing.answered:
        by_call.setdefault((placed.message_id, result.tool_call_id), []).append(result)
    for row in chat.dispatches:
        results = by_call.get((row.message_id, row.tool_call_id))
        if row.result is not None and results and row.result not in results:
            yield row.execution_id


def _files_not_held(chat: StoredChat) -> Iterator[str]:
    for message in chat.messages:
        shown = {file.file_id for file in _files_in(message)}
        if not message.is_deleted and not shown <= chat.held_file_ids:
            yield chat.id_of(message.id)


def _files_in(message: Message) -> Iterator[File]:
    for part in message.content:
        if isinstance(part, File):
            yield part
        elif isinstance(part, ToolResult):
            yield from part.files


HISTORY_INVARIANTS = (
    HistoryInvariant(
        "states_are_possible",
        "The status of a chat agrees with its queue, its owner, its error and its open calls.",
        _impossible,
    ),
    HistoryInvariant(
        "results_have_a_call",
        "Every result in a live history answers a call before it.",
        _uncalled,
    ),
    HistoryInvariant(
        "calls_have_one_result",
        "No call in a live history has a second result.",
        _repeated,
    ),
    HistoryInvariant(
        "calls_are_answered_at_once",
        "Every call in a live history has its result before anybody else speaks.",
        _passed_over,
    ),
    HistoryInvariant(
        "open_calls_are_pending",
        "The calls at the end of a live history without a result are those the state names.",
        _wrongly_pending,
    ),
    HistoryInvariant(
        "pending_calls_are_dispatched",
        "An open call of ours has its dispatch, with a result exactly when it counts as recorded.",
        _not_dispatched,
    ),
    HistoryInvariant(
        "dispatches_are_calls_of_an_answer",
        "Every dispatched call is in the message of the assistant that it names.",
        _not_called,
    ),
    HistoryInvariant(
        "calls_are_dispatched_once",
        "No call was dispatched twice.",
        _dispatched_again,
    ),
    HistoryInvariant(
        "recorded_results_are_told",
        "The result in a live history is the one that was recorded for its call.",
        _not_as_recorded,
    ),
    HistoryInvariant(
        "shown_files_are_held",
        "A chat holds every file that its live messages show.",
        _files_not_held,
    ),
)
