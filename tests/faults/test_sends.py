"""A message on its way while the process that takes it dies: rows A1, A2 and H26."""

import asyncio

import pytest

from parley.client import Parley
from parley.testing.faultpoints import Action
from support.faults.lab import ONCE, FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow


async def kill_during_sends(lab: FaultLab, fault: Fault, point: str) -> None:
    """Kill a process when all sends stand at `point`, then repeat each with its key."""
    victim = await lab.victim()
    chat_ids = await fault.create_all(
        await lab.client(victim.address), fault.texts("repeat after me: @")
    )
    await fault.at_rest()
    lab.points.arm(point, Action.HOLD, pid=victim.pid)
    once = await lab.client(victim.address, patience=ONCE)
    keyed = {chat_id: (lab.unique(), fault.texts("count to 5, @", 1)[0]) for chat_id in chat_ids}
    async with asyncio.TaskGroup() as tasks:
        sends = [
            tasks.create_task(fault.send(once, chat_id, text, key=key))
            for chat_id, (key, text) in keyed.items()
        ]
        await fault.until_held(point, chat_ids)
        victim.kill()
    fault.trial(len(sends))
    fault.row.counts["told_stored_by_the_dead"] += sum(send.result() for send in sends)
    lab.points.disarm()
    client = await lab.client()
    for chat_id, (key, text) in keyed.items():
        assert await fault.send(client, chat_id, text, key=key)
    for operation in fault.history.operations.values():
        fault.row.counts["replays"] += operation.replays


@pytest.mark.row("A1")
async def test_a1_a_send_cut_before_its_commit_is_stored_once_by_its_repetition(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        await kill_during_sends(lab, fault, "SendMessage.before")
    assert lab.row.counts["replays"] == 0


@pytest.mark.short
@pytest.mark.row("A2")
async def test_a2_a_send_cut_after_its_commit_is_found_again_by_its_repetition(
    lab: FaultLab,
) -> None:
    async for fault in faults(lab):
        await kill_during_sends(lab, fault, "SendMessage.after")
    assert lab.row.counts["replays"] == lab.row.trials


@pytest.mark.row("H26")
@pytest.mark.parametrize("point", ["CreateChat.before", "CreateChat.after"])
async def test_h26_a_create_cut_around_its_commit_makes_one_chat_that_runs(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        victim = await lab.victim()
        lab.points.arm(point, Action.HOLD, pid=victim.pid)
        once = await lab.client(victim.address, patience=ONCE)
        keyed = {lab.unique(): text for text in fault.texts("count to 5, @")}
        async with asyncio.TaskGroup() as tasks:
            for key, text in keyed.items():
                tasks.create_task(fault.create(once, text, key=key))
            await fault.until_many_held(point, len(keyed))
            victim.kill()
        fault.trial(len(keyed))
        lab.points.disarm()
        await create_again(fault, await lab.client(), keyed)


async def create_again(fault: Fault, client: Parley, keyed: dict[str, str]) -> None:
    for key, text in keyed.items():
        chat_id = await fault.create(client, text, key=key)
        assert chat_id is not None
    assert len(fault.chat_ids) == len(keyed)
