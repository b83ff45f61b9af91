"""Every request of a login and of a server is guarded: none reaches an address inside."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from mcpgateway.client.sessions import Sessions
from mcpgateway.oauth.domain.flows import Flow
from mcpgateway.oauth.domain.grants import AuthMethod, ClientKind, Terms, Tokens
from mcpgateway.oauth.engine.discovery import Discovery
from mcpgateway.oauth.engine.issuer_http import IssuerHttp
from mcpgateway.oauth.engine.tokens import Revocation, TokenEndpoint
from mcpgateway.oauth.errors import IssuerFailed
from mcpgateway.servers.domain import AuthKind, Reason
from mcpgateway.servers.errors import UpstreamFailed
from parley.clock import FakeClock
from parley.egress.policy import Policy
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.servers import raw_server
from support.mcpgateway.values import a_server, a_target

INSIDE = {
    "loopback": "127.0.0.1",
    "a name of loopback": "localhost",
    "private": "10.0.0.1",
    "link-local": "169.254.169.254",
    "CGNAT": "100.64.0.1",
    "mapped": "[::ffff:127.0.0.1]",
    "NAT64": "[64:ff9b::7f00:1]",
    "6to4": "[2002:7f00:1::1]",
    "multicast": "224.0.0.1",
    "IPv6 loopback": "[::1]",
    "unique local": "[fd00:ec2::254]",
    "decimal": "2130706433",
    "octal": "0177.0.0.1",
    "hexadecimal": "0x7f000001",
    "short": "127.1",
    "decimal of metadata": "2852039166",
}
METADATA = b"http://169.254.169.254/latest/meta-data"


def flow_at(url: str) -> Flow:
    terms = Terms(
        issuer=url,
        resource=url,
        token_url=url,
        revocation_url=url,
        client_id="client",
        client_kind=ClientKind.CONFIGURED,
        auth_method=AuthMethod.NONE,
        redirect_uri="https://parley.example/mcp/callback",
    )
    return Flow(
        id="flow",
        server_id="server",
        user_id="ann",
        browser_sha256=b"",
        fingerprint="",
        terms=terms,
        sends_issuer=False,
        scopes=(),
        verifier="verifier",
    )


@dataclass(frozen=True, slots=True)
class Requests:
    """Everything that is sent to servers and to their authorization servers."""

    http: IssuerHttp
    sessions: Sessions

    def to(self, url: str) -> Mapping[str, Callable[[], Awaitable[str]]]:
        """Return all kinds of requests to an address; each says how it was refused."""
        tokens, flow = TokenEndpoint(self.http), flow_at(url)
        held = Tokens("access", "refresh")
        server = a_server(url=url, auth_kind=AuthKind.OAUTH2)

        async def connect() -> str:
            try:
                await self.sessions.list_tools(a_target(a_server(url=url)))
            except UpstreamFailed as failure:
                return failure.reason
            return ""

        async def revoke() -> str:
            return await tokens.revoke(flow.terms, "", held)

        return {
            "connection": connect,
            "discovery": lambda: refusal(Discovery(self.http, FakeClock()).of(server)),
            "registration": lambda: refusal(self.http.post_json(url, {})),
            "exchange": lambda: refusal(tokens.exchange(flow, "", "code")),
            "refresh": lambda: refusal(tokens.refresh(flow.terms, "", "refresh")),
            "revoke": revoke,
        }


async def refusal(request: Awaitable[object]) -> str:
    try:
        await request
    except IssuerFailed as error:
        return str(error)
    return ""


@asynccontextmanager
async def open_requests(policy: Policy) -> AsyncIterator[Requests]:
    async with (
        IssuerHttp.open(policy) as http,
        Sessions.open(policy, supervision()) as sessions,
    ):
        yield Requests(http, sessions)


@pytest.mark.parametrize("address", INSIDE.values(), ids=INSIDE.keys())
async def test_no_request_of_any_kind_is_sent_to_an_address_inside(address: str) -> None:
    reached = 0

    def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal reached
        reached += 1
        writer.close()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with asyncio.timeout(30), open_requests(Policy()) as requests, listener:
        for scheme in ("https", "http"):
            for kind, send in requests.to(f"{scheme}://{address}:{port}/mcp").items():
                refused = await send()
                match kind:
                    case "connection":
                        # What is no address at all is not even looked up.
                        blocked = (Reason.ADDRESS_BLOCKED, Reason.MISCONFIGURED)
                        assert (kind, refused in blocked) == (kind, True)
                    case "revoke":
                        assert (kind, refused) == (kind, Revocation.FAILED)
                    case _:
                        assert (kind, bool(refused)) == (kind, True)
    assert reached == 0


async def test_no_request_of_any_kind_follows_a_redirect_to_metadata() -> None:
    port, asked = free_port(), list[bytes]()

    def redirect(request: bytes) -> bytes:
        asked.append(request)
        return b"HTTP/1.1 302 Found\r\nlocation: " + METADATA + b"\r\ncontent-length: 0\r\n\r\n"

    url = f"http://127.0.0.1:{port}/mcp"
    # The first place is allowed, and where it sends to is not.
    policy = Policy().with_url(url)
    async with (
        asyncio.timeout(30),
        raw_server(port, redirect),
        open_requests(policy) as requests,
    ):
        for kind, send in requests.to(url).items():
            before = len(asked)
            assert (kind, await send() != "") == (kind, kind != "registration")
            # An allowed place inside is reached.
            assert (kind, len(asked) > before) == (kind, True)
