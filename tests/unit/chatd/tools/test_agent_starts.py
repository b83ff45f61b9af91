"""Agents as their parents start and see them: forks, models, errors, reports that were cut."""

import json
from dataclasses import replace

import pytest

from chatd.chats.domain.agents import (
    Agent,
    AgentLimits,
    AgentPage,
    AgentsRefused,
    SpawnRequest,
    TreeUse,
    require_start,
)
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import Command
from chatd.content.domain.agent_errors import REMEDIES
from chatd.content.domain.messages import ErrorKind, FinishReason, TurnError
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    InputAction,
    InputAnswer,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ModelProfile, ReasoningEffort
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerClaim, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.tools.agents.tools import REQUEST_ID, AgentTools
from chatd.tools.agents.types import AgentTypes
from chatd.turns.domain.turn import TurnSetup
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from support.chatd.tools.agent_processes import StoredProcesses

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
REFUSED = AgentsRefused("there are too many", "AGENTS_TOO_MANY")
POOR = AgentsRefused("the agents of this chat have spent its limit", "AGENTS_TOO_EXPENSIVE")
AGENT = Agent(ChatId("a"), "First", False, Status.WAITING, True, "Done.", None, 0, 7)
SPEC = ToolSpec("spawn_agent", "", "{}", Executor.CHATD)
TIME_IS_OVER = InputAnswer(REQUEST_ID, InputAction.CANCEL)


class Children:
    """Children that exist, and refusals before and after the copy."""

    def __init__(self) -> None:
        self.started: dict[ChatId, SpawnRequest] = {}
        self.agents: tuple[Agent, ...] = ()
        self.commands: list[tuple[ChatId, Command]] = []
        self.is_full = self.is_full_at_last = False

    async def is_started(self, request: SpawnRequest, limits: AgentLimits) -> bool:
        if request.chat_id not in self.started and self.is_full:
            raise REFUSED
        return request.chat_id in self.started

    async def spawn(
        self, claim: OwnerClaim, request: SpawnRequest, limits: AgentLimits
    ) -> ChatState | None:
        if request.chat_id in self.started:
            return None
        if self.is_full_at_last:
            raise REFUSED
        self.started[request.chat_id] = request
        return ChatState(request.chat_id, Status.RUNNING, 1, 1, 0, MessageId(1))

    async def require_running(self, claim: OwnerClaim) -> None:
        return None

    async def require_budget(self, root_chat_id: ChatId, limits: AgentLimits) -> None:
        if self.is_full:
            raise POOR

    async def children(self, root_chat_id: ChatId, chat_id: ChatId) -> tuple[Agent, ...]:
        return self.agents

    async def page(
        self, root_chat_id: ChatId, chat_id: ChatId, length: int, offset: int
    ) -> AgentPage:
        agents = await self.children(root_chat_id, chat_id)
        return AgentPage(agents[offset : offset + length], len(agents))

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        return ()

    async def once(self, chat_id: ChatId, command: Command, key: ClientKey) -> object:
        self.commands.append((chat_id, command))
        return None


class Copies:
    """Copies that are counted."""

    def __init__(self) -> None:
        self.forked: list[ChatId] = []
        self.discarded: list[ChatId] = []

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        self.forked.append(agent_id)

    async def discard(self, agent_id: ChatId) -> None:
        self.discarded.append(agent_id)

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        raise AssertionError(agent_id)


class NoFiles:
    """A workspace without files."""

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        return None


