"""A server that is killed during a call: known soon, nothing left of it, and met again."""

import asyncio
import time

import pytest

from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Reason, Target
from support.host.ports import free_port
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import kind_process, until_listening
from support.mcpgateway.session_calls import KINDS, Seen, failure_of, place_of, sessions_to
from support.mcpgateway.values import a_server, a_target

KNOWN_S_MAX = 2.0
#: Of the time in which the other program starts, as long as nothing has to be done.
BUSY_SHARE_MAX = 0.5
ADDED = ToolAnswer(False, (TextPart("3"),))


async def add(sessions: Sessions, target: Target) -> ToolAnswer:
    return await sessions.call_tool(
        target, "add", b'{"a":1,"b":2}', ignore_progress, cancel_question
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_a_killed_server_is_known_soon_keeps_nothing_busy_and_is_met_again(
    kind: str,
) -> None:
    port, seen = free_port(), Seen()
    url, transport = place_of(kind, port)
    target = a_target(a_server(url=url, transport=transport))
    async with sessions_to(url) as sessions:
        with kind_process(port, kind) as process:
            await until_listening(port)
            assert await add(sessions, target) == ADDED
            tasks_before = len(asyncio.all_tasks())
            async with asyncio.TaskGroup() as tasks:
                failing = tasks.create_task(failure_of(sessions, target, "hold", seen))
                await seen.first.wait()
                process.kill()
                killed_s = time.monotonic()
            known_s = time.monotonic() - killed_s
        began_s, used_s = time.monotonic(), time.process_time()
        with kind_process(port, kind):
            await until_listening(port)
            busy = (time.process_time() - used_s) / (time.monotonic() - began_s)
            assert await add(sessions, target) == ADDED
            while len(asyncio.all_tasks()) > tasks_before:
                assert await add(sessions, target) == ADDED

    failure = failing.result()
    assert (failure.reason, failure.may_have_executed) == (Reason.SESSION_LOST, True)
    assert known_s < KNOWN_S_MAX
    assert busy < BUSY_SHARE_MAX
