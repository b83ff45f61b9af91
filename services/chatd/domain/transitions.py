"""The state machine of a chat: which command is legal when, and what it does.

Two rules. Everything that affects the machine is in this file. Nothing here reads a clock, a
database or chance: a decision is a value, and the store executes it.

Every decision moves `snapshot_version` by one. One that changes the history sets `history_version`
to the same number and opens the next episode with attempt 1, unless the chat comes to rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from chatd.domain.chat import ChatState, MessageId, NewMessage, Status
from chatd.domain.commands import Command, CommitStep, FailTurn, Fence, FinishTurn, SendMessage
from chatd.domain.errors import FenceLost, TransitionNotAllowed
from chatd.domain.writes import AppendMessages, RecordDispatches, Write

ALLOWED: Mapping[Status, frozenset[type[Command]]] = {
    Status.WAITING: frozenset({SendMessage}),
    Status.RUNNING: frozenset({CommitStep, FinishTurn, FailTurn}),
    Status.INTERRUPTING: frozenset(),
    Status.REQUIRES_ACTION: frozenset(),
    Status.ERROR: frozenset({SendMessage}),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """The execution row as it will be, and the writes that must commit with it."""

    state: ChatState
    writes: tuple[Write, ...] = ()


def decide(state: ChatState, command: Command) -> Decision:
    """Return what `command` does to a chat in `state`.

    Raises:
        TransitionNotAllowed: `command` is not legal in this status.
        FenceLost: `command` comes from a worker that no longer owns this episode.
    """
    if not isinstance(command, SendMessage) and command.fence != fence_of(state):
        raise FenceLost(state.chat_id)
    if type(command) not in ALLOWED[state.status]:
        raise TransitionNotAllowed(state.status, type(command).__name__)

    match command:
        case SendMessage(message, claimed_by):
            started = replace(
                _with_messages(state, (message,)),
                status=Status.RUNNING,
                worker_id=claimed_by,
                owner_epoch=state.owner_epoch + (claimed_by is not None),
                generation_attempt=int(claimed_by is not None),
                last_error=None,
            )
            return Decision(started, (AppendMessages((message,)),))
        case CommitStep(_, messages, dispatches):
            writes: tuple[Write, ...] = (AppendMessages(messages),)
            if dispatches:
                writes = (*writes, RecordDispatches(dispatches))
            return Decision(replace(_with_messages(state, messages), generation_attempt=1), writes)
        case FinishTurn(_, messages):
            finished = _at_rest(_with_messages(state, messages), Status.WAITING)
            return Decision(finished, (AppendMessages(messages),))
        case FailTurn(_, error):
            moved = replace(state, snapshot_version=state.snapshot_version + 1)
            return Decision(replace(_at_rest(moved, Status.ERROR), last_error=error))
        case _:
            assert_never(command)


def fence_of(state: ChatState) -> Fence:
    """Return the fence that the present owner's writes must match."""
    return Fence(state.owner_epoch, state.history_version, state.generation_attempt)


def _with_messages(state: ChatState, messages: tuple[NewMessage, ...]) -> ChatState:
    """Move the versions for new history and reserve its numbers."""
    version = state.snapshot_version + 1
    return replace(
        state,
        snapshot_version=version,
        history_version=version,
        next_message_id=MessageId(state.next_message_id + len(messages)),
    )


def _at_rest(state: ChatState, status: Status) -> ChatState:
    """Release the owner and close the episode."""
    return replace(state, status=status, worker_id=None, generation_attempt=0)
