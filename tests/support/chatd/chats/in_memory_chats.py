"""Chats without a database: the same rules, kept in dictionaries."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import assert_never

from chatd.chats.domain.chat import (
    NO_FACTS,
    ChatState,
    DoneRevert,
    Facts,
    Message,
    NewMessage,
    PendingCall,
    QueuedMessage,
    RevertKind,
)
from chatd.chats.domain.commands import (
    AskedCall,
    ChangeQueuedMessage,
    Command,
    DeleteQueuedMessage,
    EditMessage,
    PromoteQueuedMessage,
    RememberedCall,
    RequestCompaction,
    RevertChat,
    UndoRevert,
)
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.tool_results import synthetic_result
from chatd.chats.domain.transitions import decide
from chatd.chats.domain.writes import (
    ActionOutcome,
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
from chatd.content.domain.messages import ChatMode, MessageOrigin, Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.content.domain.tools import Dispatch, Executor, PendingKind, StoredExecution
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, QueuedMessageId, RevertId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from chatd.turns.domain.compaction import since_boundary

CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredAction:
    """An action of a message, and how it ended."""

    asked: AskedCall
    message_id: MessageId
    is_asked: bool = False
    outcome: ActionOutcome | None = None
    ended_by: str = ""
    answer_json: str = ""
    result: ToolResult | None = None

    @property
    def is_accepted_plan(self) -> bool:
        """Return whether it is a plan that a person accepted."""
        is_answered = self.outcome is ActionOutcome.ANSWERED
        if self.asked.pending.kind is not PendingKind.PLAN or not is_answered:
            return False
        said = json.loads(self.answer_json)
        return isinstance(said, dict) and said.get("accepted") is True


@dataclass(slots=True)
class StoredChat:
    """Everything kept of one chat."""

    state: ChatState
    messages: list[Message] = field(default_factory=list)
    queue: list[QueuedMessage] = field(default_factory=list)
    dispatches: dict[ExecutionId, Dispatch] = field(default_factory=dict)
    results: dict[ExecutionId, ToolResult] = field(default_factory=dict)
    actions: dict[ExecutionId, StoredAction] = field(default_factory=dict)
    cancelled: set[ExecutionId] = field(default_factory=set)
    remembered: dict[str, RememberedCall] = field(default_factory=dict)
    mode: ChatMode = ChatMode.ORDINARY
    ledger: dict[tuple[int, int, CallPurpose], LedgerEntry] = field(default_factory=dict)
    choice: ModelChoice = NO_CHOICE
    reverts: dict[RevertId, DoneRevert] = field(default_factory=dict)

    def live(self) -> list[Message]:
        """Return the messages that were not deleted."""
        return [message for message in self.messages if not message.is_deleted]


class InMemoryChats:
    """Executes decisions in memory."""

    def __init__(self, *states: ChatState) -> None:
        self.chats = {state.chat_id: StoredChat(state) for state in states}

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide and keep what was decided."""
        return self.apply_now(chat_id, command)

    def apply_now(self, chat_id: ChatId, command: Command) -> ChatState:
        """Do the same without an event loop."""
        if chat_id not in self.chats:
            raise ChatNotFound(chat_id)
        chat = self.chats[chat_id]
        decision = decide(chat.state, command, facts_for(chat, command))
        return self.keep(chat_id, decision)

    def keep(self, chat_id: ChatId, decision: Decision) -> ChatState:
        """Keep a decision that was made on the present state."""
        chat = self.chats[chat_id]
        if decision.state is not chat.state:
            writer = _Writer(chat, decision.state)
            for write in decision.writes:
                writer.execute(write)
            writer.require_all_numbers_used()
            chat.state = decision.state
        return chat.state

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state."""
        return self.chats[chat_id].state

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the live messages in order, or all that changed, deleted ones too."""
        chat = self.chats[chat_id]
        if after_revision == 0:
            return tuple(chat.live())
        return tuple(message for message in chat.messages if message.revision > after_revision)

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        """Return the dispatched calls of a message."""
        chat = self.chats[chat_id]
        called = {
            part.tool_call_id
            for message in chat.messages
            if message.id == message_id
            for part in message.content
            if isinstance(part, ToolCall)
        }
        return tuple(
            StoredExecution(
                dispatch.execution_id,
                dispatch.call.tool_call_id,
                dispatch.call.tool_name,
                dispatch.executor,
                dispatch.journal_generation,
                chat.state.owner_epoch,
                dispatch.mode,
                dispatch.arguments_digest,
            )
            for dispatch in chat.dispatches.values()
            if dispatch.call.tool_call_id in called
        )


