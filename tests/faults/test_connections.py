"""Connections to the database that go silent or lose an answer: rows A25 and A26."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.database.fault_proxy import Cut, FaultProxy
from support.faults.lab import ONCE, ChatdProcess, FaultLab
from support.faults.recording_clients import recording
from support.faults.trials import Fault, faults
from support.stack.extra_chatd import extra_chatd, socket_of, through

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Proxied:
    """A chatd whose every connection to the database passes a proxy."""

    process: ChatdProcess
    proxy: FaultProxy


@asynccontextmanager
async def proxied_chatd(lab: FaultLab) -> AsyncIterator[Proxied]:
    home = lab.stack.home
    url = home.database_url_file("chatd").read_text().strip()
    server = socket_of(url)
    with tempfile.TemporaryDirectory(prefix="parley-proxy-") as name:
        directory = Path(name)
        proxy = FaultProxy(server)
        changes = {"CHATD_DATABASE_URL": through(url, directory)}
        async with (
            proxy.listening(directory / server.name),
            extra_chatd(lab, directory, changes) as process,
        ):
            yield Proxied(process, proxy)


@pytest.mark.row("A25")
async def test_a25_a_listener_that_hears_nothing_is_replaced_and_news_arrives_meanwhile(
    lab: FaultLab,
) -> None:
    async with proxied_chatd(lab) as proxied:
        async for fault in faults(lab):
            here = await lab.client(proxied.process.address)
            elsewhere = await lab.client()
            chat_ids = await fault.create_all(here, fault.texts("count to 600, @"))
            await lab.sleep(0.3)
            (listener,) = proxied.proxy.named(" listen")
            listener.is_silent = True
            silent_s = time.monotonic()
            async with asyncio.TaskGroup() as tasks:
                for chat_id in chat_ids:
                    fault.expect(chat_id).may_be_cut = True
                    await elsewhere.interrupt(chat_id)
                    tasks.create_task(note_stop(fault, chat_id))
                fault.trial(len(chat_ids))

            async def is_replaced(silent_s: float = silent_s) -> bool:
                return any(link.opened_s > silent_s for link in proxied.proxy.named(" listen"))

            await lab.until(is_replaced, "another listener", 40)
            lab.row.figures["noticed_s"].append(time.monotonic() - silent_s)
    assert max(lab.row.figures["noticed_s"]) < 20.0


@pytest.mark.row("A25/streams")
async def test_a25_readers_beside_a_listener_that_hears_nothing_miss_nothing(
    lab: FaultLab,
) -> None:
    async with proxied_chatd(lab) as proxied:
        here = await lab.client(proxied.process.address)
        async for fault in faults(lab):
            elsewhere = await lab.client(lab.addresses[0])
            chat_ids = await fault.create_all(elsewhere, fault.texts("count to 20, @"))
            async with recording(fault) as records:
                for chat_id in chat_ids:
                    records.follow_at(here, chat_id)
                await lab.sleep(0.3)
                for listener in proxied.proxy.named(" listen"):
                    listener.is_silent = True
                fault.trial(len(chat_ids))
                for chat_id in chat_ids:
                    for text in fault.texts("repeat after me: @", 2):
                        await fault.send(elsewhere, chat_id, text)
                await fault.at_rest()
                rest_s = time.monotonic()
            last_s = max(followed.events[-1].at_s for followed in records.followed)
            lab.row.figures["told_after_rest_s"].append(max(0.0, last_s - rest_s))
    # The look at all versions comes every five seconds, whoever is told of nothing.
    assert max(lab.row.figures["told_after_rest_s"]) < 10.0


async def note_stop(fault: Fault, chat_id: str) -> None:
    asked_s = time.monotonic()
    await fault.until_all(lambda state: state.is_at_rest, "a stop", 30, [chat_id])
    fault.row.figures["stopped_s"].append(time.monotonic() - asked_s)


@pytest.mark.row("A26")
@pytest.mark.parametrize(
    "where", [Cut.BEFORE, pytest.param(Cut.AFTER, marks=pytest.mark.short)], ids=str
)
@pytest.mark.parametrize("phase", ["send", "result", "answer"])
async def test_a26_a_commit_whose_answer_is_lost_is_neither_doubled_nor_forgotten(
    lab: FaultLab, phase: str, where: Cut
) -> None:
    async with proxied_chatd(lab) as proxied:
        once = await lab.client(proxied.process.address, patience=ONCE)
        client = await lab.client(proxied.process.address)
        async for fault in faults(lab):
            chat_ids = await fault.create_all(client, fault.texts("repeat after me: @"))
            await fault.at_rest()
            for chat_id in chat_ids:
                mark = lab.unique()
                text, seen = said_and_seen(phase, mark)
                proxied.proxy.cut(seen, where)
                key = lab.unique()
                if not await fault.send(once, chat_id, text, key=key):
                    assert await fault.send(client, chat_id, text, key=key)
                fault.trial()
            await fault.at_rest()
            missed = list(proxied.proxy.cuts)
            proxied.proxy.cuts.clear()
            if missed:
                lab.row.problems.append(f"{len(missed)} statements were never seen")


def said_and_seen(phase: str, mark: str) -> tuple[str, str]:
    """Return a message, and what only the statement of that phase carries."""
    match phase:
        case "send":
            return f"count to 3, {mark}", mark
        case "result":
            return f"run: echo {mark} >> runs; echo {mark} | rev", mark[::-1]
        case _:
            return f"repeat after me: {mark}", f'"{mark}"'
