"""Checks that the node of a workspace answers, before something is asked that may take longer."""

from typing import Final

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from chatd.workspaces.domain.errors import NodeLost

#: A turn checks this before it reads files of a node, and starts without them otherwise.
ANSWERS_S: Final = 1.0
_SILENT: Final = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})


async def require_answer(channel: grpc.aio.Channel, workspace_id: str) -> None:
    """Ask a node for its health; any answer counts.

    Raises:
        NodeLost: It does not answer.
    """
    try:
        await HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=ANSWERS_S)
    except grpc.aio.AioRpcError as error:
        if error.code() in _SILENT:
            raise NodeLost(workspace_id) from error