def facts_for(chat: StoredChat, command: Command) -> Facts:
    """Return what `command` depends on beside the state."""
    match command:
        case (
            DeleteQueuedMessage(wanted)
            | ChangeQueuedMessage(wanted)
            | PromoteQueuedMessage(wanted, _)
        ):
            ids = [queued.id for queued in chat.queue]
            return Facts(is_queued=wanted in ids, is_queue_head=ids[:1] == [wanted])
        case EditMessage(message_id) | RevertChat(_, message_id):
            found = (message for message in chat.live() if message.id == message_id)
            return Facts(target=next(found, None))
        case UndoRevert(_, undone_id):
            done = chat.reverts.get(undone_id)
            if done is None:
                return Facts()
            is_superseded = any(supersedes(message, done) for message in chat.messages)
            return Facts(undone=replace(done, is_superseded=is_superseded))
        case RequestCompaction():
            said = since_boundary(chat.live())
            return Facts(has_material=any(message.role is Role.ASSISTANT for message in said))
        case _:
            return NO_FACTS


def supersedes(message: Message, done: DoneRevert) -> bool:
    """Return whether a revert cannot be undone because of a message."""
    revert = done.revert
    if revert.kind is not RevertKind.EDIT:
        is_delivered_with_it = message.revision == done.version and not message.is_deleted
        is_history = revert.kind is RevertKind.HISTORY
        return message.revision > done.version or (is_history and is_delivered_with_it)
    is_later = message.id > revert.replacement_id
    is_sent = message.origin not in (None, MessageOrigin.HOOK, MessageOrigin.SYSTEM)
    is_deleted_since = message.is_deleted and message.revision > revert.deleted_version
    return is_deleted_since or (is_later and is_sent)


