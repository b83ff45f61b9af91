"""Faults of providers as a client sees them: over HTTP and server-sent events, in a real stack."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.net.http_client import HttpClient, SentEvent
from support.stack.local_stack import LocalStack

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CHATS = "/api/v1/chats"
KEY = "sk-a-key-that-nobody-may-see-0123"
TURN_S_MAX = 120.0
ATTEMPTS_MAX = 3
WAIT = "Wait: it is tried again by itself. Stop the turn to choose another model."
TYPES = {"anthropic": "anthropic", "openai": "openai"}


@dataclass(frozen=True, slots=True)
class Installation:
    """A stack whose models are the mock's."""

    client: HttpClient
    mock: MockModels
    provider_ids: dict[str, str] = field(default_factory=dict)
    model_ids: dict[str, str] = field(default_factory=dict)

    async def asked(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request that must succeed; return its document."""
        reply = await self.client.request(method, path, body)
        assert reply.status < 300, (method, path, reply.body)
        return reply.json() if reply.body else None

    async def model(
        self, provider: str, words: str, options: Mapping[str, str] | None = None
    ) -> str:
        """Make a model of the mock known, unless it is; return its id."""
        key = f"{provider} {words}"
        if key not in self.model_ids:
            provider_id = self.provider_ids[provider]
            body = {"provider_id": provider_id, "name": f"mock:{words}", "options": options}
            self.model_ids[key] = (await self.asked("POST", "/api/v1/models", body))["id"]
        return self.model_ids[key]

    async def turn(self, chat_id: str, model_id: str, text: str = "hello") -> list[SentEvent]:
        """Send a message; return all that a reader is told until the chat rests."""
        events: list[SentEvent] = []
        path = f"{CHATS}/{chat_id}"
        async with asyncio.timeout(TURN_S_MAX), self.client.stream(f"{path}/events") as reader:
            body = {"content": [{"type": "text", "text": text}], "model_id": model_id}
            await self.asked("POST", f"{path}/messages", body)
            has_run = False
            while not (has_run and _is_over(events)):
                event = await reader.event()
                assert event is not None
                events.append(event)
                has_run = has_run or _status(events) == "running"
        return events

    async def chat(self) -> str:
        """Return the id of a chat in which nothing runs."""
        model_id = await self.model("anthropic", "text=ready")
        body = {"content": [{"type": "text", "text": "begin"}], "model_id": model_id}
        chat_id = str((await self.asked("POST", CHATS, body))["id"])
        async with asyncio.timeout(TURN_S_MAX):
            while (await self.asked("GET", f"{CHATS}/{chat_id}"))["status"] != "waiting":
                pass
        return chat_id


def _status(events: list[SentEvent]) -> str | None:
    statuses = [event.data["status"]["status"] for event in events if event.event == "status"]
    return statuses[-1] if statuses else None


def _is_over(events: list[SentEvent]) -> bool:
    """Return whether a turn ended: with a status, or with an error that comes after it."""
    is_failed = _status(events) == "error" and events[-1].event == "error"
    return _status(events) == "waiting" or is_failed


def _fallback_calls(usage: Any) -> int:
    return int(usage.get("totals", usage)["fallback_calls"])


def _told(events: list[SentEvent], kind: str) -> list[Any]:
    return [event.data[kind] for event in events if event.event == kind]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """Run one stack for all tests here, with two providers that are both the mock."""
    attempts_max = {"CHATD_MODEL_ATTEMPTS_MAX": str(ATTEMPTS_MAX)}
    stack = LocalStack.at(tmp_path_factory.mktemp("home"), **attempts_max)
    async with MockModels.serving(clock=SystemClock()) as mock:
        started = await asyncio.to_thread(stack.up, "--chatd", "1")
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            key = stack.home.api_key_file.read_text().strip()
            port = int(stack.http.rpartition(":")[2])
            client = HttpClient(port, {"Authorization": f"Bearer {key}"})
            made = Installation(client, mock)
            for name, kind in TYPES.items():
                url = mock.url if name == "anthropic" else f"{mock.url}/v1"
                body = {"name": f"mock-{name}", "type": kind, "base_url": url}
                provider = await made.asked("POST", "/api/v1/providers", body)
                made.provider_ids[name] = provider["id"]
                stored = {"provider_id": provider["id"], "key": KEY}
                await made.asked("POST", "/api/v1/provider-keys", stored)
            yield made
        finally:
            await asyncio.to_thread(stack.parley, "down")


async def test_h30_a_retry_is_told_from_the_first_failure(installation: Installation) -> None:
    chat_id = await installation.chat()
    model = await installation.model("anthropic", "fail=529*2,text=better")
    events = await installation.turn(chat_id, model)
    retries = _told(events, "retry")
    print(f"H30: {len(retries)} retries told, the first after attempt {retries[0]['attempt']}")
    assert [retry["attempt"] for retry in retries] == [1, 2]
    told = retries[0]
    assert 1000 <= told.pop("delay_ms") <= 2000
    assert told.pop("retrying_at").endswith("Z")
    assert told == {
        "attempt": 1,
        "error": {
            "message": "mock-anthropic is overloaded at the moment.",
            "detail": "mock: failing with 529 as asked",
            "kind": "overloaded",
            "provider": "mock-anthropic",
            "status_code": 529,
            "retryable": True,
            "attempts": None,
            "next_step": WAIT,
        },
        "fallback_model_id": None,
    }
    assert _status(events) == "waiting"


async def test_h29_an_answer_that_is_always_cut_ends_with_kind_attempts_and_next_step(
    installation: Installation,
) -> None:
    chat_id = await installation.chat()
    model = await installation.model("openai", "cut=2,text=never whole")
    events = await installation.turn(chat_id, model)
    (error,) = _told(events, "error")
    print(f"H29: {error}")
    assert [retry["attempt"] for retry in _told(events, "retry")] == [1, 2]
    assert (error["kind"], error["attempts"], error["retryable"]) == ("timeout", ATTEMPTS_MAX, True)
    assert error["next_step"] == "Send the message again later, or choose another model."
    shown = await installation.asked("GET", f"{CHATS}/{chat_id}")
    assert shown["last_error"] == error


async def test_a_chat_whose_provider_is_down_continues_with_its_fallback_model(
    installation: Installation,
) -> None:
    chat_id = await installation.chat()
    down = await installation.model("openai", "fail=503*")
    fallback = await installation.model("anthropic", "text=instead")
    changed = await installation.asked(
        "PATCH", f"{CHATS}/{chat_id}", {"fallback_model_id": fallback}
    )
    assert changed["fallback_model_id"] == fallback
    before = await installation.asked("GET", f"{CHATS}/{chat_id}/usage")
    events = await installation.turn(chat_id, down)
    assert [each["fallback_model_id"] for each in _told(events, "retry")] == [None, fallback]
    page = await installation.asked("GET", f"{CHATS}/{chat_id}/messages?limit=1")
    (answer,) = page["messages"]
    announced, text = answer["content"]
    assert (announced["type"], announced["failed_model_id"], announced["model_id"]) == (
        "fallback",
        down,
        fallback,
    )
    assert text == {"type": "text", "text": "instead"}
    assert (answer["model_id"], answer["usage"]["is_fallback"]) == (fallback, True)
    after = await installation.asked("GET", f"{CHATS}/{chat_id}/usage")
    assert _fallback_calls(after) - _fallback_calls(before) == 1


async def test_c3_a_key_that_is_refused_is_told_once_and_not_shown(
    installation: Installation,
) -> None:
    events = await installation.turn(
        await installation.chat(), await installation.model("openai", "fail=401*")
    )
    (error,) = _told(events, "error")
    print(f"C3 over HTTP: {error}")
    assert error == {
        "message": "mock-openai did not accept our sign-in. Check its key and what that may do.",
        "detail": "mock: failing with 401 as asked",
        "kind": "auth",
        "provider": "mock-openai",
        "status_code": 401,
        "retryable": False,
        "attempts": 1,
        "next_step": "Check the key of the provider, or choose another model.",
    }
    assert _told(events, "retry") == []
    assert KEY not in str(events)


async def test_c4_an_answer_that_was_cut_is_asked_for_again(installation: Installation) -> None:
    chat_id = await installation.chat()
    model = await installation.model("openai", "cut=2,times=1,text=whole")
    events = await installation.turn(chat_id, model)
    assert [retry["error"]["kind"] for retry in _told(events, "retry")] == ["timeout"]
    page = await installation.asked("GET", f"{CHATS}/{chat_id}/messages?limit=1")
    assert page["messages"][0]["content"] == [{"type": "text", "text": "whole"}]


async def test_c18_a_chat_switches_providers_and_nobody_refuses(
    installation: Installation,
) -> None:
    chat_id = await installation.chat()
    # Nobody else asks models of these names; of others, small questions may come late.
    words = ("reasoning=3,tools=1,tool=get_current_time,preface=2", "reasoning=2")
    models = [await installation.model(name, words[0]) for name in TYPES]
    models.append(await installation.model("openai", words[1], {"wire": "responses"}))
    for model in (*models, *models):
        assert _status(await installation.turn(chat_id, model)) == "waiting"
    names = {f"mock:{each}" for each in words}
    served = [each for each in installation.mock.requests() if each.model in names]
    by_status = Counter(each.status for each in served)
    print(f"C18 over HTTP: {by_status}")
    assert by_status.keys() == {200}
    assert {each.path for each in served} == {
        "/v1/messages",
        "/v1/chat/completions",
        "/v1/responses",
    }
