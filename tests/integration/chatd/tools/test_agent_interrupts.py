"""An interrupt of a chat stops every agent below it, also those with queued messages."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

import pytest

from chatd.chats.domain.agents import STOP_AGENT, AgentLimits, AgentsRefused, SpawnRequest
from chatd.chats.domain.chat import NO_FACTS, ChatState, Facts, NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AskedCall,
    Command,
    CommitStep,
    EnterRequiresAction,
    FinishInterruption,
    Interrupt,
    SendMessage,
    SuspendCall,
)
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.applying import Applier
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Text, ToolCall
from chatd.content.domain.tools import (
    Dispatch,
    Execution,
    Executor,
    InputRequired,
    Outcome,
    PendingKind,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.agent_model import AgentModel
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerClaim,
    OwnerId,
    QueuedMessageId,
)
from chatd.primitives.domain.requests import ClientKey
from chatd.tools.agents.tools import AgentTools
from chatd.tools.agents.types import AgentTypes
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.tools.agent_processes import StoredProcesses

ANN = Owner(ANN_ID, "member")
LIMITS = AgentLimits(depth_max=2)
REPLACE_OWNER = """
    UPDATE chat.chat_exec SET owner_epoch = owner_epoch + 1,
        snapshot_version = snapshot_version + 1 WHERE chat_id = $1
