"""Agents while the chat that started them plans: it wakes none, and they only read."""

import json
from dataclasses import replace

import pytest

from chatd.chats.domain.agents import Agent, AgentLimits, AgentPage, SpawnRequest
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import Command, CommitResults, CommitStep
from chatd.content.domain.messages import ChatMode, strictest
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerClaim, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.tools.agents.tools import AgentTools
from chatd.tools.agents.types import AgentTypes
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from support.chatd.tools.agent_processes import StoredProcesses
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, CHAT, SETUP, Stage, calling, tool

AGENT = ChatId("00000000-0000-0000-0000-00000000000a")
PARENT = ChatId("00000000-0000-0000-0000-000000000002")
OF_AGENT = replace(SETUP, ancestor_ids=(PARENT,))
READING = replace(OF_AGENT, mode=ChatMode.EXPLORE)
ALL = {
    "spawn_agent",
    "wait_agents",
    "message_agent",
    "interrupt_agent",
    "agent_processes",
    "apply_child_changes",
    "list_agents",
}
WRITE = ToolCall("w", "write_file", "{}")


class OneAgent:
    """A chat with one agent that has ended; what is sent to it, and merged, is kept."""

    def __init__(self) -> None:
        self.sent: list[Command] = []
        self.merged: list[MergeRequest] = []

    async def is_started(self, request: SpawnRequest, limits: AgentLimits) -> bool:
        return False

    async def spawn(
        self, claim: OwnerClaim, request: SpawnRequest, limits: AgentLimits
    ) -> ChatState | None:
        raise AssertionError(request)

    async def require_running(self, claim: OwnerClaim) -> None:
        return None

    async def require_budget(self, root_chat_id: ChatId, limits: AgentLimits) -> None:
        return None

    async def children(self, root_chat_id: ChatId, chat_id: ChatId) -> tuple[Agent, ...]:
        ended = Agent(AGENT, "writer", False, Status.WAITING, True, "", None, 0, 1, is_forked=True)
        return (ended,)

    async def page(
        self, root_chat_id: ChatId, chat_id: ChatId, length: int, offset: int
    ) -> AgentPage:
        agents = await self.children(root_chat_id, chat_id)
        return AgentPage(agents[offset : offset + length], len(agents))

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        return ()

    async def once(self, chat_id: ChatId, command: Command, key: ClientKey) -> object:
        self.sent.append(command)
        return None

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        raise AssertionError(agent_id)

    async def discard(self, agent_id: ChatId) -> None:
        raise AssertionError(agent_id)

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        self.merged.append(request)
        return MergeReport(is_applied=not request.is_dry)

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        return None

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        return wanted

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        return NO_CHOICE

    async def named(self, owner_id: OwnerId, reference: str) -> str:
        return ""

    async def names(self, owner_id: OwnerId) -> tuple[str, ...]:
        return ()

    async def described(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        return ()

    async def name_of(self, model_id: str) -> str:
        return model_id


def tools_of(one: OneAgent) -> AgentTools:
    return AgentTools(
        one,
        one,
        started=lambda _: None,
        grown=lambda _: None,
        limits=AgentLimits(),
        forks=one,
        types=AgentTypes(one, one, one),
        processes=StoredProcesses(),
    )


async def result_of(
    tools: AgentTools, mode: ChatMode, name: str, arguments: dict[str, object]
) -> dict[str, object]:
    call = ToolCall("c", name, json.dumps({"agent_id": AGENT, **arguments}))
    execution_id = ExecutionId("00000000-0000-0000-0000-00000000000e")
    dispatch = Dispatch(execution_id, call, Executor.CHATD, "", mode)
    spec = ToolSpec(name, "", "{}", Executor.CHATD)
    ended = await tools.execute(Execution(TurnContext(CHAT, ANN, mode=mode), 1, dispatch, spec))
    assert isinstance(ended, Outcome)
    told: dict[str, object] = json.loads(ended.result_json)
    return told


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (ChatMode.ORDINARY, ALL),
        (ChatMode.PLAN, ALL - {"message_agent", "interrupt_agent"}),
        (ChatMode.EXPLORE, set()),
    ],
)
async def test_the_tools_for_agents_follow_the_mode(mode: ChatMode, names: set[str]) -> None:
    offered = await tools_of(OneAgent()).list_tools(TurnContext(CHAT, ANN, mode=mode))
    assert {spec.name for spec in offered} == names


