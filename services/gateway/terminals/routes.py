"""Terminals over WebSockets: chatd issues a ticket, and the node of the process accepts it."""

from collections.abc import Callable
from typing import Any, Final

import grpc
from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.problems.errors import UpstreamProblem
from gateway.http.request_body import flag, int_parameter, invalid_parameter, read_query
from gateway.http.sign_in_watch import SignInWatch
from gateway.http.websockets import require_websocket
from gateway.streams.chatd_client import ChatdClient
from gateway.streams.workspace_client import workspace_of
from gateway.terminals.bridge import TerminalBridge
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as node_api
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import Clock
from parley.contract.rules import JSON_INTEGER_MAX
from parley.identity import User
from parley.rpc import LIMITS, Address, Channels, Problem, acting_for, problem_of

CELLS_MAX: Final = 1000
FROM_NOW: Final = -1
GONE: Final = Problem.of("UPSTREAM_UNAVAILABLE", "the node ended the attachment")


class TerminalRoutes:
    """The routes of terminals: of processes, and of shells that are started for them.

    Args:
        chatd: Issues tickets.
        nodes: Channels to the nodes that tickets name; new ones are added.
        sign_ins: Watches credentials.
        new_id: Generates ids of requests for tickets.
        clock: The clock.
    """

    def __init__(
        self,
        chatd: ChatdClient,
        nodes: Channels,
        sign_ins: SignInWatch,
        *,
        new_id: Callable[[], str],
        clock: Clock,
    ) -> None:
        self._chatd = chatd
        self._nodes = nodes
        self._sign_ins = sign_ins
        self._new_id = new_id
        self._clock = clock

    async def attach(self, request: Request, principal: Principal) -> ASGIApp:
        """Attach to a process of a chat's workspace, from a cursor on."""
        chat_id = path_id(request, "chat_id")
        asked = api.IssueAttachTicketRequest(chat_id=chat_id)
        with workspace_of(chat_id):
            return await self._attach(request, principal, asked)

    async def attach_in_workspace(self, request: Request, principal: Principal) -> ASGIApp:
        """Attach to a process of a workspace, from a cursor on."""
        asked = api.IssueAttachTicketRequest(workspace_id=path_id(request, "workspace_id"))
        return await self._attach(request, principal, asked)

    async def open_shell(self, request: Request, principal: Principal) -> ASGIApp:
        """Start a shell in a workspace and attach to it."""
        query = read_query(request, "workdir", "rows", "columns")
        require_websocket(request)
        size = _size(query)
        shell = api.NewShell(
            workdir=query.get("workdir", ""),
            rows=0 if size is None else size.rows,
            columns=0 if size is None else size.columns,
        )
        asked = api.IssueAttachTicketRequest(
            request_id=self._new_id(), workspace_id=path_id(request, "workspace_id"), shell=shell
        )
        return await self._open_bridge(principal, asked, node_api.AttachOpen(size=size))

    async def _attach(
        self, request: Request, principal: Principal, asked: api.IssueAttachTicketRequest
    ) -> ASGIApp:
        query = read_query(request, "cursor", "rows", "columns", "view_only")
        require_websocket(request)
        asked.request_id, asked.process_id = self._new_id(), path_id(request, "process_id")
        asked.view_only = flag(query, "view_only")
        since = _cursor(query.get("cursor"), query)
        return await self._open_bridge(
            principal, asked, node_api.AttachOpen(since_cursor=since, size=_size(query))
        )

    async def _open_bridge(
        self,
        principal: Principal,
        asked: api.IssueAttachTicketRequest,
        opening: node_api.AttachOpen,
    ) -> ASGIApp:
        ticket, _ = await self._chatd.ask(
            principal.user,
            asked.chat_id or asked.workspace_id,
            lambda stubs: stubs.catalogue.IssueAttachTicket(asked),
        )
        opening.ticket, opening.process_id = ticket.ticket, ticket.process_id
        call, opened = await self._opened(principal.user, ticket.node_address, opening)
        return TerminalBridge(
            call,
            opened,
            watching=lambda is_over: self._sign_ins.watching(principal, is_over),
            clock=self._clock,
        )

    async def _opened(
        self, user: User, node: str, opening: node_api.AttachOpen
    ) -> tuple[Any, node_api.AttachOpened]:
        """Open an attachment; an error is returned before the WebSocket is accepted."""
        address = Address.parse(node)
        with acting_for(user):
            stub = ProcessServiceStub(self._nodes.also(address))
            method: Any = stub.Attach
            call = method(timeout=LIMITS.stream_deadline_s)
        try:
            await call.write(node_api.AttachRequest(open=opening))
            first = await call.read()
        except grpc.aio.AioRpcError as error:
            raise UpstreamProblem(problem_of(error)) from error
        except BaseException:
            call.cancel()
            raise
        if first is grpc.aio.EOF or first.WhichOneof("kind") != "opened":
            call.cancel()
            raise UpstreamProblem(GONE)
        return call, first.opened


def _cursor(given: str | None, query: Any) -> int:
    if given == "now":
        return FROM_NOW
    return int_parameter(query, "cursor", least=0, most=JSON_INTEGER_MAX) or 0


def _size(query: Any) -> process_pb2.TerminalSize | None:
    rows = int_parameter(query, "rows", least=1, most=CELLS_MAX)
    columns = int_parameter(query, "columns", least=1, most=CELLS_MAX)
    if (rows is None) is not (columns is None):
        raise invalid_parameter("rows", "Give both rows and columns, or neither.")
    if rows is None or columns is None:
        return None
    return process_pb2.TerminalSize(rows=rows, columns=columns)
