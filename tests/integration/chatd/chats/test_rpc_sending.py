import asyncio
import uuid

import pytest

from chatd.chats.domain.chat import Claimed
from chatd.primitives.domain.ids import ChatId, Owner
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, text
from support.chatd.chats.served_chats import WORKER, ServedChats
from support.chatd.workspaces.stored_workspaces import HASH, LIMITS
from support.chatd.workspaces.workspace_values import WORKSPACE, workspace

ANN = Owner(ANN_ID, "member")
INSERT_FILE = "INSERT INTO chat.files VALUES ($1, $2, 'notes.txt', 'text/plain', '', 'x', now())"


def file(file_id: str) -> message_pb2.Part:
    lie = message_pb2.FilePart(file_id=file_id, media_type="image/png", name="lie")
    return message_pb2.Part(file=lie)


async def test_a_created_chat_runs_here_with_everything_it_was_given(served: ServedChats) -> None:
    await served.catalogue.store.add(workspace(), HASH, LIMITS)
    served.servers.enabled.add(BOB_ID)
    request = api.CreateChatRequest(
        request_id="r1",
        content=[text("say something about the sea please, at length")],
        model_id="m1",
        reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH,
        mode=chat_pb2.CHAT_MODE_PLAN,
        workspace_id=WORKSPACE,
        mcp_server_ids=[BOB_ID],
        labels={"team/a": "x"},
        client_tools=[chat_pb2.ClientTool(name="ask", description="asks", input_schema_json="{}")],
    )
    answer = await served.ann.ask(request)
    chat_id = str(uuid.uuid5(uuid.UUID(ANN_ID), "r1"))
    chat = answer.chat
    assert chat == chat_pb2.Chat(
        id=chat_id,
        owner_id=ANN_ID,
        title="say something about the sea please,…",
        status=chat_pb2.CHAT_STATUS_RUNNING,
        versions=chat_pb2.Versions(snapshot=1, history=1, generation_attempt=1),
        root_chat_id=chat_id,
        model_id="m1",
        reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH,
        mode=chat_pb2.CHAT_MODE_PLAN,
        workspace_id=WORKSPACE,
        mcp_server_ids=[BOB_ID],
        labels={"team/a": "x"},
        client_tools=request.client_tools,
        created_at=chat.created_at,
        updated_at=chat.created_at,
        etag=chat.etag,
    )
    assert chat.etag.startswith("1-")
    assert answer.message == message_pb2.Message(
        id=1,
        chat_id=chat_id,
        role=message_pb2.ROLE_USER,
        content=request.content,
        revision=1,
        created_by=ANN_ID,
        model_id="m1",
        created_at=chat.created_at,
        origin=message_pb2.MESSAGE_ORIGIN_PERSON,
    )
    state = await served.state(chat_id)
    assert served.claims.started == [Claimed(state, ANN)]
    assert state.worker_id == WORKER


async def test_more_instructions_are_kept_for_the_model_only(served: ServedChats) -> None:
    chat = await served.ann.create(system_prompt="be brief")
    history = await served.stores.chats.history(ChatId(chat.id))
    assert [(each.id, each.role, each.visibility) for each in history] == [
        (1, "system", "model"),
        (2, "user", "both"),
    ]
    assert await served.ann.texts(chat.id) == ["hello"]
    assert (await served.state(chat.id)).turn_id == 2


async def test_without_a_slot_a_chat_waits_in_line(served: ServedChats) -> None:
    served.claims.free = 0
    chats = [await served.ann.create() for _ in range(2)]
    assert served.claims.started == []
    assert [(await served.ann.get(each.id)).place_in_line for each in chats] == [1, 2]


async def test_a_worker_without_a_lease_claims_nothing_and_gets_its_slot_back(
    served: ServedChats,
) -> None:
    await served.pool.execute("UPDATE chat.workers SET is_draining = true")
    free = served.claims.free
    chat = await served.ann.create()
    assert (served.claims.free, served.claims.started) == (free, [])
    assert (await served.state(chat.id)).worker_id is None


