"""Wiring of the route handlers, one class for each resource."""

import asyncio
import os
from dataclasses import dataclass

from gateway.api.contract import contract_routes
from gateway.api.transcoded_route import Calls
from gateway.exports.collection import Collection
from gateway.exports.runner import ExportRunner
from gateway.http.application import UserRoute
from gateway.identity.engine.user_names import UserNames
from gateway.identity.wiring import Identity
from gateway.routes.account_exports import AccountExportRoutes
from gateway.routes.audit_log import AuditLogRoutes
from gateway.routes.export import ExportRoutes
from gateway.routes.files import FileRoutes
from gateway.routes.identity_calls import SERVICERS, IdentityCalls
from gateway.routes.processes import ProcessRoutes
from gateway.routes.sign_in import SignInRoutes
from gateway.routes.upload_slots import UploadSlots
from gateway.routes.workspace_files import WorkspaceFileRoutes
from gateway.routes.workspaces import WorkspaceRoutes
from gateway.streams.chatd_calls import STUBS, ChatdCalls
from gateway.streams.chatd_client import ChatdClient
from gateway.streams.event_stream import StreamLimits
from gateway.streams.followed_processes import FollowedProcesses
from gateway.streams.links import Links
from gateway.streams.mcpgateway_calls import STUBS as MCP_STUBS
from gateway.streams.mcpgateway_calls import McpGatewayCalls
from gateway.streams.open_streams import OpenStreams
from gateway.streams.routes import EventRoutes
from gateway.streams.workspace_client import Workspaces
from gateway.terminals.routes import TerminalRoutes
from gateway.web.mcp_logins import McpLoginPages
from gateway.web.oidc import OidcPages
from gateway.web.page_files import load_page_files
from gateway.web.routes import PageRoutes
from gateway.web.sign_in import SignInPages
from parley.process import Process
from parley.rpc import Channels
from parley.settings import Secret


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of the handlers.

    Attributes:
        identity: Users, groups and credentials.
        chatd: The client of chatd.
        links: The shared streams to chatd.
        nodes: Channels to the nodes of terminals.
        mcpgateways: Channels to the processes of mcpgateway.
        streams: The open streams of clients.
        draining: Set once the gateway stops.
        names: The names that users show.
    """

    identity: Identity
    chatd: ChatdClient
    links: Links
    nodes: Channels
    mcpgateways: Channels
    streams: OpenStreams
    draining: asyncio.Event
    names: UserNames


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers, by resource.

    Attributes:
        declared: The routes that the protos declare.
    """

    declared: tuple[UserRoute, ...]
    pages: PageRoutes
    sign_in_pages: SignInPages
    oidc_pages: OidcPages
    mcp_login_pages: McpLoginPages
    sign_in: SignInRoutes
    events: EventRoutes
    export: ExportRoutes
    processes: ProcessRoutes
    terminal: TerminalRoutes
    workspace_files: WorkspaceFileRoutes
    workspaces: WorkspaceRoutes
    files: FileRoutes
    audit_log: AuditLogRoutes
    account_exports: AccountExportRoutes
    export_runner: ExportRunner


def open_handlers(
    behind: Dependencies, process: Process, *, login_token: Secret | None, limits: StreamLimits
) -> Handlers:
    """Return the handlers."""
    identity, chatd, new_id = behind.identity, behind.chatd, process.new_id
    workspaces, slots = Workspaces(chatd), UploadSlots()
    events = _events(behind, FollowedProcesses(workspaces, process.clock), process, limits)
    mcp_calls = McpGatewayCalls(behind.mcpgateways)
    identity_calls = IdentityCalls(identity.servicers)
    calls: dict[str, Calls] = {
        **dict.fromkeys(STUBS, ChatdCalls(chatd)),
        **dict.fromkeys(SERVICERS, identity_calls),
        **dict.fromkeys(MCP_STUBS, mcp_calls),
    }
    oidc_pages = OidcPages(identity.authentication, identity.oidc)
    sign_in_pages = SignInPages(
        identity.authentication, identity.sign_in, identity.own_sessions, oidc_pages
    )
    return Handlers(
        declared=contract_routes(calls, new_id=new_id, name_of=behind.names.name_of),
        pages=PageRoutes(
            identity.authentication,
            identity.people,
            identity.sign_in,
            sign_in_pages,
            chatd,
            load_page_files(),
            login_token=login_token,
            clock=process.clock,
            draining=behind.draining,
        ),
        sign_in_pages=sign_in_pages,
        oidc_pages=oidc_pages,
        mcp_login_pages=McpLoginPages(
            identity.authentication,
            mcp_calls,
            new_id=new_id,
            token_bytes=os.urandom,
        ),
        sign_in=SignInRoutes(identity_calls, identity.authentication),
        events=events,
        export=ExportRoutes(chatd, behind.names.name_of),
        processes=ProcessRoutes(workspaces, draining=behind.draining),
        terminal=TerminalRoutes(
            chatd, behind.nodes, identity.sign_ins, new_id=new_id, clock=process.clock
        ),
        workspace_files=WorkspaceFileRoutes(
            workspaces, stream=events.stream, new_id=new_id, clock=process.clock, slots=slots
        ),
        workspaces=WorkspaceRoutes(chatd, stream=events.stream),
        files=FileRoutes(chatd, new_id=new_id, clock=process.clock, slots=slots),
        audit_log=AuditLogRoutes(identity_calls),
        account_exports=AccountExportRoutes(identity.exports, identity.export_store),
        export_runner=ExportRunner(
            identity.export_store,
            identity.people,
            lambda user, known: Collection(user, chatd, identity_calls.for_user, known),
            process.clock,
        ),
    )


def _events(
    behind: Dependencies, processes: FollowedProcesses, process: Process, limits: StreamLimits
) -> EventRoutes:
    return EventRoutes(
        behind.links,
        behind.streams,
        behind.identity.sign_ins,
        processes,
        clock=process.clock,
        rng=process.random,
        limits=limits,
    )
