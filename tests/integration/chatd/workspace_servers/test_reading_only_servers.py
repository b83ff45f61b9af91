"""Servers of a workspace in a mode that only reads: whatever their tools try, nothing changes.

The ways are those of the commands that a model may run, each tried by a tool of a server that is
started from `.mcp.json`, after servers that may write have left running what they could.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from parley.clock import SystemClock
from support.chatd.workspace_servers.server_calls import ServerCalls, server_calls
from support.toolrunner.attacks import forbidden_writes
from support.toolrunner.node import House, node
from support.toolrunner.sandboxes import all_offered, tell
from support.toolrunner.workspace_states import everything_in
from toolrunner.sandbox import Level

LEVELS = tuple(dict.fromkeys((Level.NONE, *all_offered())))
ENFORCING = (Level.LANDLOCK, Level.NS)
SERVANTS = f"setsid python3 -I -S -c '{forbidden_writes.SERVANTS}' >/dev/null 2>&1 &"


@pytest.fixture(params=LEVELS, ids=lambda level: str(level.word))
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    return found


@pytest.fixture
def directory() -> Iterator[Path]:
    # Not pytest's own: users of workspaces must be able to walk to it.
    path = Path(tempfile.mkdtemp(prefix="parley-node-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def calls(level: Level, directory: Path) -> AsyncIterator[ServerCalls]:
    house = replace(House.build(directory), sandbox_level=level.word)
    async with asyncio.timeout(280), node(house), server_calls(house) as found:
        yield found


async def tried(calls: ServerCalls, command: str) -> bool:
    """Have a tool run a command line; return whether a server took the call.

    A way that ends its own server makes the next one start after a pause: then it is tried again.
    """
    variables = {"W": str(calls.root)}
    async with asyncio.timeout(60):
        while True:
            outcome, result = await calls.call(
                "ws_plain__run", command=f"exec 2>&1; {command}", variables=variables
            )
            if outcome is not ToolOutcome.FAILED:
                return True
            if "landlock is needed" in json.dumps(result):
                return False
            await SystemClock().sleep(0.1)


async def test_no_way_of_writing_is_left_to_the_tools_of_a_server(
    calls: ServerCalls, level: Level
) -> None:
    calls.define_plain()
    await calls.trust()
    for left in (forbidden_writes.FILES, SERVANTS, forbidden_writes.LEFTOVER):
        assert await tried(calls, left)
    if level is not Level.NONE:
        assert await tried(calls, forbidden_writes.SHEDDING)
    assert await tried(calls, forbidden_writes.TMUX)
    # The server itself goes on to write, as one does that watches files.
    assert (await calls.call("ws_plain__tick", path="by_server"))[0] is ToolOutcome.DONE
    calls.mode = ChatMode.PLAN
    # The first call comes back when nothing from before can write any more.
    await tried(calls, "true")
    before = everything_in(calls.root.parent)
    succeeded, taken = [], 0
    for name, command in forbidden_writes.COMMANDS.items():
        taken += await tried(calls, command)
        after = everything_in(calls.root.parent)
        if after != before:
            changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
            succeeded.append((name, sorted(changed)))
            before = after
    ways = len(forbidden_writes.COMMANDS)
    tell("writing by a server where a chat may only read", level, len(succeeded), ways)
    assert succeeded == []
    assert ways >= 30
    # Each was really tried where servers run at all, and none where they do not.
    assert taken == (ways if level in ENFORCING else 0)


async def test_a_server_that_writes_ends_when_its_chat_begins_to_only_read(
    calls: ServerCalls,
) -> None:
    calls.define_plain()
    await calls.trust()
    assert (await calls.call("ws_plain__tick", path="ticks"))[0] is ToolOutcome.DONE
    calls.mode = ChatMode.PLAN
    await calls.call("ws_plain__echo", text="planned")
    ticks = (calls.root / "ticks").read_text()
    await SystemClock().sleep(0.2)
    assert (calls.root / "ticks").read_text() == ticks
    calls.mode = ChatMode.ORDINARY
    async with asyncio.timeout(30):
        while (await calls.call("ws_plain__write", path="after"))[0] is not ToolOutcome.DONE:
            await SystemClock().sleep(0.1)
