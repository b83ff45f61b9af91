"""Sessions that a running server forgot, and servers that fail beside others that do not."""

import asyncio
import json
from contextlib import AsyncExitStack

from mcpgateway.client.breaker import FAILURES_MAX
from mcpgateway.client.content import TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Reason, Target
from parley.egress import Policy
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question, ignore_progress
from support.mcpgateway.servers import refusing_server
from support.mcpgateway.session_calls import Seen, failure_of, sessions_to
from support.mcpgateway.values import a_server, a_target
from support.mcpgateway.visitor_server import SAID, visitor_server

SERVERS = 4
ROUNDS = 10


async def said(sessions: Sessions, target: Target, name: str) -> ToolAnswer:
    arguments = json.dumps({"text": f"{SAID}{name}"}).encode()
    return await sessions.call_tool(target, "echo", arguments, ignore_progress, cancel_question)


def answer_to(name: str) -> ToolAnswer:
    return ToolAnswer(False, (TextPart(f"{SAID}{name}"),))


async def test_a_session_that_a_running_server_forgot_is_opened_again_once() -> None:
    async with visitor_server() as server, sessions_to(server.url) as sessions:
        target = a_target(a_server(url=server.url))
        assert await said(sessions, target, "before") == answer_to("before")
        server.forgotten |= server.sessions["before"]
        assert await said(sessions, target, "after") == answer_to("after")
        assert await said(sessions, target, "later") == answer_to("later")

    [first], [second], [third] = (server.sessions[name] for name in ("before", "after", "later"))
    assert (first == second, second == third) == (False, True)


async def test_a_server_that_fails_again_and_again_costs_the_sessions_of_others_nothing() -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(asyncio.timeout(60))
        well = [await enter(visitor_server()) for _ in range(SERVERS)]
        failing = await enter(refusing_server())
        sessions = await enter(Sessions.open(Policy.parse("127.0.0.0/8"), supervision()))
        targets = [
            a_target(a_server(f"01900000-0000-7000-8000-{number:012}", url=url))
            for number, url in enumerate([*(server.url for server in well), failing.url])
        ]
        reasons = list[Reason]()
        for _ in range(ROUNDS):
            reasons.append((await failure_of(sessions, targets[-1], "echo", Seen())).reason)
            for target in targets[:-1]:
                assert await said(sessions, target, "ann") == answer_to("ann")
        contacted = failing.connections

    assert [len(server.sessions["ann"]) for server in well] == [1] * SERVERS
    # It is left alone after some failures, each of which took two attempts at most.
    assert reasons[FAILURES_MAX:] == [Reason.CIRCUIT_OPEN] * (ROUNDS - FAILURES_MAX)
    assert contacted <= 2 * 2 * FAILURES_MAX
