"""Pages of logins at MCP servers: leaving for one, coming back, and who this installation is.

The page to which a browser comes back tells the page that opened it, and closes. Its only script is
named by its hash in the policy, and gets its values from attributes.
"""

import base64
import hashlib
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway.api.transcoded_route import Call, Calls
from gateway.http.authentication import Authentication, Principal
from gateway.http.problems.errors import HttpProblem, UpstreamProblem, http_problem_of
from gateway.http.request_body import read_query
from gateway.http.responses import json_response
from gateway.identity.secret_tokens import TokenBytes, new_token
from gateway.web.documents import STYLE_SOURCE, document
from parley.api.mcp.v1 import authorization_service_pb2 as api

CALLBACK: Final = "/mcp/callback"
CLIENT_DOCUMENT: Final = "/.well-known/mcp-client.json"
START: Final = "/mcp/login/{server_id}"
SERVICE: Final = "/parley.api.mcp.v1.McpAuthorizationService"
CALL_S_MAX: Final = 60.0
#: Parameter of the way back -> how many characters of it are read.
ANSWER: Final = {"state": 512, "code": 4096, "iss": 2048, "error": 256, "error_description": 2048}

# The page that opened this one may be out of reach, because another site was visited in between; a
# channel of this origin reaches it in any case.
SCRIPT: Final = (
    "const{serverId,outcome}=document.body.dataset;"
    'const message={type:"parley.mcp.login",server_id:serverId,outcome};'
    "if(window.opener)window.opener.postMessage(message,window.location.origin);"
    'new BroadcastChannel("parley.mcp.login").postMessage(message);'
    'if(outcome==="connected")window.close();'
)
_SCRIPT_HASH: Final = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
CONTENT_POLICY: Final = (
    f"default-src 'none'; script-src 'sha256-{_SCRIPT_HASH}'; style-src {STYLE_SOURCE}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class McpLoginPages:
    """The pages of logins at MCP servers.

    Args:
        authentication: Reads sessions and cookies.
        calls: Calls mcpgateway.
        new_id: Generates ids of requests.
        token_bytes: Random bytes of cookies.
    """

    def __init__(
        self,
        authentication: Authentication,
        calls: Calls,
        *,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
    ) -> None:
        self._authentication = authentication
        self._calls = calls
        self._new_id = new_id
        self._token_bytes = token_bytes

    async def client_document(self, request: Request) -> Response:
        """Describe this installation to authorization servers; its URL is the client id."""
        read_query(request)
        origin = str(self._authentication.public_url)
        content = {
            "client_id": f"{origin}{CLIENT_DOCUMENT}",
            "client_name": "Parley",
            "client_uri": origin,
            "redirect_uris": [f"{origin}{CALLBACK}"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
        return json_response(content, headers={"cache-control": "public, max-age=3600"})

    async def start(self, request: Request) -> Response:
        """Send the browser to the authorization server of an MCP server."""
        read_query(request)
        # Another site must not begin logins of its visitors.
        self._authentication.check_same_origin(request)
        principal = await self._authentication.principal(request)
        if principal is None:
            return _sign_in_first()
        cookies = self._authentication.cookies
        # The same for all logins of a browser, so that two of them do not hinder each other.
        binding = cookies.mcp_login_token(request) or new_token(self._token_bytes)
        origin = str(self._authentication.public_url)
        document_url = (
            f"{origin}{CLIENT_DOCUMENT}" if self._authentication.public_url.is_https else ""
        )
        asked = api.BeginAuthorizationRequest(
            request_id=self._new_id(),
            server_id=request.path_params["server_id"],
            browser_binding_sha256=hashlib.sha256(binding.encode()).digest(),
            redirect_uri=f"{origin}{CALLBACK}",
            client_document_url=document_url,
        )
        try:
            begun = await self._call("BeginAuthorization", asked, principal)
        except UpstreamProblem as error:
            return _failed(error, request.path_params["server_id"])
        response = RedirectResponse(begun.authorization_url, status_code=HTTPStatus.SEE_OTHER)
        cookies.write_mcp_login(response, binding)
        return response

    async def finish(self, request: Request) -> Response:
        """Complete a login with what the authorization server sent the browser back with."""
        # Authorization servers may add parameters of their own.
        query = request.query_params
        answer = {name: query[name] for name in ANSWER if name in query}
        principal = await self._authentication.principal(request)
        if principal is None:
            return _sign_in_first()
        if any(len(value) > ANSWER[name] for name, value in answer.items()):
            return _failed(HttpProblem.of("INVALID_REQUEST", "The answer is too long."), "")
        # Without the cookie the login was begun elsewhere, which mcpgateway tells.
        binding = self._authentication.cookies.mcp_login_token(request) or "-" * 43
        told = api.CompleteAuthorizationRequest(
            request_id=self._new_id(),
            state=answer.get("state", ""),
            code=answer.get("code", ""),
            issuer=answer.get("iss"),
            error=answer.get("error", ""),
            error_description=answer.get("error_description", ""),
            browser_binding=binding,
        )
        try:
            done = await self._call("CompleteAuthorization", told, principal)
        except UpstreamProblem as error:
            return _failed(error, "")
        body = "<p>Your account is connected. You can close this window.</p>"
        return _page("Connected", body, server_id=done.server_id, outcome="connected")

    async def _call(self, method: str, request: Any, principal: Principal) -> Any:
        user = principal.user
        return await self._calls(Call(f"{SERVICE}/{method}", request, user, user.id, CALL_S_MAX))


def _sign_in_first() -> Response:
    body = (
        '<p role="alert">Sign in first, then connect your account again.</p>'
        '<p><a href="/login">Sign in</a></p>'
    )
    return _page(
        "Sign in first", body, server_id="", outcome="failed", status=HTTPStatus.UNAUTHORIZED
    )


def _failed(error: Exception, server_id: str) -> Response:
    problem = http_problem_of(error)
    body = (
        f'<p role="alert">{escape(problem.detail)}</p>'
        f'<p><a href="/problems/{problem.code}">About this problem</a></p>'
    )
    return _page(
        "That did not work", body, server_id=server_id, outcome="failed", status=problem.status
    )


def _page(
    title: str, body: str, *, server_id: str, outcome: str, status: int = HTTPStatus.OK
) -> Response:
    told = f' data-server-id="{escape(server_id)}" data-outcome="{escape(outcome)}"'
    content = document(title, f"{body}<script>{SCRIPT}</script>", attributes=told)
    headers = {"content-security-policy": CONTENT_POLICY}
    return HTMLResponse(content, status_code=status, headers=headers)