@pytest.mark.parametrize("name", ["message_agent", "interrupt_agent"])
async def test_a_chat_that_plans_wakes_no_agent(name: str) -> None:
    one = OneAgent()
    arguments = {"message": "write"} if name == "message_agent" else {}
    told = await result_of(tools_of(one), ChatMode.PLAN, name, {**arguments})
    assert (told["ok"], told["reason"]) == (False, "NOT_RUN")
    assert told["error"] == f"{name} is not offered in mode plan."
    assert one.sent == []
    told = await result_of(tools_of(one), ChatMode.ORDINARY, name, {**arguments})
    assert (told["ok"], len(one.sent)) == (True, 1)


async def test_a_chat_that_plans_sees_the_changes_of_a_fork_and_applies_none() -> None:
    one = OneAgent()
    refused = await result_of(tools_of(one), ChatMode.PLAN, "apply_child_changes", {})
    assert (refused["ok"], one.merged) == (False, [])
    shown = await result_of(tools_of(one), ChatMode.PLAN, "apply_child_changes", {"dry_run": True})
    assert (shown["ok"], [each.is_dry for each in one.merged]) == (True, [True])


def result_of_write(stage: Stage) -> ToolResult:
    (found,) = (
        part
        for message in stage.messages
        for part in message.content
        if isinstance(part, ToolResult)
    )
    return found


async def test_a_call_that_was_committed_before_the_parent_began_to_plan_does_not_start() -> None:
    stage = Stage(calling(WRITE), tool("write_file"), setup=OF_AGENT)

    def begin_to_plan() -> None:
        stage.is_restricted = True

    stage.commits.after[CommitStep] = begin_to_plan
    await stage.ask()
    result = result_of_write(stage)
    assert (stage.tools.order, result.outcome) == ([], ToolOutcome.FAILED)
    assert "the chat that started this agent plans now" in result.result_json


async def test_a_call_of_a_dead_owner_does_not_start_either() -> None:
    stage = Stage(calling(WRITE), tool("write_file"), setup=OF_AGENT)
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.ask()
    stage.is_restricted = True
    await stage.take_over()
    assert stage.tools.order == []


async def test_a_running_turn_only_reads_as_soon_as_its_parent_plans() -> None:
    stage = Stage(calling(WRITE), tool("write_file"), setup=OF_AGENT)

    def begin_to_plan() -> None:
        stage.is_restricted, stage.setups.setup = True, READING

    stage.commits.after[CommitResults] = begin_to_plan
    await stage.ask()
    assert stage.tools.modes == [ChatMode.ORDINARY]
    assert stage.tools.offers == 2
    await stage.ask()
    assert stage.tools.modes == [ChatMode.ORDINARY, ChatMode.EXPLORE]


async def test_a_root_is_never_asked_for_chats_above_it() -> None:
    stage = Stage(calling(WRITE), tool("write_file"))
    stage.is_restricted = True
    await stage.ask()
    assert stage.tools.modes == [ChatMode.ORDINARY]


def test_exploring_is_the_strictest_mode() -> None:
    assert strictest(ChatMode.ORDINARY, ChatMode.PLAN) is ChatMode.PLAN
    assert strictest(ChatMode.EXPLORE, ChatMode.PLAN) is ChatMode.EXPLORE
    assert strictest(ChatMode.ORDINARY) is ChatMode.ORDINARY