"""
INTERRUPT = "UPDATE chat.chat_exec SET status = 'interrupting' WHERE chat_id = $1"
CHANGE = "UPDATE chat.chat_exec SET snapshot_version = snapshot_version + 1 WHERE chat_id = $1"
NEXT_TURN = "UPDATE chat.chat_exec SET turn_id = turn_id + 1 WHERE chat_id = $1"
FIRST_TURN = MessageId(1)
LATE_ID = QueuedMessageId("00000000-0000-0000-0000-0000000000bb")
COUNT_KEYS = "SELECT count(*) FROM chat.client_keys WHERE chat_id = ANY ($1::uuid[])"
Stop = Callable[[ServedChats, ChatId, ChatId], Awaitable[None]]


class Nothing:
    """Forks that are not made, and no files and models that a type could name."""

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        raise AssertionError(agent_id)

    async def discard(self, agent_id: ChatId) -> None:
        raise AssertionError(agent_id)

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        raise AssertionError(agent_id)

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


def request_of(root_id: ChatId, name: str, depth: int = 1) -> SpawnRequest:
    return SpawnRequest(
        chat_id=ChatId(str(uuid.uuid5(uuid.UUID(root_id), name))),
        root_chat_id=root_id,
        depth=depth,
        owner=ANN,
        title=name,
        prompt="Work.",
        mode=ChatMode.ORDINARY,
        model=NO_CHOICE,
        mcp_server_ids=None,
    )


async def claim_of(served: ServedChats, chat_id: ChatId) -> OwnerClaim:
    """Return the claim of the present owner and turn of a chat."""
    state = await served.state(chat_id)
    return OwnerClaim(chat_id, state.owner_epoch, state.turn_id)


async def spawned(served: ServedChats, parent_id: ChatId, request: SpawnRequest) -> ChatId:
    """Start an agent as its running parent does."""
    await served.stores.agents.spawn(await claim_of(served, parent_id), request, LIMITS)
    return request.chat_id


async def queue(served: ServedChats, chat_id: ChatId) -> ChatState:
    """Send a message to a chat that works."""
    message = NewMessage(Role.USER, (Text("And then this."),), created_by=ANN.id)
    queued_id = QueuedMessageId(str(uuid.uuid5(uuid.UUID(chat_id), "queued")))
    return await served.stores.chats.apply(chat_id, SendMessage(message, queued_id, None))


async def park(served: ServedChats, chat_id: ChatId, agent_id: ChatId) -> None:
    """Let a running chat wait for an agent."""
    chats, call = served.stores.chats, ToolCall("w", "wait_agents", "{}")
    execution_id = ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), "execution")))
    dispatch = Dispatch(execution_id, call, Executor.CHATD, "")
    state = await served.state(chat_id)
    step = CommitStep(fence_of(state), (NewMessage(Role.ASSISTANT, (call,)),), (dispatch,))
    state = await chats.apply(chat_id, step)
    wait = InputRequired(
        "agents", PendingKind.AGENTS, "Waits.", expires_s=300.0, agent_ids=(agent_id,)
    )
    pending = PendingCall(
        "w",
        "wait_agents",
        execution_id,
        kind=PendingKind.AGENTS,
        deadline_s=300.0,
        question=wait,
        question_id=ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), "question"))),
    )
    message_id = MessageId(state.next_message_id - 1)
    asked = AskedCall(pending, call)
    state = await chats.apply(chat_id, SuspendCall(fence_of(state), message_id, asked))
    await chats.apply(chat_id, EnterRequiresAction(fence_of(state)))


async def stop_root(served: ServedChats, root_id: ChatId, agent_id: ChatId) -> None:
    """Interrupt the root as its owner does."""
    await served.ann.ask(api.InterruptRequest(chat_id=root_id, request_id="stop"))


async def stop_parked_root(served: ServedChats, root_id: ChatId, agent_id: ChatId) -> None:
    """Interrupt the root while it waits for its agent."""
    await park(served, root_id, agent_id)
    await stop_root(served, root_id, agent_id)
    stopping = await served.state(root_id)
    assert stopping.status is Status.INTERRUPTING
    assert served.claims.started[-1].state == stopping  # No renewal of a lease is waited for.


async def called(
    served: ServedChats, root_id: ChatId, epoch: int, name: str, **given: object
) -> dict[str, object]:
    """Call a tool as an owner of the root does, and return its result."""
    stores, nothing = served.stores, Nothing()
    spec = ToolSpec(name, "", "{}", Executor.CHATD)
    tools = AgentTools(
        stores.agents,
        stores.keys,
        started=lambda _: None,
        grown=lambda _: None,
        limits=LIMITS,
        forks=nothing,
        types=AgentTypes(nothing, nothing, nothing),
        processes=StoredProcesses(),
    )
    call = ToolCall("i", name, json.dumps(given))
    execution_id = ExecutionId(str(uuid.uuid5(uuid.UUID(root_id), name)))
    dispatch = Dispatch(execution_id, call, Executor.CHATD, "")
    context = TurnContext(root_id, ANN, turn_id=FIRST_TURN)
    ended = await tools.execute(Execution(context, epoch, dispatch, spec))
    assert isinstance(ended, Outcome)
    told: dict[str, object] = json.loads(ended.result_json)
    return told


async def stop_by_tool(served: ServedChats, root_id: ChatId, agent_id: ChatId) -> None:
    """Let the model of the root interrupt its agent."""
    epoch = (await served.state(root_id)).owner_epoch
    told = await called(served, root_id, epoch, "interrupt_agent", agent_id=agent_id)
    assert told["interrupted"] is True


async def rest_of(served: ServedChats, chat_id: ChatId) -> Status:
    """Finish the interruption of a chat as its worker does, and return its status."""
    state = await served.state(chat_id)
    assert (state.status, state.queue_length) == (Status.INTERRUPTING, 0)
    chats = served.stores.chats
    return (await chats.apply(chat_id, FinishInterruption(fence_of(state), ()))).status


@pytest.mark.parametrize("stop", [stop_root, stop_parked_root, stop_by_tool])
async def test_an_agent_with_a_queued_message_and_the_one_below_it_rest_after_an_interrupt(
    served: ServedChats, stop: Stop
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    grandchild_id = await spawned(served, child_id, request_of(root_id, "grandchild", 2))
    for each in (child_id, grandchild_id):
        assert (await queue(served, each)).queue_length == 1
    await stop(served, root_id, child_id)
    for each in (child_id, grandchild_id):
        assert await rest_of(served, each) is Status.WAITING


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("message_agent", {"message": "And this."}),
        ("message_agent", {"message": "Now this.", "interrupt": True}),
        ("interrupt_agent", {}),
    ],
)
async def test_an_owner_that_was_replaced_does_nothing_to_agents(
    served: ServedChats, name: str, given: dict[str, object]
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    grandchild_id = await spawned(served, child_id, request_of(root_id, "grandchild", 2))
    agents = (child_id, grandchild_id)
    before = [await served.state(each) for each in agents]
    epoch = (await served.state(root_id)).owner_epoch
    await served.pool.execute(REPLACE_OWNER, root_id)
    with pytest.raises(FenceLost):
        await called(served, root_id, epoch, name, agent_id=child_id, **given)
    assert [await served.state(each) for each in agents] == before
    assert await served.pool.fetchval(COUNT_KEYS, list(agents)) == 0
    await called(served, root_id, epoch + 1, name, agent_id=child_id, **given)
    assert await served.state(child_id) != before[0]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("message_agent", {"message": "And this."}),
        ("message_agent", {"message": "Now this.", "interrupt": True}),
        ("interrupt_agent", {}),
    ],
)
async def test_a_chat_that_was_interrupted_does_nothing_to_agents_that_it_did_not_do_before(
    served: ServedChats, name: str, given: dict[str, object]
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    other_id = await spawned(served, root_id, request_of(root_id, "other"))
    epoch = (await served.state(root_id)).owner_epoch
    done = await called(served, root_id, epoch, name, agent_id=child_id, **given)
    await stop_root(served, root_id, child_id)
    stopped = [await served.state(each) for each in (child_id, other_id)]
    refused = await called(served, root_id, epoch, name, agent_id=other_id, **given)
    # What is stopped already stays so; anything else would start it again.
    assert name == "interrupt_agent" or refused["reason"] == "AGENTS_INTERRUPTED"
    assert await called(served, root_id, epoch, name, agent_id=child_id, **given) == done
    assert [await served.state(each) for each in (child_id, other_id)] == stopped


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("message_agent", {"message": "And this."}),
        ("message_agent", {"message": "Now this.", "interrupt": True}),
        ("interrupt_agent", {}),
    ],
)
async def test_a_call_of_an_interrupted_turn_does_nothing_to_agents_in_the_next_turn(
    served: ServedChats, name: str, given: dict[str, object]
) -> None:
    chats, root_id = served.stores.chats, ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    before = await served.state(child_id)
    state = await served.state(root_id)
    epoch = state.owner_epoch
    assert state.turn_id == FIRST_TURN
    await queue(served, root_id)
    state = await chats.apply(root_id, Interrupt(FIRST_TURN, None))
    state = await chats.apply(root_id, FinishInterruption(fence_of(state), ()))
    assert (state.status, state.owner_epoch) == (Status.RUNNING, epoch)
    with pytest.raises(FenceLost):
        await called(served, root_id, epoch, name, agent_id=child_id, **given)
    assert await served.state(child_id) == before
    assert await served.pool.fetchval(COUNT_KEYS, [child_id]) == 0


@pytest.mark.parametrize("is_contended", [False, True])
async def test_a_message_that_waits_for_the_next_turn_of_its_chat_is_not_sent(
    served: ServedChats, is_contended: bool
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    message = NewMessage(Role.USER, (Text("Late."),), created_by=ANN.id)
    late = SendMessage(message, LATE_ID, None, claim=await claim_of(served, root_id))
    applying: AbstractAsyncContextManager[Applier]
    applying = contended(served.pool) if is_contended else nullcontext(served.stores.chats)
    async with (
        applying as applier,
        asyncio.TaskGroup() as group,
        served.pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute(NEXT_TURN, root_id)
        sent = group.create_task(_is_fenced(applier.apply(child_id, late)))
        await until_waiting(served.pool)
    assert sent.result()
    assert (await served.state(child_id)).queue_length == 0


async def test_a_message_that_waits_for_the_interrupt_of_its_chat_does_not_start_the_agent_again(
    served: ServedChats,
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    before = await served.state(child_id)
    claim = await claim_of(served, root_id)
    message = NewMessage(Role.USER, (Text("Late."),), created_by=ANN.id)
    late = SendMessage(message, LATE_ID, None, claim=claim)
    async with (
        asyncio.TaskGroup() as group,
        served.pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute(INTERRUPT, root_id)
        sent = group.create_task(_refusal(served.stores.chats.apply(child_id, late)))
        await until_waiting(served.pool)
    assert sent.result() == "AGENTS_INTERRUPTED"
    assert await served.state(child_id) == before


async def test_a_message_to_an_agent_that_others_change_is_refused_after_an_interrupt(
    served: ServedChats,
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    claim = await claim_of(served, root_id)
    await served.pool.execute(INTERRUPT, root_id)
    message = NewMessage(Role.USER, (Text("Late."),), created_by=ANN.id)
    late = SendMessage(message, LATE_ID, None, claim=claim)

    async with contended(served.pool) as applier:
        assert await _refusal(applier.apply(child_id, late)) == "AGENTS_INTERRUPTED"
    assert (await served.state(child_id)).queue_length == 0


def contended(pool: Pool) -> Applier:
    """Return what executes commands while others change the same chat between its statements."""

    async def changed_meanwhile(chat_id: ChatId, command: Command) -> Facts:
        await pool.execute(CHANGE, chat_id)
        return NO_FACTS

    return Applier(
        pool,
        facts_of=changed_meanwhile,
        state_changed=lambda state: None,
        appended=lambda seen, state, messages, at: None,
        clock=FakeClock(),
    )


async def _is_fenced(sent: Awaitable[object]) -> bool:
    """Return whether something was refused because its claim had ended."""
    try:
        await sent
    except FenceLost:
        return True
    return False


async def _refusal(sent: Awaitable[object]) -> str:
    """Return why something was refused to a chat; empty if it was not."""
    try:
        await sent
    except AgentsRefused as refused:
        return refused.reason
    return ""


async def until_waiting(pool: Pool) -> None:
    """Wait until a session waits for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with asyncio.timeout(5):
        while await pool.fetchval(waiting) == 0:
            await pool.execute("SELECT pg_sleep(0.005)")


