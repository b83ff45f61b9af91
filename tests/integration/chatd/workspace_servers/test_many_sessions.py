"""Many sessions of servers that leave programs behind: nothing of them is left."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psutil
import pytest

from chatd.content.domain.parts import ToolOutcome
from support.chatd.workspace_servers.server_calls import PLAIN, ServerCalls, server_calls
from support.chatd.workspaces.workspace_calls import ANN
from support.host.conditions import until
from support.toolrunner.node import House, node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

pytestmark = pytest.mark.slow

SERVERS = ("one", "two", "three", "four", "five")
#: Rounds of one session with each server: 40 sessions, and 200 with --full-size.
ROUNDS, ROUNDS_FULL_SIZE = 8, 40


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServerCalls]:
    """Give the servers of a workspace in the strongest sandbox of this machine."""
    level = max((Level.NONE, *offered()))
    house = replace(House.build(tmp_path_factory.mktemp("t")), sandbox_level=level.word)
    async with asyncio.timeout(600), node(house), server_calls(house) as found:
        yield found


def programs_of(calls: ServerCalls) -> list[str]:
    """Return the command lines of the servers of the workspace and of what they started."""
    mark = str(calls.root)
    found = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    of_workspace = [words for words in found if any(mark in word for word in words)]
    return [
        " ".join(words)
        for words in of_workspace
        if words[0].startswith("daemon-") or "server.py" in words
    ]


async def test_many_sessions_leave_no_program_behind(
    calls: ServerCalls, pytestconfig: pytest.Config
) -> None:
    rounds = ROUNDS_FULL_SIZE if pytestconfig.getoption("--full-size") else ROUNDS
    interpreter, program = PLAIN
    # The path is in the command line, so that all of them are found.
    where = f"--of={calls.root}"
    calls.define(
        **{name: {"command": interpreter, "args": ["server.py", "", where]} for name in SERVERS}
    )
    (calls.root / "server.py").write_text(program)
    for number in range(rounds):
        for name in SERVERS:
            await calls.trust(name)
            title = f"daemon-{number}-{name}-of-{calls.root}"
            outcome, _ = await calls.call(f"ws_{name}__daemon", title=title)
            assert outcome is ToolOutcome.DONE
        assert len(programs_of(calls)) >= 2 * len(SERVERS)
        for name in SERVERS:
            await calls.servers.untrust(calls.place, name, ANN.id)
    await asyncio.to_thread(until, lambda: programs_of(calls) == [], "no program left", within_s=30)
