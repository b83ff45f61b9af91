"""Results about processes: exit status, output, and hints while they run."""

from collections.abc import Mapping
from typing import Final

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome
from chatd.tools.workspace.call import without_empty
from chatd.tools.workspace.process_wait import Observed, ProcessUnobserved
from chatd.tools.workspace.results import failed, succeeded
from parley.api.workspace.v1 import process_pb2, sandbox_pb2

PIPES_NOTE: Final = (
    "Something that it started goes on and holds its output open; process_signal ends all of it."
)
LOST: Final[Mapping[int, str]] = {
    process_pb2.PROCESS_LOST_REASON_RUNNER_RESTARTED: "the service that ran it was restarted",
    process_pb2.PROCESS_LOST_REASON_MACHINE_RESTARTED: "its machine was restarted",
    process_pb2.PROCESS_LOST_REASON_START_UNCERTAIN: "it may or may not have been started",
    process_pb2.PROCESS_LOST_REASON_EXIT_UNREAD: "it ended while nobody could see how",
}

#: The sandbox level of a process as shown in results.
SANDBOX: Final[Mapping[int, str]] = {
    number: name.removeprefix("SANDBOX_LEVEL_").lower()
    for name, number in sandbox_pb2.SandboxLevel.items()
    if number
}


def process_outcome(
    observed: Observed, *, notes: tuple[str, ...] = (), shows_command: bool = False
) -> Outcome:
    """Return the result of a call that waited for a process."""
    process, output = observed.process, observed.output
    command = {"command": process.command} if shows_command else {}
    fields = {**command, **process_fields(process), **output_fields(output)}
    truncation = truncation_fields(output)
    if truncation:
        fields |= without_empty({"log_path": process.log_path})
    match process.state:
        case process_pb2.PROCESS_STATE_EXITED:
            if process.exit.pipes_open:
                notes = (*notes, PIPES_NOTE)
            return _ended(process, fields, truncation, notes)
        case process_pb2.PROCESS_STATE_START_FAILED:
            hint = "Correct the command or its directory and run it again."
            return failed(process.start_error, "START_FAILED", hint, fields=fields, notes=notes)
        case process_pb2.PROCESS_STATE_LOST:
            because = LOST.get(process.lost_reason, "its node does not know it any more")
            return failed(
                f"Nothing more can be known of this process: {because}.",
                "PROCESS_LOST",
                "Check what it did before you run it again.",
                fields=fields,
                truncation=truncation,
                notes=notes,
                outcome=ToolOutcome.UNKNOWN,
            )
        case _:
            return _running(observed, fields, truncation, notes)


def unobserved_outcome(error: ProcessUnobserved, *, has_started: bool) -> Outcome:
    """Return the result of a call that cannot read the process's state; it has the process id."""
    return failed(
        f"The process cannot be seen, because of the machine of the workspace: {error.cause}.",
        "OUT_OF_SIGHT",
        "It may still run. Call process_output with this process_id before you run anything again.",
        fields={"process_id": error.process_id},
        outcome=ToolOutcome.UNKNOWN if has_started else ToolOutcome.FAILED,
    )


def process_fields(process: process_pb2.Process) -> dict[str, object]:
    """Return the fields of a process; its exit code is null unless it exited by itself."""
    ended = process.exit
    has_code = process.HasField("exit") and ended.HasField("exit_code")
    return {
        "process_id": process.process_id,
        "running": is_running(process),
        "exit_code": ended.exit_code if has_code else None,
        **without_empty(
            {
                "signal": ended.signal,
                "shell_exit_code": ended.shell_exit_code if ended.signal else 0,
                "oom_killed": ended.oom_killed,
                "reached_time_limit": ended.timed_out,
                "exceeded_quota": ended.exceeded,
                "background": process.background,
                "wall_duration_ms": process.wall_duration_ms,
                "sandbox": SANDBOX.get(process.sandbox.level, ""),
            }
        ),
    }


def is_running(process: process_pb2.Process) -> bool:
    """Return whether a process has not ended."""
    return process.state in (
        process_pb2.PROCESS_STATE_STARTING,
        process_pb2.PROCESS_STATE_RUNNING,
    )


def truncation_fields(output: process_pb2.ProcessOutput) -> dict[str, object]:
    """Return what was left out of an output; empty if it is complete."""
    if not output.HasField("truncation"):
        return {}
    left_out = output.truncation
    return {
        "original_bytes": left_out.original_bytes,
        "retained_bytes": left_out.retained_bytes,
        **without_empty(
            {
                "omitted_bytes": left_out.omitted_bytes,
                "omitted_lines": left_out.omitted_lines,
                "clipped_lines": left_out.clipped_lines,
                "expired_bytes": left_out.expired_bytes,
            }
        ),
    }


def output_fields(output: process_pb2.ProcessOutput) -> dict[str, object]:
    """Return the fields of an output, with the cursor of what comes next."""
    matched = without_empty({"matched_line": output.matched_line})
    return {"output": output.text, "next_cursor": output.next_cursor, **matched}


def _ended(
    process: process_pb2.Process,
    fields: Mapping[str, object],
    truncation: Mapping[str, object],
    notes: tuple[str, ...],
) -> Outcome:
    whole = _where_the_rest_is(process, truncation)
    if process.exit.shell_exit_code == 0:
        return succeeded(fields, truncation=truncation, notes=notes, next_step=whole)
    error, reason, hint = _why_it_failed(process.exit)
    told = f"{hint} {whole}".strip()
    return failed(error, reason, told, fields=fields, truncation=truncation, notes=notes)


def _why_it_failed(ended: process_pb2.ProcessExit) -> tuple[str, str, str]:
    if ended.exceeded == "pids":
        told = "Everything in the workspace was ended because it had more processes than it may."
        return told, "QUOTA_EXCEEDED", "Start fewer processes at a time."
    if ended.exceeded in ("disk_bytes", "inodes"):
        what = "disk space" if ended.exceeded == "disk_bytes" else "files and directories"
        hint = "Remove what is not needed (rm), then go on; until then nothing can be written."
        told = f"Everything in the workspace was ended because it used more {what} than it may."
        return told, "QUOTA_EXCEEDED", hint
    if ended.oom_killed:
        hint = "Make it need less memory, for example by doing less at once."
        return "It was killed because memory ran out.", "OUT_OF_MEMORY", hint
    if ended.timed_out:
        return "It was ended at its time limit.", "TIME_LIMIT", "Do less at once."
    if ended.signal:
        hint = "Find out who sent the signal before you run it again."
        return f"It was ended by {ended.signal}.", "SIGNALLED", hint
    code = ended.exit_code
    return f"It ended with exit code {code}.", "EXIT_CODE", "Its output says what went wrong."


def _where_the_rest_is(process: process_pb2.Process, truncation: Mapping[str, object]) -> str:
    if not truncation:
        return ""
    path = process.log_path
    if path and not path.startswith(("/", "../")):
        return f"All of the output is in {path}: search_files or read_file finds more."
    if path:
        # File tools are limited to the workspace; commands may read more.
        return f"All of the output is in {path}: grep or sed by execute finds more."
    return "If what was left out matters, run it again with its output filtered or in a file."


def _running(
    observed: Observed,
    fields: Mapping[str, object],
    truncation: Mapping[str, object],
    notes: tuple[str, ...],
) -> Outcome:
    cursor = observed.output.next_cursor
    next_step = (
        f"It still runs. process_output with this process_id and since={cursor} waits for more; "
        "process_signal ends it. Do not start it again."
    )
    return succeeded(fields, truncation=truncation, notes=notes, next_step=next_step)
