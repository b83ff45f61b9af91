"""Logging users in at servers over gRPC, as the gateway does for browsers."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from parley.api.mcp.v1 import authorization_service_pb2 as api
from parley.api.mcp.v1 import runtime_service_pb2 as runtime_api
from parley.api.mcp.v1 import server_pb2, server_service_pb2
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.identity import User
from parley.rpc import acting_for
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway

REDIRECT_URI = "https://parley.example/mcp/callback"
BROWSER = "b" * 43
CHAT = runtime_api.ChatContext(chat_id="c", root_chat_id="c")


@dataclass(frozen=True, slots=True)
class LoginLab:
    """A mcpgateway, an authorization server, and the id of the MCP server that trusts it."""

    gateway: McpGateway
    issuer: FakeAuthorizationServer
    server_id: str

    async def begin(
        self, user: User = MEMBER, *, request_id: str = "begin", document_url: str = ""
    ) -> str:
        """Begin a login, and return the address to go to."""
        with acting_for(user):
            begun = await self.gateway.authorization.BeginAuthorization(
                api.BeginAuthorizationRequest(
                    request_id=request_id,
                    server_id=self.server_id,
                    browser_binding_sha256=hashlib.sha256(BROWSER.encode()).digest(),
                    redirect_uri=REDIRECT_URI,
                    client_document_url=document_url,
                )
            )
        return begun.authorization_url

    async def complete(
        self,
        answer: dict[str, str],
        user: User = MEMBER,
        *,
        request_id: str = "complete",
        browser: str = BROWSER,
    ) -> api.CompleteAuthorizationResponse:
        """Complete a login with the parameters of the way back."""
        request = api.CompleteAuthorizationRequest(
            request_id=request_id,
            state=answer.get("state", ""),
            code=answer.get("code", ""),
            error=answer.get("error", ""),
            error_description=answer.get("error_description", ""),
            browser_binding=browser,
        )
        if "iss" in answer:
            request.issuer = answer["iss"]
        with acting_for(user):
            return await self.gateway.authorization.CompleteAuthorization(request)

    async def log_in(
        self, user: User = MEMBER, subject: str = "alice", *, request_id: str = ""
    ) -> None:
        """Log a user in; `request_id` tells it from other logins."""
        self.issuer.subject = subject
        location = await self.begin(user, request_id=f"begin{request_id}")
        answer = self.issuer.agree(location)
        await self.complete(answer, user, request_id=f"complete{request_id}")

    async def status(self, user: User = MEMBER) -> api.GetAuthorizationStatusResponse:
        """Return the state of a login."""
        with acting_for(user):
            return await self.gateway.authorization.GetAuthorizationStatus(
                api.GetAuthorizationStatusRequest(server_id=self.server_id)
            )

    async def logins(self, user: User = MEMBER) -> list[api.McpLogin]:
        """Return the logins of a user."""
        with acting_for(user):
            response = await self.gateway.authorization.ListLogins(api.ListLoginsRequest())
        return list(response.logins)

    async def disconnect(self, user: User = MEMBER) -> api.DisconnectResponse:
        """Give a login up."""
        with acting_for(user):
            return await self.gateway.authorization.Disconnect(
                api.DisconnectRequest(request_id="disconnect", server_id=self.server_id)
            )

    async def call(
        self,
        request_id: str,
        user: User = MEMBER,
        tool: str = "whoami",
        gateway: McpGateway | None = None,
    ) -> tools_api.ServerCallResult:
        """Call a tool."""
        with acting_for(user):
            response = await (gateway or self.gateway).tools.CallServerTool(
                tools_api.CallServerToolRequest(
                    request_id=request_id,
                    server_id=self.server_id,
                    original_name=tool,
                    arguments_json=json.dumps({}),
                )
            )
        return response.result

    async def listed(self, user: User = MEMBER) -> runtime_api.ListToolsResponse:
        """List the tools of the server in a chat."""
        with acting_for(user):
            return await self.gateway.runtime.ListTools(
                runtime_api.ListToolsRequest(context=CHAT, server_ids=[self.server_id])
            )


async def create_server(gateway: McpGateway, url: str, **settings: Any) -> str:
    """Create an enabled server that uses OAuth, and return its id."""
    secret, request_id = settings.pop("secret", ""), settings.pop("request_id", "")
    given: dict[str, Any] = {
        "slug": "guarded",
        "display_name": "Guarded",
        "url": url,
        "is_enabled": True,
        "auth_kind": server_pb2.AUTH_KIND_OAUTH2,
        "pin_policy": server_pb2.PIN_POLICY_OFF,
        **settings,
    }
    request = server_service_pb2.CreateServerRequest(
        request_id=request_id or f"create-{given['slug']}",
        settings=server_pb2.McpServerSettings(**given),
    )
    if secret:
        request.credentials.oauth_client_secret = secret
    with acting_for(ADMIN):
        return (await gateway.servers.CreateServer(request)).server.server_id
