"""The state machine of a chat: which command is allowed when, and its effect.

Two rules. The whole state machine is here and in `matrix`, the table. Nothing here reads a clock, a
database or a random number: a decision is a value, and the store executes it.

Every decision increments `snapshot_version`, except one that changes nothing and returns the state
it was given. New history sets `history_version` to the same number. A decision that leaves a chat
running and owned opens the episode of its next generation: attempt 1 after new history, one more
otherwise. A chat that runs without an owner waits for a sweep, which opens it.
"""

from dataclasses import dataclass, replace
from typing import assert_never

from chatd.chats.domain.chat import (
    NO_FACTS,
    QUEUE_LENGTH_MAX,
    ChatState,
    Facts,
    NewMessage,
    PendingCall,
    Revert,
    RevertKind,
    Status,
)
from chatd.chats.domain.commands import (
    BusyBehavior,
    CancelRequiredAction,
    Command,
    CommitCompaction,
    CommitResults,
    CommitStep,
    DeleteQueuedMessage,
    EditMessage,
    EnterRequiresAction,
    FailTurn,
    FinishInterruption,
    FinishRevert,
    FinishTurn,
    Interrupt,
    PromoteQueuedMessage,
    Reconcile,
    RecordResult,
    RecordRetry,
    Release,
    RequestCompaction,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    UndoRevert,
    UserCommand,
    WorkerCommand,
)
from chatd.chats.domain.errors import (
    ChatArchived,
    FenceLost,
    InvalidState,
    NothingToCompact,
    QueuedMessageNotFound,
    QueueFull,
    TransitionNotAllowed,
)
from chatd.chats.domain.matrix import ALLOWED
from chatd.chats.domain.revert_decisions import (
    DURING_REVERT,
    begun_revert,
    completed,
    require_editable,
)
from chatd.chats.domain.state_changes import grown as _grown
from chatd.chats.domain.state_changes import next_episode as _next_episode
from chatd.chats.domain.state_changes import queue_changed as _queue_changed
from chatd.chats.domain.state_changes import released as _released
from chatd.chats.domain.state_changes import running as _running
from chatd.chats.domain.state_changes import started as _started
from chatd.chats.domain.tool_results import check_client_results
from chatd.chats.domain.writes import (
    AnswerPending,
    AppendMessages,
    ClearQueue,
    DeleteMessagesFrom,
    DropQueued,
    EnqueueMessage,
    MoveToHead,
    PromoteHead,
    RecordDispatches,
    StoreResult,
    Write,
    entered_bills,
)
from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import ToolResult
from chatd.primitives.domain.ids import Fence, QueuedMessageId, WorkerId

ACTION_TIMEOUT_S = 300.0

NEW_MESSAGE = "The call was given up because the user sent another message."
INTERRUPTED = "The call was interrupted before it produced a result."
TIMED_OUT = "The client did not answer in time."
RECONCILED = "The call was given up because the chat had to be repaired."

AT_REST = (Status.WAITING, Status.ERROR)
OWNED = (Status.RUNNING, Status.INTERRUPTING)


@dataclass(frozen=True, slots=True)
class Decision:
    """The new execution row, and the writes that must commit with it."""

    state: ChatState
    writes: tuple[Write, ...] = ()
    deadline_s: float | None = None  # The action deadline, from now by the database's clock.


def decide(state: ChatState, command: Command, facts: Facts = NO_FACTS) -> Decision:
    """Return the effect of `command` on a chat in `state`.

    Raises:
        TransitionNotAllowed: `command` is not allowed in this status.
        ChatArchived: The only allowed command is unarchiving.
        InvalidState: The state is impossible and has to be reconciled.
        FenceLost: `command` comes from a worker that no longer owns this episode.
        ChatError: An object that the command names does not exist or does not match; see `errors`.
    """
    problem = impossibility(state)
    if problem is not None and not isinstance(command, Reconcile):
        raise InvalidState(state.chat_id, problem)
    if isinstance(command, WorkerCommand):
        if command.fence != fence_of(state):
            raise FenceLost(state.chat_id)
    elif state.archived and not isinstance(command, SetArchived | Reconcile):
        raise ChatArchived(state.chat_id)
    if type(command) not in ALLOWED[state.status] and not isinstance(command, Reconcile):
        raise TransitionNotAllowed(state.status, type(command).__name__)
    if state.revert is not None and not isinstance(command, DURING_REVERT):
        raise TransitionNotAllowed(state.status, type(command).__name__)
    if _is_done_already(state, command):
        return Decision(state)
    moved = replace(state, snapshot_version=state.snapshot_version + 1)
    if isinstance(command, WorkerCommand):
        decision = _decide_for_worker(moved, command)
        if bills := entered_bills(state, command, decision.writes):
            decision = replace(decision, writes=(*decision.writes, *bills))
    else:
        decision = _decide_for_user(moved, command, facts)
    if not isinstance(command, Reconcile):
        assert decision.state.status in ALLOWED[state.status][type(command)]
    return decision


