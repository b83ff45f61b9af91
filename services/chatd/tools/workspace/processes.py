"""Tools for running processes: read, write, list, signal."""

from datetime import UTC
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from chatd.content.domain.tools import Outcome
from chatd.tools.workspace.arguments import BadArguments, Input, seconds_of
from chatd.tools.workspace.call import ANSWER_S, HEADROOM_S, Call, look, without_empty
from chatd.tools.workspace.execute import OutputBytes, wait_of
from chatd.tools.workspace.process_results import (
    is_running,
    process_fields,
    process_outcome,
    unobserved_outcome,
)
from chatd.tools.workspace.process_wait import (
    OUTPUT_BYTES_MAX,
    PIECE_S,
    Observed,
    ProcessUnobserved,
    Wait,
    condition,
    observed,
    output_budget,
)
from chatd.tools.workspace.results import succeeded
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api

MATCH: Final = "match:"
CURSOR_MAX: Final = 2**53
ENDING_WAIT_S: Final = 3.0
KILL_AFTER_S_MAX: Final = 60.0
STDIN_BYTES_MAX: Final = 1024 * 1024
PATTERN_CHARACTERS_MAX: Final = 1000

OUTPUT_DESCRIPTION: Final = (
    "Read the output of a process that execute started, waiting for it first. Pass the next_cursor "
    "of the last answer as since to get only what is new. until says what to wait for: its exit, "
    "any new output, or a line that matches, as in match:listening on. Use wait_timeout 0s to look "
    "without waiting. Do not poll in short steps: one long wait is cheaper."
)
WRITE_DESCRIPTION: Final = (
    "Write to the standard input of a process that was started with keep_stdin_open or tty, and "
    "return what it prints next. End text with a newline to enter a line. Named keys need a tty."
)
LIST_DESCRIPTION: Final = (
    "List the processes of this chat, running ones first, then the newest. Shows their ids, how "
    "they ended, and what still runs."
)
SIGNAL_DESCRIPTION: Final = (
    "End a process and everything it started: interrupt is Ctrl-C, terminate asks it to end, kill "
    "ends it at once. Returns how it ended, if it does so within three seconds."
)

SIGNALS: Final = {
    "interrupt": process_pb2.PROCESS_SIGNAL_INTERRUPT,
    "terminate": process_pb2.PROCESS_SIGNAL_TERMINATE,
    "kill": process_pb2.PROCESS_SIGNAL_KILL,
}

ProcessId = Annotated[
    str, Meta(min_length=1, max_length=64, description="The process_id that execute returned.")
]
Until = Annotated[
    str,
    Meta(
        max_length=PATTERN_CHARACTERS_MAX + len(MATCH),
        description='"exit", "output", or "match:" followed by a regular expression for a line, '
        "such as one printed by a server or a prompt. The end of the process ends each wait.",
    ),
]
WaitTimeout = Annotated[
    str, Meta(description='How long to wait at most, such as "10s", "5m" or "0s"; at most 30m.')
]


class ProcessOutputInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `process_output`."""

    process_id: ProcessId
    wait_timeout: WaitTimeout = "10s"
    since: Annotated[
        int,
        Meta(ge=0, le=CURSOR_MAX, description="Return output after this cursor; 0 for all of it."),
    ] = 0
    until: Until = "exit"
    max_output_bytes: OutputBytes = OUTPUT_BYTES_MAX


class ProcessWriteInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `process_write`."""

    process_id: ProcessId
    text: Annotated[str, Meta(description="What to write, as it is.")] = ""
    keys: Annotated[
        list[Annotated[str, Meta(max_length=32)]],
        Meta(max_length=100, description="Keys to press after the text: enter, tab, up, ctrl-c."),
    ] = field(default_factory=list)
    end_of_input: Annotated[
        bool, Meta(description="Close its standard input afterwards, as Ctrl-D does.")
    ] = False
    wait_timeout: Annotated[
        str, Meta(description='How long to wait for an answer, such as "2s"; at most 5m.')
    ] = "2s"
    until: Until = "output"
    max_output_bytes: OutputBytes = OUTPUT_BYTES_MAX


class ProcessListInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `process_list`."""

    only_running: Annotated[bool, Meta(description="Leave out those that ended.")] = False
    limit: Annotated[int, Meta(ge=1, le=50, description="Most processes to list.")] = 10


class ProcessSignalInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `process_signal`."""

    process_id: ProcessId
    signal: Annotated[
        Literal["interrupt", "terminate", "kill"],
        Meta(description="What to send to it and to everything it started."),
    ]
    kill_after: Annotated[
        str,
        Meta(description='Kill what still runs after this time, such as "5s", at most 60s.'),
    ] = ""


