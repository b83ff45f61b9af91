"""Conversion of domain values to protos; processes with the number of running members."""

import signal
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.workspace.v1 import execution_pb2, process_pb2, sandbox_pb2
from parley.clock import Clock
from toolrunner.journal.records import (
    Execution,
    ExecutionState,
    LostReason,
    ProcessRecord,
    ProcessState,
    StdinMode,
)
from toolrunner.primitives.domain import Exit
from toolrunner.processes.group_sizes import GroupSizes
from toolrunner.processes.output.excerpt import Excerpt
from toolrunner.processes.wait import Reason
from toolrunner.sandbox import Layer, Level, Network, Profile, Report, Used
from toolrunner.spawner import running_below

STATE: Final = {
    state: process_pb2.ProcessState.Value(f"PROCESS_STATE_{state.name}") for state in ProcessState
}
LOST: Final = {
    reason: process_pb2.ProcessLostReason.Value(f"PROCESS_LOST_REASON_{reason.name}")
    for reason in LostReason
}
STDIN: Final = {mode: process_pb2.StdinMode.Value(f"STDIN_MODE_{mode.name}") for mode in StdinMode}
REASON: Final = {
    reason: process_pb2.WaitReason.Value(f"WAIT_REASON_{reason.name}") for reason in Reason
}
EXECUTION: Final = {
    state: execution_pb2.ExecutionState.Value(f"EXECUTION_STATE_{state.name}")
    for state in ExecutionState
}

_LEVEL: Final = {
    each: sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{each.name}") for each in Level
}
_LAYER: Final = {
    each: sandbox_pb2.SandboxLayer.Value(f"SANDBOX_LAYER_{each.name}") for each in Layer
}
_PROFILE: Final = {
    each: sandbox_pb2.SandboxProfile.Value(f"SANDBOX_PROFILE_{each.name}") for each in Profile
}
_NETWORK: Final = {
    each: sandbox_pb2.NetworkAccess.Value(f"NETWORK_ACCESS_{each.name}") for each in Network
}
KERNEL_MAX: Final = 100
WORDS_MAX: Final = 500
SUMMARY_MAX: Final = 2000


def process_to_proto(record: ProcessRecord, *, running_members: int) -> process_pb2.Process:
    """Return a process."""
    return process_pb2.Process(
        process_id=record.process_id,
        workspace_id=record.workspace_id,
        chat_id=record.chat_id,
        request_id=record.request_id,
        command=record.command,
        workdir=record.workdir,
        background=record.is_background,
        stdin_mode=STDIN[record.stdin_mode],
        state=STATE[record.state],
        exit=None if record.exit is None else exit_to_proto(record.exit),
        start_error=record.start_error,
        lost_reason=(
            process_pb2.PROCESS_LOST_REASON_UNSPECIFIED
            if record.lost_reason is None
            else LOST[record.lost_reason]
        ),
        pid=record.pid,
        running_members=running_members,
        output_bytes=record.output_bytes,
        log_path=record.log_path,
        log_start_bytes=record.log_start_bytes,
        sandbox=None if record.sandbox is None else used_to_proto(record.sandbox),
        started_at=time_to_proto(record.started_at),
        ended_at=None if record.ended_at is None else time_to_proto(record.ended_at),
        wall_duration_ms=record.wall_duration_ms,
    )


def used_to_proto(used: Used) -> sandbox_pb2.SandboxUsed:
    """Return how a process is confined; the numbers are the same."""
    return sandbox_pb2.SandboxUsed(
        level=_LEVEL[used.level],
        layers=[_LAYER[layer] for layer in used.layers],
        profile=_PROFILE[used.profile],
        network=_NETWORK[used.network],
    )


def report_to_proto(report: Report) -> sandbox_pb2.SandboxReport:
    """Return the sandbox report of this node."""
    return sandbox_pb2.SandboxReport(
        level=_LEVEL[report.level],
        minimum=_LEVEL[report.minimum],
        layers=[_LAYER[layer] for layer in report.layers],
        missing=[
            sandbox_pb2.MissingLayer(
                layer=_LAYER[missing.layer],
                cause=missing.cause[:WORDS_MAX],
                effect=missing.effect[:WORDS_MAX],
                remedy=missing.remedy[:WORDS_MAX],
            )
            for missing in report.missing
        ],
        landlock_abi=report.landlock_abi,
        kernel=report.kernel[:KERNEL_MAX],
        summary=report.summary[:SUMMARY_MAX],
    )


def exit_to_proto(exit: Exit) -> process_pb2.ProcessExit:
    """Return how a process ended."""
    return process_pb2.ProcessExit(
        exit_code=exit.exit_code,
        signal="" if exit.exit_code is not None else signal_name(exit.signal_number),
        shell_exit_code=exit.shell_exit_code,
        oom_killed=exit.is_oom_killed,
        timed_out=exit.is_timed_out,
        pipes_open=exit.has_open_pipes,
        exceeded=exit.exceeded,
    )


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time ones have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def output_to_proto(excerpt: Excerpt, matched_line: str = "") -> process_pb2.ProcessOutput:
    """Return output between two cursors, and the matched line."""
    left_out = excerpt.truncation
    return process_pb2.ProcessOutput(
        text=excerpt.text,
        next_cursor=excerpt.next_cursor,
        matched_line=matched_line,
        truncation=None
        if left_out is None
        else process_pb2.OutputTruncation(
            original_bytes=left_out.original_bytes,
            retained_bytes=left_out.retained_bytes,
            omitted_bytes=left_out.omitted_bytes,
            omitted_lines=left_out.omitted_lines,
            clipped_lines=left_out.clipped_lines,
            expired_bytes=left_out.expired_bytes,
        ),
    )


def execution_to_proto(execution_id: str, execution: Execution | None) -> execution_pb2.Execution:
    """Return an entry of the journal; NEVER_SEEN if there is none."""
    if execution is None:
        return execution_pb2.Execution(
            execution_id=execution_id, state=execution_pb2.EXECUTION_STATE_NEVER_SEEN
        )
    started_at, finished_at = execution.started_at, execution.finished_at
    return execution_pb2.Execution(
        execution_id=execution_id,
        state=EXECUTION[execution.state],
        started_at=None if started_at is None else time_to_proto(started_at),
        finished_at=None if finished_at is None else time_to_proto(finished_at),
        method=execution.method,
        response=execution.response,
        process_id=execution.process_id or "",
    )


def time_to_proto(time: datetime) -> Timestamp:
    """Return a point in time."""
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


@dataclass(frozen=True, slots=True)
class Presenter:
    """Presents processes that a spawner started.

    Attributes:
        group_sizes: Returns how many processes each process group has.
    """

    group_sizes: GroupSizes

    @classmethod
    def of(cls, spawner_pid: int, clock: Clock) -> "Presenter":
        """Present the processes of a spawner."""
        return cls(GroupSizes(lambda: _group_sizes_below(spawner_pid), clock))

    def present(
        self, record: ProcessRecord, members: Counter[int] | None = None
    ) -> process_pb2.Process:
        """Return a process with the number of its running members."""
        has_open_pipes = record.exit is not None and record.exit.has_open_pipes
        if record.state is not ProcessState.RUNNING and not has_open_pipes:
            return process_to_proto(record, running_members=0)
        sizes = self.group_sizes() if members is None else members
        # The count may be older than the process.
        least = int(record.state is ProcessState.RUNNING)
        return process_to_proto(record, running_members=max(least, sizes[record.pid]))


def _group_sizes_below(spawner_pid: int) -> Counter[int]:
    return Counter(each.group for each in running_below(spawner_pid))
