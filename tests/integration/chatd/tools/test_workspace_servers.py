"""MCP servers inside a workspace, with a real toolrunner and servers that really run."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import psutil
import pytest

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import CallProgress, ToolOutcome
from chatd.content.domain.tools import Ended, StillRunning, Untraceable
from chatd.workspace_servers.domain.state import DefinitionChanged, ServerState
from chatd.workspace_servers.engine.sessions import STILL_STARTING
from parley.clock import SystemClock
from support.chatd.workspace_servers import sdk_server
from support.chatd.workspace_servers.server_calls import ServerCalls, server_calls
from support.chatd.workspaces.workspace_calls import ANN
from support.host.conditions import until
from support.toolrunner.node import House, node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level


@pytest.fixture(params=(Level.NONE, *offered()), ids=lambda level: str(level.word))
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    return found


@pytest.fixture
async def calls(
    level: Level, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServerCalls]:
    house = replace(House.build(tmp_path_factory.mktemp("t")), sandbox_level=level.word)
    async with asyncio.timeout(120), node(house), server_calls(house) as found:
        yield found


async def test_a_server_is_offered_only_after_its_definition_was_trusted(
    calls: ServerCalls,
) -> None:
    assert await calls.offered() == {}
    calls.define_plain(env={"GREETING": "hello"})
    untrusted = await calls.status()
    assert untrusted.state is ServerState.UNTRUSTED
    assert await calls.offered() == {}
    assert (await calls.trust()).state is ServerState.TRUSTED
    specs = await calls.offered()
    assert set(specs) >= {"ws_plain__echo", "ws_plain__die"}
    assert specs["ws_plain__echo"].needs_approval
    assert specs["ws_plain__echo"].description == "Repeat."
    outcome, result = await calls.call("ws_plain__echo", text="said")
    assert (outcome, result) == (
        ToolOutcome.DONE,
        {"content": [{"type": "text", "text": "said hello"}]},
    )
    running = await calls.status()
    assert (running.state, running.reason) == (ServerState.RUNNING, "")
    assert [each.instructions for each in calls.servers.reports(calls.place.chat_id)] == [
        "Be brief."
    ]


async def test_a_changed_definition_is_not_called_until_it_is_trusted_again(
    calls: ServerCalls,
) -> None:
    calls.define_plain()
    seen = (await calls.trust()).definition.digest
    execution = await calls.execution("ws_plain__echo", text="said")
    calls.define_plain(env={"LD_PRELOAD": "x"})
    refused = await calls.tools.execute(execution, calls.location)
    assert refused.outcome is ToolOutcome.FAILED
    assert "its definition is not trusted" in refused.result_json
    assert (await calls.status()).state is ServerState.UNTRUSTED
    with pytest.raises(DefinitionChanged):
        await calls.servers.trust(calls.place, "plain", seen, ANN.id)
    assert await calls.offered() == {}


async def test_a_server_that_is_trusted_no_longer_is_not_called(calls: ServerCalls) -> None:
    calls.define_plain()
    await calls.trust()
    execution = await calls.execution("ws_plain__echo", text="said")
    await calls.servers.untrust(calls.place, "plain", ANN.id)
    refused = await calls.tools.execute(execution, calls.location)
    assert refused.outcome is ToolOutcome.FAILED
    assert await calls.offered() == {}


async def test_a_warm_turn_reads_neither_trust_nor_definitions(calls: ServerCalls) -> None:
    calls.define_plain()
    await calls.trust()
    first = await calls.offered()
    reads = calls.trusted.reads
    (calls.root / ".mcp.json").unlink()
    assert await calls.offered() == first
    assert calls.trusted.reads == reads


@pytest.mark.parametrize("mode", [ChatMode.PLAN, ChatMode.EXPLORE])
async def test_a_server_cannot_write_in_a_mode_that_only_reads(
    calls: ServerCalls, level: Level, mode: ChatMode
) -> None:
    calls.define_plain()
    await calls.trust()
    assert (await calls.call("ws_plain__write", path="before"))[0] is ToolOutcome.DONE
    execution = await calls.execution("ws_plain__write", path="after")
    calls.mode = mode
    planned = replace(execution, dispatch=replace(execution.dispatch, mode=mode))
    outcome = await calls.tools.execute(planned, calls.location)
    assert outcome.outcome is ToolOutcome.FAILED
    text = outcome.result_json
    if level is Level.NONE:
        assert "landlock is needed" in text
    else:
        assert "Read-only file system" in text or "Permission denied" in text
    assert sorted(path.name for path in calls.root.iterdir()) == [
        ".mcp.json",
        "before",
        "server.py",
    ]


async def test_progress_is_reported_while_a_call_runs(calls: ServerCalls) -> None:
    calls.define_plain()
    await calls.trust()
    outcome, _ = await calls.call("ws_plain__steps")
    assert outcome is ToolOutcome.DONE
    assert calls.reported.updates == [
        CallProgress(1.0, 2.0, "step"),
        CallProgress(2.0, 2.0, "step"),
    ]


async def test_a_cancelled_call_is_cancelled_at_the_server_which_goes_on(
    calls: ServerCalls,
) -> None:
    calls.define_plain()
    await calls.trust()
    slow = await calls.execution("ws_plain__slow")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(calls.tools.execute(slow, calls.location))
        # Another call is answered meanwhile, so the first one has reached the server.
        await calls.call("ws_plain__echo", text="between")
        assert isinstance(calls.tools.find(slow), StillRunning)
        calls.tools.cancel(slow)
    assert waiting.result().outcome is ToolOutcome.CANCELLED
    assert isinstance(calls.tools.find(slow), Ended)
    assert (await calls.call("ws_plain__echo", text="after"))[0] is ToolOutcome.DONE
    assert "the call was cancelled" in (calls.root / "cancelled").read_text()


async def test_a_call_that_never_arrived_does_not_start_after_its_cancellation(
    calls: ServerCalls,
) -> None:
    calls.define_plain()
    await calls.trust()
    late = await calls.execution("ws_plain__write", path="late")
    assert isinstance(calls.tools.find(late), Untraceable)
    calls.tools.cancel(late)
    assert (await calls.tools.execute(late, calls.location)).outcome is ToolOutcome.CANCELLED
    assert not (calls.root / "late").exists()


async def test_a_call_is_unknown_if_its_server_dies_and_the_next_one_starts_it_again(
    calls: ServerCalls,
) -> None:
    calls.define_plain()
    await calls.trust()
    assert (await calls.call("ws_plain__die"))[0] is ToolOutcome.UNKNOWN
    failed = await calls.status()
    assert (failed.state, failed.reason) == (
        ServerState.FAILED,
        "it ended with exit code 3: not a message\na line for people\nthe last words",
    )
    async with asyncio.timeout(10):
        while (await calls.call("ws_plain__echo", text="again"))[0] is not ToolOutcome.DONE:
            await SystemClock().sleep(0.1)


@pytest.mark.parametrize(
    ("tool", "reason"),
    [("line", "it sent a line of over"), ("flood", "that answer nothing")],
)
async def test_a_server_that_prints_without_end_is_ended(
    calls: ServerCalls, tool: str, reason: str
) -> None:
    calls.define_plain()
    await calls.trust()
    assert (await calls.call(f"ws_plain__{tool}"))[0] is ToolOutcome.UNKNOWN
    failed = await calls.status()
    assert failed.state is ServerState.FAILED
    # On a slow machine more waits to be read than a node keeps, before the bound is reached.
    assert reason in failed.reason or "it printed faster than its output was read" in failed.reason


async def test_no_daemon_of_a_server_outlives_it(calls: ServerCalls) -> None:
    calls.define_plain()
    await calls.trust()
    names = [f"daemon-{number}-of-{calls.root}" for number in range(3)]
    for name in names:
        assert (await calls.call("ws_plain__daemon", title=name))[0] is ToolOutcome.DONE
    await asyncio.to_thread(until, lambda: running(names) == 3, "daemons", within_s=10)
    await calls.servers.untrust(calls.place, "plain", ANN.id)
    await asyncio.to_thread(until, lambda: running(names) == 0, "no daemon", within_s=20)


def running(names: list[str]) -> int:
    """Return how many processes have one of these names."""
    found = [each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"])]
    return sum(bool(words) and words[0] in names for words in found)


async def test_a_server_that_cannot_start_is_reported_with_its_last_words(
    calls: ServerCalls,
) -> None:
    calls.define_plain("crash")
    await calls.trust()
    assert await calls.offered() == {}
    (report,) = calls.servers.reports(calls.place.chat_id)
    assert report.problem == "it ended with exit code 1: it cannot work like this."
    assert (await calls.status()).state is ServerState.FAILED


async def until_offered(calls: ServerCalls, tool: str) -> None:
    """Wait for a tool of a server whose start may take longer than a turn waits for it.

    On a busy machine that is so for the import of the SDK; later turns find it, or start it again.
    """
    while tool not in await calls.offered():
        for report in calls.servers.reports(calls.place.chat_id):
            is_slow = report.problem in ("", STILL_STARTING) or "did not answer" in report.problem
            assert is_slow, report
        await SystemClock().sleep(0.1)


async def test_servers_with_the_sdk_are_called(calls: ServerCalls, level: Level) -> None:
    if level is not Level.NONE:
        pytest.skip("the packages of the tests are not readable in a sandbox")
    calls.define(
        sums={"command": sys.executable, "args": [sdk_server.__file__]},
        clock={"command": sys.executable, "args": ["-m", "mcp_server_time"]},
    )
    # One after the other: two imports of the SDK at once take twice as long.
    for name, tool in (("sums", "ws_sums__add"), ("clock", "ws_clock__get_current_time")):
        await calls.trust(name)
        await until_offered(calls, tool)
    outcome, result = await calls.call("ws_sums__add", a=2, b=3)
    assert (outcome, result["content"][0]) == (ToolOutcome.DONE, {"type": "text", "text": "5"})
