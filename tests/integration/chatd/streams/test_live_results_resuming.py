"""The output of running calls on streams: cut anywhere, resumed anywhere, ended by the result."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitResults, CommitStep, RecordResult
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import CallProgress, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor
from chatd.content.domain.turn_context import CallProcess
from chatd.primitives.domain.ids import ChatId, ExecutionId
from chatd.streams.engine.live import Episode
from chatd.turns.engine.progress import LiveProgress
from parley.api.chat.v1 import event_pb2, message_pb2
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.postgres import Pool
from support.chatd.streams.stream_replicas import Replica, Town, replica_in, town_of

BUILD = ToolCall("c1", "execute", "{}")
FETCH = ToolCall("c2", "docs__fetch", "{}", "s1")


@pytest.fixture
async def town(pool: Pool, tmp_path: Path) -> AsyncIterator[Town]:
    async with town_of(pool, tmp_path) as shared:
        yield shared


@dataclass(frozen=True, slots=True)
class Running:
    """What a client shows of a running call."""

    text: str = ""
    process_id: str = ""
    progress: tuple[float, float, str] | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client knows of the calls of a chat."""

    cursor: str = ""
    seq: int = 0
    running: tuple[tuple[str, Running], ...] = ()
    results: tuple[str, ...] = ()


def applied(seen: Seen, event: event_pb2.ChatEvent) -> Seen:
    """Apply one event as a client does."""
    seen = replace(seen, cursor=event.cursor)
    match event.WhichOneof("kind"):
        case "preview_reset":
            return replace(seen, seq=0, running=())
        case "message":
            results = [part.tool_result.result_json for part in event.message.content]
            return replace(seen, results=(*seen.results, *filter(None, results)))
        case "message_part":
            live = event.message_part
            assert live.seq == seen.seq + 1
            running = dict(seen.running)
            if live.part.HasField("tool_result"):
                told = live.part.tool_result
                running[told.tool_call_id] = _told(running.get(told.tool_call_id, Running()), told)
            return replace(seen, seq=live.seq, running=tuple(running.items()))
        case _:
            return seen


def _told(before: Running, told: message_pb2.ToolResultPart) -> Running:
    if told.result_json:
        return Running(result=told.result_json)
    text = "" if told.result_reset else before.text
    progress = (told.progress.progress, told.progress.total, told.progress.message)
    return Running(
        text + told.result_delta,
        told.process_id or before.process_id,
        progress if told.HasField("progress") else before.progress,
    )


async def read_until(call: Any, seen: Seen, expected: Any) -> list[Seen]:
    """Return what a reader knew after each event, until something holds."""
    known = [seen]
    while not expected(known[-1]):
        known.append(applied(known[-1], (await call.read()).event))
    return known


async def calling(replica: Replica, chat_id: ChatId) -> tuple[Episode, LiveProgress]:
    """Commit an answer with two calls, and begin to show them."""
    state = await replica.chats.state(chat_id)
    answer = NewMessage(Role.ASSISTANT, (BUILD, FETCH))
    dispatches = tuple(
        Dispatch(
            ExecutionId(str(uuid.uuid5(uuid.UUID(chat_id), call.tool_call_id))),
            call,
            Executor.TOOLRUNNER,
            "j1",
        )
        for call in (BUILD, FETCH)
    )
    state = await replica.do(chat_id, CommitStep(fence_of(state), (answer,), dispatches))
    episode = await replica.episode(chat_id)
    return episode, LiveProgress(state.pending, episode.add)