def fence_of(state: ChatState) -> Fence:
    """Return the fence that the current owner's writes must match."""
    return Fence(state.owner_epoch, state.history_version, state.generation_attempt)


def impossibility(state: ChatState) -> str | None:
    """Return why a stored state is impossible, or None."""
    if state.status is Status.WAITING and state.queue_length > 0:
        return "it waits although messages are queued"
    if state.archived and state.status not in AT_REST:
        return "it is archived although it runs"
    if state.worker_id is not None and state.status not in OWNED:
        return "it has a worker although it does not run"
    if (state.status is Status.ERROR) != (state.last_error is not None):
        return "its error and its status contradict each other"
    if state.revert is not None and state.status is not Status.RUNNING:
        return "it reverts although it does not run"
    if state.status is Status.REQUIRES_ACTION and not _is_asking_client(state):
        return "it waits for a client that was asked nothing"
    return None


def _is_asking_client(state: ChatState) -> bool:
    return any(call.is_client for call in state.pending)


def _is_done_already(state: ChatState, command: Command) -> bool:
    """Return whether a command has no effect: its goal is reached, or its turn is over."""
    match command:
        case SetArchived(archived):
            return state.archived == archived
        case Interrupt(turn_id):
            is_stoppable = state.status in (Status.RUNNING, Status.REQUIRES_ACTION)
            is_stopped = turn_id in (0, state.turn_id) and state.revert is None
            return not is_stoppable or not is_stopped
        case CancelRequiredAction(history_version):
            return state.history_version != history_version
        case _:
            return False


def _decide_for_user(moved: ChatState, command: UserCommand, facts: Facts) -> Decision:
    """Decide on a state whose snapshot version is the new one already."""
    match command:
        case SendMessage():
            return _send(moved, command)
        case EditMessage():
            return _edit(moved, command, facts)
        case RevertChat() | UndoRevert():
            return Decision(*begun_revert(moved, command, facts))
        case DeleteQueuedMessage(queued_message_id):
            _require_queued(moved, queued_message_id, facts)
            return Decision(_queue_changed(moved, -1), (DropQueued(queued_message_id),))
        case PromoteQueuedMessage():
            return _promote(moved, command, facts)
        case Interrupt(_, claimed_by):
            return _interrupt(moved, claimed_by)
        case SubmitToolResults(results, created_by, claimed_by):
            check_client_results(moved.pending, results)
            messages = tuple(NewMessage(Role.TOOL, (result,), created_by) for result in results)
            resumed = replace(_grown(moved, len(messages)), pending=())
            return Decision(_running(resumed, claimed_by), (AppendMessages(messages),))
        case RequestCompaction(claimed_by):
            if not facts.has_material:
                raise NothingToCompact(moved.chat_id)
            return Decision(
                replace(_running(_grown(moved, 0), claimed_by), is_compaction_requested=True)
            )
        case SetArchived(archived):
            return Decision(replace(moved, archived=archived))
        case CancelRequiredAction(_, claimed_by):
            cancelled, answers = _answered(moved, TIMED_OUT)
            return Decision(_running(cancelled, claimed_by), answers)
        case Reconcile():
            return _reconcile(moved)
        case _:
            assert_never(command)


