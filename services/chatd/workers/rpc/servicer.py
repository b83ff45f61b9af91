"""The service of workers, for the process that supervises them."""

from typing import Any

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.engine.endings import WorkerEndings
from parley.api.chat.v1 import worker_service_pb2, worker_service_pb2_grpc


class WorkerServicer(worker_service_pb2_grpc.WorkerServiceServicer):
    """Ends workers whose process is proven dead."""

    def __init__(self, endings: WorkerEndings) -> None:
        self._endings = endings

    async def EndWorker(
        self, request: worker_service_pb2.EndWorkerRequest, context: Any
    ) -> worker_service_pb2.EndWorkerResponse:
        """End a worker and return how many chats wait for another owner."""
        released = await self._endings.end(WorkerId(request.worker_id))
        return worker_service_pb2.EndWorkerResponse(released_chats=released)
