"""ExecutionService: reads, acknowledges and cancels entries of the journal."""

from typing import Final

import grpc

from parley.api.workspace.v1 import execution_service_pb2 as api
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceServicer
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.rpc.convert import execution_to_proto
from toolrunner.processes.rpc.inputs import key_of, request_id_of
from toolrunner.processes.service import Processes

ACKNOWLEDGED_MAX: Final = 500


class ExecutionServicer(ExecutionServiceServicer):
    """Serves the journal of this node."""

    def __init__(self, journal: JournalThread, processes: Processes) -> None:
        self._journal = journal
        self._processes = processes

    async def GetJournal(  # noqa: N802 (the name is the proto's)
        self, request: api.GetJournalRequest, context: grpc.aio.ServicerContext
    ) -> api.GetJournalResponse:
        """Return the generation of this node's journal."""
        return api.GetJournalResponse(journal_generation=self._journal.generation)

    async def GetExecution(  # noqa: N802 (the name is the proto's)
        self, request: api.GetExecutionRequest, context: grpc.aio.ServicerContext
    ) -> api.GetExecutionResponse:
        """Return the state of an execution, and prevent older owners from starting it."""
        key = key_of(request.key)
        await self._processes.keep_starts()
        found = await self._journal.run(lambda journal: journal.execution(key))
        return api.GetExecutionResponse(execution=execution_to_proto(key.execution_id, found))

    async def AckExecutions(  # noqa: N802 (the name is the proto's)
        self, request: api.AckExecutionsRequest, context: grpc.aio.ServicerContext
    ) -> api.AckExecutionsResponse:
        """Drop results that the caller has stored."""
        request_id_of(request.request_id)
        execution_ids = tuple(request.execution_ids)
        if not 1 <= len(execution_ids) <= ACKNOWLEDGED_MAX:
            raise InvalidRequest("execution_ids", f"needs 1 to {ACKNOWLEDGED_MAX} ids")
        await self._processes.keep_starts()
        skipped = await self._journal.run(
            lambda journal: journal.acknowledge(execution_ids, request.journal_generation)
        )
        return api.AckExecutionsResponse(skipped_execution_ids=skipped)

    async def CancelExecution(  # noqa: N802 (the name is the proto's)
        self, request: api.CancelExecutionRequest, context: grpc.aio.ServicerContext
    ) -> api.CancelExecutionResponse:
        """End all processes of an execution, or prevent its start."""
        request_id_of(request.request_id)
        key = key_of(request.key)
        cancelled = await self._processes.cancel(key)
        return api.CancelExecutionResponse(
            execution=execution_to_proto(key.execution_id, cancelled)
        )
