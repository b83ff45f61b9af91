"""Which hosts the proxy records as reached, and when."""

import asyncio
from pathlib import Path

from support.toolrunner.egress_stage import PATIENCE_S, WORKSPACE, staged
from toolrunner.egress.domain.reached import ReachedHost
from toolrunner.egress.reached_hosts import ReachedHosts

SITE = ReachedHost("plain.example")
PLAIN = b"GET http://plain.example/x HTTP/1.1\r\nHost: plain.example\r\n\r\n"
TREE = "first"


async def test_a_host_that_cannot_be_connected_counts_and_one_that_is_refused_does_not(
    tmp_path: Path,
) -> None:
    async with (
        ReachedHosts(lambda _: tmp_path) as reached,
        staged(tmp_path, answers={"plain.example": [()]}, reached=reached) as stage,
    ):
        # Names, addresses and certificates of a host bring content in, too.
        await stage.ask(PLAIN.replace(b"plain.", b"other."))
        refused = await reached.since(WORKSPACE, TREE)
        failed = await stage.ask(PLAIN)
        assert b"plain.example has no address" in failed
        assert [refused, await reached.since(WORKSPACE, TREE)] == [(), (SITE,)]


async def test_what_comes_over_an_open_connection_counts_for_a_chat_that_began_meanwhile(
    tmp_path: Path,
) -> None:
    is_asked, is_answered = asyncio.Event(), asyncio.Event()

    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        is_asked.set()
        await is_answered.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async with (
        ReachedHosts(lambda _: tmp_path) as reached,
        staged(tmp_path, reached=reached) as stage,
        asyncio.TaskGroup() as tasks,
    ):
        stage.plain.handler = answer_late
        answer = tasks.create_task(stage.ask(PLAIN))
        async with asyncio.timeout(PATIENCE_S):
            await is_asked.wait()
        await reached.join(WORKSPACE, TREE)
        is_answered.set()
        assert (await answer).endswith(b"hello")
        assert await reached.since(WORKSPACE, TREE) == (SITE,)
