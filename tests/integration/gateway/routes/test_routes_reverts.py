"""Reverts over HTTP, and what chatd is asked for them."""

from typing import Any

import pytest
from google.protobuf import timestamp_pb2

from parley.api.chat.v1 import revert_pb2
from parley.api.chat.v1 import revert_service_pb2 as api
from parley.api.workspace.v1 import checkpoint_pb2
from parley.identity import Role
from support.gateway.chats import chat_json, last_request, new_chat
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with

KEY = {"Idempotency-Key": "key-1"}
CHAT_ID = "00000000-0000-0000-0000-0000000000c2"
REVERT_ID = "00000000-0000-0000-0000-0000000000d1"
UNDONE_ID = "00000000-0000-0000-0000-0000000000d2"
CHAT_PATH = f"/api/v1/chats/{CHAT_ID}"
FILES = checkpoint_pb2.RestoreReport(
    paths=[
        checkpoint_pb2.RestoredPath(
            path="a",
            action=checkpoint_pb2.RESTORE_ACTION_CREATE,
            outcome=checkpoint_pb2.RESTORE_OUTCOME_RESTORED,
        )
    ],
    restored=1,
    incomplete=True,
    running_process_ids=["p1"],
)
FILES_JSON: dict[str, Any] = {
    "paths": [{"path": "a", "action": "create", "outcome": "restored"}],
    "omitted": 0,
    "restored": 1,
    "conflicts": 0,
    "lost": 0,
    "incomplete": True,
    "running_process_ids": ["p1"],
}
DONE = revert_pb2.Revert(
    id=REVERT_ID,
    chat_id=CHAT_ID,
    kind=revert_pb2.REVERT_KIND_UNDO,
    state=revert_pb2.REVERT_STATE_DONE,
    message_id=5,
    undone_revert_id=UNDONE_ID,
    files=FILES,
    done_at=timestamp_pb2.Timestamp(seconds=1767323045),
)
DONE_JSON: dict[str, Any] = {
    "id": REVERT_ID,
    "chat_id": CHAT_ID,
    "kind": "undo",
    "state": "done",
    "message_id": 5,
    "undone_revert_id": UNDONE_ID,
    "files": FILES_JSON,
    "done_at": "2026-01-02T03:04:05Z",
    "undoable": False,
}


async def test_what_a_revert_would_do_is_told(stack: GatewayStack) -> None:
    stack.chatd.answers["PreviewRevert"] = api.PreviewRevertResponse(
        deleted_messages=4, dropped_messages=1, files=FILES
    )
    body = {"message_id": 5, "restore_files": True}

    reply = await stack.owner.request("POST", f"{CHAT_PATH}/revert/preview", body)

    assert (reply.status, reply.json()) == (
        200,
        {"deleted_messages": 4, "dropped_messages": 1, "files": FILES_JSON},
    )
    assert last_request(stack) == api.PreviewRevertRequest(
        chat_id=CHAT_ID, message_id=5, restore_files=True
    )


async def test_a_revert_and_its_undo_are_sent_with_their_keys(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    chat = stack.chatd.chats[chat_id]
    running = revert_pb2.Revert(
        id=REVERT_ID,
        chat_id=CHAT_ID,
        kind=revert_pb2.REVERT_KIND_HISTORY,
        state=revert_pb2.REVERT_STATE_RUNNING,
        message_id=5,
    )
    stack.chatd.answers["RevertChat"] = api.RevertChatResponse(revert=running, chat=chat)
    stack.chatd.answers["UndoRevert"] = api.UndoRevertResponse(revert=DONE, chat=chat)

    body = {"message_id": 5, "restore_files": True}
    reverted = await stack.owner.request("POST", f"{CHAT_PATH}/revert", body, headers=KEY)
    asked = last_request(stack)
    undo = f"{CHAT_PATH}/reverts/{UNDONE_ID}/undo"
    undone = await stack.owner.request("POST", undo, {}, headers=KEY)

    waiting = {"kind": "history", "state": "running", "undone_revert_id": None, "files": None}
    waiting["done_at"] = None
    assert (reverted.status, reverted.json()) == (
        202,
        {
            "revert": DONE_JSON | waiting,
            "chat": chat_json(stack, chat_id),
            "dropped_queued_messages": [],
        },
    )
    assert (undone.status, undone.json()) == (
        202,
        {
            "revert": DONE_JSON,
            "chat": chat_json(stack, chat_id),
            "dropped_queued_messages": [],
        },
    )
    assert asked == api.RevertChatRequest(
        request_id="key-1", chat_id=CHAT_ID, message_id=5, restore_files=True
    )
    assert last_request(stack) == api.UndoRevertRequest(
        request_id="key-1", chat_id=CHAT_ID, revert_id=UNDONE_ID
    )


async def test_a_revert_is_read(stack: GatewayStack) -> None:
    stack.chatd.answers["GetRevert"] = api.GetRevertResponse(revert=DONE)

    read = await stack.owner.request("GET", f"{CHAT_PATH}/reverts/{REVERT_ID}")

    assert (read.status, read.json()) == (200, DONE_JSON)
    assert last_request(stack) == api.GetRevertRequest(chat_id=CHAT_ID, revert_id=REVERT_ID)


async def test_reverts_are_listed(stack: GatewayStack) -> None:
    stack.chatd.answers["ListReverts"] = api.ListRevertsResponse(reverts=[DONE])

    listed = await stack.owner.request("GET", f"{CHAT_PATH}/reverts?limit=3")

    assert (listed.status, listed.json()) == (200, {"items": [DONE_JSON], "next_cursor": None})
    assert last_request(stack) == api.ListRevertsRequest(chat_id=CHAT_ID, page_size=3)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", f"{CHAT_PATH}/revert", {}, 422),
        ("POST", f"{CHAT_PATH}/revert", {"message_id": 0}, 422),
        ("POST", f"{CHAT_PATH}/revert", {"message_id": 1, "files": True}, 422),
        ("POST", f"{CHAT_PATH}/reverts/x/undo", {}, 404),
        ("GET", f"{CHAT_PATH}/reverts/x", None, 404),
        ("POST", "/api/v1/chats/x/revert", {"message_id": 1}, 404),
    ],
)
async def test_what_names_no_message_or_no_revert_is_refused(
    stack: GatewayStack, method: str, path: str, body: Any, status: int
) -> None:
    assert (await stack.owner.request(method, path, body, headers=KEY)).status == status


async def test_auditors_revert_nothing(stack: GatewayStack, identity_database: str) -> None:
    auditor = await client_with(stack, identity_database, Role.AUDITOR)
    reply = await auditor.request("POST", f"{CHAT_PATH}/revert", {"message_id": 1}, headers=KEY)
    assert reply.status == 403
