"""The origin of messages, from their senders to their readers; no request has a field for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.errors import ERRORS
from chatd.goals.domain.goal import Goal, GoalState
from chatd.goals.rpc.actions import OwnerActions as GoalActions
from chatd.monitors.domain.monitor import Monitor
from chatd.monitors.rpc.actions import OwnerActions as MonitorActions
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.schedules.domain.schedule import MissedRuns, Schedule, ScheduleState, Task, Timing
from chatd.schedules.rpc.sending import ChatSender
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from parley.identity import Caller, Role, User, UserId
from parley.rpc import serving
from support.chatd.chats.chat_people import ANN_ID, text
from support.chatd.chats.served_chats import ServedChats

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ANN = Owner(ANN_ID, "member")
NO_PROCESSES: Any = None
NO_CONTEXT: Any = None
PERSON = message_pb2.MESSAGE_ORIGIN_PERSON
SCHEDULED = message_pb2.MESSAGE_ORIGIN_SCHEDULE
TOKEN = Caller(
    service=None,
    user=User(UserId(ANN_ID), Role.MEMBER),
    scopes=frozenset({"chat:write"}),
    token_id="t",
    name="builds",
)


def goal_of(chat_id: str) -> Goal:
    return Goal(
        id="9a",
        chat_id=ChatId(chat_id),
        owner=ANN,
        text="Mend the tests.",
        check_command="make test",
        turns_max=3,
        seconds_max=60,
        cost_max_micros=1,
        state=GoalState.ACTIVE,
        created_at=NOON,
    )


def monitor_of(chat_id: str) -> Monitor:
    return Monitor(
        id="9a",
        chat_id=ChatId(chat_id),
        owner=ANN,
        process_id="p1",
        command="npm run dev",
        pattern="listening",
        note="",
        cursor=4,
        created_at=NOON,
        expires_at=NOON + timedelta(hours=1),
    )


def schedule_of(chat_id: str) -> Schedule:
    return Schedule(
        id="9a",
        owner=ANN,
        name="Every night",
        timing=Timing(cron="0 0 1 1 *"),
        task=Task("Look.", chat_id),
        missed_runs=MissedRuns.SKIP,
        ends_at=None,
        runs_max=0,
        state=ScheduleState.ACTIVE,
        next_run_at=NOON,
        created_at=NOON,
    )


async def origins(served: ServedChats, chat_id: str) -> list[str]:
    """Return the origins of a history and its queue, in order."""
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat_id, limit=200))
    numbers = [message.origin for message in reversed(page.messages)]
    numbers += [queued.origin for queued in page.queued_messages]
    prefix = "MESSAGE_ORIGIN_"
    return [message_pb2.MessageOrigin.Name(each).removeprefix(prefix).lower() for each in numbers]


async def test_each_sender_is_the_origin_of_its_messages(served: ServedChats) -> None:
    chat, calls = await served.ann.create(), OwnerCalls(ERRORS)
    await served.finish(chat.id, "hi")
    request = api.SendMessageRequest(request_id="p", chat_id=chat.id, content=[text("Build.")])
    with serving(TOKEN, method="parley.api.chat.v1.ChatService/SendMessage", timeout_s=10):
        await served.chat_servicer.SendMessage(request, NO_CONTEXT)
    goals = GoalActions(served.chat_servicer, NO_PROCESSES, calls)
    await goals.send(goal_of(chat.id), "Mend the tests.", "g")
    monitors = MonitorActions(served.chat_servicer, NO_PROCESSES, calls)
    await monitors.wake(monitor_of(chat.id), "Woken.", "m")
    sender = ChatSender(served.chat_servicer, calls)
    await sender.send(schedule_of(chat.id), "s")
    made = await sender.send(schedule_of(""), "c")

    sent = ["person", "unspecified", "program", "goal", "monitor", "schedule"]
    assert await origins(served, chat.id) == sent
    assert await origins(served, made) == ["schedule"]

    for _ in range(4):
        await served.finish(chat.id, "fine")
    others = [each for each in await origins(served, chat.id) if each != "unspecified"]
    assert others == ["person", "program", "goal", "monitor", "schedule"]


async def test_a_queued_message_with_another_text_has_the_origin_of_its_author(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    sender = ChatSender(served.chat_servicer, OwnerCalls(ERRORS))
    await sender.send(schedule_of(chat.id), "s")
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id, limit=1))
    (queued,) = page.queued_messages
    change = api.UpdateQueuedMessageRequest(chat_id=chat.id, queued_message_id=queued.id)
    change.request_id, change.place = "moved", 1
    moved = await served.ann.ask(change)
    change.request_id = "worded"
    change.content.add().text.text = "Look well."
    worded = await served.ann.ask(change)

    assert [each.origin for each in moved.queued_messages] == [SCHEDULED]
    assert [each.origin for each in worded.queued_messages] == [PERSON]


async def test_an_edit_is_a_message_of_who_edits_and_a_fork_keeps_the_origins(
    served: ServedChats,
) -> None:
    sender = ChatSender(served.chat_servicer, OwnerCalls(ERRORS))
    chat_id = await sender.send(schedule_of(""), "s")
    await served.finish(chat_id, "hi")
    forking = api.ForkChatRequest(request_id="f", chat_id=chat_id)
    fork = (await served.ann.ask(forking)).chat
    edit = api.EditMessageRequest(request_id="e", chat_id=chat_id, message_id=1)
    edit.content.add().text.text = "Look well."
    edited = await served.ann.ask(edit)

    assert await origins(served, fork.id) == ["schedule", "unspecified"]
    assert edited.message.origin == PERSON


async def test_exports_have_the_origin(served: ServedChats) -> None:
    sender = ChatSender(served.chat_servicer, OwnerCalls(ERRORS))
    chat_id = await sender.send(schedule_of(""), "s")
    pieces = await served.ann.export(chat_id)
    exported = [piece.message.origin for piece in pieces if piece.HasField("message")]
    assert exported == [SCHEDULED]
