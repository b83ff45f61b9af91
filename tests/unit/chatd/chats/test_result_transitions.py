"""Steps with calls: their results, and the wait for clients and people."""

from dataclasses import replace

import pytest

from chatd.chats.domain.chat import (
    NewMessage,
    Status,
)
from chatd.chats.domain.commands import (
    CommitResults,
    CommitStep,
    EnterRequiresAction,
    Interrupt,
    RecordResult,
)
from chatd.chats.domain.errors import (
    FenceLost,
    TransitionNotAllowed,
)
from chatd.chats.domain.transitions import (
    decide,
    fence_of,
)
from chatd.chats.domain.writes import (
    AnswerPending,
    AppendMessages,
    CancelActions,
    OpenActions,
    RecordDispatches,
    StartDeadlines,
    StoreResult,
)
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.primitives.domain.ids import (
    MessageId,
)
from support.chatd.chats.transition_states import (
    ASKED_CALL,
    CALL,
    CLIENT,
    DISPATCH,
    DONE,
    LOCAL,
    STATES,
)


def test_an_interrupt_while_the_client_is_asked_stops_the_turn() -> None:
    decision = decide(STATES["A0"], Interrupt(MessageId(0), None))
    assert decision.state.status is Status.WAITING
    assert decision.state.deadline_at is None
    answers, cancelled = decision.writes
    assert isinstance(answers, AnswerPending)
    assert answers.calls == (CLIENT,)
    assert cancelled == CancelActions()


def test_a_step_keeps_its_calls_open_and_remembers_them_as_dispatched() -> None:
    message = NewMessage(Role.ASSISTANT, (CALL,))
    running = STATES["R0"]
    step = CommitStep(fence_of(running), (message,), (DISPATCH,), (ASKED_CALL,))
    decision = decide(running, step)
    assert decision.writes == (
        AppendMessages((message,)),
        RecordDispatches(running.next_message_id, (DISPATCH,)),
        OpenActions(running.next_message_id, (ASKED_CALL,)),
    )
    assert decision.state.pending == (LOCAL, CLIENT)
    again = CommitStep(fence_of(decision.state), (message,))
    with pytest.raises(TransitionNotAllowed):
        decide(decision.state, again)


def test_a_result_is_recorded_once_and_leaves_the_episode_open() -> None:
    running = replace(STATES["R0"], pending=(LOCAL, CLIENT), takeovers=2)
    decision = decide(running, RecordResult(fence_of(running), DONE))
    recorded = replace(LOCAL, is_recorded=True)
    assert decision.writes == (StoreResult(LOCAL, DONE),)
    assert decision.state.pending == (recorded, CLIENT)
    assert fence_of(decision.state) == fence_of(running)
    assert decision.state.takeovers == 0
    with pytest.raises(FenceLost):
        decide(decision.state, RecordResult(fence_of(running), DONE))


def test_recorded_results_go_into_the_history_and_the_clients_calls_stay_open() -> None:
    recorded = replace(LOCAL, is_recorded=True)
    running = replace(STATES["R0"], pending=(recorded, CLIENT))
    decision = decide(running, CommitResults(fence_of(running)))
    (answers,) = decision.writes
    assert isinstance(answers, AnswerPending)
    assert answers.calls == (recorded,)
    assert decision.state.pending == (CLIENT,)
    waiting = decide(decision.state, EnterRequiresAction(fence_of(decision.state)))
    assert waiting.state.status is Status.REQUIRES_ACTION
    assert (waiting.state.worker_id, waiting.deadline_s) == (None, 300.0)
    assert waiting.writes == (StartDeadlines(),)


def test_the_last_result_is_stored_by_the_write_that_puts_all_into_the_history() -> None:
    first = replace(LOCAL, tool_call_id="first", is_recorded=True)
    earlier = ToolResult("first", "execute", "{}", ToolOutcome.DONE)
    running = replace(STATES["R0"], pending=(first, LOCAL, CLIENT), takeovers=2)
    decision = decide(running, CommitResults(fence_of(running), (DONE, earlier)))
    messages = (NewMessage(Role.TOOL, (earlier,)), NewMessage(Role.TOOL, (DONE,)))
    assert decision.writes == (AppendMessages(messages), StoreResult(LOCAL, DONE))
    assert decision.state.pending == (CLIENT,)
    assert decision.state.next_message_id == running.next_message_id + 2
    assert decision.state.takeovers == 0


def test_results_that_are_not_those_of_the_calls_are_refused() -> None:
    first = replace(LOCAL, tool_call_id="first")
    earlier = ToolResult("first", "execute", "{}", ToolOutcome.DONE)
    for pending, results in (
        ((replace(first, is_recorded=True), LOCAL), (DONE,)),
        ((LOCAL,), (DONE, earlier)),
        ((first, LOCAL), (DONE, earlier)),
    ):
        running = replace(STATES["R0"], pending=pending)
        with pytest.raises(FenceLost):
            decide(running, CommitResults(fence_of(running), results))
