"""The state machine of a chat: which command is allowed when, and its effect.

Two rules. The whole state machine is here and in `matrix`, the table. Nothing here reads a clock, a
database or a random number: a decision is a value, and the store executes it.

Every decision increments `snapshot_version`, except one that changes nothing and returns the state
it was given. New history sets `history_version` to the same number. A decision that leaves a chat
running and owned opens the episode of its next generation: attempt 1 after new history, one more
otherwise. A chat that runs without an owner waits for a sweep, which opens it.
"""

from dataclasses import replace
from typing import assert_never

from chatd.chats.domain.action_answers import (
    answer_action,
    answered_by_message,
    earliest_s,
    expire_action,
    free_text_answer,
    with_results,
)
from chatd.chats.domain.call_decisions import (
    INTERRUPTED,
    commit_results,
    commit_step,
    has_suspended,
    record_result,
    require_nothing_open,
    suspend_call,
)
from chatd.chats.domain.chat import (
    NO_FACTS,
    QUEUE_LENGTH_MAX,
    ChatState,
    Facts,
    NewMessage,
    Revert,
    RevertKind,
    Status,
)
from chatd.chats.domain.commands import (
    AnswerAction,
    BusyBehavior,
    ChangeQueuedMessage,
    Command,
    CommitCompaction,
    CommitResults,
    CommitStep,
    DeleteQueuedMessage,
    EditMessage,
    EnterRequiresAction,
    ExpireAction,
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
    SuspendCall,
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
    failed_edit,
    require_editable,
)
from chatd.chats.domain.state_changes import (
    Decision,
    given_up_calls,
    grown,
    growth,
    interrupted,
    next_episode,
    queue_changed,
    released,
    running,
    with_calls_closed,
)
from chatd.chats.domain.tool_results import check_client_results
from chatd.chats.domain.writes import (
    ActionOutcome,
    AppendMessages,
    ChangeQueued,
    ClearQueue,
    DeleteMessagesFrom,
    DropQueued,
    EndActions,
    EnqueueMessage,
    MoveToHead,
    PromoteHead,
    StartDeadlines,
    StoredAnswer,
    Write,
    entered_bills,
    revert_writes,
)
from chatd.content.domain.messages import SENT_BY_CALLERS, ErrorKind, TurnError
from chatd.content.domain.parts import ToolResult
from chatd.primitives.domain.ids import Fence, QueuedMessageId, WorkerId

NEW_MESSAGE = "The call was given up because the user sent another message."
ARCHIVED = "The call was given up because the chat was archived."
RECONCILED = "The call was given up because the chat had to be repaired."

AT_REST = (Status.WAITING, Status.ERROR)
OWNED = (Status.RUNNING, Status.INTERRUPTING)


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
    if state.status is Status.REQUIRES_ACTION and not any(call.is_asked for call in state.pending):
        return "it waits without an open action"
    return None


def _is_done_already(state: ChatState, command: Command) -> bool:
    """Return whether a command has no effect: its goal is reached, or its turn is over."""
    match command:
        case SetArchived(archived):
            return state.archived == archived
        case Interrupt(turn_id, _, drops_queue):
            if turn_id not in (0, state.turn_id) or state.status in AT_REST:
                return True
            is_stopped = state.status is Status.INTERRUPTING or state.revert is not None
            return is_stopped and not (drops_queue and state.queue_length)
        case ExpireAction(action_id):
            asked = (call.action_id for call in state.pending if call.is_asked)
            return state.status is not Status.REQUIRES_ACTION or action_id not in asked
        case _:
            return False


