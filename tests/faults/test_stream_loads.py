"""Many readers, and readers that misbehave: rows F1 to F4, F6, H8 and H9."""

import asyncio
import re
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from itertools import islice

import psutil
import pytest

from parley.client import Parley
from parley.testing.faultpoints import Action
from support.faults.lab import FaultLab
from support.faults.recording_clients import BROKEN, http_client
from support.faults.report import spread
from support.faults.trials import Fault, faults
from support.net.http_client import EventReader, HttpClient, SentEvent
from support.net.odd_sockets import RawStream

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
RELEASED_S_MAX = 45.0
#: What a process may grow by for other reasons than streams: buffers, caches, the allocator.
SLACK_BYTES = 24 * MIB
READERS_AT_ONCE = 50
GATEWAY_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'parley_gateway'"
#: The pool's, one that listens, and one to spare for what replaces another.
GATEWAY_CONNECTIONS_MAX = 12
LONG = "repeat after me: @ " + "x" * 150_000


def gateway_of(lab: FaultLab) -> psutil.Process:
    (process,) = lab.processes("gateway")
    return psutil.Process(process.pid)


def open_streams(lab: FaultLab) -> int:
    """Return how many streams the gateway says are open."""
    with urllib.request.urlopen(
        f"http://{lab.stack.environment['GATEWAY_METRICS_LISTEN']}/metrics"
    ) as answer:
        lines = answer.read().decode().splitlines()
    (count,) = [line.split()[-1] for line in lines if line.startswith("gateway_streams_open")]
    return int(float(count))


async def until_all_left(lab: FaultLab, before: int, within_s: float) -> float:
    """Wait until the gateway has as few streams as before; return how long that took."""
    began_s = time.monotonic()

    async def all_left() -> bool:
        return open_streams(lab) <= before

    await lab.until(all_left, f"the end of all but {before} streams", within_s)
    return time.monotonic() - began_s


async def none_wait(lab: FaultLab) -> bool:
    """Return whether the gateway closed all connections whose other side is closed."""
    connections = gateway_of(lab).net_connections("tcp")
    return all(each.status != "CLOSE_WAIT" for each in connections)


async def quiet_chat(lab: FaultLab, fault: Fault) -> str:
    chat_id = await fault.create_by_http(fault.texts("repeat after me: @", 1)[0])
    assert chat_id is not None
    await fault.at_rest()
    return chat_id


def events_path(chat_id: str) -> str:
    return f"/api/v1/chats/{chat_id}/events"


def raw_stream(lab: FaultLab, chat_id: str) -> RawStream:
    key = lab.stack.home.api_key_file.read_text().strip()
    headers = {"Host": lab.stack.http, "Authorization": f"Bearer {key}"}
    return RawStream.open(int(lab.stack.http.rpartition(":")[2]), events_path(chat_id), headers)


class Healthy:
    """A reader that reads, and notes when each event came."""

    def __init__(self) -> None:
        self.arrived: dict[str, float] = {}
        #: How many events had come at the end of each turn.
        self.ends: list[int] = []

    async def read(self, stream: EventReader) -> None:
        """Read until cancelled."""
        while True:
            event = await stream.event()
            assert event is not None
            assert event.event != "resync"
            self.arrived[event.id or ""] = time.monotonic()
            if event.event == "status" and event.data["status"]["status"] == "waiting":
                self.ends.append(len(self.arrived))

    def arrived_within(self, turns: int) -> dict[str, float]:
        """Return when each event came until these turns had ended; others may be on their way."""
        return dict(islice(self.arrived.items(), self.ends[turns - 1]))


