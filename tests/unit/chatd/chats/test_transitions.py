"""What commands write, and what they require beside the state."""

from dataclasses import replace

import pytest

from chatd.chats.domain.chat import (
    QUEUE_LENGTH_MAX,
    Facts,
    Retry,
    Status,
)
from chatd.chats.domain.commands import (
    CommitCompaction,
    CommitStep,
    EditMessage,
    EnterRequiresAction,
    FinishInterruption,
    FinishTurn,
    Interrupt,
    PromoteQueuedMessage,
    RecordRetry,
    Release,
    RequestCompaction,
    SendMessage,
    SubmitToolResults,
)
from chatd.chats.domain.errors import (
    BadToolResult,
    FenceLost,
    MessageNotFound,
    NotEditable,
    NothingToCompact,
    QueueFull,
    ResultProblem,
    TransitionNotAllowed,
)
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import (
    decide,
    fence_of,
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
from chatd.primitives.domain.ids import (
    Fence,
    MessageId,
)
from support.chatd.chats.transition_states import (
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
    QUEUED,
    STATES,
    TARGET,
    WORKER,
)


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