def _decide_for_worker(moved: ChatState, command: WorkerCommand) -> Decision:
    """Decide on a state whose snapshot version is the new one already."""
    match command:
        case CommitStep():
            return _commit_step(moved, command)
        case RecordResult(_, result):
            return _record_result(moved, result)
        case CommitResults(_, results):
            return _commit_results(moved, results)
        case EnterRequiresAction():
            if not moved.pending or not all(call.is_client for call in moved.pending):
                raise TransitionNotAllowed(moved.status, "EnterRequiresAction")
            return Decision(_released(moved, Status.REQUIRES_ACTION), deadline_s=ACTION_TIMEOUT_S)
        case CommitCompaction(_, messages):
            _require_nothing_open(moved, command)
            compacted = replace(
                _grown(moved, len(messages)),
                is_compaction_requested=False,
                compactions=moved.compactions + (not moved.is_compaction_requested),
            )
            return Decision(_next_episode(compacted), (AppendMessages(messages),))
        case RecordRetry(_, retry):
            retried = replace(
                moved,
                retry=retry,
                retry_version=moved.snapshot_version,
                generation_attempt=moved.generation_attempt + (retry.held_back_since is None),
            )
            return Decision(retried)
        case FinishTurn(_, messages):
            answered, answers = _answered(moved, INTERRUPTED)
            return _finish(_grown(answered, len(messages)), (*answers, *_appending(messages)))
        case FinishInterruption(_, messages):
            answered, answers = _answered(moved, INTERRUPTED)
            return _finish(_grown(answered, len(messages)), (*answers, *_appending(messages)))
        case FinishRevert(_, report):
            return _finish_revert(moved, report)
        case FailTurn(_, error):
            return Decision(replace(_released(moved, Status.ERROR), last_error=error))
        case Release():
            return Decision(replace(moved, worker_id=None))
        case _:
            assert_never(command)


def _send(moved: ChatState, command: SendMessage) -> Decision:
    # Files that are half restored would be no state to stop in.
    is_urgent = command.busy_behavior is BusyBehavior.INTERRUPT and moved.revert is None
    is_startable = moved.status in AT_REST or (moved.status is Status.REQUIRES_ACTION and is_urgent)
    if is_startable and moved.queue_length == 0:
        answered, answers = _answered(moved, NEW_MESSAGE)
        writes = (*answers, AppendMessages((command.message,)))
        return Decision(_started(answered, command.claimed_by), writes)
    if moved.queue_length >= QUEUE_LENGTH_MAX:
        raise QueueFull(QUEUE_LENGTH_MAX)
    enqueue = EnqueueMessage(command.queued_message_id, command.message)
    longer = _queue_changed(moved, +1)
    if is_startable:
        return _start_head(longer, (enqueue,), command.claimed_by)
    if is_urgent:
        return Decision(replace(longer, status=Status.INTERRUPTING), (enqueue,))
    return Decision(longer, (enqueue,))


def _edit(moved: ChatState, command: EditMessage, facts: Facts) -> Decision:
    """Replace a message; the open calls belong to the deleted messages."""
    require_editable(command.message_id, facts)
    writes: tuple[Write, ...] = (
        DeleteMessagesFrom(command.message_id),
        AppendMessages((command.message,)),
    )
    cut = replace(moved, pending=())
    if moved.queue_length:
        cut = _queue_changed(cut, -moved.queue_length)
        writes = (ClearQueue(), *writes)
    started = _started(cut, command.claimed_by)
    if command.revert_id is not None:
        revert = Revert(command.revert_id, RevertKind.EDIT, command.message_id, True)
        started = replace(started, revert=revert)
    return Decision(started, writes)


def _finish_revert(moved: ChatState, report: bytes) -> Decision:
    revert = moved.revert
    if revert is None:
        raise TransitionNotAllowed(moved.status, "FinishRevert")
    done, writes = completed(moved, revert, report)
    if revert.kind is RevertKind.EDIT:
        return Decision(_next_episode(done), writes)
    return _finish(done, writes)


def _promote(moved: ChatState, command: PromoteQueuedMessage, facts: Facts) -> Decision:
    _require_queued(moved, command.queued_message_id, facts)
    if moved.status not in OWNED:
        return _start_head(moved, (), command.claimed_by, command.queued_message_id)
    to_head: tuple[Write, ...] = (MoveToHead(command.queued_message_id),)
    interrupted = replace(_queue_changed(moved, 0), status=Status.INTERRUPTING)
    return Decision(interrupted, () if facts.is_queue_head else to_head)


def _require_queued(moved: ChatState, wanted: QueuedMessageId, facts: Facts) -> None:
    """Require that a message is queued; the facts may have been read after the state."""
    if not facts.is_queued or not moved.queue_length:
        raise QueuedMessageNotFound(wanted)


def _interrupt(moved: ChatState, claimed_by: WorkerId | None) -> Decision:
    if moved.status is Status.RUNNING:
        return Decision(replace(moved, status=Status.INTERRUPTING))
    if moved.queue_length:
        return _start_head(moved, (), claimed_by)
    stopped, answers = _answered(moved, INTERRUPTED)
    return Decision(_released(stopped, Status.WAITING), answers)