class _Writer:
    """Executes the writes of one decision, numbering messages as they come."""

    def __init__(self, chat: StoredChat, decided: ChatState) -> None:
        self._chat = chat
        self._decided = decided
        self._next = chat.state.next_message_id

    def execute(self, write: Write) -> None:
        match write:
            case AppendMessages(messages):
                for message in messages:
                    self._append(message)
            case AnswerPending():
                for call in write.calls:
                    self._answer(call, write)
            case RecordDispatches(_, dispatches):
                for dispatch in dispatches:
                    if dispatch.execution_id in self._chat.dispatches:
                        raise AssertionError("an execution id was dispatched twice")
                    self._chat.dispatches[dispatch.execution_id] = dispatch
            case StoreResult(call, result):
                if call.execution_id is None or call.execution_id in self._chat.results:
                    raise AssertionError("a result was stored twice or for a client's call")
                self._chat.results[call.execution_id] = result
            case OpenActions(message_id, asked):
                for each in asked:
                    action_id = each.pending.action_id
                    if action_id is None or action_id in self._chat.actions:
                        raise AssertionError("an action was opened twice or without an id")
                    self._chat.actions[action_id] = StoredAction(each, message_id)
            case StartDeadlines():
                for action_id, action in self._open_actions():
                    self._chat.actions[action_id] = replace(action, is_asked=True)
            case EndActions(answers, outcome, ended_by):
                for answer in answers:
                    if answer.action_id not in self._chat.actions:
                        continue  # The test stored the state by itself.
                    action = self._chat.actions[answer.action_id]
                    if action.outcome is not None:
                        raise AssertionError("an action ended twice")
                    self._chat.actions[answer.action_id] = replace(
                        action,
                        outcome=outcome,
                        ended_by=ended_by,
                        answer_json=answer.answer_json,
                        result=answer.result,
                    )
            case CancelActions():
                for action_id, action in self._open_actions():
                    cancelled = replace(action, outcome=ActionOutcome.CANCELLED)
                    self._chat.actions[action_id] = cancelled
            case CancelCalls(execution_ids):
                if not self._chat.dispatches.keys() >= set(execution_ids):
                    raise AssertionError("a call is cancelled that was never dispatched")
                self._chat.cancelled.update(
                    execution_id
                    for execution_id in execution_ids
                    if self._chat.dispatches[execution_id].executor is not Executor.CHATD
                )
            case RememberCall(remembered):
                others = self._chat.remembered.keys() - {remembered.rule_id}
                if len(others) < remembered.rules_max:
                    self._chat.remembered[remembered.rule_id] = remembered
            case SetMode(mode):
                self._chat.mode = mode
            case EnqueueMessage(queued_message_id, message):
                queued = QueuedMessage(
                    queued_message_id,
                    message.content,
                    message.created_by,
                    CREATED_AT,
                    message.choice,
                    message.origin,
                )
                self._chat.queue.append(queued)
            case DropQueued(queued_message_id):
                self._chat.queue.remove(self._queued(queued_message_id))
            case ChangeQueued(queued_message_id, content, choice, to, origin):
                queued = self._queued(queued_message_id)
                at = self._chat.queue.index(queued)
                self._chat.queue.remove(queued)
                self._chat.queue.insert(
                    at if to is None else to - 1,
                    replace(
                        queued,
                        content=queued.content if content is None else content,
                        choice=queued.choice if choice is None else choice,
                        origin=queued.origin if origin is None else origin,
                    ),
                )
            case MoveToHead(queued_message_id):
                queued = self._queued(queued_message_id)
                self._chat.queue.remove(queued)
                self._chat.queue.insert(0, queued)
            case PromoteHead(head):
                queued = self._chat.queue[0] if head is None else self._queued(head)
                self._chat.queue.remove(queued)
                wish = queued.choice or NO_CHOICE
                sender, origin = queued.created_by, queued.origin
                said = NewMessage(Role.USER, queued.content, sender, choice=wish, origin=origin)
                self._append(said)
            case ClearQueue():
                self._chat.queue.clear()
            case DeleteMessagesFrom(message_id):
                self._chat.messages = [
                    replace(message, is_deleted=True, revision=self._decided.snapshot_version)
                    if message.id >= message_id and not message.is_deleted
                    else message
                    for message in self._chat.messages
                ]
            case RestoreMessages(version):
                self._chat.messages = [
                    replace(message, is_deleted=False, revision=self._decided.snapshot_version)
                    if message.is_deleted and message.revision == version
                    else message
                    for message in self._chat.messages
                ]
            case RecordRevert(revert, report):
                if revert.revert_id in self._chat.reverts:
                    raise AssertionError("a revert was completed twice")
                version = self._decided.snapshot_version
                self._chat.reverts[revert.revert_id] = DoneRevert(revert, version, report)
                self._restore_mode(revert.kind)
            case EnterBill(entry):
                place = (entry.history_version, entry.generation_attempt, entry.bill.purpose)
                if place in self._chat.ledger:
                    raise AssertionError("a call was billed twice")
                self._chat.ledger[place] = entry
            case _:
                assert_never(write)

    def require_all_numbers_used(self) -> None:
        if self._next != self._decided.next_message_id:
            raise AssertionError("the decision reserved other numbers than its writes used")
        if len(self._chat.queue) != self._decided.queue_length:
            raise AssertionError("the decision counted another queue than its writes left")

    def _answer(self, call: PendingCall, write: AnswerPending) -> None:
        """Append the result given now, the recorded one, or an error."""
        given = {result.tool_call_id: result for result in write.given}
        if call.tool_call_id in given:
            result = given[call.tool_call_id]
            self._append(NewMessage(Role.TOOL, (result,), write.given_by))
            return
        execution_id = call.execution_id or ExecutionId("")
        action = self._chat.actions.get(execution_id)
        recorded = self._chat.results.get(execution_id) or (action.result if action else None)
        result = recorded or synthetic_result(call, write.reason)
        self._append(NewMessage(Role.TOOL, (result,), action.ended_by if action else ""))

    def _restore_mode(self, kind: RevertKind) -> None:
        """Leave the mode of a plan that is accepted again, or go back to that of the first one.

        An edit changes no mode.
        """
        version = self._decided.snapshot_version
        moved = {each.id: each for each in self._chat.messages if each.revision == version}
        actions = self._chat.actions.values()
        plans = [each for each in actions if each.is_accepted_plan and each.message_id in moved]
        if not plans or kind is RevertKind.EDIT:
            return
        if any(not moved[each.message_id].is_deleted for each in plans):
            self._chat.mode = ChatMode.ORDINARY
        else:
            self._chat.mode = min(plans, key=lambda each: each.message_id).asked.mode

    def _open_actions(self) -> list[tuple[ExecutionId, "StoredAction"]]:
        found = self._chat.actions.items()
        return [(action_id, action) for action_id, action in found if action.outcome is None]

    def _queued(self, queued_message_id: QueuedMessageId) -> QueuedMessage:
        return next(queued for queued in self._chat.queue if queued.id == queued_message_id)

    def _append(self, message: NewMessage) -> None:
        choice = message.choice
        if choice is not None:
            choice = self._chat.choice = choice.over(self._chat.choice)
        self._chat.messages.append(
            Message(
                id=self._next,
                revision=self._decided.snapshot_version,
                role=message.role,
                content=message.content,
                created_by=message.created_by,
                created_at=CREATED_AT,
                visibility=message.visibility,
                is_compressed=message.is_compressed,
                use=message.use,
                choice=choice,
                finish_reason=message.finish_reason,
                origin=message.stored_origin,
            )
        )
        self._next = MessageId(self._next + 1)