async def test_the_output_of_calls_is_resumed_anywhere_and_ends_with_their_results(
    town: Town,
) -> None:
    async with asyncio.timeout(60), replica_in(town, "a") as a, replica_in(town, "b") as b:
        chat_id = await a.create()
        readers = [a.subscribe(chat_id), b.subscribe(chat_id)]
        episode, progress = await calling(a, chat_id)
        await a.until_followed(chat_id)
        known = [[Seen()], [Seen()]]
        for number in range(8):
            progress.report("c1", CallProcess("p1") if number == 3 else f"line {number}\n")
            progress.report("c2", CallProgress(number, 8.0, "fetching"))
            if number == 5:
                progress.reset("c1")
            told = (number, 8.0, "fetching")
            known = [
                known[at]
                + await read_until(
                    reader, known[at][-1], lambda seen, told=told: _progress(seen) == told
                )
                for at, reader in enumerate(readers)
            ]
        expected = (
            ("c1", Running("line 6\nline 7\n", "p1")),
            ("c2", Running(progress=(7.0, 8.0, "fetching"))),
        )
        assert [each[-1].running for each in known] == [expected, expected]
        for cut in known[0]:
            for replica in (a, b):
                resumed = replica.subscribe(chat_id, cut.cursor)
                end = await read_until(resumed, cut, lambda seen: seen.seq == known[0][-1].seq)
                resumed.cancel()
                assert end[-1].running == expected
        await ended(a, chat_id, episode)
        for at, reader in enumerate(readers):
            end = await read_until(reader, known[at][-1], lambda seen: len(seen.results) == 2)
            assert end[-1].results == ('{"ok":1}', '{"ok":2}')
            shown = [seen.running for seen in end if seen.seq]
            assert dict(shown[-1])["c1"].result in ('{"ok":1}', "")
            last = await read_until(reader, end[-1], lambda seen: seen.seq == 0)
            assert last[-1].running == ()


def _progress(seen: Seen) -> object:
    return dict(seen.running).get("c2", Running()).progress


async def ended(replica: Replica, chat_id: ChatId, episode: Episode) -> None:
    """Show and commit the results of both calls."""
    results = tuple(
        ToolResult(call.tool_call_id, call.tool_name, f'{{"ok":{number}}}', ToolOutcome.DONE)
        for number, call in enumerate((BUILD, FETCH), start=1)
    )
    for place, result in enumerate(results):
        episode.add(Role.TOOL, place, result)
    state = await replica.chats.state(chat_id)
    state = await replica.do(chat_id, RecordResult(fence_of(state), results[0]))
    await replica.do(chat_id, CommitResults(fence_of(state), results))


async def test_after_a_takeover_readers_discard_what_the_dead_owner_showed(town: Town) -> None:
    async with asyncio.timeout(60), replica_in(town, "b") as b:
        async with replica_in(town, "a") as a:
            chat_id = await a.create()
            reader = b.subscribe(chat_id)
            _, progress = await calling(a, chat_id)
            progress.report("c1", "half a bui")
            seen = await read_until(
                reader, Seen(), lambda seen: dict(seen.running) == {"c1": Running("half a bui")}
            )
        await town.pool.execute("DELETE FROM chat.workers WHERE id = $1", a.worker_id)
        taken = await b.take_over(chat_id)
        again = LiveProgress(taken.pending, (await b.episode(chat_id)).add)
        again.report("c1", CallProcess("p1"))
        again.report("c1", "half a build\n")
        expected = (("c1", Running("half a build\n", "p1")),)
        end = await read_until(reader, seen[-1], lambda seen: seen.running == expected)
    assert () in [each.running for each in end]


async def test_readers_see_what_a_process_in_quarantine_shows_and_gateways_do_not_call_it(
    town: Town,
) -> None:
    quarantine = replica_in(town, "q", is_quarantine=True)
    async with asyncio.timeout(60), replica_in(town, "a") as a, quarantine as q:
        chat_id = await q.create()
        reader = a.subscribe(chat_id)
        _, progress = await calling(q, chat_id)
        await a.until_followed(chat_id)
        progress.report("c1", "line\n")
        known = await read_until(reader, Seen(), lambda seen: dict(seen.running).get("c1"))
        assert dict(known[-1].running)["c1"] == Running("line\n")
        watched = await a.streams.WatchReplicas(api.WatchReplicasRequest()).read()
        assert [each.worker_id for each in watched.replicas] == [a.worker_id]