def _require_nothing_open(moved: ChatState, command: Command) -> None:
    """Refuse to append after calls without a result: no provider would accept that history."""
    if moved.pending:
        raise TransitionNotAllowed(moved.status, type(command).__name__)


def _commit_step(moved: ChatState, command: CommitStep) -> Decision:
    _require_nothing_open(moved, command)
    local = tuple(
        PendingCall(
            each.call.tool_call_id, each.call.tool_name, each.execution_id, each.call.mcp_server_id
        )
        for each in command.dispatches
    )
    stepped = replace(_grown(moved, len(command.messages)), pending=(*local, *command.client_calls))
    writes: tuple[Write, ...] = (AppendMessages(command.messages),)
    if command.dispatches:
        # The calls are in the first message; results of refused ones may follow it.
        writes = (*writes, RecordDispatches(moved.next_message_id, command.dispatches))
    return Decision(_next_episode(stepped), writes)


def _record_result(moved: ChatState, result: ToolResult) -> Decision:
    """Mark a call as recorded; the episode stays open for the other calls."""
    called = result.tool_call_id
    call = next((each for each in moved.pending if each.tool_call_id == called), None)
    if call is None or call.is_recorded:
        raise FenceLost(moved.chat_id)
    pending = tuple(
        replace(each, is_recorded=True) if each is call else each for each in moved.pending
    )
    return Decision(replace(moved, pending=pending, takeovers=0), (StoreResult(call, result),))


def _commit_results(moved: ChatState, results: tuple[ToolResult, ...]) -> Decision:
    """Add results to the history; the calls of the client stay open."""
    given = {result.tool_call_id: result for result in results}
    done = tuple(call for call in moved.pending if call.is_recorded or call.tool_call_id in given)
    stepped = replace(
        _grown(moved, len(done)), pending=tuple(call for call in moved.pending if call not in done)
    )
    if not given:
        return Decision(_next_episode(stepped), (AnswerPending(done, INTERRUPTED),))
    new = tuple(call for call in done if not call.is_recorded)
    if given.keys() != {call.tool_call_id for call in done} or len(new) > 1:
        raise FenceLost(moved.chat_id)
    messages = tuple(NewMessage(Role.TOOL, (given[call.tool_call_id],)) for call in done)
    stored = tuple(StoreResult(call, given[call.tool_call_id]) for call in new)
    return Decision(_next_episode(stepped), (AppendMessages(messages), *stored))


def _reconcile(moved: ChatState) -> Decision:
    problem = impossibility(moved)
    if problem is None:
        raise TransitionNotAllowed(moved.status, "Reconcile")
    repaired, answers = _answered(replace(moved, archived=False), RECONCILED)
    error = TurnError(f"The chat had to be repaired: {problem}.", ErrorKind.GENERIC)
    at_rest = replace(_released(repaired, Status.ERROR), last_error=error)
    # A process that still runs the chat must stop.
    return Decision(replace(at_rest, owner_epoch=moved.owner_epoch + 1), answers)


def _finish(moved: ChatState, writes: tuple[Write, ...]) -> Decision:
    """Continue with the head of the queue under the same worker, or rest."""
    if moved.queue_length == 0:
        return Decision(_released(moved, Status.WAITING), writes)
    next_turn = replace(
        _grown(_queue_changed(moved, -1), 1),
        status=Status.RUNNING,
        turn_id=moved.next_message_id,
        compactions=0,
        is_compaction_requested=False,
    )
    return Decision(_next_episode(next_turn), (*writes, PromoteHead()))


def _start_head(
    moved: ChatState,
    writes: tuple[Write, ...],
    claimed_by: WorkerId | None,
    head: QueuedMessageId | None = None,
) -> Decision:
    """Start the turn of the queue's head, or of another message that is moved before it."""
    answered, answers = _answered(moved, NEW_MESSAGE)
    started = _started(_queue_changed(answered, -1), claimed_by)
    return Decision(started, (*writes, *answers, PromoteHead(head)))


def _answered(moved: ChatState, reason: str) -> tuple[ChatState, tuple[Write, ...]]:
    """Close every open call, with its recorded result or with `reason`."""
    if not moved.pending:
        return moved, ()
    answered = replace(_grown(moved, len(moved.pending)), pending=())
    return answered, (AnswerPending(moved.pending, reason),)


def _appending(messages: tuple[NewMessage, ...]) -> tuple[Write, ...]:
    return (AppendMessages(messages),) if messages else ()