async def test_an_owner_that_is_replaced_between_two_agents_stops_only_the_first(
    served: ServedChats,
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    child_id = await spawned(served, root_id, request_of(root_id, "child"))
    claim = await claim_of(served, root_id)
    stop, key = replace(STOP_AGENT, claim=claim), ClientKey("stop", b"")
    await served.stores.keys.once(child_id, stop, key)
    await served.pool.execute(REPLACE_OWNER, root_id)
    stopped = await served.state(child_id)
    await served.stores.keys.once(child_id, stop, key)  # What is stopped already stays so.
    assert await served.state(child_id) == stopped
    grandchild_id = await spawned(served, root_id, request_of(root_id, "other"))
    with pytest.raises(FenceLost):
        await served.stores.keys.once(grandchild_id, stop, key)
    assert (await served.state(grandchild_id)).status is Status.RUNNING


async def test_a_chat_that_was_interrupted_starts_no_agent_and_finds_those_it_started(
    served: ServedChats,
) -> None:
    root_id = ChatId((await served.ann.create()).id)
    request = request_of(root_id, "child")
    await spawned(served, root_id, request)
    state = await served.stores.chats.apply(root_id, Interrupt(MessageId(0), None))
    claim = OwnerClaim(root_id, state.owner_epoch, state.turn_id)
    late = request_of(root_id, "late")
    with pytest.raises(AgentsRefused) as refused:
        await served.stores.agents.spawn(claim, late, LIMITS)
    assert refused.value.reason == "AGENTS_INTERRUPTED"
    assert await served.stores.agents.spawn(claim, request, LIMITS) is None
    assert await served.stores.agents.below(root_id) == (request.chat_id,)