async def test_twenty_equal_creates_at_once_make_one_chat(served: ServedChats) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(served.ann.create("hello", request_id="same")) for _ in range(20)
        ]
    assert {task.result().id for task in tasks} == {str(uuid.uuid5(uuid.UUID(ANN_ID), "same"))}
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chats") == 1
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chat_messages") == 1
    assert len(served.claims.started) == 1


async def test_twenty_equal_sends_at_once_make_one_message(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(served.ann.send(chat.id, "again", request_id="same"))
            for _ in range(20)
        ]
    answers = [task.result() for task in tasks]
    assert {answer.message.id for answer in answers} == {3}
    assert sorted(answer.replayed for answer in answers) == [False] + [True] * 19
    assert await served.ann.texts(chat.id) == ["hello", "fine", "again"]
    assert len(served.claims.started) == 2


async def test_a_repeated_send_is_answered_as_the_first_time_whatever_happened_since(
    served: ServedChats,
) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    first = await served.ann.send(chat.id, "again", request_id="same")
    edit = api.EditMessageRequest(
        request_id="e", chat_id=chat.id, message_id=1, content=[text("other")]
    )
    await served.ann.ask(edit)
    await served.finish(chat.id)
    await served.ann.ask(api.SetArchivedRequest(request_id="a", chat_id=chat.id, archived=True))
    again = await served.ann.send(chat.id, "again", request_id="same")
    assert again.replayed
    # Only its revision tells that it was edited away.
    first.message.revision = again.message.revision
    assert again.message == first.message
    assert await served.ann.texts(chat.id) == ["other", "fine"]


async def test_a_repeated_send_that_waited_is_answered_as_waiting(served: ServedChats) -> None:
    chat = await served.ann.create()
    first = await served.ann.send(chat.id, "later", request_id="same")
    await served.finish(chat.id)
    again = await served.ann.send(chat.id, "later", request_id="same")
    assert not first.replayed
    assert again.replayed
    assert again.queued_message == first.queued_message
    assert not again.HasField("message")
    assert await served.ann.texts(chat.id) == ["hello", "fine", "later"]


@pytest.mark.parametrize("said", ["other", "hello"])
async def test_a_request_id_with_another_body_or_method_is_refused(
    served: ServedChats, said: str
) -> None:
    chat = await served.ann.create("hello", request_id="same")
    other = api.CreateChatRequest(request_id="same", content=[text("other")])
    assert (await served.ann.refusal(other)).reason == "REQUEST_ID_REUSED"
    send = api.SendMessageRequest(request_id="same", chat_id=chat.id, content=[text(said)])
    problem = await served.ann.refusal(send)
    assert (problem.reason, problem.metadata) == ("REQUEST_ID_REUSED", {"request_id": "same"})