def _decide_for_user(moved: ChatState, command: UserCommand, facts: Facts) -> Decision:
    """Decide on a state whose snapshot version is the new one already."""
    match command:
        case SendMessage():
            decision = _send(moved, command)
            if command.claim is None:
                return decision
            return replace(decision, claim=command.claim)
        case EditMessage():
            return _edit(moved, command, facts)
        case RevertChat() | UndoRevert():
            return Decision(*begun_revert(moved, command, facts))
        case DeleteQueuedMessage(queued_message_id):
            _require_queued(moved, queued_message_id, facts)
            return Decision(queue_changed(moved, -1), (DropQueued(queued_message_id),))
        case ChangeQueuedMessage(queued_message_id, content, choice, place, origin):
            _require_queued(moved, queued_message_id, facts)
            change = ChangeQueued(queued_message_id, content, choice, place, origin)
            return Decision(queue_changed(moved, 0), (change,))
        case PromoteQueuedMessage():
            return _promote(moved, command, facts)
        case Interrupt(_, claimed_by, drops_queue):
            if not drops_queue or not moved.queue_length:
                return replace(_interrupt(moved, claimed_by), claim=command.claim)
            decision = _interrupt(queue_changed(moved, -moved.queue_length), claimed_by)
            writes = (ClearQueue(), *decision.writes)
            return replace(decision, writes=writes, claim=command.claim)
        case SubmitToolResults(results, created_by, claimed_by):
            return _submit(moved, results, created_by, claimed_by)
        case RequestCompaction(claimed_by):
            if not facts.has_material:
                raise NothingToCompact(moved.chat_id)
            return Decision(
                replace(running(grown(moved, 0), claimed_by), is_compaction_requested=True)
            )
        case SetArchived(archived):
            return _set_archived(moved, archived=archived)
        case AnswerAction():
            return answer_action(moved, command)
        case ExpireAction(action_id, claimed_by):
            return expire_action(moved, action_id, claimed_by)
        case Reconcile():
            return _reconcile(moved)
        case _:
            assert_never(command)


def _decide_for_worker(moved: ChatState, command: WorkerCommand) -> Decision:
    """Decide on a state whose snapshot version is the new one already."""
    match command:
        case CommitStep():
            return commit_step(moved, command)
        case RecordResult(_, result):
            return record_result(moved, result)
        case SuspendCall():
            return suspend_call(moved, command)
        case CommitResults(_, results):
            return commit_results(moved, results)
        case EnterRequiresAction():
            if not moved.pending or not all(call.is_asked for call in moved.pending):
                raise TransitionNotAllowed(moved.status, "EnterRequiresAction")
            return Decision(
                released(moved, Status.REQUIRES_ACTION),
                (StartDeadlines(),),
                deadline_s=earliest_s(moved.pending),
            )
        case CommitCompaction(_, messages):
            require_nothing_open(moved, command)
            compacted = replace(
                grown(moved, len(messages)),
                is_compaction_requested=False,
                compactions=moved.compactions + (not moved.is_compaction_requested),
            )
            return Decision(next_episode(compacted), (AppendMessages(messages),))
        case RecordRetry(_, retry):
            retried = replace(
                moved,
                retry=retry,
                retry_version=moved.snapshot_version,
                generation_attempt=moved.generation_attempt + (retry.held_back_since is None),
            )
            return Decision(retried)
        case FinishTurn(_, messages):
            answered, answers = with_calls_closed(moved, INTERRUPTED)
            return _finish(answered, (*answers, *_appending(messages)), len(messages))
        case FinishInterruption(_, messages):
            answered, answers = with_calls_closed(moved, INTERRUPTED)
            return _finish(answered, (*answers, *_appending(messages)), len(messages))
        case FinishRevert(_, report):
            return _finish_revert(moved, report)
        case FailTurn(_, error):
            failed = replace(released(moved, Status.ERROR), last_error=error)
            return Decision(failed, failed_edit(moved.revert))
        case Release():
            return Decision(replace(moved, worker_id=None))
        case _:
            assert_never(command)


