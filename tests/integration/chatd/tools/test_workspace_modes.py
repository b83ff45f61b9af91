"""Tools of a workspace in a mode in which nothing is changed, with a real toolrunner."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import Calls
from support.toolrunner.node import House, connected, node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level


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
