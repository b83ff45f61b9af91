"""All chatd die while one of them sends the message of a schedule, goal or monitor: row A34."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psutil
import pytest

from parley.testing.faultpoints import Action
from support.faults.history import Known
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

HELD_S = 60.0
DONE_S = 90.0
#: A claim of a dead process ends by itself after a minute or two.
END_CLAIMS = {
    table: f"UPDATE chat.{table} SET claimed_until = now() WHERE claimed_until > now() RETURNING 1"
    for table in ("schedules", "goals", "monitors")
}
CLAIM_GOALS = """
    UPDATE chat.goals SET claimed_until = now() + interval '1 hour'
    WHERE turns_count = 0 AND chat_id = ANY($1::uuid[]) RETURNING 1
"""
ENDED = {
    "schedules": "SELECT count(*) FROM chat.schedule_runs WHERE outcome = 'completed' "
    "AND chat_id = ANY($1::uuid[])",
    "goals": "SELECT count(*) FROM chat.goals WHERE state = 'reached' "
    "AND chat_id = ANY($1::uuid[])",
    "monitors": "SELECT count(*) FROM chat.monitors WHERE state = 'woken' "
    "AND chat_id = ANY($1::uuid[])",
}
POINTS = (
    pytest.param("SendMessage.before", id="before-commit"),
    pytest.param("SendMessage.after", id="after-commit", marks=pytest.mark.short),
)
SERVE = json.dumps(
    {
        "command": "while [ ! -e go ]; do sleep 0.2; done; echo ready; sleep 600",
        "run_in_background": True,
    }
)


async def asked(lab: FaultLab, method: str, path: str, body: object = None) -> Any:
    status, _, document = await lab.http(method, path, body, lab.unique())
    assert 200 <= status < 300, document
    return document


async def chats_at_rest(fault: Fault, text: str = "repeat after me: @") -> list[str]:
    made = [await fault.create_by_http(each) for each in fault.texts(text)]
    await fault.at_rest()
    return [chat_id for chat_id in made if chat_id is not None]


def expect_message(fault: Fault, chat_id: str, text: str) -> None:
    """Expect a message once, as if a client had been told that it is stored."""
    operation = fault.history.invoke(chat_id, fault.lab.unique(), text)
    fault.history.end(operation, Known.OK)


async def kill_all_at(fault: Fault, point: str, chat_ids: Sequence[str], table: str) -> None:
    """Kill every chatd once messages to all chats stand at a point."""
    lab = fault.lab
    await fault.until_held(point, chat_ids, HELD_S)
    killed = [psutil.Process(each.pid) for each in lab.processes()]
    for process in killed:
        process.kill()
    fault.trial(len(chat_ids))
    lab.points.disarm()
    _, left = await asyncio.to_thread(psutil.wait_procs, killed, timeout=HELD_S)
    assert left == []
    # Before others start, which then find at once what is to be done.
    await lab.query(END_CLAIMS[table])
    await lab.until_whole()


async def until_ended(fault: Fault, table: str, chat_ids: Sequence[str]) -> None:
    async def have_ended() -> bool:
        ((count,),) = await fault.lab.query(ENDED[table], list(chat_ids))
        return bool(count == len(chat_ids))

    await fault.lab.until(have_ended, f"the end of {table}", DONE_S)
    await fault.at_rest()


@pytest.mark.row("A34")
@pytest.mark.parametrize("point", POINTS)
async def test_a34_a_run_of_a_schedule_is_sent_once_though_all_processes_are_killed(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        chat_ids = await chats_at_rest(fault)
        lab.points.arm(point, Action.HOLD, subjects=tuple(chat_ids))
        at = (lab.clock.now() + timedelta(seconds=5)).isoformat().replace("+00:00", "Z")
        for chat_id in chat_ids:
            (text,) = fault.texts("repeat after me: @", 1)
            await asked(lab, "POST", "/schedules", {"text": text, "at": at, "chat_id": chat_id})
            expect_message(fault, chat_id, text)
        await kill_all_at(fault, point, chat_ids, "schedules")
        await until_ended(fault, "schedules", chat_ids)


@pytest.mark.row("A34")
@pytest.mark.parametrize("point", POINTS)
async def test_a34_the_message_of_a_goal_is_sent_once_though_all_processes_are_killed(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        # Their goals are set while they run, and then looked at all at once.
        made = [await fault.create_by_http(each) for each in fault.texts("count to 200, @")]
        chat_ids = [chat_id for chat_id in made if chat_id is not None]
        for chat_id in chat_ids:
            (text,) = fault.texts("repeat after me: @", 1)
            goal = {"text": text, "check_command": "true"}
            await asked(lab, "PUT", f"/chats/{chat_id}/goal", goal)
            expect_message(fault, chat_id, text)
        assert len(await lab.query(CLAIM_GOALS, chat_ids)) == len(chat_ids)
        await fault.at_rest()
        lab.points.arm(point, Action.HOLD, subjects=tuple(chat_ids))
        await lab.query(END_CLAIMS["goals"])
        await kill_all_at(fault, point, chat_ids, "goals")
        await until_ended(fault, "goals", chat_ids)


@pytest.mark.row("A34")
@pytest.mark.parametrize("point", POINTS)
async def test_a34_a_monitor_wakes_its_chat_once_though_all_processes_are_killed(
    lab: FaultLab, point: str
) -> None:
    async for fault in faults(lab):
        chat_ids = await chats_at_rest(fault, f"call: execute {SERVE}")
        client = await lab.client()
        for chat_id in chat_ids:
            (process,) = (await asked(lab, "GET", f"/chats/{chat_id}/processes"))["items"]
            watched = {"process_id": process["id"], "pattern": "^ready$"}
            note = {"note": "repeat after me: woken"}
            call = f"call: monitor_process {json.dumps({**watched, **note})}"
            await fault.send(client, chat_id, call)
        await fault.at_rest()
        lab.points.arm(point, Action.HOLD, subjects=tuple(chat_ids))
        for chat_id in chat_ids:
            (lab.workspace(chat_id) / "files" / "go").touch()
        await kill_all_at(fault, point, chat_ids, "monitors")
        await until_ended(fault, "monitors", chat_ids)
        for chat_id in chat_ids:
            said = [message.text for message in await fault.messages(chat_id)]
            (wake,) = {text for text in said if text.startswith("Woken by a monitor:")}
            expect_message(fault, chat_id, wake)