class NoModels:
    """Models that nothing names."""

    def __init__(self) -> None:
        self.of_all = NO_CHOICE
        self.known: tuple[str, ...] = ()

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        return wanted

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        return self.of_all

    async def named(self, owner_id: OwnerId, reference: str) -> str:
        return reference if reference in self.known else ""

    async def names(self, owner_id: OwnerId) -> tuple[str, ...]:
        return tuple(f"maker/{each}" for each in self.known)

    async def described(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        return tuple(
            AgentModel(f"maker/{each}", each, 1000, is_default=each == "large")
            for each in self.known
        )

    async def name_of(self, model_id: str) -> str:
        return f"maker/{model_id}" if model_id in self.known else model_id


class Stage:
    """A chat that starts an agent in a fork."""

    def __init__(self) -> None:
        self.children, self.copies = Children(), Copies()
        self.states: list[ChatState] = []
        self.grown: list[ChatId] = []
        self.answer: InputAnswer | None = None
        self.models = NoModels()
        self.tools = AgentTools(
            self.children,
            self.children,
            started=self.states.append,
            grown=self.grown.append,
            limits=AgentLimits(),
            forks=self.copies,
            types=AgentTypes(NoFiles(), self.models, self.models),
            processes=StoredProcesses(),
        )

    async def spawn(self, context: TurnContext) -> dict[str, object]:
        """Return the result of the call, always of the same one."""
        return await self.call(context, SPEC.name, prompt="Write.", isolation="fork")

    async def call(self, context: TurnContext, name: str, **given: object) -> dict[str, object]:
        """Return the result of a call."""
        execution_id = ExecutionId("00000000-0000-0000-0000-00000000000e")
        call = ToolCall("c", name, json.dumps(given))
        dispatch = Dispatch(execution_id, call, Executor.CHATD, "")
        execution = Execution(context, 1, dispatch, SPEC, answer=self.answer)
        ended = await self.tools.execute(execution)
        assert isinstance(ended, Outcome)
        told: dict[str, object] = json.loads(ended.result_json)
        return told


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_repeated_call_finds_its_agent_and_copies_nothing_again(stage: Stage) -> None:
    first = await stage.spawn(TurnContext(CHAT, ANN))
    stage.children.is_full = stage.children.is_full_at_last = True
    assert await stage.spawn(TurnContext(CHAT, ANN)) == first
    assert stage.copies.forked == [first["agent_id"]]
    assert stage.copies.discarded == []
    assert len(stage.states) == 1
    # The process that started it may have died before it said that the chat is not alone.
    assert stage.grown == [CHAT, CHAT]


async def test_an_agent_beyond_a_limit_is_refused_before_anything_is_copied(stage: Stage) -> None:
    stage.children.is_full = True
    refused = await stage.spawn(TurnContext(CHAT, ANN))
    assert refused["reason"] == "AGENTS_TOO_MANY"
    assert stage.copies.forked == []


@pytest.mark.parametrize(
    ("is_done", "hint"),
    [
        (True, "Do the work yourself."),
        (False, "Do the work yourself, or wait for the agents that run."),
    ],
)
async def test_a_refused_chat_is_sent_to_its_agents_only_if_one_of_them_runs(
    stage: Stage, is_done: bool, hint: str
) -> None:
    stage.children.is_full = True
    stage.children.agents = (replace(AGENT, is_done=is_done),)
    assert (await stage.spawn(TurnContext(CHAT, ANN)))["hint"] == hint


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (AgentLimits(children_max=2), "this chat has started 3 agents, and may start 2"),
        (
            AgentLimits(cost_micros_max=10_000),
            "this chat and its agents have cost $0.0150, and may cost $0.0100",
        ),
        (
            AgentLimits(tokens_max=4000),
            "this chat and its agents have used 8131 tokens, and may use 4000",
        ),
    ],
)
def test_a_limit_is_told_with_what_was_used_of_it(limits: AgentLimits, said: str) -> None:
    with pytest.raises(AgentsRefused) as refused:
        require_start(1, limits, TreeUse(3, 15_000, 8131, 0))
    assert str(refused.value) == said


async def test_a_copy_is_discarded_if_its_agent_is_refused_after_all(stage: Stage) -> None:
    stage.children.is_full_at_last = True
    refused = await stage.spawn(TurnContext(CHAT, ANN))
    assert refused["reason"] == "AGENTS_TOO_MANY"
    assert stage.copies.discarded == stage.copies.forked != []


