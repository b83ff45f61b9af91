"""RevertService over a real socket and database: what goes, what comes back, and who may ask."""

import uuid

import pytest

from chatd.chats.domain.commands import FailTurn, FinishRevert
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.queries import SELECT_REVERT
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_pb2, revert_pb2
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import revert_service_pb2 as api
from parley.api.workspace.v1 import checkpoint_pb2
from support.chatd.chats.chat_people import BOB_ID, text
from support.chatd.chats.served_chats import ServedChats

REPORT = checkpoint_pb2.RestoreReport(restored=2, conflicts=1)


async def asked_twice(served: ServedChats) -> chat_pb2.Chat:
    """Make a chat with the messages 1 to 4, of which 1 and 3 are Ann's."""
    chat = await served.ann.create("one")
    await served.finish(chat.id, "first")
    await served.ann.send(chat.id, "two")
    await served.finish(chat.id, "second")
    return chat


async def message_ids(served: ServedChats, chat_id: str) -> list[int]:
    page = await served.ann.ask(chats_api.ListMessagesRequest(chat_id=chat_id))
    return sorted(message.id for message in page.messages)


def revert_of(chat_id: str, message_id: int, **more: object) -> api.RevertChatRequest:
    request = {"request_id": "revert", "chat_id": chat_id, "message_id": message_id, **more}
    return api.RevertChatRequest(**request)  # type: ignore[arg-type]


async def test_history_alone_is_reverted_at_once_and_comes_back(served: ServedChats) -> None:
    chat = await asked_twice(served)

    reverted = await served.ann.ask(revert_of(chat.id, 3))

    assert reverted.revert == revert_pb2.Revert(
        id=reverted.revert.id,
        chat_id=chat.id,
        kind=revert_pb2.REVERT_KIND_HISTORY,
        state=revert_pb2.REVERT_STATE_DONE,
        message_id=3,
        done_at=reverted.revert.done_at,
        undoable=True,
    )
    assert reverted.chat.status == chat_pb2.CHAT_STATUS_WAITING
    assert await message_ids(served, chat.id) == [1, 2]
    assert (await served.ann.ask(revert_of(chat.id, 3))).revert == reverted.revert

    undo = api.UndoRevertRequest(request_id="undo", chat_id=chat.id, revert_id=reverted.revert.id)
    undone = await served.ann.ask(undo)

    assert undone.revert.undone_revert_id == reverted.revert.id
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]
    assert await served.ann.ask(undo) == undone


async def failed_with_queue(
    served: ServedChats, chat_id: str, *queued: str
) -> list[chat_pb2.QueuedMessage]:
    """End a turn with an error while messages wait, and return these."""
    await served.ann.send(chat_id, "go on")
    waiting = [(await served.ann.send(chat_id, said)).queued_message for said in queued]
    failure = FailTurn(fence_of(await served.state(chat_id)), TurnError("no", ErrorKind.AUTH))
    await served.stores.chats.apply(ChatId(chat_id), failure)
    return waiting


async def test_a_revert_tells_which_queued_messages_it_dropped(served: ServedChats) -> None:
    chat = await asked_twice(served)
    waiting = await failed_with_queue(served, chat.id, "three", "four")

    reverted = await served.ann.ask(revert_of(chat.id, 1))

    assert list(reverted.dropped_queued_messages) == waiting
    assert len(waiting) == 2
    assert await served.ann.ask(revert_of(chat.id, 1)) == reverted
    undo = api.UndoRevertRequest(request_id="undo", chat_id=chat.id, revert_id=reverted.revert.id)
    assert list((await served.ann.ask(undo)).dropped_queued_messages) == []