def _send(moved: ChatState, command: SendMessage) -> Decision:
    # Files that are half restored would be no state to stop in.
    is_urgent = command.busy_behavior is BusyBehavior.INTERRUPT and moved.revert is None
    is_asking = moved.status is Status.REQUIRES_ACTION
    is_cancelled_first = is_asking and is_urgent and has_suspended(moved)
    is_startable = moved.status in AT_REST or (is_asking and is_urgent and not is_cancelled_first)
    if is_startable and moved.queue_length == 0:
        answered, answers = with_calls_closed(moved, NEW_MESSAGE)
        writes = (*answers, AppendMessages((command.message,)))
        return Decision(_started(answered, command.claimed_by), writes)
    if is_asking and not is_urgent and command.message.origin in SENT_BY_CALLERS:
        call = free_text_answer(moved, command.message.content)
        if call is not None:
            return answered_by_message(moved, call, command.message, command.claimed_by)
    if moved.queue_length >= QUEUE_LENGTH_MAX:
        raise QueueFull(QUEUE_LENGTH_MAX)
    enqueue = EnqueueMessage(command.queued_message_id, command.message)
    longer = queue_changed(moved, +1)
    if is_startable:
        return _start_head(longer, (enqueue,), command.claimed_by)
    if is_cancelled_first:
        return Decision(interrupted(longer, command.claimed_by), (enqueue,))
    if is_urgent:
        return Decision(replace(longer, status=Status.INTERRUPTING), (enqueue,))
    return Decision(longer, (enqueue,))


def _edit(moved: ChatState, command: EditMessage, facts: Facts) -> Decision:
    """Replace a message; the open calls belong to the deleted messages."""
    require_editable(command.message_id, facts)
    writes: tuple[Write, ...] = (
        DeleteMessagesFrom(command.message_id),
        AppendMessages((command.message,)),
        *given_up_calls(moved),
    )
    cut = replace(moved, pending=())
    if moved.queue_length:
        cut = queue_changed(cut, -moved.queue_length)
        writes = (ClearQueue(), *writes)
    started = _started(cut, command.claimed_by)
    if command.revert_id is None:
        return Decision(started, writes)
    revert = Revert(
        command.revert_id,
        RevertKind.EDIT,
        command.message_id,
        command.restores_files,
        open_calls=moved.pending,
        replacement_id=moved.next_message_id,
        deleted_version=moved.snapshot_version,
    )
    if command.restores_files:
        return Decision(replace(started, revert=revert), writes)
    return Decision(started, (*writes, *revert_writes(revert, b"")))


def _finish_revert(moved: ChatState, report: bytes) -> Decision:
    revert = moved.revert
    if revert is None:
        raise TransitionNotAllowed(moved.status, "FinishRevert")
    done, writes = completed(moved, revert, report)
    if revert.kind is RevertKind.EDIT:
        return Decision(next_episode(done), writes)
    return _finish(done, writes, 0)


def _promote(moved: ChatState, command: PromoteQueuedMessage, facts: Facts) -> Decision:
    _require_queued(moved, command.queued_message_id, facts)
    is_cancelled_first = moved.status is Status.REQUIRES_ACTION and has_suspended(moved)
    if moved.status not in OWNED and not is_cancelled_first:
        return _start_head(moved, (), command.claimed_by, command.queued_message_id)
    to_head: tuple[Write, ...] = (MoveToHead(command.queued_message_id),)
    reordered = queue_changed(moved, 0)
    stopping = (
        interrupted(reordered, command.claimed_by)
        if is_cancelled_first
        else replace(reordered, status=Status.INTERRUPTING)
    )
    return Decision(stopping, () if facts.is_queue_head else to_head)


def _submit(
    moved: ChatState,
    results: tuple[ToolResult, ...],
    created_by: str,
    claimed_by: WorkerId | None,
) -> Decision:
    """Store the results of all calls that the client executes."""
    check_client_results(moved.pending, results)
    ids = {call.tool_call_id: call.execution_id for call in moved.pending}
    answers = tuple(
        StoredAnswer(action_id, "null", result)
        for result in results
        if (action_id := ids[result.tool_call_id]) is not None
    )
    ended = EndActions(answers, ActionOutcome.ANSWERED, created_by)
    return with_results(moved, results, ended, claimed_by)


