"""Turns that ask the advisor: what it is asked with, how often, and which chats have it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import ContextFile, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
)
from chatd.models.domain.preferences import AdvisorSettings, InstallationSettings
from chatd.models.domain.profile import NO_CHOICE, ModelProfile
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import LedgerEntry
from chatd.tools.advisor.handoff import CONTRACT
from chatd.tools.advisor.tool import AdvisorTools
from chatd.turns.domain.calls import plan_calls
from chatd.turns.domain.system_prompt import ADVISOR, SystemPrompt
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.setups import ConfiguredSetups
from chatd.turns.engine.side_calls import SideCallPorts, SideCalls
from parley.clock import FakeClock
from support.chatd.models.model_catalogue import BOOK, KnownConfiguration, catalogue
from support.chatd.turns.absent_ports import NoCallObserver, Unlimited
from support.chatd.turns.fixed_setups import FixedSetups, FixedUtilityModels
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, CHAT, NotingModel, Stage, client_tool, tool

KIND = ContextFile("AGENTS.md", "be kind")
OWN = ModelProfile("own", provider="acme", name="m1")
SETUP = TurnSetup(OWN, system_prompt=SystemPrompt(instruction_files=(KIND,), has_advisor=True))


def advise(_: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta("Go left."), Finished())


class Asking:
    """Asks the advisor in each step of a turn so many times at once, and then is done."""

    def __init__(self, *batches: int) -> None:
        self.batches = batches

    def __call__(self, request: ModelRequest) -> Iterator[ModelEvent]:
        steps = 0
        for message in reversed(request.messages):
            if message.role is Role.USER:
                break
            steps += message.role is Role.ASSISTANT
        if steps == len(self.batches):
            yield TextDelta("done")
        else:
            yield ReasoningDelta("Both are long.")
            yield TextDelta("I see two ways.")
            for place in range(self.batches[steps]):
                args_json = json.dumps({"question": f"left or right, {place}?"})
                yield ToolCallRequested(ToolCall(f"q{steps}{place}", "advisor", args_json))
        yield Finished()


def stage_of(play: Asking, *, uses_max: int = 3) -> tuple[Stage, NotingModel]:
    """Return a chat whose model asks, and the model of its advisor."""
    model = NotingModel(advise)
    side_calls = SideCalls(
        SideCallPorts(
            model,
            FixedSetups(SETUP),
            FixedUtilityModels(),
            Unlimited(),
            lambda entry, owner_id: None,
            NoCallObserver(),
        ),
        clock=FakeClock(),
        jitter=lambda: 0.0,
    )

    async def settings() -> AdvisorSettings:
        return AdvisorSettings(is_enabled=True, uses_per_turn_max=uses_max)

    async def bill(entry: LedgerEntry, owner_id: OwnerId) -> None:
        """Charge nothing."""

    tools = AdvisorTools(side_calls, settings=settings, spending=Unlimited(), bill=bill)
    return Stage(play, setup=SETUP, other_tools=tools), model


def results(stage: Stage) -> list[ToolResult]:
    return [
        part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]


def kinds(stage: Stage) -> list[str]:
    return [json.loads(each.result_json)["type"] for each in results(stage)]


def texts(messages: Iterable[PromptMessage], role: Role) -> list[str]:
    return [
        part.text
        for message in messages
        if message.role is role
        for part in message.content
        if isinstance(part, Text)
    ]


async def test_the_advisor_is_asked_with_the_prompt_and_the_step_of_the_model_that_asks() -> None:
    stage, advisor = stage_of(Asking(1, 1))
    await stage.ask("build a bridge")
    first, second = (request.messages for request in advisor.requests)
    asked_with = stage.model.requests[0].messages
    systems = texts(asked_with, Role.SYSTEM)
    assert ADVISOR in systems
    assert texts(first, Role.SYSTEM) == [*(each for each in systems if each != ADVISOR), CONTRACT]
    assert any("be kind" in each for each in systems)
    background, question = texts(first, Role.USER)
    assert background == (
        "The recent conversation of the agent, oldest first:\n\n[user] build a bridge\n\n"
        "The agent's thoughts in this step:\nBoth are long.\n\n"
        "What the agent wrote in this step:\nI see two ways."
    )
    assert question == "The agent asks you: left or right, 0?"
    later, _ = texts(second, Role.USER)
    assert "[agent] I see two ways." in later
    assert '[tool advisor] {"question": "left or right, 0?"}' in later
    assert "Go left." in later
    assert all(not request.tools for request in advisor.requests)


async def test_each_turn_may_ask_as_often_and_what_is_stored_counts() -> None:
    stage, advisor = stage_of(Asking(1, 1), uses_max=1)
    await stage.ask()
    assert kinds(stage) == ["advice", "limit_reached"]
    assert "was asked once in this turn" in results(stage)[1].result_json
    await stage.ask("and now?")
    assert kinds(stage) == ["advice", "limit_reached"] * 2
    assert len(advisor.requests) == 2


async def test_the_next_owner_counts_the_advice_that_is_stored() -> None:
    stage, advisor = stage_of(Asking(1, 1), uses_max=1)
    stage.commits.dies_after = 1  # The call, then its result.
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    assert kinds(stage) == ["advice", "limit_reached"]
    assert len(advisor.requests) == 1


async def test_two_questions_in_one_batch_are_both_refused_and_cost_no_use() -> None:
    stage, advisor = stage_of(Asking(2, 1), uses_max=1)
    await stage.ask()
    first, second, alone = results(stage)
    assert {first.outcome, second.outcome} == {ToolOutcome.FAILED}
    assert "only call" in first.result_json
    assert json.loads(alone.result_json)["type"] == "advice"
    assert len(advisor.requests) == 1


@pytest.mark.parametrize("name", ["pick_file", "execute", "no_such_tool", "advisor"])
def test_beside_any_other_call_the_advisor_is_not_asked_and_nothing_runs(name: str) -> None:
    advisor = replace(tool("advisor"), is_exclusive=True)
    specs = {each.name: each for each in (advisor, tool("execute"), client_tool("pick_file"))}
    calls = (ToolCall("a", "advisor", '{"question": "?"}'), ToolCall("b", name, "not JSON"))
    plan = plan_calls(calls, specs)
    assert (plan.dispatched, plan.asked) == ((), ())
    refused = [json.loads(each.result_json)["error"] for each in plan.refused]
    assert refused[0] == "nothing ran: advisor must be the only call"
    assert refused[1] == (
        refused[0] if name == "advisor" else "skipped, because advisor must be called alone"
    )


@pytest.mark.parametrize(
    ("mode", "is_child", "is_advised"),
    [
        (ChatMode.ORDINARY, False, True),
        (ChatMode.PLAN, False, True),
        (ChatMode.EXPLORE, False, False),
        (ChatMode.ORDINARY, True, False),
        (ChatMode.PLAN, True, False),
        (ChatMode.EXPLORE, True, False),
    ],
)
async def test_root_chats_that_do_not_explore_have_the_advisor_as_tool_and_in_the_prompt(
    mode: ChatMode, is_child: bool, is_advised: bool
) -> None:
    enabled = InstallationSettings(advisor=AdvisorSettings(is_enabled=True))
    configuration = KnownConfiguration(replace(catalogue(), settings=enabled))
    ancestors = (ChatId("p"),) if is_child else ()
    configuration.facts = ChatFacts(NO_CHOICE, mode, ancestor_ids=ancestors)
    setup = await ConfiguredSetups(configuration, BOOK).prepare(CHAT, ANN)
    stage, _ = stage_of(Asking())
    stage.setups.setup = setup
    await stage.ask()
    (request,) = stage.model.requests
    assert ("advisor" in {tool.name for tool in request.tools}) is is_advised
    assert (ADVISOR in texts(request.messages, Role.SYSTEM)) is is_advised
