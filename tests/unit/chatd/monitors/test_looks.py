"""What a wait saw of a process."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chatd.chats.domain.owner_calls import CallPostponed
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.errors import ERRORS
from chatd.monitors.domain.monitor import Look, Monitor, MonitorCause
from chatd.monitors.rpc.actions import OwnerActions, look_of
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MONITOR = Monitor(
    id="m",
    chat_id=ChatId("c"),
    owner=Owner(OwnerId("a"), "member"),
    process_id="p1",
    command="npm run dev",
    pattern="",
    note="",
    cursor=0,
    created_at=NOON,
    expires_at=NOON + timedelta(hours=1),
)


def waited(
    reason: "process_pb2.WaitReason.ValueType",
    process: process_pb2.Process | None = None,
    matched_line: str = "",
) -> api.WaitWorkspaceOutputResponse:
    return api.WaitWorkspaceOutputResponse(
        process=process,
        output=process_pb2.ProcessOutput(matched_line=matched_line),
        reason=reason,
        search_cursor=7,
    )


def test_a_match_an_end_and_nothing_are_told_apart() -> None:
    assert look_of(waited(process_pb2.WAIT_REASON_TIMEOUT), 3) == Look(7)
    assert look_of(waited(process_pb2.WAIT_REASON_TIMEOUT), 9) == Look(9)
    matched = look_of(waited(process_pb2.WAIT_REASON_MATCHED, matched_line="ready"), 3)
    assert matched == Look(7, MonitorCause.MATCHED, "ready")
    for process, cause, detail in (
        (
            process_pb2.Process(
                state=process_pb2.PROCESS_STATE_EXITED,
                exit=process_pb2.ProcessExit(shell_exit_code=3),
            ),
            MonitorCause.EXITED,
            "its exit code is 3.",
        ),
        (
            process_pb2.Process(
                state=process_pb2.PROCESS_STATE_START_FAILED, start_error="no such file"
            ),
            MonitorCause.EXITED,
            "it did not start: no such file",
        ),
        (
            process_pb2.Process(state=process_pb2.PROCESS_STATE_LOST),
            MonitorCause.LOST,
            "how it ended is not known.",
        ),
    ):
        assert look_of(waited(process_pb2.WAIT_REASON_EXITED, process), 3) == Look(7, cause, detail)


class SilentProcesses:
    """A node that does not answer."""

    async def WaitWorkspaceOutput(  # noqa: N802 (the name is the proto's)
        self, request: Any, context: Any
    ) -> Any:
        await asyncio.Event().wait()


async def test_a_node_that_does_not_answer_is_asked_again() -> None:
    no_messages: Any = None
    actions = OwnerActions(no_messages, SilentProcesses(), OwnerCalls(ERRORS), look_s=0.01)
    async with asyncio.timeout(10):
        with pytest.raises(CallPostponed, match="does not answer"):
            await actions.look(MONITOR)


def test_a_node_that_stops_is_asked_again() -> None:
    with pytest.raises(CallPostponed):
        look_of(waited(process_pb2.WAIT_REASON_GOING_AWAY), 3)