async def healthy_lags_ms(
    lab: FaultLab, fault: Fault, chat_id: str, texts: Sequence[str]
) -> list[float]:
    """Send messages, and return how much later than the first reader others got each event."""
    readers = [Healthy() for _ in range(20)]
    async with AsyncExitStack() as around, asyncio.TaskGroup() as tasks:
        client = http_client(lab)
        reading = [
            tasks.create_task(
                reader.read(await around.enter_async_context(client.stream(events_path(chat_id))))
            )
            for reader in readers
        ]
        for number in range(1 + len(texts)):

            async def all_have(number: int = number) -> bool:
                return all(len(reader.ends) > number for reader in readers)

            await lab.until(all_have, "the end of a turn", 30)
            if number < len(texts):
                assert await fault.send_by_http(chat_id, texts[number], lab.unique()) < 300
        for task in reading:
            task.cancel()
    return lags_ms(lab, chat_id, [reader.arrived_within(1 + len(texts)) for reader in readers])


def lags_ms(lab: FaultLab, chat_id: str, readers: Sequence[Mapping[str, float]]) -> list[float]:
    """Return how much later than the first reader each one got each event that all of them got."""
    shared = set.intersection(*map(set, readers))
    if differing := [sorted(set(arrived) - shared) for arrived in readers if set(arrived) - shared]:
        lab.row.problems.append(f"{chat_id}: readers got different events: {differing}")
    return [
        (arrived[cursor] - min(each[cursor] for each in readers)) * 1000
        for arrived in readers
        for cursor in shared
    ]


@pytest.mark.short
@pytest.mark.row("F1")
async def test_f1_readers_that_never_read_delay_nobody_and_cost_little(lab: FaultLab) -> None:
    count = 100 if lab.is_full else 20
    async for fault in faults(lab):
        chat_id, process = await quiet_chat(lab, fault), gateway_of(lab)
        texts = fault.texts(LONG, 8)
        alone_ms = spread(await healthy_lags_ms(lab, fault, chat_id, texts[:2]))["p99"]
        before, rss_bytes = open_streams(lab), process.memory_info().rss
        stalled = [raw_stream(lab, chat_id) for _ in range(count)]
        fault.trial(count)
        try:
            beside_ms = spread(await healthy_lags_ms(lab, fault, chat_id, texts[2:]))["p99"]
            grown = process.memory_info().rss - rss_bytes
            lab.row.figures["p99_ratio"].append(beside_ms / alone_ms)
            lab.row.figures["grown_mib_per_reader"].append(grown / MIB / count)
            if grown > count * MIB + SLACK_BYTES:
                lab.row.problems.append(f"{count} readers that read nothing cost {grown} bytes")
            if lab.is_full:
                # They take nothing, though they still acknowledge what they do not take.
                released_s = await until_all_left(lab, before, RELEASED_S_MAX)
                lab.row.figures["released_s"].append(released_s)
        finally:
            for each in stalled:
                each.close()


async def visit(client: HttpClient, path: str) -> bool:
    """Open a stream, see it begin, and leave."""
    try:
        async with asyncio.timeout(20), client.stream(path) as stream:
            return stream.reply.status == 200 and await stream.frame() is not None
    except BROKEN:
        return False


async def visit_for(client: HttpClient, path: str, until_s: float) -> tuple[int, int]:
    """Come and go until it is time; return how often that went well, and how often not."""
    came = refused = 0
    while time.monotonic() < until_s:
        is_well = await visit(client, path)
        came, refused = came + is_well, refused + (not is_well)
    return came, refused


async def crowd(lab: FaultLab, path: str, seconds: float) -> int:
    """Let many come and go; return how many came."""
    client, until_s = http_client(lab), time.monotonic() + seconds
    async with asyncio.TaskGroup() as tasks:
        visitors = [
            tasks.create_task(visit_for(client, path, until_s)) for _ in range(READERS_AT_ONCE)
        ]
    came = sum(each.result()[0] for each in visitors)
    refused = sum(each.result()[1] for each in visitors)
    if refused:
        lab.row.problems.append(f"{refused} of {came + refused} streams did not begin")
    return came


async def files_of(lab: FaultLab, process: psutil.Process) -> int:
    """Count the descriptors of a gateway, save its connections to the database.

    Their pool grows when many ask at once, up to its limit, and the database counts them.
    """
    ((connections,),) = await lab.query(GATEWAY_CONNECTIONS)
    if connections > GATEWAY_CONNECTIONS_MAX:
        lab.row.problems.append(f"the gateway has {connections} connections to the database")
    return process.num_fds() - int(connections)


