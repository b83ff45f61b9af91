"""Issues terminal tickets to the owner of a workspace, for the node of the process."""

import uuid
from typing import Final

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.rpc import fields
from chatd.workspaces.clients.nodes import Nodes, answered
from chatd.workspaces.rpc.access import AuthorizedAccess, WorkspaceAccess
from parley.api.workspace.v1 import execution_service_pb2, process_pb2, process_service_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.identity import TicketIssuer
from parley.rpc import acting_for

ANSWER_S: Final = 30.0
CELLS_MAX: Final = 1000
ROWS: Final = 24
COLUMNS: Final = 80
SHELL: Final = 'exec "${SHELL:-/bin/sh}" -i'
#: Ticket ids are derived from the request in this namespace, so that a retry issues the same one.
TICKETS: Final = uuid.UUID("2b8f9c56-4f0e-4e0e-9d6d-1a6f6a3c7d21")


class AttachTickets:
    """Issues tickets for WorkspaceService.

    Args:
        workspace_access: Authorises callers.
        nodes: The clients of nodes.
        office: Signs tickets.
    """

    def __init__(
        self, workspace_access: WorkspaceAccess, nodes: Nodes, office: TicketIssuer
    ) -> None:
        self._workspace_access = workspace_access
        self._nodes = nodes
        self._office = office

    async def issue(self, request: api.IssueAttachTicketRequest) -> api.IssueAttachTicketResponse:
        """Issue a ticket for a process, or for a shell that is started for it.

        Raises:
            WorkspaceNotFound: The caller is not its owner.
            InvalidRequest: The target is missing.
            Refusal: The node refuses, or does not respond.
        """
        named = request.workspace_id or request.chat_id
        access = await self._workspace_access.for_changing(named)
        words = access.request_id(request.request_id)
        match request.WhichOneof("target"):
            case "process_id":
                process_id = fields.uuid_of(request.process_id, "process_id")
            case "shell":
                process_id = await self._shell(access, words, request.shell)
            case _:
                raise InvalidRequest("target", "is missing: give process_id or shell")
        stub = self._nodes.executions(access.workspace_id)
        asked = execution_service_pb2.GetJournalRequest()
        journal = await answered(stub.GetJournal(asked, timeout=ANSWER_S))
        ticket, expires_at = self._office.issue(
            str(uuid.uuid5(TICKETS, words)),
            user_id=access.user.id,
            workspace_id=access.workspace_id,
            epoch=access.epoch,
            process_id=process_id,
            node=journal.journal_generation,
            is_view_only=request.view_only,
        )
        response = api.IssueAttachTicketResponse(
            ticket=ticket,
            node_address=str(self._nodes.address(access.workspace_id)),
            process_id=process_id,
        )
        response.expires_at.FromDatetime(expires_at)
        return response

    async def _shell(self, access: AuthorizedAccess, request_id: str, shell: api.NewShell) -> str:
        size = process_pb2.TerminalSize(rows=shell.rows or ROWS, columns=shell.columns or COLUMNS)
        asked = process_service_pb2.StartProcessRequest(
            context=access.context(),
            request_id=request_id,
            spec=process_pb2.ProcessSpec(
                command=SHELL,
                workdir=shell.workdir,
                stdin_mode=process_pb2.STDIN_MODE_TERMINAL,
                terminal=size,
                background=True,
            ),
        )
        with acting_for(access.user):
            call = self._nodes.processes(access.workspace_id).StartProcess(asked, timeout=ANSWER_S)
        return (await answered(call)).process.process_id
