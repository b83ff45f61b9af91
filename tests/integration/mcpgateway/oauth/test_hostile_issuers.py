"""Authorization servers that lie, redirect, flood or hang get nothing and nobody."""

from typing import Any

import grpc
import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from mcpgateway.oauth.engine.issuer_http import IssuerHttp
from mcpgateway.oauth.errors import IssuerFailed
from parley.egress.policy import Policy
from parley.postgres import Database
from parley.rpc import problem_of
from support.host.ports import free_port
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.logins import LoginLab, create_server
from support.mcpgateway.servers import raw_server

FAILED = "AUTHORIZATION_SERVER_FAILED"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
SERVER = "/.well-known/oauth-authorization-server"
EVIL = "https://evil.example"


async def reason_of(call: Any) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return problem_of(caught.value).reason


async def test_metadata_that_cannot_be_trusted_begin_no_login(lab: LoginLab) -> None:
    lies: list[tuple[dict[str, Any], str]] = [
        ({"issuer": EVIL}, FAILED),
        ({"issuer": f"{lab.issuer.url}/other"}, FAILED),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE_UNSUPPORTED"),
        ({"code_challenge_methods_supported": None}, "PKCE_UNSUPPORTED"),
        ({"authorization_endpoint": "javascript:alert(1)"}, FAILED),
        ({"authorization_endpoint": "http://evil.example/authorize"}, FAILED),
        ({"token_endpoint": "http://169.254.169.254/latest"}, FAILED),
        ({"revocation_endpoint": "file:///etc/passwd"}, FAILED),
        ({"token_endpoint": ["a", "list"]}, FAILED),
        ({"registration_endpoint": None}, "MISCONFIGURED"),
    ]
    for lie, reason in lies:
        lab.issuer.metadata = lie
        assert (lie, await reason_of(lab.begin())) == (lie, reason)
    lab.issuer.metadata = {}
    for lie in (
        {"resource": EVIL},
        {"resource": f"{lab.issuer.mcp_url}/below"},
        {"authorization_servers": ["http://169.254.169.254"]},
        {"authorization_servers": ["https://["]},
        {"authorization_servers": ["no url"]},
        {"authorization_servers": "no list"},
    ):
        lab.issuer.resource_metadata = lie
        assert (lie, await reason_of(lab.begin())) == (lie, FAILED)
    lab.issuer.resource_metadata = {}
    for place in (RESOURCE, SERVER):
        for answer in (Response(b"[" * 100_000), Response(b"x" * 300_000), Response(b"not JSON")):
            lab.issuer.answers = {place: answer}
            assert await reason_of(lab.begin()) == FAILED
    # A redirect is not followed, so there are no metadata.
    lab.issuer.answers = {SERVER: RedirectResponse(f"{lab.issuer.url}/elsewhere")}
    assert await reason_of(lab.begin()) == FAILED
    assert ("/elsewhere" in lab.issuer.paths, lab.issuer.registrations) == (False, [])
    lab.issuer.answers = {}
    assert (await lab.begin()).startswith(f"{lab.issuer.url}/authorize?")


async def test_tokens_that_cannot_be_used_are_not_stored(lab: LoginLab, database: Database) -> None:
    whole = {"access_token": "a", "token_type": "bearer"}
    answers = [
        JSONResponse({**whole, "access_token": "a\r\nX-Evil: 1"}),
        JSONResponse({**whole, "access_token": "x" * 20_000}),
        JSONResponse({**whole, "token_type": "mac"}),
        JSONResponse({"token_type": "bearer"}),
        JSONResponse({**whole, "error": "server_error"}),
        RedirectResponse(f"{lab.issuer.url}/elsewhere", status_code=307),
        Response(b"x" * 300_000),
        Response(b"the code is 123", status_code=500),
    ]
    for number, answer in enumerate(answers):
        told = lab.issuer.agree(await lab.begin(request_id=f"begin-{number}"))
        lab.issuer.answers = {"/token": answer}
        assert (number, await reason_of(lab.complete(told))) == (number, FAILED)
        lab.issuer.answers = {}
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.grants") == 0
    assert "/elsewhere" not in lab.issuer.paths


async def test_an_authorization_server_that_hangs_is_left_in_time() -> None:
    port = free_port()
    slow = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    policy = Policy.parse(f"127.0.0.1:{port}")
    async with raw_server(port, lambda _: slow), IssuerHttp.open(policy, 0.2) as http:
        with pytest.raises(IssuerFailed, match=r"did not answer within 0\.2 s"):
            await http.get(f"http://127.0.0.1:{port}/")


async def test_clients_are_chosen_in_the_order_of_the_specification(
    lab: LoginLab, issuer: FakeAuthorizationServer
) -> None:
    document_url = "https://parley.example/.well-known/mcp-client.json"
    issuer.metadata = {"client_id_metadata_document_supported": True}
    issuer.agree(await lab.begin(document_url=document_url))
    assert (issuer.asked[-1]["client_id"], issuer.registrations) == (document_url, [])
    # Without an address that the authorization server can read, a client is registered, once.
    issuer.agree(await lab.begin(request_id="2"))
    issuer.agree(await lab.begin(request_id="3"))
    assert (issuer.asked[-1]["client_id"], len(issuer.registrations)) == ("client-1", 1)

    oauth = {"client_id": "by hand"}
    settings: dict[str, Any] = {"slug": "other", "oauth": oauth, "secret": "of the client"}
    server_id = await create_server(lab.gateway, issuer.mcp_url, **settings)
    other = LoginLab(lab.gateway, issuer, server_id)
    await other.complete(issuer.agree(await other.begin(document_url=document_url)))
    assert (issuer.asked[-1]["client_id"], len(issuer.registrations)) == ("by hand", 1)
    assert issuer.forms[-1]["authorization"].startswith("Basic ")


async def test_a_server_without_metadata_is_its_own_authorization_server(lab: LoginLab) -> None:
    lab.issuer.resource_metadata = None
    lab.issuer.scope_in_challenge = ""
    await lab.log_in()
    assert lab.issuer.asked[-1]["resource"] == lab.issuer.mcp_url
    assert "scope" not in lab.issuer.asked[-1]