async def test_a_message_to_a_waiting_chat_starts_its_turn_here(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    answer = await served.ann.send(chat.id, "more")
    assert answer.message.id == 3
    assert not answer.HasField("queued_message")
    assert answer.chat.status == chat_pb2.CHAT_STATUS_RUNNING
    assert [each.state.owner_epoch for each in served.claims.started] == [1, 2]


@pytest.mark.parametrize("model_id", ["", "m2"])
async def test_a_brief_answer_tells_the_same_message_without_a_read(
    served: ServedChats, model_id: str
) -> None:
    chat = await served.ann.create(model_id="m1")
    await served.finish(chat.id)
    request = api.SendMessageRequest(
        request_id="s1", chat_id=chat.id, content=[text("again")], model_id=model_id, brief=True
    )
    brief = await served.ann.ask(request)
    state = await served.state(chat.id)
    request.ClearField("brief")
    repeated = await served.ann.ask(request)
    assert (brief.message, brief.replayed) == (repeated.message, False)
    assert brief.chat == chat_pb2.Chat(
        id=chat.id,
        status=chat_pb2.CHAT_STATUS_RUNNING,
        versions=chat_pb2.Versions(
            snapshot=state.snapshot_version,
            history=state.history_version,
            generation_attempt=state.generation_attempt,
        ),
    )
    assert repeated.replayed
    assert repeated.chat.owner_id == ANN_ID


async def test_a_brief_answer_of_a_message_that_waits_is_a_full_one(served: ServedChats) -> None:
    chat = await served.ann.create()
    request = api.SendMessageRequest(
        request_id="s1", chat_id=chat.id, content=[text("again")], brief=True
    )
    answer = await served.ann.ask(request)
    assert answer.HasField("queued_message")
    assert answer.chat.owner_id == ANN_ID


async def test_a_message_to_a_busy_chat_waits_and_starts_nothing(served: ServedChats) -> None:
    chat = await served.ann.create()
    free = served.claims.free
    answer = await served.ann.send(chat.id, "later")
    queued = answer.queued_message
    assert queued == chat_pb2.QueuedMessage(
        id=queued.id,
        content=[text("later")],
        created_by=ANN_ID,
        created_at=queued.created_at,
        origin=message_pb2.MESSAGE_ORIGIN_PERSON,
    )
    assert not answer.HasField("message")
    assert answer.chat.queue_length == 1
    assert (len(served.claims.started), served.claims.free) == (1, free)
    page = await served.ann.ask(api.ListMessagesRequest(chat_id=chat.id))
    assert list(page.queued_messages) == [queued]


async def test_a_message_that_interrupts_goes_next(served: ServedChats) -> None:
    chat = await served.ann.create()
    answer = await served.ann.send(chat.id, "stop", busy_behavior=api.BUSY_BEHAVIOR_INTERRUPT)
    assert answer.chat.status == chat_pb2.CHAT_STATUS_INTERRUPTING
    assert answer.chat.queue_length == 1


async def test_the_twenty_first_message_that_would_wait_is_refused(served: ServedChats) -> None:
    chat = await served.ann.create()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(served.ann.send(chat.id, "later"))
    request = api.SendMessageRequest(request_id="21", chat_id=chat.id, content=[text("too many")])
    problem = await served.ann.refusal(request)
    assert (problem.reason, problem.metadata) == ("QUEUE_FULL", {"queue_length_max": "20"})
    assert (await served.ann.get(chat.id)).queue_length == 20


async def test_a_message_chooses_the_model_from_its_turn_on_but_only_once(
    served: ServedChats,
) -> None:
    chat = await served.ann.create(model_id="m1")
    await served.finish(chat.id)
    effort = chat_pb2.REASONING_EFFORT_LOW
    choice = {"request_id": "same", "model_id": "m2", "reasoning_effort": effort}
    sent = await served.ann.send(chat.id, "more", **choice)
    assert (sent.chat.model_id, sent.chat.reasoning_effort) == ("m2", effort)
    update = api.UpdateChatRequest(request_id="u", chat=chat_pb2.Chat(id=chat.id, model_id="m3"))
    update.update_mask.paths.append("model_id")
    await served.ann.ask(update)
    repeated = await served.ann.send(chat.id, "more", **choice)
    assert repeated.chat.model_id == "m3"


async def test_an_edit_replaces_a_message_and_tells_what_went(served: ServedChats) -> None:
    chat = await served.ann.create("one")
    await served.finish(chat.id, "first answer")
    await served.ann.send(chat.id, "two")
    await served.ann.send(chat.id, "three waits")
    edit = api.EditMessageRequest(
        request_id="e", chat_id=chat.id, message_id=3, content=[text("two, better")]
    )
    answer = await served.ann.ask(edit)
    assert (answer.message.id, list(answer.deleted_message_ids)) == (4, [3])
    assert answer.message.content[0].text.text == "two, better"
    assert (answer.chat.queue_length, answer.chat.status) == (0, chat_pb2.CHAT_STATUS_RUNNING)
    assert await served.ann.texts(chat.id) == ["one", "first answer", "two, better"]
    assert [each.state.owner_epoch for each in served.claims.started] == [1, 2, 3]

    edit_first = api.EditMessageRequest(
        request_id="f", chat_id=chat.id, message_id=1, content=[text("anew")]
    )
    first = await served.ann.ask(edit_first)
    assert list(first.deleted_message_ids) == [1, 2, 4]
    repeated = await served.ann.ask(edit)
    assert (repeated.message.id, list(repeated.deleted_message_ids)) == (4, [3])
    assert await served.ann.texts(chat.id) == ["anew"]


async def test_an_edit_tells_which_queued_messages_it_dropped(served: ServedChats) -> None:
    chat = await served.ann.create("one")
    waiting = [(await served.ann.send(chat.id, said)).queued_message for said in ("two", "three")]
    edit = api.EditMessageRequest(
        request_id="e", chat_id=chat.id, message_id=1, content=[text("one, better")]
    )
    answer = await served.ann.ask(edit)
    assert list(answer.dropped_queued_messages) == waiting
    assert [each.content[0].text.text for each in waiting] == ["two", "three"]
    # A repetition tells the same, though other messages wait by now.
    await served.ann.send(chat.id, "four")
    assert list((await served.ann.ask(edit)).dropped_queued_messages) == waiting
    later = api.EditMessageRequest(
        request_id="f", chat_id=chat.id, message_id=2, content=[text("once more")]
    )
    (dropped,) = (await served.ann.ask(later)).dropped_queued_messages
    assert dropped.content[0].text.text == "four"
    later.request_id, later.message_id = "g", 3
    assert list((await served.ann.ask(later)).dropped_queued_messages) == []


async def test_only_live_messages_of_users_can_be_edited(served: ServedChats) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)

    async def edit(message_id: int) -> str:
        request = api.EditMessageRequest(
            request_id=served.ann.fresh(),
            chat_id=chat.id,
            message_id=message_id,
            content=[text("x")],
        )
        return (await served.ann.refusal(request)).reason

    assert await edit(2) == "NOT_EDITABLE"
    assert await edit(9) == "MESSAGE_NOT_FOUND"
    assert await edit(0) == "INVALID_REQUEST"


