"""What a wait saw of a process."""

import pytest

from chatd.chats.domain.owner_calls import CallPostponed
from chatd.monitors.domain.monitor import Look, MonitorCause
from chatd.monitors.rpc.actions import look_of
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api


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


def test_a_node_that_stops_is_asked_again() -> None:
    with pytest.raises(CallPostponed):
        look_of(waited(process_pb2.WAIT_REASON_GOING_AWAY), 3)
