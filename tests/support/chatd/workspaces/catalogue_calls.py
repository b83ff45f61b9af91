"""Workspaces and templates as tests ask for them over gRPC."""

from typing import Any

from chatd.workspaces.domain.templates import SCRATCH_ID
from parley.api.workspace.v1 import node_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1 import node_service_pb2 as nodes_api
from parley.api.workspace.v1 import workspace_service_pb2 as api
from support.chatd.chats.chat_people import Person
from support.chatd.chats.served_chats import ServedChats

NO_CONTEXT: Any = None  # These methods ask nothing of it.
NODE_ID = "00000000-0000-0000-0000-0000000000f1"
READY, STOPPED = workspace_pb2.WORKSPACE_STATE_READY, workspace_pb2.WORKSPACE_STATE_STOPPED


async def create(person: Person, **more: Any) -> api.CreateWorkspaceResponse:
    """Create a scratch workspace, or what is asked for."""
    more = {"request_id": person.fresh(), "template_id": SCRATCH_ID, **more}
    answer: api.CreateWorkspaceResponse = await person.ask(api.CreateWorkspaceRequest(**more))
    return answer


def node(**more: Any) -> node_pb2.Node:
    """Return a node as it tells of itself."""
    return node_pb2.Node(
        node_id=NODE_ID,
        name="n1",
        address="unix:/run/n1.sock",
        capacity=node_pb2.NodeCapacity(workspaces=10),
        sandbox=sandbox_pb2.SandboxReport(level=sandbox_pb2.SANDBOX_LEVEL_NS, summary="good"),
        **more,
    )


class ReportingNode:
    """A toolrunner that tells of itself."""

    def __init__(self, served: ServedChats, stub: Any) -> None:
        self.stub = stub
        self.served = served
        self.count = 0

    async def register(self, *hosted: node_pb2.HostedWorkspace) -> Any:
        """Register with what is hosted."""
        self.count += 1
        servicer = self.served.catalogue.servicers[1]
        request = nodes_api.RegisterNodeRequest(
            request_id=f"r{self.count}", node=node(), workspaces=hosted
        )
        return await servicer.RegisterNode(request, NO_CONTEXT)

    async def heartbeat(
        self, epoch: int, *hosted: node_pb2.HostedWorkspace, problem: str = ""
    ) -> Any:
        """Tell what is hosted now."""
        servicer = self.served.catalogue.servicers[1]
        request = nodes_api.HeartbeatRequest(
            request_id="h",
            node_id=NODE_ID,
            registration_epoch=epoch,
            load=node_pb2.NodeLoad(problem=problem),
            workspaces=hosted,
        )
        return await servicer.Heartbeat(request, NO_CONTEXT)


def hosted(
    workspace_id: str, state: "workspace_pb2.WorkspaceState.ValueType", **more: Any
) -> node_pb2.HostedWorkspace:
    """Return what a node tells of one workspace."""
    return node_pb2.HostedWorkspace(workspace_id=workspace_id, epoch=1, state=state, **more)