async def test_the_reverts_of_a_chat_are_listed_with_what_can_be_undone(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    first = (await served.ann.ask(revert_of(chat.id, 3))).revert
    undo = api.UndoRevertRequest(request_id="undo", chat_id=chat.id, revert_id=first.id)
    undone = (await served.ann.ask(undo)).revert
    request = revert_of(chat.id, 1, request_id="again", restore_files=True)
    running = (await served.ann.ask(request)).revert

    listed = await served.ann.ask(api.ListRevertsRequest(chat_id=chat.id, page_size=2))
    rest = api.ListRevertsRequest(chat_id=chat.id, page_token=listed.next_page_token)

    assert list(listed.reverts) == [running, undone]
    (last,) = (await served.ann.ask(rest)).reverts
    assert (last.id, last.undoable, first.undoable) == (first.id, False, True)
    refused = await served.bob.refusal(api.ListRevertsRequest(chat_id=chat.id))
    assert refused.reason == "CHAT_NOT_FOUND"


ACCEPT_PLAN = """
    INSERT INTO chat.chat_actions (id, chat_id, message_id, tool_call_id, tool_name, mcp_server_id,
        kind, arguments, reason, mode, created_at, ended_at, outcome, ended_by, answer)
    VALUES (gen_random_uuid(), $1, $2, 'plan', 'propose_plan', '', 'plan', '{}', '', 'plan', now(),
        now(), 'answered', 'ann', '{"accepted": true}')
"""


async def test_going_back_before_an_accepted_plan_is_plan_mode_again_until_it_is_undone(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    await served.pool.execute(ACCEPT_PLAN, uuid.UUID(chat.id), 4)

    reverted = await served.ann.ask(revert_of(chat.id, 3))
    assert reverted.chat.mode == chat_pb2.CHAT_MODE_PLAN
    undo = api.UndoRevertRequest(request_id="undo", chat_id=chat.id, revert_id=reverted.revert.id)
    undone = await served.ann.ask(undo)

    assert undone.chat.mode == chat.mode
    assert chat.mode != chat_pb2.CHAT_MODE_PLAN


async def test_a_revert_restores_the_mode_also_if_a_queued_message_chooses_another_model(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    await served.pool.execute(ACCEPT_PLAN, uuid.UUID(chat.id), 4)
    await served.ann.ask(revert_of(chat.id, 3, restore_files=True))
    await served.ann.send(chat.id, reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH)

    command = FinishRevert(fence_of(await served.state(chat.id)), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), command)

    found = await served.ann.get(chat.id)
    assert found.mode == chat_pb2.CHAT_MODE_PLAN
    assert found.reasoning_effort == chat_pb2.REASONING_EFFORT_HIGH


async def test_with_files_the_chat_runs_until_its_worker_has_restored_them(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)

    running = await served.ann.ask(revert_of(chat.id, 3, restore_files=True))

    assert running.revert.state == revert_pb2.REVERT_STATE_RUNNING
    assert running.chat.status == chat_pb2.CHAT_STATUS_RUNNING
    assert len(served.claims.started) == 3
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]
    state = await served.state(chat.id)
    command = FinishRevert(fence_of(state), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), command)

    asked = api.GetRevertRequest(chat_id=chat.id, revert_id=running.revert.id)
    done = (await served.ann.ask(asked)).revert

    assert (done.state, done.files) == (revert_pb2.REVERT_STATE_DONE, REPORT)
    assert await message_ids(served, chat.id) == [1, 2]


async def test_a_preview_tells_what_would_go_and_changes_nothing(served: ServedChats) -> None:
    chat = await asked_twice(served)
    request = api.PreviewRevertRequest(chat_id=chat.id, message_id=1)

    history = await served.ann.ask(request)
    request.restore_files = True
    both = await served.ann.ask(request)

    assert history == api.PreviewRevertResponse(deleted_messages=4)
    assert both.files == checkpoint_pb2.RestoreReport(restored=1)
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]


async def test_a_revert_after_which_the_chat_went_on_cannot_be_undone(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    reverted = await served.ann.ask(revert_of(chat.id, 3))
    await served.ann.send(chat.id, "three")
    await served.finish(chat.id)

    undo = api.UndoRevertRequest(request_id="undo", chat_id=chat.id, revert_id=reverted.revert.id)

    assert (await served.ann.refusal(undo)).reason == "REVERT_SUPERSEDED"
    assert await message_ids(served, chat.id) == [1, 2, 5, 6]


async def test_a_revert_is_superseded_by_a_message_that_was_queued_during_its_restore(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    running = await served.ann.ask(revert_of(chat.id, 3, restore_files=True))
    await served.ann.send(chat.id, "three")
    restored = FinishRevert(fence_of(await served.state(chat.id)), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), restored)
    # Its turn adds nothing, so that the message has the version of the revert.
    failure = FailTurn(fence_of(await served.state(chat.id)), TurnError("no", ErrorKind.AUTH))
    await served.stores.chats.apply(ChatId(chat.id), failure)

    refused = await served.ann.refusal(undo_of(chat.id, running.revert.id))

    assert refused.reason == "REVERT_SUPERSEDED"
    assert await message_ids(served, chat.id) == [1, 2, 5]
    (listed,) = (await served.ann.ask(api.ListRevertsRequest(chat_id=chat.id))).reverts
    assert not listed.undoable


async def test_a_revert_is_superseded_by_a_message_that_was_queued_during_the_restore_of_an_edit(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3, restore_files=True))
    await served.ann.send(chat.id, "three")
    restored = FinishRevert(fence_of(await served.state(chat.id)), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), restored)
    await served.finish(chat.id)
    failure = FailTurn(fence_of(await served.state(chat.id)), TurnError("no", ErrorKind.AUTH))
    await served.stores.chats.apply(ChatId(chat.id), failure)

    refused = await served.ann.refusal(undo_of(chat.id, edited.revert_id))

    assert refused.reason == "REVERT_SUPERSEDED"
    assert await message_ids(served, chat.id) == [1, 2, 5, 6, 7]


