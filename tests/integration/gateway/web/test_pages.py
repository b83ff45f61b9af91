import base64
import hashlib
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway.http.application import SECURITY_HEADERS
from gateway.web.documents import POLICY, STYLE_SOURCE
from parley.contract.errors import ERROR_SPECS
from support.database.postgres import TestPostgres
from support.gateway.stack import GatewayStack, gateway_stack, migrate_identity


async def test_the_page_without_scripts_is_small_honest_and_locked_down(
    stack: GatewayStack,
) -> None:
    reply = await stack.anonymous.request("GET", "/account")

    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert {name: reply.headers[name] for name in SECURITY_HEADERS} == {
        **SECURITY_HEADERS,
        "content-security-policy": POLICY,
    }
    assert b"<title>Your account</title>" in reply.body
    assert b"Nobody is signed in" in reply.body
    assert b'href="/docs"' in reply.body
    assert not re.search(rb"<script|style=|https?://", reply.body)


async def test_the_docs_name_every_route(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("GET", "/docs")

    assert b"POST /api/v1/chats</code>" in reply.body
    assert b"GET /api/v1/chats/{chat_id}/events</code>" in reply.body


async def test_the_type_of_a_problem_leads_to_a_page_that_says_what_to_do(
    stack: GatewayStack,
) -> None:
    problem = (await stack.owner.request("POST", "/api/v1/chats", {"titel": 1})).json()
    path = urlsplit(problem["type"]).path

    page = await stack.anonymous.request("GET", path)
    index = await stack.anonymous.request("GET", "/problems")
    unknown = await stack.anonymous.request("GET", "/problems/NO_SUCH_THING")

    assert (path, page.status, page.headers["content-type"]) == (
        "/problems/INVALID_REQUEST",
        200,
        "text/html; charset=utf-8",
    )
    assert b"Correct what <code>errors</code> lists" in page.body
    assert b"<code>UNKNOWN_FIELD</code>" in page.body
    assert [code for code in ERROR_SPECS if f"/problems/{code}".encode() not in index.body] == []
    assert (unknown.status, unknown.json()["code"]) == (404, "NO_SUCH_PATH")


async def test_a_gateway_with_its_neighbours_is_alive_and_ready(stack: GatewayStack) -> None:
    alive = await stack.anonymous.request("GET", "/healthz")
    ready = await stack.anonymous.request("GET", "/readyz")

    assert (alive.status, alive.json()) == (200, {"status": "ok"})
    assert (ready.status, ready.json()) == (
        200,
        {"status": "ready", "checks": {"database": "ok", "chatd": "ok"}},
    )


async def test_health_answers_head_without_a_body(stack: GatewayStack) -> None:
    reply = await stack.anonymous.request("HEAD", "/healthz")

    assert (reply.status, reply.body) == (200, b"")


async def test_without_a_chatd_it_is_not_ready_and_says_so(
    tmp_path: Path, identity_database: str
) -> None:
    async with gateway_stack(tmp_path, identity_database, has_chatd=False) as stack:
        ready = await stack.anonymous.request("GET", "/readyz")
        chat = await stack.owner.request(
            "GET", "/api/v1/chats/00000000-0000-0000-0000-000000000001"
        )

    assert (ready.status, ready.json()["checks"]) == (
        503,
        {"database": "ok", "chatd": "unavailable"},
    )
    assert (chat.status, chat.json()["code"], chat.json()["retryable"]) == (
        503,
        "UNAVAILABLE",
        True,
    )
    assert str(tmp_path) not in chat.body.decode()


async def test_without_its_database_it_is_not_ready_and_refuses_for_now(
    tmp_path: Path, postgres: TestPostgres
) -> None:
    async with (
        postgres.database(template="identity", prepare=migrate_identity) as url,
        gateway_stack(tmp_path, url) as stack,
    ):
        name = url.partition("@/")[2].partition("?")[0]
        await postgres.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        await postgres.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        ready = await stack.anonymous.request("GET", "/readyz")

    assert (ready.status, ready.json()["checks"]) == (
        503,
        {"database": "unavailable", "chatd": "ok"},
    )


async def test_a_browser_gets_the_page_at_an_address_without_a_screen(stack: GatewayStack) -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = await stack.anonymous.request("GET", "/nonsense", headers=browser)
    known = await stack.anonymous.request("GET", "/waiting", headers=browser)
    program = await stack.anonymous.request("GET", "/nonsense")
    sent = await stack.anonymous.request("POST", "/nonsense", headers=browser)
    route = await stack.anonymous.request("GET", "/api/v1/nonsense", headers=browser)

    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert page.body == known.body
    assert page.headers["content-security-policy"] == known.headers["content-security-policy"]
    assert [(each.status, each.json()["code"]) for each in (program, sent, route)] == [
        (404, "NO_SUCH_PATH")
    ] * 3


async def test_documents_without_scripts_have_their_style_and_nothing_else(
    stack: GatewayStack,
) -> None:
    replies = [
        await stack.anonymous.request("GET", path)
        for path in ("/login", "/account", "/docs", "/problems", "/problems/INVALID_REQUEST")
    ]

    assert {reply.status for reply in replies} == {200}
    assert {reply.headers["content-security-policy"] for reply in replies} == {
        f"default-src 'none'; style-src {STYLE_SOURCE}; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    }
    for reply in replies:
        style = reply.body.partition(b"<style>")[2].partition(b"</style>")[0]
        digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
        assert f"'sha256-{digest}'" == STYLE_SOURCE
        assert reply.body.count(b"<style") == 1
        assert b"style=" not in reply.body
        assert b"<script" not in reply.body


async def test_unknown_paths_and_methods_are_problems_too(stack: GatewayStack) -> None:
    path = await stack.owner.request("GET", "/api/v1/nothing")
    slash = await stack.owner.request("GET", "/api/v1/chats/")
    method = await stack.owner.request("PUT", "/api/v1/chats")

    assert (path.status, path.json()["code"]) == (404, "NO_SUCH_PATH")
    assert (slash.status, slash.json()["code"]) == (404, "NO_SUCH_PATH")
    assert (method.status, method.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert method.headers["allow"] == "GET, HEAD, POST"
    assert method.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("parley.test:8080", 200),
        ("PARLEY.test", 200),
        ("also.test", 200),
        ("localhost:1234", 200),
        ("[::1]:1234", 200),
        ("evil.test", 421),
        ("parley.test.evil.test", 421),
        ("[evil", 400),
        ("", 400),
    ],
)
async def test_only_known_hosts_are_served(stack: GatewayStack, host: str, status: int) -> None:
    reply = await stack.anonymous.request("GET", "/healthz", None, {"Host": host})

    assert reply.status == status


async def test_a_request_keeps_its_id_and_its_trace(stack: GatewayStack) -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"X-Request-Id": "mine", "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}

    reply = await stack.owner.request("GET", "/api/v1/nothing", None, headers)
    odd = await stack.owner.request("GET", "/api/v1/nothing", None, {"X-Request-Id": "a b"})

    assert (reply.json()["request_id"], reply.json()["trace_id"]) == ("mine", trace_id)
    assert odd.json()["request_id"] not in ("a b", "")
    names = {span.name for span in stack.telemetry.spans()}
    assert "GET unknown" in names


async def test_an_error_nobody_foresaw_tells_nothing_of_itself(stack: GatewayStack) -> None:
    created = await stack.owner.request(
        "POST", "/api/v1/chats", {"content": [{"type": "text", "text": "x"}]}
    )
    # A fake that lost its messages fails inside, as a broken chatd would.
    stack.chatd.messages.clear()

    reply = await stack.owner.request("GET", f"/api/v1/chats/{created.json()['id']}/messages")

    assert (reply.status, reply.json()["code"]) == (500, "INTERNAL")
    assert reply.json()["detail"] == (
        "Something went wrong here; the operator finds it in the logs by trace_id."
    )