async def test_an_agent_has_the_models_of_its_parent_and_not_the_fallback_that_answers(
    stage: Stage,
) -> None:
    own, other = ModelProfile("own"), ModelProfile("other", is_fallback=True)
    setup = TurnSetup(own, fallback=other, fallback_model_id="other").taken_over()
    await stage.spawn(setup.context(CHAT, ANN))
    (request,) = stage.children.started.values()
    assert setup.context(CHAT, ANN).model_id == "other"
    assert (request.model.model_id, request.fallback_model_id) == ("own", "other")


async def test_an_agent_has_the_model_that_is_configured_for_agents(stage: Stage) -> None:
    stage.models.of_all = ModelChoice("small", ReasoningEffort.LOW)
    await stage.spawn(TurnSetup(ModelProfile("own")).context(CHAT, ANN))
    (request,) = stage.children.started.values()
    assert request.model == stage.models.of_all


async def test_an_agent_has_the_model_and_effort_that_its_call_names(stage: Stage) -> None:
    stage.models.of_all = ModelChoice("small", ReasoningEffort.LOW)
    stage.models.known = ("large", "small")
    context = TurnSetup(ModelProfile("own")).context(CHAT, ANN)
    started = await stage.call(
        context, SPEC.name, prompt="Think.", model="large", reasoning_effort="high"
    )
    (request,) = stage.children.started.values()
    assert request.model == ModelChoice("large", ReasoningEffort.HIGH)
    assert (started["model"], started["reasoning_effort"]) == ("maker/large", "high")


async def test_an_effort_without_a_model_is_that_of_the_model_of_its_parent(stage: Stage) -> None:
    context = TurnSetup(ModelProfile("own")).context(CHAT, ANN)
    await stage.call(context, SPEC.name, prompt="Think.", reasoning_effort="max")
    (request,) = stage.children.started.values()
    assert request.model == ModelChoice("own", ReasoningEffort.MAX)


async def test_an_unknown_model_or_effort_starts_nothing_and_the_choices_are_listed(
    stage: Stage,
) -> None:
    stage.models.known = ("large", "small")
    context = TurnSetup(ModelProfile("own")).context(CHAT, ANN)
    unknown = await stage.call(context, SPEC.name, prompt="Think.", model="huge")
    unheard = await stage.call(context, SPEC.name, prompt="Think.", reasoning_effort="extreme")
    assert (unknown["reason"], unheard["reason"]) == ("INVALID_ARGUMENTS", "INVALID_ARGUMENTS")
    assert "use one of maker/large, maker/small" in str(unknown["hint"])
    assert "One of default, high, low, max, medium, minimal, none" in str(unheard["hint"])
    assert stage.children.started == {}


async def test_the_models_of_agents_are_described_only_if_there_is_a_choice(stage: Stage) -> None:
    described = []
    for known in (("one",), ("one", "two")):
        stage.models.known = known
        offered = await stage.tools.list_tools(TurnContext(CHAT, ANN))
        described.append(next(each.description for each in offered if each.name == SPEC.name))
    assert "Models of agents" not in described[0]
    assert described[1].endswith("Models of agents: maker/one, maker/two.")


async def test_the_models_of_agents_are_listed_only_if_there_is_a_choice(stage: Stage) -> None:
    context = TurnContext(CHAT, ANN)
    stage.models.known = ("large",)
    assert "list_subagent_models" not in {
        each.name for each in await stage.tools.list_tools(context)
    }
    stage.models.known = ("large", "small")
    assert "list_subagent_models" in {each.name for each in await stage.tools.list_tools(context)}
    listed = await stage.call(context, "list_subagent_models")
    large = {"model": "maker/large", "display_name": "large", "context_limit_tokens": 1000}
    small = {"model": "maker/small", "display_name": "small", "context_limit_tokens": 1000}
    assert listed["models"] == [{**large, "is_default": True}, small]


