"""The whole matrix: every command in every state, allowed with its outcome or refused by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import (
    QUEUE_LENGTH_MAX,
    ChatState,
    Facts,
    Retry,
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
    RecordRetry,
    Release,
    RequestCompaction,
    Resolved,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    Supplied,
    UndoRevert,
)
from chatd.chats.domain.errors import (
    ActionNotOpen,
    BadToolResult,
    ChatArchived,
    FenceLost,
    InvalidState,
    MessageNotFound,
    NotEditable,
    NothingToCompact,
    QueuedMessageNotFound,
    QueueFull,
    ResultProblem,
    TransitionNotAllowed,
)
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import (
    decide,
    fence_of,
    impossibility,
)
from chatd.chats.domain.writes import (
    AnswerPending,
    AppendMessages,
    CancelActions,
    CancelCalls,
    ClearQueue,
    DeleteMessagesFrom,
    EnqueueMessage,
    MoveToHead,
    PromoteHead,
)
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.tools import InputAction
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    Fence,
    MessageId,
)
from support.chatd.chats.transition_states import (
    ACTION,
    ANSWER,
    ANSWERED,
    AT_REST,
    CLIENT,
    DONE,
    EXECUTION,
    FACTS,
    HELLO,
    LOCAL,
    NOW,
    OOPS,
    OTHER,
    OTHER_REVERT,
    QUEUED,
    REVERT,
    STATES,
    TARGET,
    WORKER,
)

# What each command is, built for a state, because a worker's carries that state's fence.
COMMANDS: Mapping[str, Callable[[ChatState], Command]] = {
    "send": lambda _: SendMessage(HELLO, QUEUED, OTHER),
    "send urgently": lambda _: SendMessage(HELLO, QUEUED, OTHER, BusyBehavior.INTERRUPT),
    "edit": lambda _: EditMessage(TARGET.id, HELLO, OTHER),
    "revert": lambda _: RevertChat(OTHER_REVERT, TARGET.id, False, OTHER),
    "revert with files": lambda _: RevertChat(OTHER_REVERT, TARGET.id, True, OTHER),
    "undo revert": lambda _: UndoRevert(OTHER_REVERT, REVERT.revert_id, OTHER),
    "drop queued": lambda _: DeleteQueuedMessage(QUEUED),
    "change queued": lambda _: ChangeQueuedMessage(QUEUED, HELLO.content, None, 2),
    "promote": lambda _: PromoteQueuedMessage(QUEUED, OTHER),
    "interrupt": lambda _: Interrupt(MessageId(0), OTHER),
    "answer": lambda _: SubmitToolResults((ANSWERED,), "ann", OTHER),
    "compact": lambda _: RequestCompaction(OTHER),
    "archive": lambda _: SetArchived(archived=True),
    "unarchive": lambda _: SetArchived(archived=False),
    "answer as person": lambda _: AnswerAction(ACTION, Resolved(ANSWERED), "{}", "ann", OTHER),
    "answer what is over": lambda _: AnswerAction(
        EXECUTION, Resolved(ANSWERED), "{}", "ann", OTHER
    ),
    "answer a call": lambda _: AnswerAction(
        ACTION, Supplied(InputAction.ACCEPT), "{}", "ann", OTHER
    ),
    "expire": lambda _: ExpireAction(ACTION, OTHER),
    "expire what is over": lambda _: ExpireAction(EXECUTION, OTHER),
    "reconcile": lambda _: Reconcile(),
    "step": lambda state: CommitStep(fence_of(state), (ANSWER,)),
    "commit results": lambda state: CommitResults(fence_of(state)),
    "commit compaction": lambda state: CommitCompaction(fence_of(state), (HELLO,)),
    "retry": lambda state: RecordRetry(fence_of(state), Retry(1, 1000, NOW, OOPS)),
    "finish": lambda state: FinishTurn(fence_of(state), (ANSWER,)),
    "finish interruption": lambda state: FinishInterruption(fence_of(state), (ANSWER,)),
    "finish revert": lambda state: FinishRevert(fence_of(state), b"report"),
    "fail": lambda state: FailTurn(fence_of(state), OOPS),
    "release": lambda state: Release(fence_of(state)),
}

# The states a command leads to, from the specification's matrix and our deviations from it. A state
# that is missing refuses the command; "=" leaves it as it is.
OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "send": {
        "W": "R0", "E0": "R0", "E1": "R1", "R0": "R1", "R1": "R1",
        "V0": "V1", "V1": "V1", "I0": "I1", "I1": "I1", "A0": "A1", "A1": "A1",
        "Q0": "Q1", "Q1": "Q1",
    },
    "send urgently": {
        "W": "R0", "E0": "R0", "E1": "R1", "R0": "I1", "R1": "I1",
        "V0": "V1", "V1": "V1", "I0": "I1", "I1": "I1", "A0": "R0", "A1": "R1",
        "Q0": "I1", "Q1": "I1",
    },
    "edit": dict.fromkeys(
        ("W", "E0", "E1", "R0", "R1", "I0", "I1", "A0", "A1", "Q0", "Q1"), "R0"
    ),
    "revert": dict.fromkeys(("W", "E0", "E1"), "W"),
    "revert with files": dict.fromkeys(("W", "E0", "E1"), "V0"),
    "undo revert": dict.fromkeys(("W", "E0", "E1"), "W"),
    "drop queued": {name: name for name in ("E1", "R1", "V1", "I1", "A1", "Q1")},
    "change queued": {name: name for name in ("E1", "R1", "V1", "I1", "A1", "Q1")},
    "promote": {"E1": "R1", "A1": "R1", "R1": "I1", "I1": "I1", "Q1": "I1"},
    "interrupt": {
        "W": "=", "E0": "=", "E1": "=", "R0": "I0", "R1": "I1", "I0": "=", "I1": "=",
        "V0": "=", "V1": "=",
        "A0": "W", "A1": "R1", "Q0": "I0", "Q1": "I1",
    },
    "answer": {"A0": "R0", "A1": "R1"},
    "compact": {"W": "R0", "E0": "R0", "E1": "R1"},
    "archive": {
        "W": "XW", "E0": "XE0", "E1": "XE1", "A0": "XW", "A1": "XE1", "Q0": "XW", "Q1": "XE1",
        "XW": "=", "XE0": "=", "XE1": "=",
    },
    "unarchive": {
        "W": "=", "E0": "=", "E1": "=", "A0": "=", "A1": "=", "Q0": "=", "Q1": "=",
        "XW": "W", "XE0": "E0", "XE1": "E1",
    },
    "answer as person": {"A0": "R0", "A1": "R1"},
    "answer what is over": {},
    "answer a call": {"Q0": "R0", "Q1": "R1"},
    "expire": {"A0": "R0", "A1": "R1", "Q0": "R0", "Q1": "R1"},
    "expire what is over": dict.fromkeys(("A0", "A1", "Q0", "Q1"), "="),
    "reconcile": {},
    "step": {"R0": "R0", "R1": "R1"},
    "commit results": {"R0": "R0", "R1": "R1"},
    "commit compaction": {"R0": "R0", "R1": "R1"},
    "retry": {name: name for name in ("R0", "R1", "V0", "V1")},
    "finish": {"R0": "W", "R1": "R1"},
    "finish interruption": {"I0": "W", "I1": "R1"},
    "finish revert": {"V0": "W", "V1": "R1"},
    "fail": {"R0": "E0", "R1": "E1", "V0": "E0", "V1": "E1"},
    "release": {name: name for name in ("R0", "R1", "V0", "V1", "I0", "I1")},
}  # fmt: skip


def label(state: ChatState) -> str:
    letter = {
        Status.WAITING: "W",
        Status.ERROR: "E",
        Status.RUNNING: "R",
        Status.INTERRUPTING: "I",
        Status.REQUIRES_ACTION: "A",
    }[state.status]
    letter = letter if state.revert is None else "V"
    is_suspended = any(call.is_suspended for call in state.pending)
    letter = "Q" if letter == "A" and is_suspended else letter
    queue = "" if letter == "W" else str(int(state.queue_length > 0))
    return f"{'X' if state.archived else ''}{letter}{queue}"


def with_a_queue_that_exists(name: str, command: str) -> Facts:
    """In a state without a queue nothing is queued."""
    return FACTS if name.endswith("1") else replace(FACTS, is_queued=False)


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_every_state_does_what_the_matrix_says(name: str, command: str) -> None:
    state = STATES[name]
    expected = OUTCOMES[command].get(name)
    facts = with_a_queue_that_exists(name, command)
    if expected is None:
        with pytest.raises(ChatError) as refusal:
            decide(state, COMMANDS[command](state), facts)
        assert type(refusal.value) is refusal_of(state, command)
        return
    decision = decide(state, COMMANDS[command](state), facts)
    if expected == "=":
        assert decision == Decision(state)
    else:
        assert label(decision.state) == expected
        assert decision.state.snapshot_version == state.snapshot_version + 1
    assert impossibility(decision.state) is None


def refusal_of(state: ChatState, command: str) -> type[ChatError]:
    if state.archived and command in {
        "send", "send urgently", "edit", "revert", "revert with files", "undo revert",
        "drop queued", "change queued", "promote", "interrupt", "answer", "compact",
        "answer as person", "answer what is over", "answer a call", "expire",
        "expire what is over",
    }:  # fmt: skip
        return ChatArchived
    if command == "promote" and state.revert is not None:
        return TransitionNotAllowed
    if state.status is Status.REQUIRES_ACTION and command == "answer":
        return BadToolResult
    if state.status is Status.REQUIRES_ACTION and command in {
        "answer what is over", "answer as person", "answer a call",
    }:  # fmt: skip
        return ActionNotOpen
    if command in {"drop queued", "change queued", "promote"}:
        return QueuedMessageNotFound
    return TransitionNotAllowed


def test_the_matrix_leaves_out_no_state_and_no_command() -> None:
    assert set(OUTCOMES) == set(COMMANDS)
    assert {name for row in OUTCOMES.values() for name in row} == set(STATES)
    assert {label(state) for state in STATES.values()} == set(STATES)


@pytest.mark.parametrize("stale", [Fence(3, 8, 1), Fence(4, 7, 1), Fence(4, 8, 2)])
@pytest.mark.parametrize("name", ["R0", "R1", "I0", "I1"])
def test_a_worker_that_lost_its_chat_writes_nothing(stale: Fence, name: str) -> None:
    for build in (FinishTurn, FinishInterruption, CommitStep):
        with pytest.raises(FenceLost):
            decide(STATES[name], build(stale, (ANSWER,)))


def test_a_message_to_a_resting_chat_starts_a_turn_of_the_claiming_worker() -> None:
    assert decide(AT_REST, SendMessage(HELLO, QUEUED, WORKER)) == Decision(
        replace(
            AT_REST,
            status=Status.RUNNING,
            snapshot_version=10,
            history_version=10,
            generation_attempt=1,
            next_message_id=MessageId(8),
            owner_epoch=1,
            worker_id=WORKER,
            turn_id=MessageId(7),
        ),
        (AppendMessages((HELLO,)),),
    )


def test_without_a_free_slot_the_chat_runs_unowned_and_no_former_owner_can_go_on() -> None:
    state = decide(STATES["R0"], EditMessage(TARGET.id, HELLO, None), FACTS).state
    assert (state.worker_id, state.generation_attempt, state.owner_epoch) == (None, 0, 5)


def test_a_message_answers_the_calls_that_a_failed_turn_left_open() -> None:
    failed = replace(STATES["E0"], pending=(LOCAL, CLIENT))
    decision = decide(failed, SendMessage(HELLO, QUEUED, WORKER))
    answers, cancelled, given_up, appended = decision.writes
    assert isinstance(answers, AnswerPending)
    assert answers.calls == (LOCAL, CLIENT)
    assert (cancelled, given_up) == (CancelActions(), CancelCalls((EXECUTION,)))
    assert appended == AppendMessages((HELLO,))
    assert decision.state.pending == ()
    assert decision.state.next_message_id == failed.next_message_id + 3
    assert decision.state.turn_id == failed.next_message_id + 2


def test_a_message_to_a_failed_chat_with_a_queue_lets_the_oldest_go_first() -> None:
    decision = decide(STATES["E1"], SendMessage(HELLO, QUEUED, WORKER))
    assert decision.writes == (EnqueueMessage(QUEUED, HELLO), PromoteHead())
    assert decision.state.queue_length == 2


def test_the_queue_has_an_end() -> None:
    full = replace(STATES["R1"], queue_length=QUEUE_LENGTH_MAX)
    with pytest.raises(QueueFull):
        decide(full, SendMessage(HELLO, QUEUED, None))


def test_an_edit_takes_everything_after_the_message_and_the_queue_along() -> None:
    running = replace(STATES["R1"], pending=(LOCAL,))
    decision = decide(running, EditMessage(TARGET.id, HELLO, WORKER), FACTS)
    assert decision.writes == (
        ClearQueue(),
        DeleteMessagesFrom(TARGET.id),
        AppendMessages((HELLO,)),
        CancelCalls((EXECUTION,)),
    )
    assert (decision.state.pending, decision.state.queue_length) == ((), 0)


def test_a_call_whose_result_is_stored_is_not_cancelled_by_an_edit() -> None:
    running = replace(STATES["R0"], pending=(replace(LOCAL, is_recorded=True),))
    decision = decide(running, EditMessage(TARGET.id, HELLO, WORKER), FACTS)
    assert decision.writes == (DeleteMessagesFrom(TARGET.id), AppendMessages((HELLO,)))


def test_only_live_messages_of_users_can_be_edited() -> None:
    edit = EditMessage(TARGET.id, HELLO, WORKER)
    with pytest.raises(MessageNotFound):
        decide(AT_REST, edit, Facts())
    for target in (replace(TARGET, role=Role.ASSISTANT), replace(TARGET, is_compressed=True)):
        with pytest.raises(NotEditable):
            decide(AT_REST, edit, Facts(target=target))


def test_promoting_reorders_a_busy_queue_unless_it_is_the_head_already() -> None:
    promote = PromoteQueuedMessage(QUEUED, WORKER)
    assert decide(STATES["R1"], promote, FACTS).writes == (MoveToHead(QUEUED),)
    assert decide(STATES["R1"], promote, replace(FACTS, is_queue_head=True)).writes == ()
    assert decide(STATES["E1"], promote, FACTS).writes == (PromoteHead(QUEUED),)


def test_an_interrupt_for_a_turn_that_is_over_succeeds_without_effect() -> None:
    running = STATES["R0"]
    assert decide(running, Interrupt(MessageId(4), None)) == Decision(running)
    assert decide(running, Interrupt(MessageId(5), None)).state.status is Status.INTERRUPTING


def test_nobody_waits_for_a_client_that_was_asked_nothing() -> None:
    with pytest.raises(TransitionNotAllowed):
        decide(STATES["R0"], EnterRequiresAction(fence_of(STATES["R0"])))


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ((ANSWERED, ANSWERED), ResultProblem.DUPLICATE),
        ((ToolResult("call_1", "ask", "{", ToolOutcome.DONE),), ResultProblem.INVALID_JSON),
        ((), ResultProblem.MISSING),
        ((ANSWERED, DONE), ResultProblem.UNEXPECTED),
    ],
)
def test_results_of_a_client_must_fit_what_was_asked(
    results: tuple[ToolResult, ...], problem: ResultProblem
) -> None:
    with pytest.raises(BadToolResult) as refusal:
        decide(STATES["A0"], SubmitToolResults(results, "ann", None))
    assert refusal.value.problem == problem


def test_all_results_that_do_not_fit_are_told() -> None:
    with pytest.raises(BadToolResult) as refusal:
        decide(STATES["A0"], SubmitToolResults((DONE,), "ann", None))
    assert refusal.value.problems == {
        "call_1": ResultProblem.MISSING,
        DONE.tool_call_id: ResultProblem.UNEXPECTED,
    }


def test_a_retry_opens_the_next_attempt_in_the_same_write() -> None:
    running = STATES["R0"]
    retry = Retry(1, 1000, NOW, OOPS)
    state = decide(running, RecordRetry(fence_of(running), retry)).state
    assert (state.generation_attempt, state.retry, state.retry_version) == (2, retry, 10)
    assert state.history_version == running.history_version
    assert decide(state, FinishTurn(fence_of(state), (ANSWER,))).state.retry is None
    # A call that was held back was not made, so its attempt stays open.
    held_back = RecordRetry(fence_of(state), replace(retry, held_back_since=NOW))
    assert fence_of(decide(state, held_back).state) == fence_of(state)


def test_automatic_compactions_are_counted_until_the_next_turn_and_asked_ones_are_not() -> None:
    running = STATES["R1"]
    once = decide(running, CommitCompaction(fence_of(running), (HELLO,))).state
    assert once.compactions == 1
    asked = replace(once, is_compaction_requested=True)
    assert decide(asked, CommitCompaction(fence_of(asked), (HELLO,))).state.compactions == 1
    assert decide(once, FinishTurn(fence_of(once), (ANSWER,))).state.compactions == 0


def test_there_is_nothing_to_compact_without_an_answer() -> None:
    with pytest.raises(NothingToCompact):
        decide(AT_REST, RequestCompaction(WORKER), Facts())


def test_a_finished_turn_goes_on_with_the_queue_under_the_same_worker() -> None:
    running = STATES["R1"]
    decision = decide(running, FinishTurn(fence_of(running), (ANSWER,)))
    assert decision.writes == (AppendMessages((ANSWER,)), PromoteHead())
    assert (decision.state.worker_id, decision.state.owner_epoch) == (WORKER, 4)
    assert decision.state.turn_id == running.next_message_id + 1


def test_an_interruption_keeps_what_was_recorded_and_what_was_said() -> None:
    interrupting = replace(STATES["I0"], pending=(replace(LOCAL, is_recorded=True),))
    finish = FinishInterruption(fence_of(interrupting), (ANSWER,))
    answers, appended = decide(interrupting, finish).writes
    assert isinstance(answers, AnswerPending)
    assert appended == AppendMessages((ANSWER,))


def test_a_released_chat_keeps_its_attempt_so_that_no_episode_is_made_twice() -> None:
    running = replace(STATES["R0"], generation_attempt=3)
    state = decide(running, Release(fence_of(running))).state
    assert (state.worker_id, state.generation_attempt) == (None, 3)


@pytest.mark.parametrize(
    "broken",
    [
        replace(AT_REST, queue_length=1),
        replace(STATES["R0"], archived=True),
        replace(AT_REST, worker_id=WORKER),
        replace(AT_REST, status=Status.ERROR),
        replace(STATES["A0"], pending=()),
    ],
)
def test_an_impossible_state_takes_nothing_but_being_reconciled(broken: ChatState) -> None:
    for name, build in COMMANDS.items():
        if name != "reconcile":
            with pytest.raises(InvalidState):
                decide(broken, build(broken), FACTS)
    repaired = decide(broken, Reconcile()).state
    assert (repaired.status, repaired.archived) == (Status.ERROR, False)
    assert repaired.owner_epoch == broken.owner_epoch + 1
    assert impossibility(repaired) is None
