"""The streams of ProcessService: output, and attached terminals."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, assert_never

from parley.api.workspace.v1 import (
    process_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.identity import ServiceName
from parley.rpc import current_caller
from toolrunner.journal.records import ProcessRecord, StdinMode
from toolrunner.primitives.domain import ProcessId, Scope
from toolrunner.primitives.errors import BadTicket, InvalidRequest
from toolrunner.processes.input import Terminal
from toolrunner.processes.output.stream import (
    FROM_NOW,
    Chunk,
    Closed,
    Heartbeat,
    StreamEnded,
    StreamEvent,
)
from toolrunner.processes.rpc.convert import Presenter
from toolrunner.processes.rpc.inputs import process_id_of, scope_of, size_of
from toolrunner.processes.service import Processes
from toolrunner.processes.tickets import TicketVerifier

ATTACHED_INPUT_BYTES_MAX: Final = 64 * 1024
#: How long a caller may still send after the last event.
FAREWELL_S: Final = 5.0

SIGNALS: Final = {
    process_pb2.PROCESS_SIGNAL_INTERRUPT: signal.SIGINT,
    process_pb2.PROCESS_SIGNAL_TERMINATE: signal.SIGTERM,
    process_pb2.PROCESS_SIGNAL_KILL: signal.SIGKILL,
    process_pb2.PROCESS_SIGNAL_HANGUP: signal.SIGHUP,
    process_pb2.PROCESS_SIGNAL_STOP: signal.SIGSTOP,
    process_pb2.PROCESS_SIGNAL_CONTINUE: signal.SIGCONT,
}

Write = Callable[[api.AttachResponse], Awaitable[None]]


async def stream_output(
    processes: Processes,
    presenter: Presenter,
    request: api.StreamOutputRequest,
    heartbeat_s: float,
) -> AsyncIterator[api.StreamOutputResponse]:
    """Yield output as it arrives, and one end."""
    if request.since_cursor < 0:
        raise InvalidRequest("since_cursor", "is negative")
    scope, process_id = scope_of(request.context), process_id_of(request.process_id)
    stream = await processes.stream(scope, process_id, request.since_cursor)
    events = stream.events(follows=request.follow, heartbeat_s=heartbeat_s)
    async with aclosing(events):
        async for event in events:
            yield api.StreamOutputResponse(**_fields(event, stream.record, presenter))


async def attach(
    processes: Processes,
    presenter: Presenter,
    requests: AsyncIterator[api.AttachRequest],
    write: Write,
    heartbeat_s: float,
    verifier: TicketVerifier,
) -> None:
    """Connect a caller with the terminal of a process until either of them ends.

    A caller that owns the process is connected with its pipes, and the process ends with the call.
    """
    opening = await anext(requests, None)
    if opening is None or opening.WhichOneof("kind") != "open":
        raise InvalidRequest("open", "has to come first")
    opened = opening.open
    scope, process_id, is_view_only = _admitted(opened, verifier)
    if opened.since_cursor < FROM_NOW:
        raise InvalidRequest("since_cursor", f"is less than {FROM_NOW}")
    owns_process = opened.owns_process
    terminal = await processes.terminal(scope, process_id, has_pipes=owns_process)
    # From here on: a caller that is lost before it gets an answer ends its process as well. A
    # workspace is not in use merely because a process of it is owned.
    with processes.owned(process_id) if owns_process else processes.attached(scope):
        stream = await processes.stream(scope, process_id, opened.since_cursor)
        if opened.HasField("size") and not is_view_only:
            terminal.resize(size_of(opened.size, "open.size"))
        await write(
            api.AttachResponse(
                opened=api.AttachOpened(
                    process=presenter.present(stream.record),
                    cursor=stream.cursor,
                    view_only=is_view_only,
                )
            )
        )

        def encoded(event: StreamEvent) -> api.AttachResponse:
            return api.AttachResponse(**_fields(event, stream.record, presenter))

        events = stream.events(follows=True, heartbeat_s=heartbeat_s)
        typing = _refuse(requests) if is_view_only else _type(terminal, requests)
        await _both_ways(typing, events, lambda event: write(encoded(event)))


def _admitted(opened: api.AttachOpen, verifier: TicketVerifier) -> tuple[Scope, ProcessId, bool]:
    """Return the process the caller may attach to, and whether it is view-only.

    Raises:
        BadTicket: The ticket is not valid, or there is none and the caller is not chatd.
        InvalidRequest: Both a ticket and a context are given.
    """
    caller = current_caller()
    if not opened.ticket:
        # chatd issues the tickets, so it needs none.
        if caller.service is not ServiceName.CHATD:
            raise BadTicket
        return scope_of(opened.context), process_id_of(opened.process_id), False
    if opened.HasField("context"):
        raise InvalidRequest("open.context", "is for attachments without a ticket")
    if opened.owns_process:
        raise InvalidRequest("open.owns_process", "is for attachments without a ticket")
    ticket = verifier.take(opened.ticket, caller, opened.process_id)
    context = workspace_pb2.WorkspaceContext(
        workspace_id=ticket.workspace_id,
        epoch=ticket.epoch,
        profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
    )
    scope = scope_of(context)
    return scope, process_id_of(ticket.process_id), ticket.is_view_only


async def _both_ways(
    requests: Coroutine[Any, Any, None],
    events: AsyncGenerator[StreamEvent],
    write: Callable[[StreamEvent], Awaitable[None]],
) -> None:
    try:
        async with asyncio.TaskGroup() as tasks, aclosing(events):
            typing = tasks.create_task(requests)
            async for event in events:
                await write(event)
            # A call that ends while its client sends fails there, and the last events are lost.
            await asyncio.wait((typing,), timeout=FAREWELL_S)
            typing.cancel()
    except BaseExceptionGroup as group:
        # Only one task failed; the other one was cancelled because of it.
        raise group.exceptions[0] from None


async def _refuse(requests: AsyncIterator[api.AttachRequest]) -> None:
    """Refuse all input of a view-only caller."""
    async for request in requests:
        raise InvalidRequest(request.WhichOneof("kind") or "kind", "is refused: this only looks on")


async def _type(terminal: Terminal, requests: AsyncIterator[api.AttachRequest]) -> None:
    """Pass input on; a caller that closes its side may continue to watch."""
    async for request in requests:
        match request.WhichOneof("kind"):
            case "stdin":
                if len(request.stdin) > ATTACHED_INPUT_BYTES_MAX:
                    raise InvalidRequest("stdin", f"has over {ATTACHED_INPUT_BYTES_MAX} bytes")
                await terminal.write(request.stdin)
            case "resize":
                terminal.resize(size_of(request.resize, "resize"))
            case "signal":
                number = SIGNALS.get(request.signal)
                if number is None:
                    raise InvalidRequest("signal", "is none that may be sent")
                await terminal.signal(number)
            case kind:
                raise InvalidRequest(kind or "kind", "cannot be sent after the opening")


def _fields(event: StreamEvent, record: ProcessRecord, presenter: Presenter) -> dict[str, Any]:
    match event:
        case Chunk(data, cursor):
            is_terminal = record.stdin_mode is StdinMode.TERMINAL
            source = (
                process_pb2.OUTPUT_SOURCE_TERMINAL
                if is_terminal
                else process_pb2.OUTPUT_SOURCE_STDOUT
            )
            return {"chunk": process_pb2.OutputChunk(source=source, data=data, cursor=cursor)}
        case Heartbeat():
            return {"heartbeat": api.StreamHeartbeat()}
        case StreamEnded(ended, next_cursor):
            return {
                "ended": api.OutputEnd(process=presenter.present(ended), next_cursor=next_cursor)
            }
        case Closed(reason):
            name = f"STREAM_END_REASON_{reason.name}"
            return {
                "closed": workspace_pb2.StreamEnd(reason=workspace_pb2.StreamEndReason.Value(name))
            }
        case _:
            assert_never(event)