async def test_many_agents_are_listed_page_by_page(stage: Stage) -> None:
    ids = [ChatId(f"00000000-0000-0000-0000-{number:012}") for number in range(12)]
    stage.children.agents = tuple(replace(AGENT, chat_id=each) for each in ids)

    async def listed(**given: object) -> tuple[object, ...]:
        told = await stage.call(TurnContext(CHAT, ANN), "list_agents", **given)
        agents = told["agents"]
        assert isinstance(agents, list)
        return [each["agent_id"] for each in agents], told["total"], told["has_more"]

    assert await listed() == (ids[:10], 12, True)
    assert await listed(offset=10) == (ids[10:], 12, False)
    assert await listed(limit=2, offset=4) == (ids[4:6], 12, True)
    beyond = await stage.call(TurnContext(CHAT, ANN), "list_agents", offset=12)
    assert (beyond["ok"], beyond["reason"]) == (False, "INVALID_ARGUMENTS")
    too_many = await stage.call(TurnContext(CHAT, ANN), "list_agents", limit=51)
    assert too_many["reason"] == "INVALID_ARGUMENTS"


async def test_a_failed_agent_is_described_by_kind_message_and_remedy(stage: Stage) -> None:
    busy = TurnError(
        "The provider is busy.\u200b", ErrorKind.OVERLOADED, detail="529", is_retryable=True
    )
    stage.models.known = ("large",)
    failed_agent = replace(AGENT, status=Status.ERROR, error=busy, model=ModelChoice("large"))
    stage.children.agents = (failed_agent,)
    listed = (await stage.call(TurnContext(CHAT, ANN), "list_agents"))["agents"]
    waited = (await stage.call(TurnContext(CHAT, ANN), "wait_agents"))["agents"]
    assert listed == waited
    assert isinstance(listed, list)
    assert (listed[0]["status"], listed[0]["model"]) == ("failed", "maker/large")
    assert listed[0]["error"] == {
        "kind": "overloaded",
        "message": "The provider is busy.",
        "remedy": REMEDIES[ErrorKind.OVERLOADED],
        "retryable": True,
        "detail": "529",
    }


def test_every_kind_of_error_has_a_remedy() -> None:
    assert set(REMEDIES) == set(ErrorKind)


async def test_a_report_that_was_cut_says_so_once_the_agent_has_ended(stage: Stage) -> None:
    ids = [ChatId(f"00000000-0000-0000-0000-0000000000a{place}") for place in range(3)]
    whole = Agent(ids[0], "First", False, Status.WAITING, True, "It works.", None, 0, 7)
    cut = replace(whole, chat_id=ids[1], report="It", finish_reason=FinishReason.LENGTH)
    works = replace(cut, chat_id=ids[2], status=Status.RUNNING, is_done=False)
    stage.children.agents = (whole, cut, works)
    listed = (await stage.call(TurnContext(CHAT, ANN), "list_agents"))["agents"]
    assert isinstance(listed, list)
    assert [(each["status"], each.get("cut"), each.get("report")) for each in listed] == [
        ("done", None, "It works."),
        ("done", "length", "It"),
        ("running", None, None),
    ]


async def test_a_tree_that_has_spent_its_limit_sends_its_agents_nothing(stage: Stage) -> None:
    stage.children.agents = (AGENT,)
    sent = await stage.call(TurnContext(CHAT, ANN), "message_agent", agent_id="a", message="More.")
    assert (sent["sent"], len(stage.children.commands)) == (True, 1)
    stage.children.is_full = True
    refused = await stage.call(
        TurnContext(CHAT, ANN), "message_agent", agent_id="a", message="More."
    )
    assert (refused["ok"], refused["reason"]) == (False, "AGENTS_TOO_EXPENSIVE")
    assert len(stage.children.commands) == 1


@pytest.mark.parametrize("is_done", [True, False])
async def test_an_agent_that_ends_as_the_time_runs_out_is_reported_as_ended(
    stage: Stage, is_done: bool
) -> None:
    status = Status.WAITING if is_done else Status.RUNNING
    stage.children.agents = (replace(AGENT, status=status, is_done=is_done),)
    stage.answer = TIME_IS_OVER
    told = await stage.call(TurnContext(CHAT, ANN), "wait_agents")
    assert (told["ok"], told["timed_out"]) == (True, not is_done)
    shown = "done" if is_done else "running"
    assert f'"status": "{shown}"' in json.dumps(told["agents"])
