from dataclasses import replace

import pytest

from chatd.domain.chat import (
    ChatId,
    ChatState,
    ErrorKind,
    MessageId,
    NewMessage,
    Role,
    Status,
    TurnError,
    WorkerId,
)
from chatd.domain.commands import Command, CommitStep, FailTurn, Fence, FinishTurn, SendMessage
from chatd.domain.errors import FenceLost, TransitionNotAllowed
from chatd.domain.parts import Text, ToolCall
from chatd.domain.tools import Dispatch, Executor
from chatd.domain.transitions import ALLOWED, Decision, decide, fence_of
from chatd.domain.writes import AppendMessages, RecordDispatches

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
HELLO = NewMessage(Role.USER, (Text("hello"),), "ann")
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
OOPS = TurnError("The chat request failed.", ErrorKind.GENERIC)

WAITING = ChatState(CHAT, Status.WAITING, 5, 4, 0, MessageId(3), owner_epoch=2)
RUNNING = ChatState(CHAT, Status.RUNNING, 6, 6, 1, MessageId(4), owner_epoch=3, worker_id=WORKER)


def commands_for(state: ChatState) -> tuple[Command, ...]:
    fence = fence_of(state)
    return (
        SendMessage(HELLO, WORKER),
        CommitStep(fence, (ANSWER,)),
        FinishTurn(fence, (ANSWER,)),
        FailTurn(fence, OOPS),
    )


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("place", range(4))
def test_every_command_is_allowed_or_refused_by_name(status: Status, place: int) -> None:
    state = replace(RUNNING, status=status)
    command = commands_for(state)[place]
    if type(command) in ALLOWED[status]:
        assert decide(state, command).state.snapshot_version == state.snapshot_version + 1
    else:
        with pytest.raises(TransitionNotAllowed) as refusal:
            decide(state, command)
        assert refusal.value.status is status


def test_a_message_to_a_resting_chat_starts_a_turn_of_the_claiming_worker() -> None:
    assert decide(WAITING, SendMessage(HELLO, WORKER)) == Decision(
        RUNNING, (AppendMessages((HELLO,)),)
    )


def test_a_message_without_a_free_slot_leaves_the_chat_running_and_unowned() -> None:
    decision = decide(WAITING, SendMessage(HELLO, None))
    assert decision.state == replace(RUNNING, owner_epoch=2, worker_id=None, generation_attempt=0)


def test_a_step_with_calls_records_them_with_its_message() -> None:
    call = ToolCall("call_0", "execute", "{}")
    dispatch = Dispatch(CHAT, call, Executor.TOOLRUNNER, "journal-1")  # type: ignore[arg-type]
    decision = decide(RUNNING, CommitStep(fence_of(RUNNING), (ANSWER,), (dispatch,)))
    assert decision == Decision(
        replace(RUNNING, snapshot_version=7, history_version=7, next_message_id=MessageId(5)),
        (AppendMessages((ANSWER,)), RecordDispatches((dispatch,))),
    )


def test_a_finished_turn_releases_its_worker() -> None:
    assert decide(RUNNING, FinishTurn(fence_of(RUNNING), (ANSWER,))).state == ChatState(
        CHAT, Status.WAITING, 7, 7, 0, MessageId(5), owner_epoch=3
    )


def test_a_failed_turn_tells_why_and_leaves_the_history_alone() -> None:
    assert decide(RUNNING, FailTurn(fence_of(RUNNING), OOPS)).state == ChatState(
        CHAT, Status.ERROR, 7, 6, 0, MessageId(4), owner_epoch=3, last_error=OOPS
    )


def test_a_message_clears_the_error_of_the_turn_before() -> None:
    failed = replace(WAITING, status=Status.ERROR, last_error=OOPS)
    assert decide(failed, SendMessage(HELLO, WORKER)).state == RUNNING


@pytest.mark.parametrize("stale", [Fence(2, 6, 1), Fence(3, 5, 1), Fence(3, 6, 2)])
def test_a_worker_that_lost_its_chat_writes_nothing(stale: Fence) -> None:
    with pytest.raises(FenceLost):
        decide(RUNNING, FinishTurn(stale, (ANSWER,)))