def _set_archived(moved: ChatState, *, archived: bool) -> Decision:
    """Archive or unarchive; a chat that waits for an answer gives up on it."""
    if moved.status is not Status.REQUIRES_ACTION:
        return Decision(replace(moved, archived=archived))
    closed, answers = with_calls_closed(moved, ARCHIVED)
    if not moved.queue_length:
        return Decision(replace(released(closed, Status.WAITING), archived=True), answers)
    # A chat cannot wait while messages are queued; they run when it is sent another one.
    error = TurnError("The chat was archived while it waited for an answer.", ErrorKind.GENERIC)
    at_rest = replace(released(closed, Status.ERROR), last_error=error, archived=True)
    return Decision(at_rest, answers)


def _require_queued(moved: ChatState, wanted: QueuedMessageId, facts: Facts) -> None:
    """Require that a message is queued; the facts may have been read after the state."""
    if not facts.is_queued or not moved.queue_length:
        raise QueuedMessageNotFound(wanted)


def _interrupt(moved: ChatState, claimed_by: WorkerId | None) -> Decision:
    if moved.revert is not None or moved.status is Status.INTERRUPTING:
        return Decision(moved)  # It ends by itself; only its queue was dropped.
    if moved.status is Status.RUNNING:
        return Decision(replace(moved, status=Status.INTERRUPTING))
    if has_suspended(moved):
        return Decision(interrupted(moved, claimed_by))
    if moved.queue_length:
        return _start_head(moved, (), claimed_by)
    stopped, answers = with_calls_closed(moved, INTERRUPTED)
    return Decision(released(stopped, Status.WAITING), answers)


def _reconcile(moved: ChatState) -> Decision:
    problem = impossibility(moved)
    if problem is None:
        raise TransitionNotAllowed(moved.status, "Reconcile")
    repaired, answers = with_calls_closed(replace(moved, archived=False), RECONCILED)
    error = TurnError(f"The chat had to be repaired: {problem}.", ErrorKind.GENERIC)
    at_rest = replace(released(repaired, Status.ERROR), last_error=error)
    # A process that still runs the chat must stop.
    return Decision(replace(at_rest, owner_epoch=moved.owner_epoch + 1), answers)


def _finish(moved: ChatState, writes: tuple[Write, ...], message_count: int) -> Decision:
    """Add new history, and continue with the queue's head under the same worker, or rest."""
    if moved.queue_length == 0:
        return Decision(released(moved, Status.WAITING, **growth(moved, message_count)), writes)
    ended = grown(moved, message_count)
    next_turn = replace(
        grown(queue_changed(ended, -1), 1),
        status=Status.RUNNING,
        turn_id=ended.next_message_id,
        compactions=0,
        is_compaction_requested=False,
    )
    return Decision(next_episode(next_turn), (*writes, PromoteHead()))


def _start_head(
    moved: ChatState,
    writes: tuple[Write, ...],
    claimed_by: WorkerId | None,
    head: QueuedMessageId | None = None,
) -> Decision:
    """Start the turn of the queue's head, or of another message that is moved before it."""
    answered, answers = with_calls_closed(moved, NEW_MESSAGE)
    started = _started(queue_changed(answered, -1), claimed_by)
    return Decision(started, (*writes, *answers, PromoteHead(head)))


def _started(moved: ChatState, claimed_by: WorkerId | None) -> ChatState:
    """Return the state in which the turn of one more message runs."""
    turn_id = moved.next_message_id
    return running(moved, claimed_by, **growth(moved, 1), turn_id=turn_id, compactions=0)


def _appending(messages: tuple[NewMessage, ...]) -> tuple[Write, ...]:
    return (AppendMessages(messages),) if messages else ()
