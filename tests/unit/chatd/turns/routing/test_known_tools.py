"""What a turn derives from its tools, which is kept for the next turn that has the same ones."""

from dataclasses import replace

from chatd.content.domain.tool_servers import ServerReport
from chatd.content.domain.tools import ToolSpec
from chatd.primitives.domain.ids import OwnerId
from chatd.turns.domain.turn_tools import ToolInputs, TurnTools, turn_tools
from chatd.turns.engine.preparation import TURN_TOOLS_MAX, KnownTurnTools
from support.chatd.turns.turn_stage import ANN, tool

INPUTS = ToolInputs((tool("read"), tool("write")), (), "model", (), 1000)
DEAD = ServerReport("s1", "dead", "Dead", problem="it does not answer.")


class Deriving:
    """Derives tools, and counts how often."""

    def __init__(self) -> None:
        self.count = 0
        self.known = KnownTurnTools(self._derive)

    def _derive(self, inputs: ToolInputs) -> TurnTools:
        self.count += 1
        return turn_tools(inputs)

    def of(self, inputs: ToolInputs, owner_id: OwnerId = ANN.id) -> TurnTools:
        return self.known.of(owner_id, inputs)


def copied(spec: ToolSpec) -> ToolSpec:
    return replace(spec)


def test_turns_with_equal_tools_derive_once() -> None:
    deriving = Deriving()
    first = deriving.of(INPUTS)
    again = deriving.of(replace(INPUTS, local=tuple(map(copied, INPUTS.local))))
    assert (deriving.count, again) == (1, first)


def test_any_change_is_derived_anew() -> None:
    deriving = Deriving()
    deriving.of(INPUTS)
    changed = (
        replace(INPUTS, local=(tool("read"), replace(tool("write"), journal_generation="new"))),
        replace(INPUTS, client=(tool("mine"),)),
        replace(INPUTS, model_name="gpt-5"),
        replace(INPUTS, reports=(DEAD,)),
        replace(INPUTS, context_limit_tokens=2000),
    )
    for inputs in changed:
        assert deriving.of(inputs) == turn_tools(inputs)
    assert deriving.count == 1 + len(changed)


def test_only_the_newest_tools_of_a_bounded_number_of_users_are_kept() -> None:
    deriving = Deriving()
    users = [OwnerId(f"user-{number}") for number in range(TURN_TOOLS_MAX + 1)]
    for user in users:
        deriving.of(INPUTS, user)
    deriving.of(INPUTS, users[-1])
    assert deriving.count == len(users)
    deriving.of(INPUTS, users[0])
    assert deriving.count == len(users) + 1
