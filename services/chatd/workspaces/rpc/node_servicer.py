"""NodeService: registration and heartbeats of toolrunners, and orders to them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import grpc

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of
from chatd.workspaces.clients.specs import failure_of
from chatd.workspaces.domain.nodes import HEARTBEAT_S, LOST_AFTER_HEARTBEATS
from chatd.workspaces.domain.secrets import RequestedUse
from chatd.workspaces.engine.registry import Hosted, Instruction, Order, Registry
from chatd.workspaces.rpc.convert import (
    STATES,
    NodePage,
    load_of,
    moment_of,
    node_of,
    node_to_proto,
    usage_of,
)
from chatd.workspaces.store.nodes import NodePlace, PostgresNodes
from chatd.workspaces.store.secrets import PostgresSecrets
from parley.api.workspace.v1 import node_pb2
from parley.api.workspace.v1 import node_service_pb2 as api
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceServicer
from parley.clock import Clock

Context = grpc.aio.ServicerContext

INSTRUCTIONS: Final = {
    Instruction.STOP: api.WORKSPACE_INSTRUCTION_STOP,
    Instruction.REMOVE: api.WORKSPACE_INSTRUCTION_REMOVE,
}


class NodeServicer(NodeServiceServicer):
    """Serves the registry; the server's error table converts errors to problems."""

    def __init__(
        self, registry: Registry, nodes: PostgresNodes, secrets: PostgresSecrets, clock: Clock
    ) -> None:
        self._registry = registry
        self._nodes = nodes
        self._secrets = secrets
        self._clock = clock

    async def RegisterNode(
        self, request: api.RegisterNodeRequest, context: Context
    ) -> api.RegisterNodeResponse:
        """Register a node with all its workspaces."""
        node, orders = await self._registry.register(
            node_of(request.node),
            self._hosted(request.workspaces),
            request.request_id,
        )
        return api.RegisterNodeResponse(
            registration_epoch=node.registration_epoch,
            heartbeat_interval_ms=round(HEARTBEAT_S * 1000),
            lost_after_ms=round(LOST_AFTER_HEARTBEATS.total_seconds() * 1000),
            orders=map(_order, orders),
        )

    async def Heartbeat(
        self, request: api.HeartbeatRequest, context: Context
    ) -> api.HeartbeatResponse:
        """Record a heartbeat of a node."""
        node, orders = await self._registry.heartbeat(
            fields.uuid_of(request.node_id, "node_id"),
            request.registration_epoch,
            load_of(request.load),
            self._hosted(request.workspaces),
        )
        return api.HeartbeatResponse(draining=node.drain_at is not None, orders=map(_order, orders))

    async def DrainNode(
        self, request: api.DrainNodeRequest, context: Context
    ) -> api.DrainNodeResponse:
        """Drain a node."""
        node = await self._registry.drain(
            fields.uuid_of(request.node_id, "node_id"),
            request.registration_epoch,
            timedelta(milliseconds=request.grace_ms),
            is_leaving=request.leave,
        )
        return api.DrainNodeResponse(remaining_workspaces=node.placed)

    async def ListNodes(
        self, request: api.ListNodesRequest, context: Context
    ) -> api.ListNodesResponse:
        """List nodes, including lost and gone ones."""
        length = length_of(request.page_size)
        page = place_of(request.page_token, NodePage)
        found = await self._nodes.list(
            None if page is None else NodePlace(page.id), length + 1, is_gone_shown=True
        )
        shown = found[:length]
        token = token_of(NodePage(shown[-1].id)) if len(found) > length else ""
        return api.ListNodesResponse(nodes=map(node_to_proto, shown), next_page_token=token)

    async def UseSecret(
        self, request: api.UseSecretRequest, context: Context
    ) -> api.UseSecretResponse:
        """Return the value of a granted secret for one use, which is recorded."""
        secret, value = await self._secrets.use(
            RequestedUse(
                request_id=request.request_id,
                node_id=fields.uuid_of(request.node_id, "node_id"),
                registration_epoch=request.registration_epoch,
                workspace_id=fields.uuid_of(request.workspace_id, "workspace_id"),
                epoch=request.epoch,
                secret_name=request.secret_name.strip(),
                host=request.host.strip(),
                purpose=request.purpose.strip(),
            )
        )
        answer = api.UseSecretResponse(username=secret.username, value=value)
        # Values are not cached by nodes: each use is requested, so that it is recorded and a
        # revoked grant takes effect at once.
        answer.expires_at.FromDatetime(self._clock.now())
        return answer

    def _hosted(self, given: Sequence[node_pb2.HostedWorkspace]) -> list[Hosted]:
        return [self._hosted_one(each, index) for index, each in enumerate(given)]

    def _hosted_one(self, given: node_pb2.HostedWorkspace, index: int) -> Hosted:
        state = STATES.get(given.state)
        if state is None:
            raise InvalidRequest(f"workspaces[{index}].state", "must be given")
        used_at = moment_of(given.last_used_at) if given.HasField("last_used_at") else None
        if given.attachments or given.waits:
            used_at = self._clock.now()
        return Hosted(
            workspace_id=fields.uuid_of(given.workspace_id, f"workspaces[{index}].workspace_id"),
            epoch=given.epoch,
            state=state,
            processes=given.processes,
            usage=usage_of(given.usage) if given.HasField("usage") else None,
            used_at=used_at,
            failure=failure_of(given.failure) if given.HasField("failure") else None,
        )


def _order(order: Order) -> api.WorkspaceOrder:
    return api.WorkspaceOrder(
        workspace_id=order.workspace_id,
        epoch=order.epoch,
        instruction=INSTRUCTIONS[order.instruction],
    )
