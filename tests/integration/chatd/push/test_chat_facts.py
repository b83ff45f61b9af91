"""What is stored of a chat when its owner is about to be told of a change."""

from dataclasses import replace
from datetime import UTC, datetime

from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.errors import ERRORS
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.push.store.chat_facts import PostgresChatFacts
from chatd.schedules.domain.schedule import MissedRuns, Schedule, ScheduleState, Task, Timing
from chatd.schedules.rpc.sending import ChatSender
from parley.api.chat.v1 import schedule_pb2, schedule_service_pb2
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCHEDULE = Schedule(
    id="9a",
    owner=Owner(ANN_ID, "member"),
    name="Every year",
    timing=Timing(cron="0 0 1 1 *"),
    task=Task("Look."),
    missed_runs=MissedRuns.SKIP,
    ends_at=None,
    runs_max=0,
    state=ScheduleState.ACTIVE,
    next_run_at=NOON,
    created_at=NOON,
)


async def test_a_turn_is_that_of_a_schedule_only_if_the_schedule_sent_its_message(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    made = schedule_pb2.Schedule(text="Look.", cron="0 0 1 1 *", chat_id=chat.id)
    request = schedule_service_pb2.CreateScheduleRequest(request_id="s", schedule=made)
    await served.ann.ask(request)
    sender = ChatSender(served.chat_servicer, OwnerCalls(ERRORS))
    facts, found = PostgresChatFacts(served.pool), []

    async def is_scheduled() -> bool:
        read = await facts.facts(ChatId(chat.id))
        return read is not None and read.is_scheduled

    found.append(await is_scheduled())
    await sender.send(replace(SCHEDULE, task=Task("Look.", chat.id)), "run")
    await served.finish(chat.id)
    found.append(await is_scheduled())
    await served.ann.send(chat.id)
    found.append(await is_scheduled())

    assert found == [False, True, False]
