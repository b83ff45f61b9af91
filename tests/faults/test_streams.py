"""Readers who stay while something dies: rows A16, H19 and H20, A4 and A19 as readers see them.

Everything that clients send, list and follow is recorded and checked against what is stored.
"""

import asyncio
import time

import psutil
import pytest

from support.faults.history import Known
from support.faults.lab import FaultLab
from support.faults.recording_clients import recording
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

SENT_S_MAX = 60.0


async def until_sent(fault: Fault, chat_id: str, text: str, *, edits: int = 0) -> None:
    """Send a message, or put it in the place of another, as often as it takes, with one key."""
    key, path = fault.lab.unique(), f"/chats/{chat_id}/messages"
    body = {"content": [{"type": "text", "text": text}]}
    operation = fault.history.invoke(chat_id, key, text)

    async def is_sent() -> bool:
        if edits:
            status, *_ = await fault.lab.http("PATCH", f"{path}/{edits}", body, key)
        else:
            status, *_ = await fault.lab.http("POST", path, body, key)
        fault.row.counts[f"http_{status}"] += 1
        return 200 <= status < 300

    await fault.lab.until(is_sent, "a message", SENT_S_MAX)
    fault.history.end(operation, Known.OK)
    if edits:
        fault.history.replace(chat_id, operation)


async def created(fault: Fault, pattern: str) -> list[str]:
    """Create chats through the gateway."""
    made = [await fault.create_by_http(text) for text in fault.texts(pattern)]
    assert None not in made
    return [chat_id for chat_id in made if chat_id is not None]


async def until_shown(fault: Fault, chat_ids: list[str]) -> None:
    """Wait until every chat streams its answer."""

    async def all_stream() -> bool:
        states = await fault.lab.states(chat_ids)
        return all(state.generation_attempt > 0 for state in states.values())

    await fault.lab.until(all_stream, "answers", 30)
    await fault.lab.sleep(0.5)


@pytest.mark.short
@pytest.mark.row("A16")
async def test_a16_clients_of_a_gateway_that_was_killed_resume_without_a_gap_or_repetition(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        async with recording(fault) as records:
            chat_ids = await created(fault, "count to 60, @")
            for chat_id in chat_ids:
                records.follow(chat_id)
            records.keep_listing(chat_ids, session="one")
            records.keep_listing(chat_ids, session="other")
            await until_shown(fault, chat_ids)
            (victim,) = lab.processes("gateway")
            victim.kill()
            killed_s = time.monotonic()
            fault.trial(len(chat_ids))
            async with asyncio.TaskGroup() as tasks:
                for chat_id, text in zip(chat_ids, fault.texts("repeat after me: @"), strict=True):
                    tasks.create_task(until_sent(fault, chat_id, text))
            lab.row.figures["sent_again_s"].append(time.monotonic() - killed_s)
            await fault.at_rest()
            # The first chat is edited from its beginning, so that its readers lose their history.
            (text,) = fault.texts("repeat after me: @", 1)
            await until_sent(fault, chat_ids[0], text, edits=1)
    require_resumed(lab)


@pytest.mark.short
@pytest.mark.row("A4/streams")
async def test_a4_readers_on_other_replicas_see_a_takeover_in_the_middle_of_an_answer(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        others = [each for each in lab.addresses if each != victim.address]
        chat_ids = await fault.create_all(
            await lab.client(victim.address), fault.texts("count to 60, @")
        )
        async with recording(fault) as records:
            for place, chat_id in enumerate(chat_ids):
                records.follow(chat_id)
                records.follow_at(await lab.client(others[place % len(others)]), chat_id)
            records.keep_listing(chat_ids, session="one")
            await until_shown(fault, chat_ids)
            before = await lab.states(chat_ids)
            victim.kill()
            killed_s = time.monotonic()
            fault.trial(len(chat_ids))
            await fault.measure_takeover(before, killed_s)
        shown = {
            event.document["message_part"]["generation_attempt"]
            for followed in records.followed
            for event in followed.events
            if event.kind == "message_part"
        }
        if len(shown) < 2:
            lab.row.problems.append(f"readers saw only the attempts {shown}")


@pytest.mark.row("A19/streams")
async def test_a19_readers_of_every_kind_of_turn_stay_while_one_process_after_another_dies(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        chat_ids = await fault.load(await lab.client())
        async with recording(fault) as records:
            for chat_id in chat_ids:
                records.follow(chat_id)
            records.keep_listing(chat_ids, session="one")
            fault.trial(len(chat_ids))
            for service in ("chatd", "gateway", "chatd"):
                await lab.sleep(0.7)
                # The supervisor may not have seen yet that the one killed before is gone.
                living = [each for each in lab.processes(service) if psutil.pid_exists(each.pid)]
                min(living, key=lambda each: each.pid).kill()
                for text in fault.texts("repeat after me: @", 1):
                    await until_sent(fault, chat_ids[0], text)
            await lab.until_whole()
    counts = lab.row.counts
    assert (counts["stream_gaps"], counts["stream_repeats"], counts["resyncs"]) == (0, 0, 0)


@pytest.mark.row("H20/streams")
async def test_h20_every_turn_is_in_the_lists_and_streams_of_those_who_stayed(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        async with recording(fault) as records:
            chat_ids = await created(fault, "count to 20, @")
            for chat_id in chat_ids:
                records.follow(chat_id)
            records.keep_listing(chat_ids, session="one")
            for turn in range(9):
                async with asyncio.TaskGroup() as tasks:
                    texts = fault.texts("repeat after me: @", len(chat_ids))
                    for chat_id, text in zip(chat_ids, texts, strict=True):
                        tasks.create_task(until_sent(fault, chat_id, text))
                if turn == 4:
                    (await lab.victim()).kill()
                    fault.trial(len(chat_ids))
        for chat_id in chat_ids:
            users = [each for each in await fault.messages(chat_id) if each.role == "user"]
            if len(users) != 10:
                lab.row.problems.append(f"{chat_id}: {len(users)} turns of 10")


@pytest.mark.short
@pytest.mark.row("H19")
async def test_h19_an_answer_is_whole_however_its_readers_switch_between_chats(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        async with recording(fault) as records:
            # Nobody ever looks at the last one.
            *chat_ids, _ = await created(fault, "count to 40, @")
            visits = {chat_id: records.follow(chat_id, reader="again") for chat_id in chat_ids}
            for chat_id in chat_ids:
                records.leave(visits[chat_id])
            fault.trial(fault.size)
            for _ in range(6):
                for visited in visits.values():
                    records.come_back(visited)
                    await lab.sleep(0.4 / len(visits))
                    records.leave(visited)
            for chat_id, visited in visits.items():
                records.come_back(visited)
                records.follow(chat_id, reader="late")


def require_resumed(lab: FaultLab) -> None:
    """Require that streams were really cut, and went on without a word of beginning anew."""
    counts = lab.row.counts
    assert counts["stream_openings"] > lab.row.trials
    assert (counts["stream_gaps"], counts["stream_repeats"], counts["resyncs"]) == (0, 0, 0)
