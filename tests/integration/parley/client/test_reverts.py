"""Reverts through the typed client."""

from parley.api.chat.v1 import revert_pb2
from parley.api.chat.v1 import revert_service_pb2 as api
from parley.api.workspace.v1 import checkpoint_pb2
from parley.client import (
    Parley,
    RestoreOutcome,
    RestoreReport,
    Revert,
    RevertKind,
    RevertPreview,
    RevertState,
)
from support.client.chat_service import FakeChatd

CHAT_ID = "00000000-0000-0000-0000-0000000000c1"
REVERT_ID = "00000000-0000-0000-0000-0000000000d1"
UNDONE_ID = "00000000-0000-0000-0000-0000000000d2"
FILES = checkpoint_pb2.RestoreReport(
    paths=[
        checkpoint_pb2.RestoredPath(path="a", outcome=checkpoint_pb2.RESTORE_OUTCOME_CONFLICT),
        checkpoint_pb2.RestoredPath(path="b", outcome=checkpoint_pb2.RESTORE_OUTCOME_RESTORED),
    ],
    omitted=3,
    restored=1,
    conflicts=1,
    lost=2,
    incomplete=True,
    running_process_ids=["p1"],
)
REPORT = RestoreReport(
    {"a": RestoreOutcome.CONFLICT, "b": RestoreOutcome.RESTORED}, 3, 1, 1, 2, True, ("p1",)
)


async def test_a_chat_is_reverted_under_a_request_id_and_that_is_undone(
    parley: Parley, chatd: FakeChatd
) -> None:
    chatd.reverts.revert = revert_pb2.Revert(
        id=REVERT_ID,
        chat_id=CHAT_ID,
        kind=revert_pb2.REVERT_KIND_UNDO,
        state=revert_pb2.REVERT_STATE_DONE,
        message_id=5,
        undone_revert_id=UNDONE_ID,
        files=FILES,
    )
    chatd.reverts.preview = api.PreviewRevertResponse(
        deleted_messages=4, dropped_messages=1, files=FILES
    )
    manage = parley.manage

    preview = await manage.preview_revert(CHAT_ID, 5, restores_files=True)
    reverted = await manage.revert_chat(CHAT_ID, 5, restores_files=True, request_id="r")
    undone = await manage.undo_revert(CHAT_ID, UNDONE_ID, request_id="u")
    read = await manage.get_revert(CHAT_ID, REVERT_ID)

    assert preview == RevertPreview(4, 1, REPORT)
    expected = Revert(REVERT_ID, CHAT_ID, RevertKind.UNDO, RevertState.DONE, 5, UNDONE_ID, REPORT)
    assert reverted == undone == read == expected
    assert chatd.reverts.requests == [
        api.PreviewRevertRequest(chat_id=CHAT_ID, message_id=5, restore_files=True),
        api.RevertChatRequest(request_id="r", chat_id=CHAT_ID, message_id=5, restore_files=True),
        api.UndoRevertRequest(request_id="u", chat_id=CHAT_ID, revert_id=UNDONE_ID),
        api.GetRevertRequest(chat_id=CHAT_ID, revert_id=REVERT_ID),
    ]


async def test_a_running_revert_has_no_files_yet(parley: Parley, chatd: FakeChatd) -> None:
    chatd.reverts.revert = revert_pb2.Revert(
        id=REVERT_ID,
        chat_id=CHAT_ID,
        kind=revert_pb2.REVERT_KIND_HISTORY,
        state=revert_pb2.REVERT_STATE_RUNNING,
        message_id=5,
    )
    chatd.reverts.preview = api.PreviewRevertResponse(deleted_messages=4)

    assert await parley.manage.get_revert(CHAT_ID, REVERT_ID) == Revert(
        REVERT_ID, CHAT_ID, RevertKind.HISTORY, RevertState.RUNNING, 5
    )
    assert await parley.manage.preview_revert(CHAT_ID, 5) == RevertPreview(4, 0)
