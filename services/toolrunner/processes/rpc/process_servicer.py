"""ProcessService: each method parses the request, makes one call, and encodes the response."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import grpc

from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceServicer
from toolrunner.journal.records import LIVE, ProcessRecord
from toolrunner.primitives.domain import Scope
from toolrunner.primitives.errors import InvalidRequest, ToolrunnerError
from toolrunner.processes.output.stream import HEARTBEAT_S
from toolrunner.processes.rpc.convert import (
    REASON,
    STATE,
    Presenter,
    output_to_proto,
    process_to_proto,
)
from toolrunner.processes.rpc.inputs import (
    WAITING_FIELDS,
    effect_of,
    process_id_of,
    scope_of,
    size_of,
    spec_of,
    start_wait_of,
    wait_of,
    writing_of,
)
from toolrunner.processes.rpc.process_streams import SIGNALS, attach, stream_output
from toolrunner.processes.rpc.reached import NothingReached, ReachRecord, begun_call
from toolrunner.processes.service import Processes
from toolrunner.processes.start import StartResult
from toolrunner.processes.termination import SignalRequest
from toolrunner.processes.tickets import TicketVerifier
from toolrunner.processes.wait import Reason, Wait, WaitResult

SERVICE: Final = "/parley.api.workspace.v1.ProcessService"
ESCALATE_MS_MAX: Final = 60_000
PAGE_MAX: Final = 200
PAGE_DEFAULT: Final = 10


class ProcessServicer(ProcessServiceServicer):
    """Serves the processes of this node."""

    def __init__(
        self,
        processes: Processes,
        presenter: Presenter,
        verifier: TicketVerifier,
        heartbeat_s: float = HEARTBEAT_S,
        reach: ReachRecord | None = None,
    ) -> None:
        self._reach = reach or NothingReached()
        self._processes = processes
        self._presenter = presenter
        self._verifier = verifier
        self._heartbeat_s = heartbeat_s

    async def StartProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.StartProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.StartProcessResponse:
        """Start a process, or attach to the one that this request started, and wait for it."""
        call = await begun_call(self._reach, request.context)
        scope = scope_of(request.context)
        wait = start_wait_of(request)
        effect = effect_of(
            request,
            scope,
            method=f"{SERVICE}/StartProcess",
            encode=encode_started,
            aside=WAITING_FIELDS,
        )
        started = await self._processes.start(effect, scope, spec_of(request.spec, request.context))
        waited = None if wait is None else await self._waited(scope, started, wait)
        if waited is None or waited.reason is not Reason.EXITED:
            self._processes.keep_start(started.record.process_id)
        if waited is not None:
            return api.StartProcessResponse(
                process=self._presenter.present(waited.record),
                attached=started.is_attached,
                output=output_to_proto(waited.output),
                reason=REASON[waited.reason],
                reached=await call.hosts(),
            )
        if not started.is_attached:
            # A new process has no other members yet, and counting them takes a while.
            return api.StartProcessResponse.FromString(encode_started(started.record))
        return api.StartProcessResponse(
            process=self._presenter.present(started.record),
            attached=True,
            reached=await call.hosts(),
        )

    async def _waited(self, scope: Scope, started: StartResult, wait: Wait) -> WaitResult | None:
        """Wait for a process that was started; an error of the wait does not fail the start."""
        try:
            return await self._processes.wait(scope, started.record.process_id, wait)
        except ToolrunnerError:
            return None

    async def WaitOutput(  # noqa: N802 (the name is the proto's)
        self, request: api.WaitOutputRequest, context: grpc.aio.ServicerContext
    ) -> api.WaitOutputResponse:
        """Wait for a process and return its output."""
        call = await begun_call(self._reach, request.context)
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        wait = wait_of(request.condition, since_cursor=request.since_cursor, budget=request.budget)
        waited = await self._processes.wait(scope, process_id, wait)
        return api.WaitOutputResponse(
            process=self._presenter.present(waited.record),
            output=output_to_proto(waited.output, waited.matched_line),
            reason=REASON[waited.reason],
            reached=await call.hosts(),
            search_cursor=waited.search_cursor,
        )

    async def StreamOutput(  # noqa: N802 (the name is the proto's)
        self, request: api.StreamOutputRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.StreamOutputResponse]:
        """Send output as it arrives."""
        async for response in stream_output(
            self._processes, self._presenter, request, self._heartbeat_s
        ):
            yield response

    async def Attach(  # type: ignore[override]  # noqa: N802 (it writes, the name is the proto's)
        self, request: AsyncIterator[api.AttachRequest], context: grpc.aio.ServicerContext
    ) -> None:
        """Connect the caller with the terminal of a process."""
        await attach(
            self._processes,
            self._presenter,
            request,
            context.write,
            self._heartbeat_s,
            self._verifier,
        )

    async def WriteStdin(  # noqa: N802 (the name is the proto's)
        self, request: api.WriteStdinRequest, context: grpc.aio.ServicerContext
    ) -> api.WriteStdinResponse:
        """Write to a process and wait for its output."""
        call = await begun_call(self._reach, request.context)
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        wait = wait_of(
            request.condition,
            since_cursor=request.since_cursor,
            budget=request.budget,
            default=process_pb2.WAIT_UNTIL_SNAPSHOT,
        )
        effect = effect_of(request, scope, method=f"{SERVICE}/WriteStdin", encode=_encode_written)
        cursor = await self._processes.write(effect, scope, process_id, writing_of(request))
        if not request.HasField("since_cursor"):
            wait = replace(wait, since_cursor=cursor)
        waited = await self._processes.wait(scope, process_id, wait)
        return api.WriteStdinResponse(
            process=self._presenter.present(waited.record),
            output=output_to_proto(waited.output, waited.matched_line),
            reason=REASON[waited.reason],
            reached=await call.hosts(),
        )

    async def ResizeTerminal(  # noqa: N802 (the name is the proto's)
        self, request: api.ResizeTerminalRequest, context: grpc.aio.ServicerContext
    ) -> api.ResizeTerminalResponse:
        """Change the size of a process's terminal."""
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        size = size_of(request.size, "size")
        effect = effect_of(
            request, scope, method=f"{SERVICE}/ResizeTerminal", encode=_encode_resized
        )
        await self._processes.resize(effect, scope, process_id, size)
        return api.ResizeTerminalResponse()

    async def SignalProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.SignalProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.SignalProcessResponse:
        """Signal a process and its descendants."""
        call = await begun_call(self._reach, request.context)
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        signalling = _signalling_of(request)
        effect = effect_of(
            request, scope, method=f"{SERVICE}/SignalProcess", encode=self._encode_signalled
        )
        record = await self._processes.signal(effect, scope, process_id, signalling)
        return api.SignalProcessResponse(
            process=self._presenter.present(record), reached=await call.hosts()
        )

    async def ListProcesses(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProcessesRequest, context: grpc.aio.ServicerContext
    ) -> api.ListProcessesResponse:
        """List processes: running first, then newest first."""
        if not 0 <= request.page_size <= PAGE_MAX:
            raise InvalidRequest("page_size", f"is not between 0 and {PAGE_MAX}")
        call = await begun_call(self._reach, request.context)
        records = await self._processes.list(scope_of(request.context))
        wanted = set(request.states)
        shown = [each for each in records if not wanted or STATE[each.state] in wanted]
        start = _place_after(request.page_token, shown)
        page = shown[start : start + (request.page_size or PAGE_DEFAULT)]
        has_more = start + len(page) < len(shown)
        members = self._presenter.group_sizes()
        return api.ListProcessesResponse(
            processes=[self._presenter.present(record, members) for record in page],
            next_page_token=page[-1].process_id if has_more else "",
            total=len(shown),
            reached=await call.hosts(),
        )

    async def GetProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.GetProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.GetProcessResponse:
        """Read one process."""
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        return api.GetProcessResponse(
            process=self._presenter.present(await self._processes.get(scope, process_id))
        )

    def _encode_signalled(self, record: ProcessRecord) -> bytes:
        process = self._presenter.present(record)
        return api.SignalProcessResponse(process=process).SerializeToString()