async def has_closed(lab: FaultLab, process: psutil.Process, files_max: int) -> bool:
    """Return whether nothing is left; a socket is closed a moment after its stream has left."""
    return await files_of(lab, process) <= files_max


@pytest.mark.short
@pytest.mark.row("F2")
async def test_f2_readers_that_come_and_go_leave_nothing_behind(lab: FaultLab) -> None:
    seconds = 60.0 if lab.is_full else 2.0
    async for fault in faults(lab):
        path, process = events_path(await quiet_chat(lab, fault)), gateway_of(lab)
        before = open_streams(lab)
        await crowd(lab, path, seconds / 2)
        await until_all_left(lab, before, 10)
        rss_bytes, files = process.memory_info().rss, await files_of(lab, process)
        came = await crowd(lab, path, seconds)
        fault.trial(came)
        lab.row.figures["came_per_s"].append(came / seconds)
        lab.row.figures["left_s"].append(await until_all_left(lab, before, 10))
        grown = process.memory_info().rss - rss_bytes
        lab.row.figures["grown_bytes_each"].append(grown / came)
        if grown > SLACK_BYTES:
            lab.row.problems.append(f"{came} streams that came and went cost {grown} bytes")
        await lab.until(partial(has_closed, lab, process, files), "closed descriptors", 10)


