"""Edits of schedules over gRPC, beside runs that are claimed or sent."""

import asyncio
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.errors import ERRORS
from chatd.schedules.engine.running import CLAIM_FOR
from chatd.schedules.rpc.sending import ChatSender
from chatd.schedules.store.due_runs import PostgresDueRuns
from parley.api.chat.v1 import schedule_pb2
from parley.api.chat.v1 import schedule_service_pb2 as api
from support.chatd.chats.served_chats import ServedChats

CHANGE_VERSION = "UPDATE chat.schedules SET version = version + 1"
END_CLAIMS = "UPDATE chat.schedules SET claimed_until = clock_timestamp() - interval '1 second'"
SELECT_IS_BLOCKED = """
    SELECT EXISTS (SELECT 1 FROM pg_locks
        WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))
"""
MAKE_DUE = """
    UPDATE chat.schedules SET claimed_until = NULL,
        next_run_at = date_trunc('second', clock_timestamp())
"""


async def made(served: ServedChats) -> Any:
    schedule = schedule_pb2.Schedule(text="Look.", cron="0 9 * * *")
    request = api.CreateScheduleRequest(request_id=served.ann.fresh(), schedule=schedule)
    return (await served.ann.ask(request)).schedule


def edit(served: ServedChats, schedule_id: str, etag: str = "", **given: Any) -> Any:
    return api.UpdateScheduleRequest(
        request_id=served.ann.fresh(),
        schedule=schedule_pb2.Schedule(id=schedule_id, etag=etag, **given),
        update_mask=FieldMask(paths=sorted(given)),
    )


async def test_the_fields_of_a_mask_change_unless_somebody_was_first(served: ServedChats) -> None:
    before = await made(served)
    changing = edit(served, before.id, before.etag, text="Listen.", runs_max=3)
    after = (await served.ann.ask(changing)).schedule
    assert (after.text, after.runs_max, after.cron) == ("Listen.", 3, "0 9 * * *")
    assert after.next_run_at == before.next_run_at
    assert after.etag != before.etag
    stale = edit(served, before.id, before.etag, text="Shout.")
    assert (await served.ann.refusal(stale)).reason == "VERSION_CONFLICT"
    pausing = api.PauseScheduleRequest(request_id="p", schedule_id=before.id)
    halted = (await served.ann.ask(pausing)).schedule
    assert halted.etag != after.etag
    still = (await served.ann.ask(edit(served, before.id, name="ears"))).schedule
    assert (still.state, still.name) == (schedule_pb2.SCHEDULE_STATE_PAUSED, "ears")


async def test_bad_edits_and_those_of_others_are_refused(served: ServedChats) -> None:
    before = await made(served)
    refused = await served.bob.refusal(edit(served, before.id, text="Shout."))
    assert refused.reason == "RESOURCE_NOT_FOUND"
    for request, field in (
        (edit(served, before.id), "update_mask"),
        (edit(served, before.id, text=" "), "schedule.text"),
        (edit(served, before.id, cron="x"), "schedule.cron"),
    ):
        assert (await served.ann.refusal(request)).metadata["field"] == field
    absent = "00000000-0000-0000-0000-00000000dead"
    refused = await served.ann.refusal(edit(served, before.id, chat_id=absent))
    assert refused.reason == "CHAT_NOT_FOUND"


async def test_no_run_is_sent_with_a_definition_that_changed(served: ServedChats) -> None:
    before = await made(served)
    runs = PostgresDueRuns(served.pool)
    await served.pool.execute(MAKE_DUE)
    claimed = await runs.claim(CLAIM_FOR)
    assert claimed is not None
    await served.ann.ask(edit(served, before.id, text="Listen."))
    assert not await runs.begin(claimed)
    again = await runs.claim(CLAIM_FOR)
    assert again is not None
    assert (again.schedule.task.text, again.planned_at) == ("Listen.", claimed.planned_at)
    assert await runs.begin(again)
    refused = await served.ann.refusal(edit(served, before.id, text="Shout."))
    assert "being sent" in refused.message
    sender = ChatSender(served.chat_servicer, OwnerCalls(ERRORS))
    assert await sender.send(again.schedule, "r")


async def test_a_run_that_begins_beside_an_edit_waits_for_it(served: ServedChats) -> None:
    await made(served)
    runs = PostgresDueRuns(served.pool)
    await served.pool.execute(MAKE_DUE)
    claimed = await runs.claim(CLAIM_FOR)
    assert claimed is not None
    async with (
        asyncio.timeout(20),
        asyncio.TaskGroup() as tasks,
        served.pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute(CHANGE_VERSION)
        beginning = tasks.create_task(runs.begin(claimed))
        while not await connection.fetchval(SELECT_IS_BLOCKED) and not beginning.done():
            pass
    assert not beginning.result()


async def test_a_paused_schedule_whose_run_was_cut_off_can_be_edited(served: ServedChats) -> None:
    before = await made(served)
    runs = PostgresDueRuns(served.pool)
    await served.pool.execute(MAKE_DUE)
    claimed = await runs.claim(CLAIM_FOR)
    assert claimed is not None
    assert await runs.begin(claimed)
    await served.ann.ask(api.PauseScheduleRequest(request_id="p", schedule_id=before.id))
    refused = await served.ann.refusal(edit(served, before.id, text="Shout."))
    assert "being sent" in refused.message
    await served.pool.execute(END_CLAIMS)
    edited = await served.ann.ask(edit(served, before.id, text="Shout."))
    assert edited.schedule.text == "Shout."
