"""Where the tools of chats work: how often anybody looks for it, and who makes it."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, Owner, WorkerId
from chatd.workspaces.domain.commands import FinishPreparing, FinishRemoving, Place
from chatd.workspaces.domain.errors import NoNode
from chatd.workspaces.domain.nodes import Load
from chatd.workspaces.domain.ports import ChatWorkspace, WorkspaceLocation
from chatd.workspaces.domain.workspace import NodeId, State, WorkspaceId
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.locator import ChatWorkspaceLocator
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.watchers import Changes
from parley.clock import FakeClock
from support.chatd.workspaces.in_memory_host import InMemoryHost
from support.chatd.workspaces.in_memory_workspaces import InMemoryNodes, InMemoryWorkspaces
from support.chatd.workspaces.workspace_values import ANN, NODE, NOON, WORKSPACE, node, workspace

CHAT = ChatId("00000000-0000-0000-0000-0000000000c1")
ROOT = ChatId("00000000-0000-0000-0000-0000000000c0")
OWNER = Owner(ANN, "member")
ADDRESS = "unix:/run/node.sock"
PLAIN = ChatFacts(ModelChoice(), ChatMode.ORDINARY)


@dataclass
class Known:
    """What a process knows of chats without asking."""

    facts: dict[str, ChatFacts] = field(default_factory=dict)

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        return self.facts.get(chat_id, PLAIN)


class Stage:
    """A process that knows one node; the driver is driven by the test."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.store = InMemoryWorkspaces(self.clock)
        self.known = Known()
        self.nodes = InMemoryNodes(self.clock, {NODE: node()})
        self.listed = listed = NodeList(self.nodes, [ADDRESS])
        self.changes = changes = Changes(self.clock)
        self.driver = Driver(WorkerId("d"), self.store, self.nodes, InMemoryHost(), self.clock)
        self.locator = ChatWorkspaceLocator(
            self.store, self.known, listed, self.driver, changes, self.clock
        )

    def bind(self) -> None:
        """Let the chat have a workspace that somebody chose."""
        self.store.rows[WORKSPACE] = workspace(State.READY)
        self.known.facts[CHAT] = replace(PLAIN, workspace_id=WORKSPACE)
        self.store.chats[CHAT] = ChatWorkspace(
            workspace=self.store.rows[WORKSPACE],
            scratch_id=WorkspaceId(CHAT),
            owner_id=ANN,
            is_child=False,
            is_bound=True,
            node_address=ADDRESS,
            is_node_lost=False,
            now=NOON,
        )

    async def turn(self, calls: int) -> list[WorkspaceLocation]:
        """Begin a turn and make calls side by side; return where they went."""
        await self.locator.workspace_text(CHAT, is_child=False)
        await self.locator.locate_for_turn(CHAT)
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(self.locator.ensure_ready(CHAT, OWNER)) for _ in range(calls)]
        return [each.result() for each in made]


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_turn_without_tools_in_a_chat_without_a_workspace_looks_for_none(
    stage: Stage,
) -> None:
    for _ in range(3):
        assert await stage.turn(calls=0) == []
    assert (stage.store.lookups, stage.store.rows) == (0, {})


@pytest.mark.parametrize("calls", [0, 1, 20])
async def test_a_workspace_is_looked_for_once_in_a_turn(stage: Stage, calls: int) -> None:
    stage.bind()
    for turn in range(1, 4):
        assert await stage.turn(calls) == [WorkspaceLocation(ADDRESS, WORKSPACE, 1)] * calls
        assert stage.store.lookups == turn


async def test_a_scratch_workspace_is_looked_for_once_in_a_turn_with_tools(stage: Stage) -> None:
    stage.store.rows[CHAT] = workspace(State.READY, id=CHAT, is_scratch_of_chat=True)
    assert await stage.turn(20) == [WorkspaceLocation(ADDRESS, CHAT, 1)] * 20
    assert stage.store.lookups == 1
    await stage.turn(0)
    assert stage.store.lookups == 1


async def test_a_scratch_workspace_is_looked_for_again_once_it_may_have_changed(
    stage: Stage,
) -> None:
    stage.store.rows[CHAT] = workspace(State.READY, id=CHAT, is_scratch_of_chat=True)
    for _ in range(3):
        await stage.turn(1)
    assert stage.store.lookups == 1
    stage.changes.on_notice(WORKSPACE)
    await stage.turn(1)
    assert stage.store.lookups == 1
    stage.store.rows[CHAT] = workspace(State.READY, id=CHAT, is_scratch_of_chat=True, epoch=2)
    stage.changes.on_notice(CHAT)
    assert await stage.turn(1) == [WorkspaceLocation(ADDRESS, CHAT, 2)]
    assert stage.store.lookups == 2
    stage.changes.on_resync()
    await stage.turn(1)
    assert stage.store.lookups == 3


async def test_a_scratch_workspace_that_another_process_made_is_looked_for_once(
    stage: Stage,
) -> None:
    await stage.turn(0)
    stage.store.rows[CHAT] = workspace(State.READY, id=CHAT, is_scratch_of_chat=True)
    stage.known.facts[CHAT] = replace(PLAIN, has_scratch=True)
    for _ in range(3):
        await stage.turn(0)
        assert await stage.locator.last_known(CHAT) == WorkspaceLocation(ADDRESS, CHAT, 1)
    assert stage.store.lookups == 1


