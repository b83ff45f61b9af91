"""Tools of a workspace in a mode in which nothing is changed, with a real toolrunner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.tools.earlier_writers import NodeWriters
from chatd.tools.toolrunner import WorkspaceTools
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.rpc import Channels
from support.chatd.workspaces.fixed_locator import FixedLocator
from support.chatd.workspaces.in_memory_attachments import InMemoryAttachmentStore
from support.chatd.workspaces.workspace_calls import ANN, CHAT, Calls
from support.toolrunner.node import House, connected, node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

AGENT = ChatId("00000000-0000-0000-0000-00000000000b")
OTHER = ChatId("00000000-0000-0000-0000-00000000000c")
LOOP = "while :; do date >> ticks; sleep 0.01; done"


class OneWorkspace(FixedLocator):
    """Gives all chats the same workspace; at first another placement of it is cached."""

    is_outdated = True

    async def locate_for_turn(self, chat_id: ChatId) -> WorkspaceLocation:
        return replace(await super().locate_for_turn(CHAT), epoch=1)

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        return await super().locate_for_turn(CHAT)

    async def last_known(self, chat_id: ChatId) -> WorkspaceLocation:
        found = self.locate_for_turn(CHAT) if self.is_outdated else super().locate_for_turn(CHAT)
        return await found

    def forget(self, chat_id: ChatId) -> None:
        self.is_outdated = False


async def below(chat_id: ChatId) -> tuple[ChatId, ...]:
    return (AGENT,)


def reading_calls(channels: Channels, house: House) -> Calls:
    """Return calls of chats of one workspace, in which processes from before are ended."""
    locator, attachments = OneWorkspace(channels), InMemoryAttachmentStore()
    writers = NodeWriters(channels, locator, below)
    tools = WorkspaceTools(channels, house.clock, attachments, locator, writers=writers)
    return Calls(tools, attachments)


async def is_running(calls: Calls, process_id: str, *, wait_timeout: str = "0s") -> bool:
    wait = {"process_id": process_id, "wait_timeout": wait_timeout}
    _, found = await calls.call("process_output", **wait)
    running: bool = found["running"]
    return running


@pytest.fixture(params=(Level.NONE, *offered()), ids=lambda level: str(level.word))
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    return found


@pytest.fixture
async def calls(level: Level, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calls]:
    house = replace(House.build(tmp_path_factory.mktemp("t")), sandbox_level=level.word)
    async with asyncio.timeout(60), node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


@pytest.mark.parametrize("mode", [ChatMode.PLAN, ChatMode.EXPLORE])
async def test_what_a_call_may_change_follows_the_mode_it_was_dispatched_in(
    calls: Calls, level: Level, mode: ChatMode
) -> None:
    await calls.call("write_file", path="kept", content="before\n")
    _, loop = await calls.call(
        "execute", command="while :; do date >> ticks; sleep 0.01; done", run_in_background=True
    )
    calls.mode = mode
    read_outcome, read = await calls.call("read_file", path="kept")
    _, before = await calls.call("read_file", path="ticks")
    ran, told = await calls.call("execute", command="echo hacked >> kept; cat kept")
    written, refusal = await calls.call("write_file", path="kept", content="hacked")
    _, ended = await calls.call("process_output", process_id=loop["process_id"])
    calls.mode = ChatMode.ORDINARY
    _, after = await calls.call("read_file", path="ticks")
    _, last = await calls.call("read_file", path="kept")
    assert (read_outcome, read["content"]) == (ToolOutcome.DONE, last["content"])
    assert (written, refusal["reason"]) == (ToolOutcome.FAILED, "READ_ONLY")
    assert ended["running"] is False
    assert before == after
    if level is Level.NONE:
        assert (ran, told["reason"], told["error"]) == (
            ToolOutcome.FAILED,
            "SANDBOX_TOO_WEAK",
            "the sandbox of this node has level none here and landlock is needed: a read-only "
            "workspace cannot be kept below that",
        )
    else:
        assert ran is ToolOutcome.DONE
        assert told["output"].splitlines()[-1] == "before"


@pytest.mark.parametrize("mode", [ChatMode.PLAN, ChatMode.EXPLORE])
async def test_processes_from_before_are_ended_though_the_turn_calls_nothing(
    level: Level, mode: ChatMode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = replace(House.build(tmp_path_factory.mktemp("t")), sandbox_level=level.word)
    async with asyncio.timeout(60), node(house), connected(house) as client:
        calls = reading_calls(Channels((house.address,), lambda _: client.channel), house)
        chats = {chat_id: replace(calls, chat_id=chat_id) for chat_id in (CHAT, AGENT, OTHER)}
        loops = {}
        for chat_id, of_chat in chats.items():
            _, loop = await of_chat.call("execute", command=LOOP, run_in_background=True)
            loops[chat_id] = loop["process_id"]

        async def running() -> list[ChatId]:
            return [each for each in chats if await is_running(chats[each], loops[each])]

        context = TurnContext(CHAT, ANN, turn_id=1, has_agents=True)
        await calls.tools.list_tools(context)
        # Not a turn: a person looks at what the chat could call.
        await calls.tools.list_tools(replace(context, mode=mode, turn_id=0))
        assert await running() == [CHAT, AGENT, OTHER]
        assert await calls.tools.list_tools(replace(context, mode=mode))
        # They are gone by now, and a moment later the node has read how they ended.
        ended = [
            not await is_running(chats[each], loops[each], wait_timeout="30s")
            for each in (CHAT, AGENT)
        ]
        assert (ended, await running()) == ([True, True], [OTHER])
        await chats[OTHER].call("process_signal", process_id=loops[OTHER], signal="kill")


async def test_a_turn_goes_on_without_tools_if_processes_from_before_cannot_be_ended(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        serving = await stack.enter_async_context(AsyncExitStack())
        await serving.enter_async_context(node(house))
        client = await stack.enter_async_context(connected(house))
        calls = reading_calls(Channels((house.address,), lambda _: client.channel), house)
        context = TurnContext(CHAT, ANN, turn_id=1)
        listed = await calls.tools.list_tools(context)
        await serving.aclose()
        assert await calls.tools.list_tools(context) == listed != ()
        assert await calls.tools.list_tools(replace(context, mode=ChatMode.PLAN)) == ()
