"""The tool that runs commands."""

from dataclasses import replace
from typing import Annotated, Final

from msgspec import Meta, field

from chatd.content.domain.tools import Outcome
from chatd.content.domain.turn_context import CallProcess
from chatd.tools.workspace.arguments import BadArguments, Input, duration_text, seconds_of
from chatd.tools.workspace.background import planned
from chatd.tools.workspace.call import ANSWER_S, Call
from chatd.tools.workspace.literals import refuse_literal
from chatd.tools.workspace.process_results import process_outcome, unobserved_outcome
from chatd.tools.workspace.process_wait import (
    OUTPUT_BYTES_MAX,
    Observed,
    ProcessUnobserved,
    Wait,
    condition,
    follow_output,
    observed,
    output_budget,
)
from chatd.tools.workspace.shell import TokenKind, Unreadable, tokens_of
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.tasks import owned_tasks

WAIT_S_MAX: Final = 1800.0
#: A wait up to this long is part of the request that starts the process.
WHOLE_WAIT_S: Final = 1.0
#: How long that request waits otherwise; then the process id is known and its output is shown. A
#: request that is lost is found by its journal.
START_WAIT_S: Final = 0.3
TIME_IS_UP: Final = (process_pb2.WAIT_REASON_TIMEOUT, process_pb2.WAIT_REASON_SNAPSHOT)
#: Long enough to detect that a command failed to start.
BACKGROUND_WAIT_S: Final = 0.5
COMMAND_BYTES_MAX: Final = 128 * 1024
TERMINAL: Final = process_pb2.TerminalSize(rows=24, columns=120)

DESCRIPTION: Final = (
    "Run a shell command (sh -c) in the workspace and return its output, both streams together, "
    "with its exit code. Waits `timeout` for it to end; a command that takes longer goes on and "
    "can be followed by its process_id with process_output. Set run_in_background for servers, "
    "watchers and whatever is not meant to end, and never write a trailing &, nohup or disown. "
    "Each call is a new shell: cd and variables do not last, so use workdir and env. Nobody "
    "answers prompts; pass flags such as -y. Long output keeps its beginning and its end. To read, "
    "change, find or search files prefer the tools for files: they page, number and check."
)
CAT_NOTE: Final = "read_file shows a file in pages, with line numbers to edit by."
GREP_NOTE: Final = "search_files searches faster, leaves out ignored files and groups by file."

OutputBytes = Annotated[
    int,
    Meta(
        ge=1024,
        le=OUTPUT_BYTES_MAX,
        description="Most bytes of output to return; more than that loses its middle.",
    ),
]


class ExecuteInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `execute`."""

    command: Annotated[str, Meta(description="The command line, as one would type it into sh.")]
    timeout: Annotated[
        str,
        Meta(
            description='How long to wait for the end, such as "10s" or "5m", at most 30m. The '
            "command is not ended by it."
        ),
    ] = "10s"
    workdir: Annotated[
        str, Meta(max_length=4096, description="Directory to start in; left out: the root.")
    ] = ""
    run_in_background: Annotated[
        bool, Meta(description="Return at once and let it run, as for a server.")
    ] = False
    env: Annotated[
        dict[str, str],
        Meta(max_length=200, description="Variables for this command besides the usual ones."),
    ] = field(default_factory=dict)
    stdin: Annotated[str, Meta(description="Text to give to its standard input.")] = ""
    keep_stdin_open: Annotated[
        bool, Meta(description="Leave standard input open for process_write.")
    ] = False
    tty: Annotated[
        bool,
        Meta(description="Run under a terminal, for programs that refuse to do without one."),
    ] = False
    max_output_bytes: OutputBytes = OUTPUT_BYTES_MAX


async def execute(call: Call, given: ExecuteInput) -> Outcome:
    """Start a command once, wait for it as long as requested, and return its output."""
    _check(given)
    wait_s, notes = wait_of(given.timeout, "timeout")
    plan = planned(given.command, is_background=given.run_in_background)
    wait = Wait(
        "",
        BACKGROUND_WAIT_S if plan.is_background else wait_s,
        output_bytes=output_budget(given.max_output_bytes, call.budget_bytes),
    )
    spec = _spec(given, plan.command, is_background=plan.is_background)
    try:
        seen = await _started(call, spec, wait)
    except ProcessUnobserved as error:
        return unobserved_outcome(error, has_started=True)
    return process_outcome(seen, notes=(*notes, *plan.notes, *_advice(given.command)))


async def _started(call: Call, spec: process_pb2.ProcessSpec, wait: Wait) -> Observed:
    """Start a process and wait for it; if it ends soon, the first response contains its result.

    Raises:
        ProcessUnobserved: It was started, and its state could not be read afterwards.
        grpc.aio.AioRpcError: It was refused, or whether it started is unknown.
    """
    first_s = wait.wait_s if wait.wait_s <= WHOLE_WAIT_S else START_WAIT_S
    answer = call.noted(
        await call.processes.StartProcess(
            api.StartProcessRequest(
                context=call.context,
                request_id=call.request_id,
                key=call.key,
                spec=spec,
                condition=condition(
                    wait.until if first_s > 0 else process_pb2.WAIT_UNTIL_SNAPSHOT, "", first_s
                ),
                budget=process_pb2.OutputBudget(max_bytes=wait.output_bytes),
            ),
            timeout=first_s + ANSWER_S,
        )
    )
    is_all = wait.wait_s <= first_s and answer.reason in TIME_IS_UP
    if is_all or answer.reason == process_pb2.WAIT_REASON_EXITED:
        return Observed(answer.process, answer.output, answer.reason)
    left_s = wait.wait_s - first_s if answer.reason else wait.wait_s
    rest = replace(wait, process_id=answer.process.process_id, wait_s=left_s)
    call.report(CallProcess(rest.process_id))
    call.report(answer.output.text)
    async with owned_tasks() as start:
        start(follow_output(call, rest.process_id, answer.output.next_cursor))
        return await observed(call, rest, is_refusal_final=False)


def wait_of(text: str, argument: str) -> tuple[float, tuple[str, ...]]:
    """Return how long to wait, and a note if that is less than requested.

    Raises:
        BadArguments: it is not a duration.
    """
    wait_s = seconds_of(text, argument)
    if wait_s <= WAIT_S_MAX:
        return wait_s, ()
    return WAIT_S_MAX, (f"{argument}: one call waits at most {duration_text(WAIT_S_MAX)}.",)


def _check(given: ExecuteInput) -> None:
    if not given.command.strip():
        raise BadArguments("command: it is empty", "write the command line to run")
    if len(given.command.encode()) > COMMAND_BYTES_MAX:
        problem = f"command: it has more than {COMMAND_BYTES_MAX} bytes"
        raise BadArguments(problem, "write a script with write_file and run that")
    texts = (given.command, given.workdir, *given.env, *given.env.values())
    if any("\0" in text for text in texts):
        raise BadArguments("a NUL cannot be passed to a shell", "leave it out")
    for name in given.env:
        if not name or "=" in name:
            problem = f"env: {name[:64]!r} is no name of a variable"
            raise BadArguments(problem, "give each variable by its name alone, without =")
    refuse_literal(given.command)


def _spec(given: ExecuteInput, command: str, *, is_background: bool) -> process_pb2.ProcessSpec:
    mode = process_pb2.STDIN_MODE_CLOSED
    if given.tty:
        mode = process_pb2.STDIN_MODE_TERMINAL
    elif given.keep_stdin_open:
        mode = process_pb2.STDIN_MODE_PIPE
    return process_pb2.ProcessSpec(
        command=command,
        workdir=given.workdir,
        environment=given.env,
        terminal=TERMINAL if given.tty else None,
        stdin_mode=mode,
        stdin=given.stdin.encode(),
        background=is_background,
    )


def _advice(command: str) -> tuple[str, ...]:
    """Return a hint at a tool that replaces a plain command."""
    try:
        tokens = tokens_of(command)
    except Unreadable:
        return ()
    if not tokens or any(token.kind is not TokenKind.WORD for token in tokens):
        return ()
    match tokens[0].text:
        case "cat" if len(tokens) == 2:
            return (CAT_NOTE,)
        case "grep" | "rg":
            return (GREP_NOTE,)
        case _:
            return ()
