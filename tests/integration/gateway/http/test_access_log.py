"""One line for each request, by which the ids that users are shown are found."""

import asyncio
import json
import logging
import random  # noqa: TID251 (an argument)
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from gateway.http.access_log import AccessLog, AccessLogShare, RequestLogEntry
from parley.rpc import Problem
from parley.telemetry import Redactor
from parley.telemetry.logs import JsonFormatter
from support.gateway.chats import NO_CHAT, new_chat
from support.gateway.stack import GatewayStack, gateway_stack

NAME = "gateway.access"
NAMES = ("method", "route", "status", "request_id", "user_id", "chat_id")
ROUTE = "/api/v1/chats/{chat_id}"


class Lines(logging.Handler):
    """What is written to the access log, as programs read it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter("gateway", "gateway-1", Redactor()))
        self.written: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.written.append(json.loads(self.format(record)))

    def __call__(self) -> list[dict[str, Any]]:
        return list(self.written)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    caplog.set_level(logging.INFO, logger=NAME)
    lines = Lines()
    logging.getLogger(NAME).addHandler(lines)
    yield lines
    logging.getLogger(NAME).removeHandler(lines)


async def until_logged(logged: Lines, count: int) -> list[dict[str, Any]]:
    """Wait until so many lines are written; the last one may be, behind the answer."""
    async with asyncio.timeout(10):
        while len(found := logged()) < count:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.01)
    return found


async def test_a_request_is_logged_with_its_ids(stack: GatewayStack, logged: Lines) -> None:
    chat_id = await new_chat(stack)
    me = (await stack.owner.request("GET", "/api/v1/me")).json()["id"]
    reply = await stack.owner.request(
        "GET", f"/api/v1/chats/{chat_id}", headers={"X-Request-Id": "mine-1"}
    )
    record = (await until_logged(logged, 3))[-1]
    assert reply.headers["x-request-id"] == "mine-1"
    assert {name: record[name] for name in NAMES} == {
        "method": "GET",
        "route": ROUTE,
        "status": 200,
        "request_id": "mine-1",
        "user_id": me,
        "chat_id": chat_id,
    }
    assert record["duration_ms"] >= 0


async def test_the_ids_of_a_problem_are_found_in_the_log(
    stack: GatewayStack, logged: Lines
) -> None:
    reply = await stack.owner.request("GET", f"/api/v1/chats/{NO_CHAT}")
    document = reply.json()
    record = (await until_logged(logged, 1))[-1]
    assert reply.status == 404
    assert (record["request_id"], record["trace_id"]) == (
        document["request_id"],
        document["trace_id"],
    )
    assert reply.headers["x-request-id"] == document["request_id"]


async def test_a_failure_of_ours_is_logged_with_the_request_id(
    stack: GatewayStack, caplog: pytest.LogCaptureFixture
) -> None:
    stack.chatd.refusal = Problem(grpc.StatusCode.INTERNAL, "INTERNAL", "inside")
    document = (await stack.owner.request("GET", "/api/v1/chats")).json()
    (error,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert vars(error)["request_id"] == document["request_id"]


async def test_a_stream_is_logged_once_when_it_ends(stack: GatewayStack, logged: Lines) -> None:
    chat_id = await new_chat(stack)
    before = len(await until_logged(logged, 1))
    async with stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
        await stack.chatd.subscriptions.get()
        assert len(logged()) == before
    (record,) = (await until_logged(logged, before + 1))[before:]
    assert (record["route"], record["status"]) == (f"{ROUTE}/events", 200)


async def test_what_nobody_serves_is_logged_without_its_path(
    stack: GatewayStack, logged: Lines
) -> None:
    await stack.anonymous.request("GET", "/secret-in-a-path")
    (record,) = await until_logged(logged, 1)
    assert (record["route"], record["status"]) == ("", 404)
    assert "secret-in-a-path" not in str(record)


@asynccontextmanager
async def with_log(directory: Path, database_url: str, share: float) -> AsyncIterator[GatewayStack]:
    async with gateway_stack(directory, database_url, access_log=AccessLogShare(share)) as running:
        yield running


async def test_turned_off_nothing_is_logged(
    tmp_path: Path, identity_database: str, logged: Lines
) -> None:
    async with with_log(tmp_path, identity_database, 0.0) as stack:
        await stack.owner.request("GET", "/api/v1/me")
        await stack.owner.request("GET", f"/api/v1/chats/{NO_CHAT}")
    assert logged() == []


def test_a_share_is_logged_and_all_that_failed(logged: Lines) -> None:
    log = AccessLog(AccessLogShare(0.25), random.Random(1))
    for status in (200, 500):
        for _ in range(400):
            log.write(RequestLogEntry("GET", "/", status, 0.001, "id", "", ""))
    statuses = [each["status"] for each in logged()]
    assert (50 < statuses.count(200) < 150, statuses.count(500)) == (True, 400)


def test_probes_that_succeed_are_not_logged(logged: Lines) -> None:
    log = AccessLog(AccessLogShare(1.0), random.Random(1))
    for status in (200, 503):
        log.write(RequestLogEntry("GET", "/readyz", status, 0.001, "id", "", ""))
    assert [each["status"] for each in logged()] == [503]


@pytest.mark.parametrize(
    ("text", "share"), [("on", 1.0), ("OFF", 0.0), ("0.1", 0.1), ("1", 1.0), ("0", 0.0)]
)
def test_a_share_is_a_word_or_a_number(text: str, share: float) -> None:
    assert AccessLogShare.parse(text) == AccessLogShare(share)


@pytest.mark.parametrize("text", ["", "maybe", "2", "-1", "nan"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a share from 0 to 1"):
        AccessLogShare.parse(text)
