"""ProcessService: each method translates, asks one thing, and translates back."""

import signal
from collections import Counter
from typing import Final

import grpc

from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceServicer
from parley.rpc import remaining_s
from toolrunner.domain import LIVE, ProcessRecord, ProcessState
from toolrunner.ending import Signalling
from toolrunner.errors import InvalidRequest
from toolrunner.processes import Processes
from toolrunner.rpc.convert import REASON, STATE, output_to_proto, process_to_proto
from toolrunner.rpc.inputs import (
    budget_of,
    check_confinement,
    effect_of,
    process_id_of,
    scope_of,
    spec_of,
)
from toolrunner.spawner import running_processes
from toolrunner.waiting import Until, Wait

SERVICE: Final = "/parley.api.workspace.v1.ProcessService"
WAIT_MS_MAX: Final = 300_000
ESCALATE_MS_MAX: Final = 60_000
PAGE_MAX: Final = 200
PAGE_DEFAULT: Final = 10
#: An answer at the last moment does not arrive.
ANSWER_S: Final = 2.0

UNTIL: Final = {
    process_pb2.WAIT_UNTIL_UNSPECIFIED: Until.EXIT,
    process_pb2.WAIT_UNTIL_EXIT: Until.EXIT,
    process_pb2.WAIT_UNTIL_OUTPUT: Until.OUTPUT,
    process_pb2.WAIT_UNTIL_SNAPSHOT: Until.SNAPSHOT,
}
SIGNALS: Final = {
    process_pb2.PROCESS_SIGNAL_INTERRUPT: signal.SIGINT,
    process_pb2.PROCESS_SIGNAL_TERMINATE: signal.SIGTERM,
    process_pb2.PROCESS_SIGNAL_KILL: signal.SIGKILL,
    process_pb2.PROCESS_SIGNAL_HANGUP: signal.SIGHUP,
    process_pb2.PROCESS_SIGNAL_STOP: signal.SIGSTOP,
    process_pb2.PROCESS_SIGNAL_CONTINUE: signal.SIGCONT,
}


class ProcessServicer(ProcessServiceServicer):
    """Serves the processes of this node; what it lacks is left to the generated refusals."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def StartProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.StartProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.StartProcessResponse:
        """Start a process, or attach to the one that this request started before."""
        scope = scope_of(request.context)
        check_confinement(request.context)
        effect = effect_of(request, scope, method=f"{SERVICE}/StartProcess", encode=_encode_started)
        started = await self._processes.start(effect, scope, spec_of(request.spec))
        return api.StartProcessResponse(
            process=present(started.record), attached=started.is_attached
        )

    async def WaitOutput(  # noqa: N802 (the name is the proto's)
        self, request: api.WaitOutputRequest, context: grpc.aio.ServicerContext
    ) -> api.WaitOutputResponse:
        """Wait for a process and return its output."""
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        waited = await self._processes.wait(scope, process_id, _wait_of(request))
        return api.WaitOutputResponse(
            process=present(waited.record),
            output=output_to_proto(waited.output),
            reason=REASON[waited.reason],
        )

    async def SignalProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.SignalProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.SignalProcessResponse:
        """Signal a process and all it started."""
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        signalling = _signalling_of(request)
        effect = effect_of(
            request, scope, method=f"{SERVICE}/SignalProcess", encode=_encode_signalled
        )
        record = await self._processes.signal(effect, scope, process_id, signalling)
        return api.SignalProcessResponse(process=present(record))

    async def ListProcesses(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProcessesRequest, context: grpc.aio.ServicerContext
    ) -> api.ListProcessesResponse:
        """List processes: running first, then newest first."""
        if not 0 <= request.page_size <= PAGE_MAX:
            raise InvalidRequest("page_size", f"is not between 0 and {PAGE_MAX}")
        records = await self._processes.list(scope_of(request.context))
        wanted = set(request.states)
        shown = [each for each in records if not wanted or STATE[each.state] in wanted]
        start = _place_after(request.page_token, shown)
        page = shown[start : start + (request.page_size or PAGE_DEFAULT)]
        has_more = start + len(page) < len(shown)
        members = group_sizes()
        return api.ListProcessesResponse(
            processes=[present(record, members) for record in page],
            next_page_token=page[-1].process_id if has_more else "",
            total=len(shown),
        )

    async def GetProcess(  # noqa: N802 (the name is the proto's)
        self, request: api.GetProcessRequest, context: grpc.aio.ServicerContext
    ) -> api.GetProcessResponse:
        """Read one process."""
        scope, process_id = scope_of(request.context), process_id_of(request.process_id)
        return api.GetProcessResponse(process=present(await self._processes.get(scope, process_id)))


def group_sizes() -> Counter[int]:
    """Return how many processes each process group has."""
    return Counter(each.group for each in running_processes())


def present(record: ProcessRecord, members: Counter[int] | None = None) -> process_pb2.Process:
    """Return a process with what runs of it now."""
    has_open_pipes = record.exit is not None and record.exit.has_open_pipes
    if record.state is not ProcessState.RUNNING and not has_open_pipes:
        return process_to_proto(record, running_members=0)
    sizes = group_sizes() if members is None else members
    return process_to_proto(record, running_members=sizes[record.pid])


def _encode_started(record: ProcessRecord) -> bytes:
    members = 1 if record.state in LIVE else 0
    process = process_to_proto(record, running_members=members)
    return api.StartProcessResponse(process=process).SerializeToString()


def _encode_signalled(record: ProcessRecord) -> bytes:
    return api.SignalProcessResponse(process=present(record)).SerializeToString()


def _wait_of(request: api.WaitOutputRequest) -> Wait:
    condition = request.condition
    if condition.until not in UNTIL:
        problem = "is not offered by this node; wait for exit or for output"
        raise InvalidRequest("condition.until", problem)
    if not 0 <= condition.max_wait_ms <= WAIT_MS_MAX:
        raise InvalidRequest("condition.max_wait_ms", f"is not between 0 and {WAIT_MS_MAX}")
    if request.since_cursor < 0:
        raise InvalidRequest("since_cursor", "is negative")
    left_s = remaining_s()
    bound_s = condition.max_wait_ms / 1000 if left_s is None else max(0.0, left_s - ANSWER_S)
    return Wait(
        until=UNTIL[condition.until],
        max_wait_s=min(condition.max_wait_ms / 1000, bound_s),
        since_cursor=request.since_cursor,
        budget=budget_of(request.budget),
    )


def _signalling_of(request: api.SignalProcessRequest) -> Signalling:
    number = SIGNALS.get(request.signal)
    if number is None:
        raise InvalidRequest("signal", "is none that may be sent")
    if not 0 <= request.escalate_after_ms <= ESCALATE_MS_MAX:
        raise InvalidRequest("escalate_after_ms", f"is not between 0 and {ESCALATE_MS_MAX}")
    return Signalling(number, request.leader_only, request.escalate_after_ms / 1000)


def _place_after(page_token: str, records: list[ProcessRecord]) -> int:
    if not page_token:
        return 0
    places = (at for at, record in enumerate(records) if record.process_id == page_token)
    place = next(places, None)
    if place is None:
        raise InvalidRequest("page_token", "is not one of this list; begin again without one")
    return place + 1
