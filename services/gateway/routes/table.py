"""The routing table: what the protos declare, and what the gateway serves itself."""

from gateway.http.application import AnyRoute, OpenRoute, UserRoute
from gateway.http.file_headers import BYTES
from gateway.routes.account_exports import AccountExportRoutes
from gateway.routes.files import UPLOADED_TYPES, FileRoutes
from gateway.routes.processes import ProcessRoutes
from gateway.routes.sign_in import (
    OFFERED_LINK,
    SECOND_FACTOR,
    SIGN_IN,
    SIGN_OUT,
    START_PASSKEY,
    USE_LINK,
    USE_PASSKEY,
    SignInRoutes,
    body_of_method,
)
from gateway.routes.wiring import Handlers
from gateway.routes.workspace_files import WorkspaceFileRoutes
from gateway.routes.workspaces import WorkspaceRoutes
from gateway.terminals.routes import TerminalRoutes
from gateway.web.mcp_logins import CALLBACK, CLIENT_DOCUMENT, START, McpLoginPages
from gateway.web.oidc import OidcPages
from gateway.web.routes import PageRoutes
from gateway.web.sign_in import SignInPages

API = "/api/v1"
CHAT = f"{API}/chats/{{chat_id}}"
#: Addresses that the page shows by itself.
PAGE_PATHS = (
    "/",
    "/sign-in",
    "/waiting",
    "/chats/{chat_id}",
    "/races",
    "/races/{race_id}",
    "/settings",
    "/settings/{section}",
    "/admin",
    "/admin/{section}",
)


def routes(handlers: Handlers) -> tuple[AnyRoute, ...]:
    """Return every route."""
    served = (
        *_pages(handlers.pages),
        *_sign_in(handlers.sign_in_pages, handlers.sign_in),
        *_oidc(handlers.oidc_pages),
        *_mcp_logins(handlers.mcp_login_pages),
        *_streams(handlers),
        *_workspaces(handlers.processes, handlers.workspace_files),
        *_terminals(handlers.terminal),
        *_workspace_events(handlers.workspaces),
        *_files(handlers.files),
        UserRoute("GET", f"{API}/audit-log/export", handlers.audit_log.export, answers_head=False),
        *_account_exports(handlers.account_exports),
    )
    return (*handlers.declared, *served)


def _pages(pages: PageRoutes) -> tuple[AnyRoute, ...]:
    return (
        *(OpenRoute("GET", path, pages.page) for path in PAGE_PATHS),
        OpenRoute("GET", "/terminal", pages.terminal),
        OpenRoute("GET", "/service-worker.js", pages.service_worker),
        OpenRoute("GET", "/assets/{name}", pages.asset),
        OpenRoute("GET", "/account", pages.account),
        OpenRoute("GET", "/docs", pages.docs),
        OpenRoute("GET", "/openapi.json", pages.openapi),
        OpenRoute("GET", "/problems", pages.problems),
        OpenRoute("GET", "/problems/{code}", pages.problem),
        # A HEAD request must not consume the link.
        OpenRoute("GET", "/login", pages.login, answers_head=False),
        OpenRoute("GET", "/healthz", pages.healthz),
        OpenRoute("GET", "/connection", pages.connection),
        OpenRoute("GET", "/readyz", pages.readyz),
    )


def _sign_in(pages: SignInPages, sign_in: SignInRoutes) -> tuple[AnyRoute, ...]:
    return (
        OpenRoute("GET", f"{API}/configuration", sign_in.configuration),
        OpenRoute("POST", "/login", pages.sign_in),
        OpenRoute("POST", "/login/code", pages.second_factor),
        OpenRoute("POST", "/logout", pages.sign_out),
        OpenRoute("GET", "/link", pages.link_form, query=("token",)),
        OpenRoute("POST", "/link", pages.use_link),
        *(
            OpenRoute("POST", f"{API}/sign-in{path}", handle, body=body_of_method(method).type)
            for path, method, handle in (
                ("", SIGN_IN, sign_in.sign_in),
                ("/second-factor", SECOND_FACTOR, sign_in.second_factor),
                ("/link", OFFERED_LINK, sign_in.offered_link),
                ("/link/password", USE_LINK, sign_in.use_link),
                ("/passkey/options", START_PASSKEY, sign_in.start_passkey),
                ("/passkey", USE_PASSKEY, sign_in.use_passkey),
            )
        ),
        UserRoute("POST", f"{API}/sign-out", sign_in.sign_out, body=body_of_method(SIGN_OUT).type),
    )


