"""The ASGI application: routes with their access rules, and the processing around each request.

The steps of a request are, in this order: request id and trace, client and host, routing, sign-in
and role, the limits of its user and address, the handler. An error in any step is answered with a
problem document.
"""

import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, assert_never

import msgspec
from opentelemetry.trace import Span, SpanKind
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.access_log import AccessLog, RequestLogEntry
from gateway.http.addresses import PublicUrl
from gateway.http.authentication import Authentication, Credential, Principal, check_scope
from gateway.http.compression import compressed
from gateway.http.cors import Cors
from gateway.http.forwarding import HOST, Client, Forwarding
from gateway.http.limits.admission import Admission, Duration, Requester
from gateway.http.path_tree import PathTree
from gateway.http.problems.errors import (
    PROBLEM_MEDIA_TYPE,
    Answer,
    HttpProblem,
    ProblemContext,
    answer_to,
    is_internal,
)
from gateway.http.problems.field_paths import ANYTHING, RouteInputs
from gateway.http.protocol import ADMITTED, AUTHENTICATED, PRESENCE, WAITED_S
from gateway.http.request_body import drain
from gateway.http.route_access import Access, Need, RouteUndeclared
from gateway.http.websockets import as_request, is_websocket, refusing
from parley.rpc import current_method, set_client_address
from parley.telemetry import Durations, Telemetry

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
HSTS: Final = "max-age=31536000"
ROUTE: Final = "parley.route"
ASKED: Final = "parley.asked"
USER_ID: Final = "parley.user_id"
ADDRESS: Final = "parley.address"
#: Headers that every response to the request has.
HEADERS: Final = "parley.headers"
CLIENT: Final = "parley.client"
SERVED_ROUTE: ContextVar[str] = ContextVar("gateway_served_route", default="")
TOO_OLD: Final = (
    "Streams need HTTP/1.1; a proxy in between may have to be told so, such as nginx with "
    "proxy_http_version 1.1."
)
DURATION: Final = "http_server_request_duration_seconds"
DURATION_LABELS: Final = ("http_request_method", "http_route", "http_response_status_code")
# Clients may send arbitrary methods, and each would be its own metric series.
MEASURED_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_log = logging.getLogger(__name__)