async def test_files_are_described_as_they_are_stored_and_held_by_the_chat(
    served: ServedChats, pool: Pool
) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(1, 4)]
    for file_id in ids:
        await pool.execute(INSERT_FILE, file_id, ANN_ID)
    request = api.CreateChatRequest(request_id="r", content=[file(ids[0])])
    created = await served.ann.ask(request)
    stored = message_pb2.FilePart(file_id=ids[0], media_type="text/plain", name="notes.txt")
    assert list(created.message.content) == [message_pb2.Part(file=stored)]
    assert created.chat.title == "New chat"
    send = api.SendMessageRequest(
        request_id="s", chat_id=created.chat.id, content=[file(ids[1]), file(ids[1]), text("see")]
    )
    await served.ann.ask(send)
    held = await pool.fetch("SELECT file_id FROM chat.chat_files ORDER BY file_id")
    assert [str(row["file_id"]) for row in held] == ids[:2]


async def test_somebody_elses_file_looks_absent(served: ServedChats, pool: Pool) -> None:
    file_id = str(uuid.UUID(int=1))
    await pool.execute(INSERT_FILE, file_id, BOB_ID)
    create = api.CreateChatRequest(request_id="r", content=[file(file_id)])
    problem = await served.ann.refusal(create)
    assert (problem.reason, problem.metadata) == ("FILE_NOT_FOUND", {"file_id": file_id})
    chat = await served.ann.create()
    send = api.SendMessageRequest(request_id="s", chat_id=chat.id, content=[file(file_id)])
    assert (await served.ann.refusal(send)).reason == "FILE_NOT_FOUND"


async def test_a_chat_holds_fifty_files_and_no_more(served: ServedChats, pool: Pool) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(1, 52)]
    await pool.executemany(INSERT_FILE, [(file_id, ANN_ID) for file_id in ids])
    fifty = api.CreateChatRequest(request_id="r", content=[file(each) for each in ids[:50]])
    chat = (await served.ann.ask(fifty)).chat
    again = api.SendMessageRequest(request_id="s", chat_id=chat.id, content=[file(ids[0])])
    await served.ann.ask(again)
    more = api.SendMessageRequest(request_id="t", chat_id=chat.id, content=[file(ids[50])])
    problem = await served.ann.refusal(more)
    assert (problem.reason, problem.metadata) == ("TOO_MANY_FILES", {"files_max": "50"})