async def cancel_streams(client: Parley, chat_id: str, count: int) -> None:
    """Follow a chat and leave in the middle, so often, several at a time."""

    async def cancel_some() -> None:
        for _ in range(count // 10):
            events = client.follow(chat_id)
            await anext(events)
            await events.aclose()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(10):
            tasks.create_task(cancel_some())


@pytest.mark.short
@pytest.mark.row("F3")
async def test_f3_cancelled_streams_of_internal_callers_cost_next_to_nothing(
    lab: FaultLab,
) -> None:
    count = 100_000 if lab.is_full else 1000
    async for fault in faults(lab):
        (address, *_) = lab.addresses
        client, process = await lab.client(address), psutil.Process(lab.process_at(address).pid)
        chat_id = await quiet_chat(lab, fault)
        # What the first ones cost is kept and used again.
        await cancel_streams(client, chat_id, count // 4)
        rss_bytes = process.memory_info().rss
        await cancel_streams(client, chat_id, count)
        fault.trial(count)
        grown = process.memory_info().rss - rss_bytes
        lab.row.figures["bytes_per_stream"].append(grown / count)
        if grown > max(8 * MIB, count * 200):
            lab.row.problems.append(f"{count} cancelled streams cost {grown} bytes")


async def events_until(stream: EventReader, last_id: str) -> list[SentEvent]:
    found: list[SentEvent] = []
    while not found or found[-1].id != last_id:
        event = await stream.event()
        assert event is not None
        found.append(event)
    return found


def counts_to(event: SentEvent, number: int) -> bool:
    """Return whether a piece of an answer ends with a number; a busy process joins pieces."""
    return re.search(rf"\b{number} ['\"]", str(event.data)) is not None


@pytest.mark.short
@pytest.mark.row("F4")
async def test_f4_a_stream_resumed_at_any_id_of_a_chat_gives_exactly_the_rest(
    lab: FaultLab,
) -> None:
    last = 500 if lab.is_full else 60
    async for fault in faults(lab):
        lab.points.arm("FinishTurn.before", Action.HOLD)
        (text,) = fault.texts(f"count to {last}, @", 1)
        chat_id = await fault.create_by_http(text)
        assert chat_id is not None
        client, path = http_client(lab), events_path(chat_id)
        await fault.until_held("FinishTurn.before", [chat_id], last * 0.05 + 30)
        async with asyncio.timeout(60), client.stream(path) as stream:
            events: list[SentEvent] = []
            while not events or not counts_to(events[-1], last):
                event = await stream.event()
                assert event is not None
                events.append(event)
        for place, event in enumerate(events[:-1]):
            headers = {"Last-Event-ID": event.id or ""}
            async with asyncio.timeout(20), client.stream(path, headers) as stream:
                rest = await events_until(stream, events[-1].id or "")
            if rest != events[place + 1 :]:
                lab.row.problems.append(f"{chat_id}: behind {event.id} came {rest!r:.300}")
        fault.trial(len(events))
        lab.points.disarm()


@asynccontextmanager
async def kept_busy(fault: Fault, chat_id: str) -> AsyncIterator[None]:
    """Let a chat say something all the time, so that there is something to send."""

    async def talk() -> None:
        while True:
            await fault.send_by_http(
                chat_id, fault.texts("count to 20, @", 1)[0], fault.lab.unique()
            )
            await fault.at_rest()

    async with asyncio.TaskGroup() as tasks:
        talking = tasks.create_task(talk())
        yield
        talking.cancel()


def is_connected(process: psutil.Process, port: int) -> bool:
    """Return whether a process still has a connection to a client's port."""
    connections = process.net_connections("tcp")
    return any(getattr(each.raddr, "port", 0) == port for each in connections)


@pytest.mark.row("F6")
@pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
async def test_f6_a_client_that_vanished_without_a_word_is_released_in_time(
    lab: FaultLab, is_busy: bool
) -> None:
    async for fault in faults(lab):
        chat_id, process = await quiet_chat(lab, fault), gateway_of(lab)
        async with AsyncExitStack() as around:
            vanished = [
                around.enter_context(closing(raw_stream(lab, chat_id)))
                for _ in range(lab.trials_wanted)
            ]
            for each in vanished:
                each.read_all()
            if is_busy:
                await around.enter_async_context(kept_busy(fault, chat_id))
            for each in vanished:
                each.go_deaf()
            ports = [each.port for each in vanished]
            fault.trial(len(ports))
            gone_s = time.monotonic()

            async def all_released(
                process: psutil.Process = process, ports: list[int] = ports
            ) -> bool:
                return not any(is_connected(process, port) for port in ports)

            await lab.until(all_released, "release", 60)
            lab.row.figures["released_s"].append(time.monotonic() - gone_s)
    assert max(lab.row.figures["released_s"]) < RELEASED_S_MAX


@pytest.mark.short
@pytest.mark.row("H8")
async def test_h8_clients_that_closed_their_side_are_let_go_at_once(lab: FaultLab) -> None:
    async for fault in faults(lab):
        chat_id, before = await quiet_chat(lab, fault), open_streams(lab)
        closed = [raw_stream(lab, chat_id) for _ in range(20)]
        fault.trial(len(closed))
        try:
            for each in closed:
                each.half_close()
            lab.row.figures["released_s"].append(await until_all_left(lab, before, 10))
        finally:
            for each in closed:
                each.close()
        await lab.until(lambda: none_wait(lab), "the end of connections that clients closed", 5)


@pytest.mark.short
@pytest.mark.row("H9")
async def test_h9_all_clients_may_leave_at_once(lab: FaultLab) -> None:
    count = 2000 if lab.is_full else 200
    async for fault in faults(lab):
        process, before = gateway_of(lab), open_streams(lab)
        chat_ids = [await fault.create_by_http(text) for text in fault.texts("count to 60, @")]
        rss_bytes = process.memory_info().rss
        streams = [raw_stream(lab, str(chat_ids[place % len(chat_ids)])) for place in range(count)]
        for each in streams:
            each.close()
        fault.trial(count)
        lab.row.figures["left_s"].append(await until_all_left(lab, before, 20))
        peak = process.memory_info().rss - rss_bytes
        lab.row.figures["grown_mib"].append(peak / MIB)
        if peak > count * 0.1 * MIB + SLACK_BYTES:
            lab.row.problems.append(f"{count} readers that left cost {peak} bytes")
        assert await visit(http_client(lab), events_path(str(chat_ids[0])))