OpenHandler = Callable[[Request], Awaitable[ASGIApp]]
UserHandler = Callable[[Request, Principal], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A route without sign-in."""

    method: str
    path: str
    handle: OpenHandler
    answers_head: bool = True
    body: type[msgspec.Struct] | None = None
    query: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserRoute:
    """A route that requires a sign-in.

    Attributes:
        method: The method.
        path: The path, with its parameters in braces.
        handle: The handler.
        answers_head: Whether HEAD is answered like GET.
        body: The type of its JSON body, if any.
        query: Its query parameters.
        conditional: Whether it supports If-Match.
        uploads: The media types of its body, if it is not JSON.
        upgrades: Whether it accepts only WebSocket handshakes.
    """

    method: str
    path: str
    handle: UserHandler
    answers_head: bool = True
    body: type[msgspec.Struct] | None = None
    query: tuple[str, ...] = ()
    conditional: bool = False
    uploads: tuple[str, ...] = ()
    upgrades: bool = False


AnyRoute = OpenRoute | UserRoute


@dataclass(frozen=True, slots=True)
class ApplicationDependencies:
    """The dependencies of request processing.

    Attributes:
        authentication: Authenticates requests.
        telemetry: Traces and metrics.
        public_url: The origin in links and checks.
        allowed_hosts: Allowed Host headers besides the public host and loopback.
        new_id: Generates ids of requests without one.
        admission: Limits the concurrent requests of a user or address.
        forwarding: Determines the clients behind proxies.
        access_log: Logs each request that has ended.
        cors: Other origins whose pages may use the API.
    """

    authentication: Authentication
    telemetry: Telemetry
    public_url: PublicUrl
    allowed_hosts: tuple[str, ...]
    new_id: Callable[[], str]
    admission: Admission
    forwarding: Forwarding
    access_log: AccessLog
    cors: Cors = field(default_factory=Cors)


def served_operation() -> str:
    """Return the route or gRPC method that is being served, empty outside of any."""
    return SERVED_ROUTE.get() or current_method()


class Application:
    """The HTTP application of the gateway."""

    def __init__(
        self,
        routes: Iterable[AnyRoute],
        around: ApplicationDependencies,
        access: Mapping[tuple[str, str], Access],
        *,
        absent: Callable[[Request], Response | None] = lambda request: None,
    ) -> None:
        """Build the routing table.

        Args:
            routes: The routes.
            around: The dependencies.
            access: Who may use each route.
            absent: Returns what to answer at a path without a route, or None for a problem.

        Raises:
            RouteUndeclared: The access table and the routes differ.
        """
        routes = tuple(routes)
        _check_declared(routes, access)
        by_path: dict[str, dict[str, AnyRoute]] = {}
        for route in routes:
            by_path.setdefault(route.path, {})[route.method] = route
        self._endpoints = PathTree[_PathEndpoint]()
        for path, methods in by_path.items():
            self._endpoints.add(path, _PathEndpoint(path, methods, access, around))
        self._around = around
        self._absent = absent
        self._hosts = LOOPBACK_NAMES | {
            host_name(host) for host in (around.public_url.host, *around.allowed_hosts)
        }
        self._headers = dict(SECURITY_HEADERS)
        if around.public_url.is_https:
            self._headers["strict-transport-security"] = HSTS
        self._durations = Durations(
            DURATION, "Time until a request's answer began, by route.", DURATION_LABELS
        )
        around.telemetry.registry.register(self._durations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or serve one WebSocket."""
        if scope["type"] == "websocket":
            scope, send = as_request(scope), refusing(send)
        request = Request(scope)
        given_id = request.headers.get("x-request-id", "")
        request_id = given_id if _REQUEST_ID.fullmatch(given_id) else self._around.new_id()
        telemetry = self._around.telemetry
        with telemetry.tracer.start_as_current_span(
            f"{scope['method']} HTTP",
            context=telemetry.extract({**request.headers}),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": scope["method"]},
        ) as span:
            cors = self._around.cors
            headers = scope[HEADERS] = {
                **self._headers,
                **cors.headers(request),
                "x-request-id": request_id,
            }
            sending = _ResponseSender(send, headers, scope["http_version"])
            started_at = time.perf_counter()
            try:
                self._check_client(request)
                preflight = cors.preflight(request)
                await (preflight or self._endpoint(scope))(scope, receive, sending)
            except Exception as error:
                if sending.status is not None:
                    # The response has already started; closing the connection is the only way to
                    # report the error.
                    raise
                answer = self._answer(error, span, request, request_id)
                await _send_answer(answer, receive, sending)
            finally:
                self._record(span, scope, sending, started_at)
                self._log_access(scope, sending, request_id, time.perf_counter() - started_at)

    def _endpoint(self, scope: Scope) -> ASGIApp:
        found = self._endpoints.find(scope["path"])
        if found is None:
            if (answer := self._absent(Request(scope))) is not None:
                return answer
            raise HttpProblem.of("NO_SUCH_PATH", "There is nothing at this path; see /docs.")
        endpoint, scope["path_params"] = found
        return endpoint

    def _log_access(
        self, scope: Scope, sending: "_ResponseSender", request_id: str, duration_s: float
    ) -> None:
        served = RequestLogEntry(
            method=scope["method"],
            route=scope.get(ROUTE, ""),
            status=sending.status,
            duration_s=duration_s,
            request_id=request_id,
            user_id=scope.get(USER_ID, ""),
            chat_id=scope.get("path_params", {}).get("chat_id", ""),
        )
        self._around.access_log.write(served)

    def _answer(self, error: Exception, span: Span, request: Request, request_id: str) -> Answer:
        trace_id = f"{span.get_span_context().trace_id:032x}"
        # Not request.url, which is built from the Host header and fails when that is invalid.
        path = request.scope["path"]
        asked = request.scope.get(ASKED, ANYTHING)
        at = ProblemContext(str(self._around.public_url), path, request_id, trace_id, asked)
        if is_internal(error):
            found_by = {"request_id": request_id}
            _log.error("%s %r failed", request.method, path, exc_info=error, extra=found_by)
        return answer_to(error, at)

    def _check_client(self, request: Request) -> None:
        """Find out who asks for which host, and refuse other hosts and unprotected connections."""
        client = self._around.forwarding.client_of(request)
        request.scope[CLIENT], request.scope[ADDRESS] = client, client.address
        request.scope[HOST] = client.host
        set_client_address(client.address)
        if host_name(client.host) not in self._hosts:
            raise HttpProblem.of(
                "HOST_NOT_ALLOWED",
                "This host name is not served here; use the public URL, or have the operator "
                "add the name to GATEWAY_ALLOWED_HOSTS.",
            )
        if client.scheme == "http" and self._around.public_url.is_https:
            raise HttpProblem.of(
                "HTTPS_REQUIRED", f"Use {self._around.public_url}; never send a key over http."
            )

    def _record(
        self, span: Span, scope: Scope, sending: "_ResponseSender", started_at: float
    ) -> None:
        route, status = scope.get(ROUTE, ""), sending.status or 0
        method = scope["method"] if scope["method"] in MEASURED_METHODS else "_OTHER"
        duration_s = (sending.started_at or time.perf_counter()) - started_at
        self._durations.of(method, route, str(status)).record(duration_s)
        if span.is_recording():
            span.update_name(f"{method} {route or 'unknown'}")
            span.set_attributes({"http.route": route, "http.response.status_code": status})


class _PathEndpoint:
    """All methods of one path."""

    def __init__(
        self,
        path: str,
        routes: Mapping[str, AnyRoute],
        access: Mapping[tuple[str, str], Access],
        around: ApplicationDependencies,
    ) -> None:
        self._path = path
        self._routes = dict(routes)
        if "GET" in routes and routes["GET"].answers_head:
            self._routes["HEAD"] = routes["GET"]
        self._inputs = {
            method: RouteInputs(route.path, route.query, route.body)
            for method, route in self._routes.items()
        }
        # Rules are read from the descriptors of methods, so that no request does it.
        self._rules = {method: access[route.method, path].rule for method, route in routes.items()}
        self._access = access
        self._authentication = around.authentication
        self._admission = around.admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the handler of the request's method."""
        scope[ROUTE] = self._path
        SERVED_ROUTE.set(f"{scope['method']} {self._path}")
        route = self._routes.get(scope["method"])
        if route is None:
            allowed = ", ".join(sorted(self._routes))
            detail = f"This path answers {allowed}."
            raise HttpProblem.of("METHOD_NOT_ALLOWED", detail, headers={"allow": allowed})
        scope[ASKED] = self._inputs[scope["method"]]
        _check_upgrade(scope, route)
        request = Request(scope, receive)
        address, headers = scope[ADDRESS], scope[HEADERS]
        self._admission.count("address", address, headers)
        match route:
            case OpenRoute(handle=handle):
                requester = Requester("", address, scope.get(PRESENCE))
                async with self._admission.admitted(requester, Duration.STREAM):
                    _tell(scope, ADMITTED)
                    response = await compressed(request, await handle(request))
                    await response(scope, receive, send)
            case UserRoute(handle=handle_user):
                principal = await self._principal(route, request)
                self._admission.count("user", principal.user.id, headers)
                if principal.credential is Credential.API_KEY:
                    self._admission.count("key", principal.credential_id, headers)
                _tell(scope, AUTHENTICATED)
                requester = Requester(
                    principal.user.id, address, scope.get(PRESENCE), scope.get(WAITED_S, 0.0)
                )
                duration = self._access[route.method, route.path].duration
                async with self._admission.admitted(requester, duration) as is_open:
                    _tell(scope, ADMITTED)
                    response = await compressed(request, await handle_user(request, principal))
                    is_open()
                    await response(scope, receive, send)
            case _:
                assert_never(route)

    async def _principal(self, route: UserRoute, request: Request) -> Principal:
        principal = await self._authentication.require(request)
        access = self._access[route.method, route.path]
        if principal.user.role not in access.roles:
            raise HttpProblem.of("FORBIDDEN", f"The role {principal.user.role} may not do this.")
        check_scope(principal, self._rules[route.method])
        request.scope[USER_ID] = principal.user.id
        return principal


def _tell(scope: Scope, what: str) -> None:
    """Report to the connection what became of the request; a WebSocket does not ask for it."""
    if (callback := scope.get(what)) is not None:
        callback()


class _ResponseSender:
    """Sends a response, and records its status and start time."""

    def __init__(self, send: Send, headers: Mapping[str, str], http_version: str) -> None:
        self._send = send
        self._headers = headers
        self._http_version = http_version
        self.status: int | None = None
        self.started_at: float | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            given = {name for name, _ in headers}
            if self._http_version == "1.0" and b"content-length" not in given:
                # The response would be chunked, which an HTTP/1.0 client takes for part of the
                # body.
                raise HttpProblem.of("HTTP_VERSION_TOO_OLD", TOO_OLD)
            self.status = message["status"]
            self.started_at = time.perf_counter()
            for name, value in self._headers.items():
                raw = name.lower().encode("latin-1")
                if raw not in given:
                    headers.append((raw, value.encode("latin-1")))
            message = {**message, "headers": headers}
        elif message["type"] == "websocket.accept":
            self.status, self.started_at = HTTPStatus.SWITCHING_PROTOCOLS, time.perf_counter()
        await self._send(message)


async def _send_answer(answer: Answer, receive: Receive, send: Send) -> None:
    body = msgspec.json.encode(answer.document)
    headers = {
        "content-type": PROBLEM_MEDIA_TYPE,
        "content-length": str(len(body)),
        **answer.headers,
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The response is complete; only its end, and the connection's, waits for the request body.
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await drain(receive)
        body = b""
    await send({"type": "http.response.body", "body": body})


def client_of(request: Request) -> Client:
    """Return the client of a request that is being handled."""
    client = request.scope[CLIENT]
    assert isinstance(client, Client)
    return client


def host_name(host: str) -> str:
    """Return the host name of a Host header in lower case, without port and brackets."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name if name.count(":") > 1 else name.partition(":")[0]


def _check_upgrade(scope: Scope, route: AnyRoute) -> None:
    if is_websocket(scope) and not (isinstance(route, UserRoute) and route.upgrades):
        raise HttpProblem.of("NOT_A_WEBSOCKET", "This path is no WebSocket; send a request.")


def _check_declared(routes: tuple[AnyRoute, ...], access: Mapping[tuple[str, str], Access]) -> None:
    served = {
        (route.method, route.path): (Need.NOTHING if isinstance(route, OpenRoute) else Need.SIGN_IN)
        for route in routes
    }
    declared = {route: rule.need for route, rule in access.items()}
    wrong = frozenset(route for route, _ in served.items() ^ declared.items())
    if wrong:
        raise RouteUndeclared(wrong)