async def process_output(call: Call, given: ProcessOutputInput) -> Outcome:
    """Wait for a process and return its output after a cursor."""
    wait_s, notes = wait_of(given.wait_timeout, "wait_timeout")
    until, pattern = _until(given.until)
    budget_bytes = output_budget(given.max_output_bytes, call.budget_bytes)
    wait = Wait(given.process_id, wait_s, until, pattern, given.since, budget_bytes)
    try:
        seen = await observed(call, wait, is_refusal_final=True)
    except ProcessUnobserved as error:
        return unobserved_outcome(error, has_started=False)
    return process_outcome(seen, notes=notes, shows_command=True)


async def process_write(call: Call, given: ProcessWriteInput) -> Outcome:
    """Write once and return the following output; a repeated request returns the first result."""
    if not given.text and not given.keys and not given.end_of_input:
        raise BadArguments("there is nothing to write", "give text, keys or end_of_input")
    if len(given.text.encode()) > STDIN_BYTES_MAX:
        raise BadArguments("text: it has more than 1 MiB", "write it in several calls")
    wait_s = min(wait_of(given.wait_timeout, "wait_timeout")[0], PIECE_S)
    until, pattern = _until(given.until)
    if wait_s == 0:
        until = process_pb2.WAIT_UNTIL_SNAPSHOT
    answer = call.noted(
        await call.processes.WriteStdin(
            api.WriteStdinRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                process_id=given.process_id,
                data=given.text.encode(),
                keys=given.keys,
                end_of_input=given.end_of_input,
                condition=condition(until, pattern, wait_s),
                # Independent of the model's budget: a repeated request must have the same body.
                budget=process_pb2.OutputBudget(max_bytes=given.max_output_bytes),
            ),
            timeout=wait_s + HEADROOM_S,
        )
    )
    return process_outcome(Observed(answer.process, answer.output, answer.reason))


async def process_list(call: Call, given: ProcessListInput) -> Outcome:
    """List the processes of the chat."""
    running = (process_pb2.PROCESS_STATE_STARTING, process_pb2.PROCESS_STATE_RUNNING)
    listing = await look(
        call,
        call.processes.ListProcesses,
        api.ListProcessesRequest(
            context=call.context,
            page_size=given.limit,
            states=running if given.only_running else (),
        ),
    )
    listed = [process_entry(process) for process in listing.processes]
    left_out = max(0, listing.total - len(listed))
    return succeeded(
        {"processes": listed, "total": listing.total},
        truncation={"omitted_processes": left_out} if left_out else None,
        next_step="process_output shows what one printed; process_signal ends one."
        if listed
        else "execute starts one.",
    )


async def process_signal(call: Call, given: ProcessSignalInput) -> Outcome:
    """Signal a process once and return whether it ended."""
    kill_after_s = seconds_of(given.kill_after, "kill_after") if given.kill_after else 0.0
    if kill_after_s > KILL_AFTER_S_MAX:
        raise BadArguments("kill_after: it is longer than 60s", "wait yourself, then send kill")
    signalled = call.noted(
        await call.processes.SignalProcess(
            api.SignalProcessRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                process_id=given.process_id,
                signal=SIGNALS[given.signal],
                escalate_after_ms=round(kill_after_s * 1000),
            ),
            timeout=ANSWER_S,
        )
    )
    cursor = signalled.process.output_bytes
    wait = Wait(given.process_id, ENDING_WAIT_S, since=cursor, output_bytes=2048)
    try:
        seen = await observed(call, wait, is_refusal_final=False)
    except ProcessUnobserved as error:
        note = f"The signal was sent; whether it ended is not known ({error.cause})."
        return succeeded(
            {"signal_sent": given.signal, "process_id": given.process_id},
            notes=(note,),
            next_step="process_list shows whether it ended.",
        )
    fields = {"signal_sent": given.signal, **process_fields(seen.process)}
    step = "It still runs. Send kill, or wait with process_output."
    return succeeded(fields, next_step=step if is_running(seen.process) else "")


def _until(text: str) -> "tuple[process_pb2.WaitUntil.ValueType, str]":
    match text:
        case "exit":
            return process_pb2.WAIT_UNTIL_EXIT, ""
        case "output":
            return process_pb2.WAIT_UNTIL_OUTPUT, ""
        case _ if text.startswith(MATCH) and len(text) > len(MATCH):
            return process_pb2.WAIT_UNTIL_MATCH, text.removeprefix(MATCH)
        case _:
            problem = f"until: {text[:32]!r} is nothing to wait for"
            raise BadArguments(problem, 'write "exit", "output" or "match:" with an expression')


def process_entry(process: process_pb2.Process) -> dict[str, object]:
    """Return a process as an entry of a list."""
    fields = {"command": process.command, **process_fields(process)}
    fields |= without_empty({"workdir": process.workdir, "start_error": process.start_error})
    started_at = process.started_at.ToDatetime(tzinfo=UTC)
    fields["started_at"] = started_at.isoformat(timespec="seconds")
    if process.HasField("ended_at"):
        ended_at = process.ended_at.ToDatetime(tzinfo=UTC)
        fields["ended_at"] = ended_at.isoformat(timespec="seconds")
    return fields
