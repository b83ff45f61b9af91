"""A gateway behind a proxy, and pages of other origins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.http.addresses import PublicUrl
from gateway.http.limits.client_address import ProxyNetwork
from support.gateway.stack import GatewayStack, gateway_stack
from support.net.http_client import HttpClient

PUBLIC = "https://parley.test"
PAGE = "https://app.parley.test"
HERE = (ProxyNetwork.parse("127.0.0.1"),)


@pytest.fixture
async def stack(tmp_path: Path, identity_database: str) -> AsyncIterator[GatewayStack]:
    async with gateway_stack(
        tmp_path,
        identity_database,
        public_url=PUBLIC,
        trusted_proxies=HERE,
        cors_origins=(PublicUrl.parse(PAGE),),
    ) as stack:
        yield stack


def client(stack: GatewayStack, **headers: str) -> HttpClient:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpClient(stack.gateway.http.port, {"Host": "inside", **named})


async def test_the_host_is_the_one_that_a_trusted_proxy_was_asked_for(stack: GatewayStack) -> None:
    answer = await client(stack, X_Forwarded_Host="parley.test").request("GET", "/connection")
    assert answer.status == 200
    assert answer.json()["host"] == "parley.test"
    other = await client(stack, X_Forwarded_Host="evil.test").request("GET", "/connection")
    assert (other.status, other.json()["code"]) == (421, "HOST_NOT_ALLOWED")
    none = await client(stack).request("GET", "/connection")
    assert (none.status, none.json()["code"]) == (421, "HOST_NOT_ALLOWED")


async def test_headers_of_a_proxy_that_is_not_trusted_are_ignored(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(tmp_path, identity_database, public_url=PUBLIC) as stack:
        headers = {"X_Forwarded_Host": "parley.test", "X_Forwarded_For": "203.0.113.9"}
        assert (await client(stack, **headers).request("GET", "/connection")).status == 421
        answer = await client(stack, **headers, Host="parley.test").request("GET", "/connection")
        seen = answer.json()
        assert (seen["address"], seen["ignored_headers"]) == (
            "127.0.0.1",
            ["x-forwarded-for", "x-forwarded-host"],
        )


async def test_requests_that_came_to_the_proxy_without_tls_are_refused(stack: GatewayStack) -> None:
    behind = {"Host": "parley.test", "X_Forwarded_Proto": "http"}
    refused = await client(stack, **behind).request("GET", "/healthz")
    assert (refused.status, refused.json()["code"]) == (403, "HTTPS_REQUIRED")
    behind["X_Forwarded_Proto"] = "https"
    assert (await client(stack, **behind).request("GET", "/healthz")).status == 200


async def test_answers_over_https_ask_browsers_to_stay_there_and_cookies_are_bound_to_the_host(
    stack: GatewayStack,
) -> None:
    answer = await client(stack, Host="parley.test").request("GET", "/login")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-parley_form=")
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))


async def test_cookies_of_a_loopback_installation_are_plain(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(
        tmp_path, identity_database, public_url="http://localhost:8080"
    ) as stack:
        answer = await client(stack, Host="localhost:8080").request("GET", "/login")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("parley_form=")
    assert "Secure" not in cookie
    assert "strict-transport-security" not in answer.headers


async def test_a_listed_page_may_ask_and_read_and_no_other(stack: GatewayStack) -> None:
    asks = {
        "Host": "parley.test",
        "Origin": PAGE,
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization,content-type",
    }
    allowed = await client(stack, **asks).request("OPTIONS", "/api/v1/chats")
    assert allowed.status == 204
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert allowed.headers["access-control-allow-credentials"] == "true"
    assert "Authorization" in allowed.headers["access-control-allow-headers"]
    for origin in ("https://evil.test", f"{PAGE}.evil.test", PAGE.upper(), "null", f"{PAGE}:444"):
        asks["Origin"] = origin
        refused = await client(stack, **asks).request("OPTIONS", "/api/v1/chats")
        assert refused.status == 405
        assert "access-control-allow-origin" not in refused.headers
        assert refused.headers["vary"] == "Origin"


async def test_a_listed_page_reads_answers_and_problems(stack: GatewayStack) -> None:
    read = await client(stack, Host="parley.test", Origin=PAGE).request("GET", "/api/v1/me")
    assert read.status == 401
    assert read.headers["access-control-allow-origin"] == PAGE
    assert "ETag" in read.headers["access-control-expose-headers"]


async def test_without_a_list_no_page_of_another_origin_may_read(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(tmp_path, identity_database, public_url=PUBLIC) as stack:
        answer = await client(stack, Host="parley.test", Origin=PAGE).request("GET", "/healthz")
    assert not [name for name in answer.headers if name.startswith("access-control")]