async def test_a_chat_that_gave_up_what_it_chose_goes_back_to_its_scratch_workspace(
    stage: Stage,
) -> None:
    stage.store.rows[CHAT] = workspace(State.READY, id=CHAT, is_scratch_of_chat=True)
    stage.bind()
    assert await stage.turn(1) == [WorkspaceLocation(ADDRESS, WORKSPACE, 1)]
    del stage.known.facts[CHAT], stage.store.chats[CHAT]
    assert await stage.turn(1) == [WorkspaceLocation(ADDRESS, CHAT, 1)]


async def test_a_scratch_workspace_is_made_on_no_node_that_cannot_run_commands(
    stage: Stage,
) -> None:
    other = NodeId("00000000-0000-0000-0000-0000000000f2")
    await stage.locator.locate_for_turn(CHAT)
    broken = node(load=Load(disk_free_bytes=1 << 30, problem="not run within 10 s"))
    stage.nodes.rows = {NODE: broken}
    await stage.listed.refresh()
    with pytest.raises(NoNode) as refused:
        await stage.locator.ensure_ready(CHAT, OWNER)
    assert (refused.value.cause, stage.store.rows) == ("they cannot run commands now", {})
    stage.nodes.rows[other] = node(id=other, address="unix:/run/other.sock", placed=9)
    await stage.listed.refresh()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        made = tasks.create_task(stage.locator.ensure_ready(CHAT, OWNER))
        while CHAT not in stage.store.rows:
            await stage.changes.next(CHAT, within_s=0)
        made.cancel()
    assert stage.store.rows[CHAT].node_id == other


@pytest.mark.parametrize("calls", [0, 1, 20])
async def test_a_child_looks_for_the_workspace_of_its_root_once_in_a_turn(
    stage: Stage, calls: int
) -> None:
    stage.bind()
    stage.known.facts[CHAT] = replace(PLAIN, ancestor_ids=(ROOT,))
    stage.store.chats[CHAT] = replace(stage.store.chats[CHAT], is_child=True)
    for turn in range(1, 4):
        assert await stage.turn(calls) == [WorkspaceLocation(ADDRESS, WORKSPACE, 1)] * calls
        assert stage.store.lookups == turn


async def test_a_call_that_found_another_placement_has_the_next_one_look_again(
    stage: Stage,
) -> None:
    stage.bind()
    await stage.turn(1)
    stage.store.rows[WORKSPACE] = workspace(State.READY, epoch=2)
    assert await stage.locator.ensure_ready(CHAT, OWNER) == WorkspaceLocation(ADDRESS, WORKSPACE, 1)
    stage.locator.forget(CHAT)
    assert await stage.locator.ensure_ready(CHAT, OWNER) == WorkspaceLocation(ADDRESS, WORKSPACE, 2)
    assert stage.store.lookups == 2


async def test_who_asks_after_a_call_where_it_went_finds_it_without_looking(stage: Stage) -> None:
    stage.bind()
    assert await stage.locator.last_known(CHAT) == WorkspaceLocation(ADDRESS, WORKSPACE, 1)
    await stage.turn(1)
    lookups = stage.store.lookups
    assert await stage.locator.last_known(CHAT) == WorkspaceLocation(ADDRESS, WORKSPACE, 1)
    assert stage.store.lookups == lookups
    stage.locator.forget(CHAT)
    await stage.locator.last_known(CHAT)
    assert stage.store.lookups == lookups + 1


async def test_who_looks_before_a_workspace_was_made_sees_that_there_is_nothing(
    stage: Stage,
) -> None:
    assert await stage.locator.locate(CHAT) == WorkspaceLocation(ADDRESS, CHAT, 0, is_made=False)
    for state, is_made in ((State.PREPARING, False), (State.READY, True), (State.STOPPED, True)):
        stage.store.rows[CHAT] = workspace(state, id=CHAT, is_scratch_of_chat=True)
        assert await stage.locator.locate(CHAT) == WorkspaceLocation(
            ADDRESS, CHAT, 1, is_made=is_made
        )


@pytest.mark.parametrize("gone", [{"state": State.DELETED}, {"is_removing": True}])
async def test_who_looks_after_a_scratch_workspace_was_deleted_sees_that_there_is_nothing(
    stage: Stage, gone: dict[str, object]
) -> None:
    was = workspace(State.STOPPING, id=CHAT, is_scratch_of_chat=True, has_files=True)
    stage.store.rows[CHAT] = replace(was, **gone)  # type: ignore[arg-type]
    assert await stage.locator.locate(CHAT) == WorkspaceLocation(ADDRESS, CHAT, 1, is_made=False)


async def test_a_tool_waits_for_the_end_of_its_scratch_workspace_and_has_it_made_again(
    stage: Stage,
) -> None:
    removing = workspace(State.STOPPING, id=CHAT, is_scratch_of_chat=True, is_removing=True)
    stage.store.rows[CHAT] = removing
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        made = tasks.create_task(stage.locator.ensure_ready(CHAT, OWNER))
        await stage.clock.until_sleeping()
        assert stage.store.rows[CHAT] == removing
        await stage.store.apply(CHAT, FinishRemoving(removing.epoch))
        stage.changes.on_notice(CHAT)
        while stage.store.rows[CHAT].state is not State.PENDING:
            await stage.changes.next(CHAT, within_s=0)
        _, placed = await stage.store.apply(CHAT, Place(NODE))
        await stage.store.apply(CHAT, FinishPreparing(placed.epoch))
        stage.changes.on_notice(CHAT)
        assert (await made).epoch == placed.epoch
