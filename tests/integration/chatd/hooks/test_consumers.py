"""Deliveries to real HTTP consumers: signed, down, slow, lying, and decisions of all kinds."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.errors import HookFailed
from chatd.hooks.clients.webhooks import signature
from chatd.hooks.domain.answers import Allowed, Asked, Denied
from chatd.hooks.domain.hooks import FailPolicy, Hook, HookEvent, Occurrence
from chatd.hooks.domain.ports import HookOutcome
from parley.postgres import Pool
from parley.settings import Secret
from support.chatd.hooks.in_memory_hooks import HOOK_ID, hook
from support.chatd.hooks.served_hooks import ServedHooks, served_hooks
from support.chatd.turns.turn_stage import ANN, CHAT
from support.host.ports import free_port
from support.net.model_server import Act, Script, model_server, whole
from support.net.model_server import Asked as Request

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = Secret("whsec_" + base64.b64encode(KEY).decode())
CALL = Occurrence(
    HookEvent.PRE_TOOL_USE,
    CHAT,
    ANN.id,
    "1 a",
    {"tool_use_id": "a", "tool_name": "execute", "tool_input": {"command": "ls"}},
    "execute",
)
BEFORE = hook(HookEvent.PRE_TOOL_USE, timeout_ms=1000)


@pytest.fixture
async def hooks(pool: Pool) -> AsyncIterator[ServedHooks]:
    async with served_hooks(pool) as served:
        yield served


async def kept(hooks: ServedHooks, url: str, given: Hook = BEFORE) -> Hook:
    stored, _ = await hooks.stored.create(replace(given, url=url), SECRET, b"hash")
    return stored


def answering(answer: object) -> Script:
    return whole(json.dumps(answer).encode())


async def test_a_request_is_signed_so_that_its_consumer_can_verify_it(hooks: ServedHooks) -> None:
    async with model_server(whole(b"")) as consumer:
        await kept(hooks, f"{consumer.url}/hook?a=b")
        assert await hooks.dispatcher.dispatch(CALL) == Allowed()
        assert await hooks.dispatcher.dispatch(CALL) == Allowed()
    request, repeated = consumer.asked
    assert request.path == "/hook?a=b"
    sent_s, dispatch_id = request.headers["webhook-timestamp"], request.headers["webhook-id"]
    signed = f"{dispatch_id}.{sent_s}.".encode() + request.body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    # Header values are in lower case here.
    assert request.headers["webhook-signature"] == f"v1,{expected}".lower()
    assert json.loads(request.body) == {
        "type": "pre_tool_use",
        "dispatch_id": dispatch_id,
        "schema_version": 1,
        "is_test": False,
        "chat_id": CHAT,
        "owner_id": ANN.id,
        "root_chat_id": CHAT,
        "parent_chat_id": None,
        "workspace_id": None,
        "turn_id": None,
        "data": CALL.data,
        "is_shortened": False,
    }
    assert repeated.headers["webhook-id"] == dispatch_id
    (delivery,) = await hooks.log.deliveries(HOOK_ID, 9)
    assert (delivery.outcome, delivery.http_status, delivery.attempts) == (
        HookOutcome.ALLOW,
        200,
        2,
    )


async def test_requests_have_the_signatures_of_both_secrets_during_an_overlap(
    hooks: ServedHooks,
) -> None:
    new = Secret("whsec_" + base64.b64encode(bytes(32)).decode())
    async with model_server(whole(b"")) as consumer:
        stored = await kept(hooks, consumer.url)
        await hooks.stored.rotate_secret(stored.id, new, timedelta(hours=1), b"2")
        await hooks.dispatcher.dispatch(CALL)
        await hooks.stored.rotate_secret(stored.id, SECRET, timedelta(), b"3")
        await hooks.dispatcher.dispatch(CALL)
    both, one = consumer.asked

    def signatures(request: Request, *secrets: Secret) -> str:
        sent_s, dispatch_id = (request.headers[f"webhook-{each}"] for each in ("timestamp", "id"))
        made = (signature(each, dispatch_id, sent_s, request.body) for each in secrets)
        return " ".join(made).lower()

    assert both.headers["webhook-signature"] == signatures(both, new, SECRET)
    assert one.headers["webhook-signature"] == signatures(one, SECRET)


@pytest.mark.parametrize(
    ("answer", "verdict", "outcome"),
    [
        ({"decision": "deny", "reason": "no"}, Denied("no"), HookOutcome.DENY),
        ({"decision": "ask", "reason": "sure?"}, Asked("sure?"), HookOutcome.ASK),
        ({"rewrite": {"command": "pwd"}}, Allowed({"command": "pwd"}), HookOutcome.REWRITE),
    ],
)
async def test_a_consumer_decides(
    hooks: ServedHooks, answer: object, verdict: object, outcome: HookOutcome
) -> None:
    async with model_server(answering(answer)) as consumer:
        await kept(hooks, consumer.url)
        assert await hooks.dispatcher.dispatch(CALL) == verdict
    (delivery,) = await hooks.log.deliveries(HOOK_ID, 9)
    assert (delivery.outcome, delivery.problem, delivery.tool_name) == (outcome, "", "execute")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ((Act.HANG,), "it did not answer within 1000 ms"),
        ((Act.CLOSE,), ""),
        ((Act.RESET,), ""),
        (whole(b"", "500 Oops"), "it answered with status 500"),
        (whole(b"", "307 Elsewhere", Location="http://127.0.0.1:1/"), "it redirects"),
        (whole(b"<html>"), "its answer is no JSON"),
        (whole(b'{"decision": "deny", "DECISION": "allow"}'), "in two spellings"),
        (whole(b'{"decision": "allow", "model": "other"}'), "an unknown field 'model'"),
        (whole(b" " * 70_000), "exceeds 65536 bytes"),
        ((b"not HTTP at all\r\n\r\n", Act.CLOSE), ""),
    ],
)
async def test_a_consumer_that_fails_or_lies_stops_the_operation_unless_it_fails_open(
    hooks: ServedHooks, script: Script, problem: str
) -> None:
    async with asyncio.timeout(30), model_server(script) as consumer:
        stored = await kept(hooks, consumer.url)
        with pytest.raises(HookFailed) as failed:
            await hooks.dispatcher.dispatch(CALL)
        assert problem in failed.value.problem
        await hooks.stored.update(
            stored.id, lambda each: replace(each, fail_policy=FailPolicy.OPEN), None
        )
        assert await hooks.dispatcher.dispatch(CALL) == Allowed()
    (delivery,) = await hooks.log.deliveries(HOOK_ID, 9)
    assert (delivery.outcome, delivery.attempts) == (HookOutcome.FAILED, 2)
    assert problem in delivery.problem
    assert delivery.problem


async def test_a_consumer_that_is_down_is_tried_twice_within_its_time(hooks: ServedHooks) -> None:
    await kept(hooks, f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(HookFailed):
        await hooks.dispatcher.dispatch(CALL)
    (delivery,) = await hooks.log.deliveries(HOOK_ID, 9)
    assert (delivery.outcome, delivery.http_status) == (HookOutcome.FAILED, 0)
    assert 250 <= delivery.duration_ms <= 1500


async def test_an_address_that_the_policy_forbids_is_not_reached(hooks: ServedHooks) -> None:
    await kept(hooks, "https://169.254.169.254/latest")
    with pytest.raises(HookFailed) as failed:
        await hooks.dispatcher.dispatch(CALL)
    assert "is not a public address" in failed.value.problem