def encode_started(record: ProcessRecord) -> bytes:
    """Return the response of the method that started a process."""
    members = 1 if record.state in LIVE else 0
    process = process_to_proto(record, running_members=members)
    return api.StartProcessResponse(process=process).SerializeToString()


def cursor_of(response: bytes) -> int:
    """Return the output cursor before a write, from its response in the journal."""
    return api.WriteStdinResponse.FromString(response).output.next_cursor


def _encode_written(record: ProcessRecord) -> bytes:
    """Encode the output cursor; a repeated request waits again."""
    return api.WriteStdinResponse(
        process=process_to_proto(record, running_members=1),
        output=process_pb2.ProcessOutput(next_cursor=record.output_bytes),
        reason=process_pb2.WAIT_REASON_SNAPSHOT,
    ).SerializeToString()


def _encode_resized(record: ProcessRecord) -> bytes:
    return api.ResizeTerminalResponse().SerializeToString()


def _signalling_of(request: api.SignalProcessRequest) -> SignalRequest:
    number = SIGNALS.get(request.signal)
    if number is None:
        raise InvalidRequest("signal", "is none that may be sent")
    if not 0 <= request.escalate_after_ms <= ESCALATE_MS_MAX:
        raise InvalidRequest("escalate_after_ms", f"is not between 0 and {ESCALATE_MS_MAX}")
    return SignalRequest(number, request.leader_only, request.escalate_after_ms / 1000)


def _place_after(page_token: str, records: list[ProcessRecord]) -> int:
    if not page_token:
        return 0
    places = (at for at, record in enumerate(records) if record.process_id == page_token)
    place = next(places, None)
    if place is None:
        raise InvalidRequest("page_token", "is not one of this list; begin again without one")
    return place + 1
