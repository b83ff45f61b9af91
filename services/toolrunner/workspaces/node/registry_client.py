"""The gRPC client of chatd's node registry, with failover between replicas."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

import grpc

from parley.api.workspace.v1 import node_service_pb2 as api
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceStub
from parley.rpc import Channels, problem_of
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.placement import Hosted
from toolrunner.workspaces.node.registration import (
    HeartbeatAnswer,
    Instruction,
    Order,
    Registered,
    RegistrationStale,
    RegistryUnreachable,
)
from toolrunner.workspaces.node.reporter import Reporter
from toolrunner.workspaces.rpc.convert import hosted_to_proto, load_to_proto, node_to_proto

T = TypeVar("T")

CALL_S: Final = 10.0
HEARTBEAT_S: Final = 10.0
STALE: Final = frozenset({"STALE_NODE", "NODE_NOT_FOUND"})
_INSTRUCTION: Final = {
    api.WORKSPACE_INSTRUCTION_STOP: Instruction.STOP,
    api.WORKSPACE_INSTRUCTION_REMOVE: Instruction.REMOVE,
}


class GrpcRegistry:
    """Calls one replica after another until one answers, and stays with it."""

    def __init__(self, channels: Channels, reporter: Reporter) -> None:
        self._stubs = [NodeServiceStub(channel) for channel in channels.all()]
        self._reporter = reporter

    async def register(self, request_id: str, hosted: tuple[Hosted, ...]) -> Registered:
        """Register the node with all its workspaces.

        Raises:
            RegistryUnreachable: No chatd replica answers.
        """
        request = api.RegisterNodeRequest(
            request_id=request_id,
            node=node_to_proto(self._reporter),
            workspaces=[hosted_to_proto(each) for each in hosted],
        )
        answer = await self._ask(lambda stub: stub.RegisterNode(request, timeout=CALL_S))
        heartbeat_s = answer.heartbeat_interval_ms / 1000 or HEARTBEAT_S
        return Registered(answer.registration_epoch, heartbeat_s, _orders(answer.orders))

    async def heartbeat(
        self, request_id: str, registration_epoch: int, changed: tuple[Hosted, ...]
    ) -> HeartbeatAnswer:
        """Send a heartbeat with the changed workspaces.

        Raises:
            RegistryUnreachable: No chatd replica answers.
            RegistrationStale: The node has to register again.
        """
        request = api.HeartbeatRequest(
            request_id=request_id,
            node_id=self._reporter.facts.node_id,
            registration_epoch=registration_epoch,
            load=load_to_proto(self._reporter.load()),
            workspaces=[hosted_to_proto(each) for each in changed],
        )
        answer = await self._ask(lambda stub: stub.Heartbeat(request, timeout=CALL_S))
        return HeartbeatAnswer(answer.draining, _orders(answer.orders))

    async def leave(self, request_id: str, registration_epoch: int) -> None:
        """Deregister the node.

        Raises:
            RegistryUnreachable: No chatd replica answers.
            RegistrationStale: The node is not registered any more.
        """
        request = api.DrainNodeRequest(
            request_id=request_id,
            node_id=self._reporter.facts.node_id,
            registration_epoch=registration_epoch,
            leave=True,
        )
        await self._ask(lambda stub: stub.DrainNode(request, timeout=CALL_S))

    async def _ask(self, call: Callable[[NodeServiceStub], Awaitable[T]]) -> T:
        causes = []
        for _ in range(len(self._stubs)):
            try:
                return await call(self._stubs[0])
            except grpc.aio.AioRpcError as error:
                if problem_of(error).reason in STALE:
                    raise RegistrationStale from error
                causes.append(f"{error.code().name}: {error.details()}")
                self._stubs = [*self._stubs[1:], self._stubs[0]]
        raise RegistryUnreachable("; ".join(causes) or "none is configured")


def _orders(orders: Iterable[api.WorkspaceOrder]) -> tuple[Order, ...]:
    """Return the orders; instructions of later versions are ignored."""
    return tuple(
        Order(WorkspaceId(each.workspace_id), each.epoch, _INSTRUCTION[each.instruction])
        for each in orders
        if each.instruction in _INSTRUCTION
    )
