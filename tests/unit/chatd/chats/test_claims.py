"""A worker runs what a command claimed for it, at once, and nothing else."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import ChatState, Claimed, Slot, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    BusyBehavior,
    EditMessage,
    Interrupt,
    PromoteQueuedMessage,
    RequestCompaction,
    Resolved,
    RevertChat,
    SendMessage,
    SubmitToolResults,
    Supplied,
    UserCommand,
)
from chatd.chats.domain.transitions import decide
from chatd.chats.rpc.claims import reserved
from chatd.content.domain.tools import InputAction
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import MessageId, Owner, OwnerId, WorkerId
from support.chatd.chats.transition_states import (
    ACTION,
    ANSWERED,
    FACTS,
    HELLO,
    OTHER_REVERT,
    QUEUED,
    STATES,
    TARGET,
    WORKER,
)

ANN = Owner(OwnerId("00000000-0000-0000-0000-0000000000a1"), "member")
SUPPLIED = Supplied(InputAction.ACCEPT)
COMMANDS: Mapping[str, UserCommand] = {
    "send": SendMessage(HELLO, QUEUED, WORKER),
    "send urgently": SendMessage(HELLO, QUEUED, WORKER, BusyBehavior.INTERRUPT),
    "edit": EditMessage(TARGET.id, HELLO, WORKER),
    "revert with files": RevertChat(OTHER_REVERT, TARGET.id, True, WORKER),
    "promote": PromoteQueuedMessage(QUEUED, WORKER),
    "interrupt": Interrupt(MessageId(0), WORKER),
    "interrupt and drop the queue": Interrupt(MessageId(0), WORKER, drops_queue=True),
    "submit": SubmitToolResults((ANSWERED,), "ann", WORKER),
    "compact": RequestCompaction(WORKER),
    "answer": AnswerAction(ACTION, Resolved(ANSWERED), "{}", "ann", WORKER),
    "answer a call": AnswerAction(ACTION, SUPPLIED, "{}", "ann", WORKER),
}


class OneSlot:
    """A worker with one slot that notes what it runs."""

    worker_id: WorkerId = WORKER

    def __init__(self) -> None:
        self.started: list[ChatState] = []
        self.free = 1

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        self.free -= 1
        return Slot()

    def start(self, claimed: Claimed, slot: Slot) -> None:
        self.started.append(claimed.state)

    def release_slot(self, slot: Slot) -> None:
        self.free += 1


def started_after(state: ChatState) -> OneSlot:
    """Return a worker after a command that led to a state."""
    worker = OneSlot()
    with reserved(worker, ANN) as reservation:
        reservation.start(state)
    return worker


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", STATES)
def test_a_worker_runs_exactly_what_a_command_claimed_for_it(name: str, command: str) -> None:
    state = STATES[name]
    try:
        after = decide(state, COMMANDS[command], replace(FACTS, is_queued=name.endswith("1"))).state
    except ChatError:
        return  # The test of the matrix says which are refused.
    is_claimed = after.worker_id is not None and after.owner_epoch != state.owner_epoch
    worker = started_after(after)
    assert worker.started == ([after] if is_claimed else [])
    assert worker.free == int(not is_claimed)


@pytest.mark.parametrize("command", ["send urgently", "promote", "interrupt"])
def test_a_worker_stops_a_chat_whose_call_waits_at_once(command: str) -> None:
    after = decide(STATES["Q1"], COMMANDS[command], FACTS).state
    assert after.status is Status.INTERRUPTING
    assert started_after(after).started == [after]