def _oidc(pages: OidcPages) -> tuple[AnyRoute, ...]:
    path = "/login/oidc/{issuer}"
    return (
        # A HEAD request must not begin or finish a sign-in.
        OpenRoute("GET", path, pages.start, answers_head=False),
        OpenRoute("GET", f"{path}/callback", pages.finish, answers_head=False),
    )


def _mcp_logins(pages: McpLoginPages) -> tuple[AnyRoute, ...]:
    return (
        OpenRoute("GET", START, pages.start, answers_head=False),
        OpenRoute("GET", CALLBACK, pages.finish, answers_head=False),
        OpenRoute("GET", CLIENT_DOCUMENT, pages.client_document),
    )


def _streams(handlers: Handlers) -> tuple[AnyRoute, ...]:
    export, events = handlers.export, handlers.events
    return (
        UserRoute("GET", f"{CHAT}/export", export.export, answers_head=False, query=("format",)),
        UserRoute(
            "GET",
            f"{CHAT}/events",
            events.chat,
            answers_head=False,
            query=("cursor", "after_id", "types", "processes"),
        ),
        UserRoute(
            "GET", f"{API}/events", events.feed, answers_head=False, query=("cursor", "types")
        ),
    )


def _workspace_events(workspaces: WorkspaceRoutes) -> tuple[AnyRoute, ...]:
    path, query = f"{API}/workspaces/{{workspace_id}}/events", ("after", "types")
    return (UserRoute("GET", path, workspaces.events, answers_head=False, query=query),)


def _workspaces(processes: ProcessRoutes, files: WorkspaceFileRoutes) -> tuple[AnyRoute, ...]:
    output = f"{CHAT}/processes/{{process_id}}/output"
    waited = ("wait", "until", "pattern", "cursor", "max_bytes")
    return (
        UserRoute("GET", output, processes.output, query=waited),
        UserRoute("GET", f"{CHAT}/files/content", files.download, query=("path",)),
        UserRoute(
            "PUT",
            f"{CHAT}/files/content",
            files.upload,
            query=("path", "create_only"),
            uploads=(BYTES,),
        ),
        UserRoute(
            "GET", f"{CHAT}/git/events", files.git_events, answers_head=False, query=("types",)
        ),
    )


def _terminals(terminal: TerminalRoutes) -> tuple[AnyRoute, ...]:
    workspace, process = f"{API}/workspaces/{{workspace_id}}", "processes/{process_id}/terminal"
    attached = ("cursor", "rows", "columns", "view_only")
    return tuple(
        UserRoute("GET", path, handler, answers_head=False, query=query, upgrades=True)
        for path, handler, query in (
            (f"{CHAT}/{process}", terminal.attach, attached),
            (f"{workspace}/{process}", terminal.attach_in_workspace, attached),
            (f"{workspace}/terminal", terminal.open_shell, ("workdir", "rows", "columns")),
        )
    )


def _account_exports(exports: AccountExportRoutes) -> tuple[AnyRoute, ...]:
    path = "exports/{export_id}/archive"
    return (
        UserRoute("GET", f"{API}/me/{path}", exports.own, answers_head=False),
        UserRoute("GET", f"{API}/users/{{user_id}}/{path}", exports.of_user, answers_head=False),
    )


def _files(files: FileRoutes) -> tuple[AnyRoute, ...]:
    file = f"{API}/files/{{file_id}}"
    return (
        UserRoute(
            "POST", f"{API}/files", files.upload, query=("name",), uploads=(*UPLOADED_TYPES,)
        ),
        UserRoute("GET", file, files.download),
    )
