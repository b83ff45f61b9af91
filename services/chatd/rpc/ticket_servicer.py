"""WorkspaceService as far as it is there: tickets for terminals."""

import grpc

from chatd.rpc.attach_tickets import AttachTickets
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceServicer


class TicketServicer(WorkspaceServiceServicer):
    """Serves tickets; whatever else the service declares is not implemented."""

    def __init__(self, tickets: AttachTickets) -> None:
        self._tickets = tickets

    async def IssueAttachTicket(  # noqa: N802 (the name is the proto's)
        self, request: api.IssueAttachTicketRequest, context: grpc.aio.ServicerContext
    ) -> api.IssueAttachTicketResponse:
        """Issue a ticket for a terminal."""
        return await self._tickets.issue(request)
