"""How many states a decision builds: the turns of a plain chat are decided very often."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import pytest

from chatd.chats.domain.chat import ChatState
from chatd.chats.domain.commands import Command, FinishTurn, SendMessage
from chatd.chats.domain.transitions import decide, fence_of
from support.chatd.chats.transition_states import ANSWER, AT_REST, HELLO, QUEUED, STATES, WORKER

CommandOf = Callable[[ChatState], Command]


def states_built(state: ChatState, command_of: CommandOf) -> int:
    """Return how many states the decision on a command builds."""
    built: list[ChatState] = []

    @dataclass(frozen=True, slots=True)
    class CountedState(ChatState):
        def __post_init__(self) -> None:
            built.append(self)

    counted = CountedState(**{field.name: getattr(state, field.name) for field in fields(state)})
    built.clear()
    decide(counted, command_of(counted))
    return len(built)


@pytest.mark.parametrize(
    ("state", "command_of"),
    [
        (AT_REST, lambda state: SendMessage(HELLO, QUEUED, WORKER)),
        (STATES["R0"], lambda state: FinishTurn(fence_of(state), (ANSWER,))),
    ],
    ids=["a message starts a turn", "an answer ends it"],
)
def test_each_commit_of_a_plain_turn_builds_two_states(
    state: ChatState, command_of: CommandOf
) -> None:
    # One with the next version, and the one that is stored.
    assert states_built(state, command_of) == 2
