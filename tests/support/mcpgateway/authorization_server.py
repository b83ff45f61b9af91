"""An authorization server and an MCP server that trusts it, on one socket; both can lie.

It rotates refresh tokens, and revokes all tokens of a login when an old refresh token comes again.
"""

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from support.host.ports import free_port
from support.mcpgateway.servers import until_listening


@dataclass(slots=True)
class Login:
    """What one user agreed to: all tokens that came from it."""

    subject: str
    scopes: tuple[str, ...]
    resource: str
    access_tokens: set[str] = field(default_factory=set)
    old_access_tokens: set[str] = field(default_factory=set)
    refresh_token: str = ""
    old_refresh_tokens: set[str] = field(default_factory=set)
    is_revoked: bool = False


class FakeAuthorizationServer:
    """Both servers.

    Attributes:
        subject: The user who agrees next.
        resource_metadata: Over what is right; None if there are none.
        metadata: Over what is right; None if there are none.
        answers: Path -> the answer instead of the right one.
        forms: The forms of the token endpoint, without those of refused clients.
        registrations: The documents that clients were registered with.
        revoked: The forms of the revocation endpoint.
        lifetime_s: How long access tokens can be used, as it says.
        needed_scope: Without it, the tool `secret` is refused.
        keeps_refusing: Whether the tool `secret` is refused with it, too.
        refusals: How often the tool `secret` was refused.
        refused_hints: Kinds of tokens that cannot be revoked.
        gate: Refreshes wait for it.
        exchange_gate: Exchanges of codes wait for it.
        exchanging: Set once an exchange was asked for.
        called: Is released by each call of the tool `whoami`.
        call_gate: Calls of the tool `whoami` wait for it after they are counted.
        refreshing: Set once a refresh was asked for.
        calls: Subjects whose tokens came with calls of the tool `whoami`.
        given: Every token that it ever gave.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.place = f"127.0.0.1:{port}"
        self.mcp_url = f"{self.url}/mcp"
        self.subject = "alice"
        self.resource_metadata: dict[str, Any] | None = {}
        self.metadata: dict[str, Any] | None = {}
        self.answers: dict[str, Response] = {}
        self.forms: list[dict[str, str]] = []
        self.registrations: list[dict[str, Any]] = []
        self.revoked: list[dict[str, str]] = []
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lifetime_s: int | None = 3600
        self.needed_scope = ""
        self.keeps_refusing = False
        self.refusals = 0
        self.refused_hints: frozenset[str] = frozenset()
        self.scope_in_challenge = "tools"
        self.gate = asyncio.Event()
        self.gate.set()
        self.exchange_gate = asyncio.Event()
        self.exchange_gate.set()
        self.exchanging = asyncio.Event()
        self.call_gate = asyncio.Event()
        self.call_gate.set()
        self.called = asyncio.Semaphore(0)
        self.refreshing = asyncio.Event()
        self.calls: list[str] = []
        self.given: list[str] = []
        self.logins: list[Login] = []
        self._codes: dict[str, tuple[Login, dict[str, str]]] = {}

    @property
    def refreshes(self) -> list[dict[str, str]]:
        """The forms that asked for a refresh."""
        return [form for form in self.forms if form["grant_type"] == "refresh_token"]

    def agree(self, location: str, **changed: str | None) -> dict[str, str]:
        """Let the user agree at an address, and return the parameters of the way back."""
        assert location.startswith(f"{self.url}/authorize?")
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        self.asked.append(query)
        login = Login(self.subject, tuple(query.get("scope", "").split()), query["resource"])
        code = secrets.token_urlsafe(16)
        self.given.append(code)
        self._codes[code] = (login, query)
        answer = {"code": code, "state": query["state"], "iss": self.url} | changed
        return {name: value for name, value in answer.items() if value is not None}

    def way_back(self, location: str, **changed: str | None) -> str:
        """Let the user agree, and return the address to which the browser is sent back."""
        answer = self.agree(location, **changed)
        return f"{self.asked[-1]['redirect_uri']}?{urlencode(answer)}"

    def expire(self) -> None:
        """Let all access tokens end at once."""
        for login in self.logins:
            login.old_access_tokens |= login.access_tokens
            login.access_tokens.clear()

    def login_of(self, authorization: str) -> Login | None:
        """Return the login of an access token that is still good."""
        token = authorization.removeprefix("Bearer ")
        found = (each for each in self.logins if token in each.access_tokens)
        return next((each for each in found if not each.is_revoked), None)

    def subject_of(self, authorization: str) -> str:
        """Return whose access token it is, good or not any more: a call was let in with it."""
        token = authorization.removeprefix("Bearer ")
        of_all = ((each, each.access_tokens | each.old_access_tokens) for each in self.logins)
        return next((each.subject for each, tokens in of_all if token in tokens), "nobody")

    async def answer(self, request: Request) -> Response:
        """Answer a request that is not for the MCP server."""
        path = request.url.path
        self.paths.append(path)
        if path in self.answers:
            return self.answers[path]
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                return self._resource_document()
            case "/.well-known/oauth-authorization-server":
                return self._server_document()
            case "/authorize":
                return self._consent(str(request.url))
            case "/token":
                return await self._token(request)
            case "/register":
                return await self._register(request)
            case "/revoke":
                return self._revoke(dict(parse_qsl((await request.body()).decode())))
            case _:
                return Response(status_code=404)

    def _revoke(self, form: dict[str, str]) -> Response:
        self.revoked.append(form)
        if form["token_type_hint"] in self.refused_hints:
            return JSONResponse({"error": "unsupported_token_type"}, status_code=400)
        for login in self.logins:
            if form["token"] in (login.refresh_token, *login.access_tokens):
                login.is_revoked = True
        return Response(status_code=200)

    def _consent(self, location: str) -> Response:
        """Show a browser the page at which its user agrees."""
        refused = {"code": None, "error": "access_denied", "error_description": "Not today."}
        declined = escape(self.way_back(location, **refused))
        way_back = escape(self.way_back(location))
        links = f'<a href="{way_back}">Agree</a> <a href="{declined}">Decline</a>'
        return HTMLResponse(f"<title>Consent</title>{links}")

    def challenge(self) -> Response:
        """Refuse a request without a good token."""
        value = f'Bearer resource_metadata="{self.url}/.well-known/oauth-protected-resource/mcp"'
        if self.scope_in_challenge:
            value += f', scope="{self.scope_in_challenge}"'
        return Response(status_code=401, headers={"www-authenticate": value})

    def _resource_document(self) -> Response:
        if self.resource_metadata is None:
            return Response(status_code=404)
        right = {"resource": self.mcp_url, "authorization_servers": [self.url]}
        return JSONResponse(right | self.resource_metadata)

    def _server_document(self) -> Response:
        if self.metadata is None:
            return Response(status_code=404)
        right = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "revocation_endpoint": f"{self.url}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": ["tools", "more", "offline_access"],
        }
        return JSONResponse(right | self.metadata)

    async def _register(self, request: Request) -> Response:
        wanted = json.loads(await request.body())
        self.registrations.append(wanted)
        given = {"client_id": f"client-{len(self.registrations)}"}
        if wanted["token_endpoint_auth_method"] != "none":
            given["client_secret"] = secrets.token_urlsafe(16)
            self.given.append(given["client_secret"])
        return JSONResponse(wanted | given, status_code=201)

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.forms.append(form | {"authorization": request.headers.get("authorization", "")})
        if form["grant_type"] == "authorization_code":
            self.exchanging.set()
            await self.exchange_gate.wait()
            login = self._exchanged(form)
        else:
            self.refreshing.set()
            await self.gate.wait()
            login = self._refreshed(form)
        if login is None:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        return JSONResponse(self._tokens(login))

    def _exchanged(self, form: dict[str, str]) -> Login | None:
        login, asked = self._codes.pop(form["code"], (None, {}))
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        right = (challenge, asked.get("resource"), asked.get("redirect_uri"))
        given = (asked.get("code_challenge"), form.get("resource"), form["redirect_uri"])
        if login is None or right != given:
            return None
        self.logins.append(login)
        return login

    def _refreshed(self, form: dict[str, str]) -> Login | None:
        token = form["refresh_token"]
        for login in self.logins:
            if token in login.old_refresh_tokens:
                login.is_revoked = True
            if token == login.refresh_token and not login.is_revoked:
                login.old_refresh_tokens.add(token)
                return login
        return None

    def _tokens(self, login: Login) -> dict[str, Any]:
        access, login.refresh_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        login.access_tokens.add(access)
        self.given += [access, login.refresh_token]
        answer: dict[str, Any] = {
            "access_token": access,
            "token_type": "bearer",
            "refresh_token": login.refresh_token,
            "scope": " ".join(login.scopes),
        }
        return answer | ({} if self.lifetime_s is None else {"expires_in": self.lifetime_s})


class _Guarded:
    """Lets requests with a good token through to the MCP server."""

    def __init__(self, issuer: FakeAuthorizationServer, inner: ASGIApp) -> None:
        self._issuer = issuer
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        request = Request(scope, receive)
        if request.url.path != "/mcp":
            await (await self._issuer.answer(request))(scope, receive, send)
            return
        login = self._issuer.login_of(request.headers.get("authorization", ""))
        if login is None or login.resource != self._issuer.mcp_url:
            await self._issuer.challenge()(scope, receive, send)
            return
        body = await request.body()
        needed = self._issuer.needed_scope
        is_lacking = needed not in login.scopes or self._issuer.keeps_refusing
        if needed and is_lacking and b'"name":"secret"' in body.replace(b" ", b""):
            self._issuer.refusals += 1
            value = f'Bearer error="insufficient_scope", scope="{needed}"'
            refusal = Response(status_code=403, headers={"www-authenticate": value})
            await refusal(scope, receive, send)
            return
        is_sent = False

        async def replayed() -> Any:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._inner(scope, replayed, send)


def _mcp_server(issuer: FakeAuthorizationServer) -> MCPServer:
    server = MCPServer("guarded")

    @server.tool(structured_output=False)
    async def whoami(context: Context[Any, Any]) -> str:
        """Tell whose token came with the call."""
        # It may have expired since it was checked.
        subject = issuer.subject_of((context.headers or {}).get("authorization", ""))
        issuer.calls.append(subject)
        issuer.called.release()
        await issuer.call_gate.wait()
        return subject

    @server.tool(structured_output=False)
    def secret() -> str:
        """Tell a secret."""
        return "42"

    return server


@asynccontextmanager
async def fake_authorization_server(port: int = 0) -> AsyncIterator[FakeAuthorizationServer]:
    """Serve both until the context ends, at any free port by default."""
    port = port or free_port()
    issuer = FakeAuthorizationServer(port)
    application = _Guarded(issuer, _mcp_server(issuer).streamable_http_app())
    config = uvicorn.Config(
        application, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1
    )
    serving = uvicorn.Server(config)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(serving.serve())
        try:
            await until_listening(port)
            yield issuer
        finally:
            issuer.gate.set()
            issuer.exchange_gate.set()
            issuer.call_gate.set()
            serving.should_exit = True
            await asyncio.wait({task})