async def test_bad_requests_and_other_people_are_refused(served: ServedChats) -> None:
    chat = await asked_twice(served)
    nowhere = str(uuid.UUID(int=1))
    reasons = [
        (await served.ann.refusal(request)).reason
        for request in (
            revert_of(chat.id, 0),
            revert_of(chat.id, 2),
            revert_of(chat.id, 9),
            revert_of(nowhere, 1),
            api.PreviewRevertRequest(chat_id=chat.id, message_id=2),
            api.PreviewRevertRequest(chat_id=chat.id, message_id=9),
            api.GetRevertRequest(chat_id=chat.id, revert_id=nowhere),
            api.UndoRevertRequest(request_id="u", chat_id=chat.id, revert_id=nowhere),
        )
    ]
    assert reasons == [
        "INVALID_REQUEST",
        "NOT_EDITABLE",
        "MESSAGE_NOT_FOUND",
        "CHAT_NOT_FOUND",
        "NOT_EDITABLE",
        "MESSAGE_NOT_FOUND",
        "REVERT_NOT_FOUND",
        "REVERT_NOT_FOUND",
    ]
    assert (await served.bob.refusal(revert_of(chat.id, 1))).reason == "CHAT_NOT_FOUND"
    await served.ann.send(chat.id, "runs")
    assert (await served.ann.refusal(revert_of(chat.id, 1))).reason == "TRANSITION_NOT_ALLOWED"
    assert await message_ids(served, chat.id) == [1, 2, 3, 4, 5]


async def test_whom_a_chat_is_shared_with_is_told_that_only_its_owner_reverts_it(
    served: ServedChats,
) -> None:
    chat = await asked_twice(served)
    reverted = await served.ann.ask(revert_of(chat.id, 3))
    share = chats_api.Share(user_id=BOB_ID)
    await served.ann.ask(
        chats_api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=[share])
    )
    reasons = [
        (await served.bob.refusal(request)).reason
        for request in (
            revert_of(chat.id, 1),
            api.PreviewRevertRequest(chat_id=chat.id, message_id=1),
            api.UndoRevertRequest(request_id="u", chat_id=chat.id, revert_id=reverted.revert.id),
        )
    ]
    assert reasons == ["CHAT_READ_ONLY"] * 3
    assert await message_ids(served, chat.id) == [1, 2]


async def test_what_supersedes_a_revert_is_found_by_index(served: ServedChats) -> None:
    chat = await asked_twice(served)
    async with served.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        query = f"EXPLAIN {SELECT_REVERT}"
        rows = await connection.fetch(query, uuid.UUID(chat.id), uuid.UUID(int=1))
    conditions = [row[0].strip() for row in rows if "Index Cond" in row[0]]
    for later in ("revision >= done.version", "revision > done.deleted_version"):
        assert any(later in each for each in conditions), rows


async def test_an_edit_can_restore_files_before_it_runs(served: ServedChats) -> None:
    chat = await asked_twice(served)
    request = chats_api.EditMessageRequest(
        request_id="edit", chat_id=chat.id, message_id=3, restore_files=True
    )
    request.content.add().text.text = "other"

    await served.ann.ask(request)

    state = await served.state(chat.id)
    assert state.revert is not None
    assert (state.revert.message_id, state.revert.restores_files) == (3, True)


def edit_of(chat_id: str, message_id: int, **more: object) -> chats_api.EditMessageRequest:
    request = {
        "request_id": "edit",
        "chat_id": chat_id,
        "message_id": message_id,
        "content": [text("other")],
        **more,
    }
    return chats_api.EditMessageRequest(**request)  # type: ignore[arg-type]


def undo_of(chat_id: str, revert_id: str) -> api.UndoRevertRequest:
    return api.UndoRevertRequest(request_id="undo", chat_id=chat_id, revert_id=revert_id)


async def test_an_edit_is_undone_and_what_it_replaced_comes_back(served: ServedChats) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3))
    undo = undo_of(chat.id, edited.revert_id)
    assert (await served.ann.refusal(undo)).reason == "TRANSITION_NOT_ALLOWED"
    await served.finish(chat.id, "third")
    assert await message_ids(served, chat.id) == [1, 2, 5, 6]
    (listed,) = (await served.ann.ask(api.ListRevertsRequest(chat_id=chat.id))).reverts
    assert (listed.id, listed.kind, listed.message_id, listed.undoable) == (
        edited.revert_id,
        revert_pb2.REVERT_KIND_EDIT,
        3,
        True,
    )

    undone = await served.ann.ask(undo)

    assert undone.revert.undone_revert_id == edited.revert_id
    assert undone.chat.status == chat_pb2.CHAT_STATUS_WAITING
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]
    assert await served.ann.ask(undo) == undone
    again = api.UndoRevertRequest(request_id="b", chat_id=chat.id, revert_id=edited.revert_id)
    assert (await served.ann.refusal(again)).reason == "REVERT_SUPERSEDED"
    await served.ann.send(chat.id, "go on")
    await served.finish(chat.id)
    assert await message_ids(served, chat.id) == [1, 2, 3, 4, 7, 8]


async def test_an_edit_with_files_is_undone_with_them(served: ServedChats) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3, restore_files=True))
    restored = FinishRevert(fence_of(await served.state(chat.id)), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), restored)
    await served.finish(chat.id, "third")

    running = await served.ann.ask(undo_of(chat.id, edited.revert_id))

    assert running.revert.state == revert_pb2.REVERT_STATE_RUNNING
    assert await message_ids(served, chat.id) == [1, 2, 5, 6]
    state = await served.state(chat.id)
    assert state.revert is not None
    assert (state.revert.replacement_id, state.revert.has_restored) == (5, True)
    back = FinishRevert(fence_of(state), REPORT.SerializeToString())
    await served.stores.chats.apply(ChatId(chat.id), back)
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]


async def test_an_edit_whose_files_could_not_be_restored_is_undone(served: ServedChats) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3, restore_files=True))
    failure = FailTurn(fence_of(await served.state(chat.id)), TurnError("no", ErrorKind.GENERIC))
    await served.stores.chats.apply(ChatId(chat.id), failure)
    assert await message_ids(served, chat.id) == [1, 2, 5]

    undone = await served.ann.ask(undo_of(chat.id, edited.revert_id))

    assert undone.revert.state == revert_pb2.REVERT_STATE_DONE
    assert undone.chat.status == chat_pb2.CHAT_STATUS_WAITING
    assert await message_ids(served, chat.id) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("accepted_ids", "mode"),
    [
        ((6,), chat_pb2.CHAT_MODE_PLAN),
        ((4,), chat_pb2.CHAT_MODE_UNSPECIFIED),
        ((4, 6), chat_pb2.CHAT_MODE_UNSPECIFIED),
        ((2,), chat_pb2.CHAT_MODE_UNSPECIFIED),
    ],
)
async def test_the_undo_of_an_edit_is_plan_mode_again_unless_an_accepted_plan_comes_back(
    served: ServedChats, accepted_ids: tuple[int, ...], mode: chat_pb2.ChatMode
) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3))
    await served.finish(chat.id, "third")
    for message_id in accepted_ids:
        await served.pool.execute(ACCEPT_PLAN, uuid.UUID(chat.id), message_id)

    undone = await served.ann.ask(undo_of(chat.id, edited.revert_id))

    assert await message_ids(served, chat.id) == [1, 2, 3, 4]
    assert undone.chat.mode == mode


async def test_an_edit_after_which_the_chat_went_on_is_not_undone(served: ServedChats) -> None:
    chat = await asked_twice(served)
    edited = await served.ann.ask(edit_of(chat.id, 3))
    await served.finish(chat.id, "third")
    await served.ann.send(chat.id, "three")
    await served.finish(chat.id)

    assert (await served.ann.refusal(undo_of(chat.id, edited.revert_id))).reason == (
        "REVERT_SUPERSEDED"
    )
    (listed,) = (await served.ann.ask(api.ListRevertsRequest(chat_id=chat.id))).reverts
    assert not listed.undoable
