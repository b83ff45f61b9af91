"""A chat's whole life over HTTP and through the command, in a real stack."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.net.http_client import HttpClient, Reply
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
FILES = "/api/v1/files"
REST_S_MAX = 120


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


def prompt(text: str, **fields: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **fields}


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    """Make a request that must be answered with `status`, and return its document."""
    reply: Reply = await client.request(method, path, body)
    assert reply.status == status, (method, path, reply.body)
    return reply.json() if reply.body else None


async def at_rest(client: HttpClient, path: str) -> dict[str, Any]:
    """Return a chat once nothing runs in it any more."""
    async with asyncio.timeout(REST_S_MAX):
        while True:
            chat: dict[str, Any] = await asked(client, 200, "GET", path)
            if chat["status"] in ("waiting", "error"):
                return chat


def texts(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return who said what, newest first."""
    return [
        (message["role"], "".join(part.get("text", "") for part in message["content"]))
        for message in page["messages"]
    ]


async def test_a_chat_lives_its_whole_life_over_http(stack: LocalStack) -> None:
    client = client_of(stack)
    created = await asked(client, 201, "POST", CHATS, prompt("count to 500"))
    path = f"{CHATS}/{created['id']}"

    first = await asked(client, 202, "POST", f"{path}/messages", prompt("repeat after me: no"))
    second = await asked(client, 202, "POST", f"{path}/messages", prompt("repeat after me: yes"))
    assert (first["queued"], second["queued"]) == (True, True)
    page = await asked(client, 200, "GET", f"{path}/messages")
    queue = [queued["id"] for queued in page["queued_messages"]]
    assert queue == [first["queued_message"]["id"], second["queued_message"]["id"]]
    dropped = await asked(client, 200, "DELETE", f"{path}/queue/{queue[0]}")
    assert dropped["queue_length"] == 1
    promoted = await asked(client, 202, "POST", f"{path}/queue/{queue[1]}/promote")
    assert promoted["status"] in ("interrupting", "running")
    await at_rest(client, path)
    page = await asked(client, 200, "GET", f"{path}/messages?limit=2")
    assert texts(page) == [("assistant", "yes"), ("user", "repeat after me: yes")]
    assert page["has_more"] is True

    edited = await asked(
        client, 202, "PATCH", f"{path}/messages/1", prompt("repeat after me: edited")
    )
    assert 1 in edited["deleted_message_ids"]
    await at_rest(client, path)
    page = await asked(client, 200, "GET", f"{path}/messages")
    assert texts(page) == [("assistant", "edited"), ("user", "repeat after me: edited")]

    await asked(client, 202, "POST", f"{path}/messages", prompt("count to 500"))
    stopped = await asked(client, 202, "POST", f"{path}/interrupt")
    assert stopped["status"] in ("interrupting", "waiting")
    await at_rest(client, path)
    busy = prompt("repeat after me: last", busy_behavior="interrupt")
    await asked(client, 202, "POST", f"{path}/messages", busy)
    await at_rest(client, path)

    patch = {"title": "Whole life", "labels": {"kind": "e2e"}, "pin_order": 1}
    patched = await asked(client, 200, "PATCH", path, patch)
    assert patched | patch == patched
    listed = await asked(client, 200, "GET", f"{CHATS}?label=kind:e2e&q=title:whole")
    assert [chat["id"] for chat in listed["items"]] == [created["id"]]
    assert await asked(client, 200, "PUT", f"{path}/shares", {"shares": []}) == {"shares": []}
    newest = (await asked(client, 200, "GET", f"{path}/messages?limit=1"))["messages"][0]["id"]
    marked = await asked(client, 200, "PUT", f"{path}/read", {"last_message_id": newest})
    assert marked == {"last_message_id": newest}

    await asked(client, 202, "POST", f"{path}/compact")
    await at_rest(client, path)
    whole = await asked(client, 200, "GET", f"{path}/export")
    page = await asked(client, 200, "GET", f"{path}/messages?limit=200")
    assert whole["messages"] == page["messages"][::-1]
    assert whole["message_count"] == len(page["messages"])

    assert (await asked(client, 200, "POST", f"{path}/archive"))["archived"] is True
    refused = await asked(client, 409, "POST", f"{path}/messages", prompt("hello?"))
    assert refused["code"] == "CHAT_ARCHIVED"
    archived = await asked(client, 200, "GET", f"{CHATS}?archived=true&limit=200")
    assert created["id"] in [chat["id"] for chat in archived["items"]]
    assert (await asked(client, 200, "POST", f"{path}/unarchive"))["archived"] is False
    await asked(client, 204, "DELETE", path)
    gone = await asked(client, 404, "GET", path)
    assert gone["code"] == "CHAT_NOT_FOUND"
    assert stack.parley("audit").returncode == 0


async def test_a_chat_that_went_on_is_neither_changed_nor_deleted_as_it_was_read(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    created = await asked(client, 201, "POST", CHATS, prompt("repeat after me: one"))
    path = f"{CHATS}/{created['id']}"
    await at_rest(client, path)
    old = (await client.request("GET", path)).headers["etag"]

    await asked(client, 202, "POST", f"{path}/messages", prompt("repeat after me: two"))
    await at_rest(client, path)
    late = await client.request("PATCH", path, {"title": "late"}, {"If-Match": old})
    kept = await client.request("DELETE", path, None, {"If-Match": old})
    assert [(reply.status, reply.json()["code"]) for reply in (late, kept)] == [
        (412, "VERSION_CONFLICT")
    ] * 2

    new = (await client.request("GET", path)).headers["etag"]
    changed = await client.request("PATCH", path, {"title": "in time"}, {"If-Match": new})
    assert (changed.status, changed.json()["title"]) == (200, "in time")
    newest = {"If-Match": changed.headers["etag"]}
    assert (await client.request("DELETE", path, None, newest)).status == 204


async def test_a_file_goes_into_a_chat_and_comes_out_of_it(stack: LocalStack) -> None:
    client = client_of(stack)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20_000
    headers = {"Content-Type": "image/png"}
    uploaded = await client.request("POST", f"{FILES}?name=dots.png", picture, headers)
    file = {"type": "file", "file_id": uploaded.json()["id"]}
    said = {"type": "text", "text": "repeat after me: yes"}
    created = await asked(client, 201, "POST", CHATS, {"content": [said, file]})
    path = f"{CHATS}/{created['id']}"
    await at_rest(client, path)

    page = await asked(client, 200, "GET", f"{path}/messages")
    shown = {**file, "media_type": "image/png", "name": "dots.png"}
    assert page["messages"][-1]["content"] == [said, shown]
    got = await client.request("GET", f"{FILES}/{file['file_id']}")
    assert (got.status, got.body) == (200, picture)
    refused = await client.request("POST", f"{FILES}?name=a.png", b"PK\x03\x04", headers)
    assert (refused.status, refused.json()["code"]) == (415, "MEDIA_TYPE_REFUSED")
    assert stack.parley("audit").returncode == 0


async def test_models_usage_and_settings_are_served(stack: LocalStack) -> None:
    client = client_of(stack)
    created = await asked(client, 201, "POST", CHATS, prompt("repeat after me: yes"))
    await at_rest(client, f"{CHATS}/{created['id']}")

    models = await asked(client, 200, "GET", "/api/v1/models")
    used = await asked(client, 200, "GET", f"{CHATS}/{created['id']}/usage")
    spent = await asked(client, 200, "GET", "/api/v1/me/spend")
    body = {"custom_prompt": "Be brief."}
    await asked(client, 200, "PATCH", "/api/v1/me/settings", body)
    settings = await asked(client, 200, "GET", "/api/v1/me/settings")

    assert "scripted" in [model["id"] for model in models["items"]]
    assert used["root_chat_id"] == created["id"]
    assert used["totals"]["priced_calls"] + used["totals"]["unpriced_calls"] >= 1
    assert spent["limit"] is None
    assert settings == body | {
        "compaction_threshold_percents": {},
        "favourite_model_ids": [],
        "hidden_model_ids": [],
    }
    await asked(client, 200, "PATCH", "/api/v1/me/settings", {"custom_prompt": None})


def test_the_command_lists_shows_sends_and_interrupts(stack: LocalStack) -> None:
    made = stack.parley("run", "repeat after me: one", "--json")
    chat_id = json.loads(made.stdout.splitlines()[0])["chat_id"]

    listed = stack.parley("ls", "--json")
    assert chat_id in [chat["id"] for chat in json.loads(listed.stdout)["items"]]
    answered = stack.parley("send", chat_id, "repeat after me: two")
    assert (answered.returncode, answered.stdout) == (0, "two\n"), answered.stderr
    shown = stack.parley("show", chat_id)
    assert shown.stdout.splitlines()[1:] == [
        "--- user 1",
        "repeat after me: one",
        "--- assistant 2",
        "one",
        "--- user 3",
        "repeat after me: two",
        "--- assistant 4",
        "two",
    ]
    assert stack.parley("send", chat_id, "count to 500", "--no-wait").returncode == 0
    queued = stack.parley("send", chat_id, "repeat after me: three")
    assert queued.stderr.startswith("Queued as ")
    stopped = stack.parley("interrupt", chat_id, "--json")
    assert json.loads(stopped.stdout)["status"] in ("interrupting", "running", "waiting")


async def test_a_model_that_was_deleted_is_named_and_never_replaced(stack: LocalStack) -> None:
    client = client_of(stack)
    provider = {"name": "gone", "type": "openai_compatible", "base_url": "http://127.0.0.1:9"}
    provider_id = (await asked(client, 201, "POST", "/api/v1/providers", provider))["id"]
    body = {"provider_id": provider_id, "name": "m", "display_name": "The old one"}
    model = await asked(client, 201, "POST", "/api/v1/models", body)
    assert model["is_default"] is False
    created = await asked(client, 201, "POST", CHATS, prompt("repeat after me: one"))
    path = f"{CHATS}/{created['id']}"
    await at_rest(client, path)
    await asked(client, 200, "PATCH", path, {"model_id": model["id"]})
    await asked(client, 204, "DELETE", f"/api/v1/models/{model['id']}")

    await asked(client, 202, "POST", f"{path}/messages", prompt("repeat after me: two"))
    failed = await at_rest(client, path)
    assert (failed["status"], failed["model_id"]) == ("error", model["id"])
    assert failed["last_error"]["kind"] == "model_unavailable"
    assert "The old one was removed" in failed["last_error"]["message"]

    await asked(client, 200, "PATCH", path, {"model_id": None})
    await asked(client, 202, "POST", f"{path}/messages", prompt("repeat after me: three"))
    assert (await at_rest(client, path))["status"] == "waiting"
    await asked(client, 204, "DELETE", f"/api/v1/providers/{provider_id}")


async def test_status_tells_a_default_that_is_stored(stack: LocalStack) -> None:
    client = client_of(stack)
    provider = {"name": "stored", "type": "openai_compatible", "base_url": "http://127.0.0.1:9"}
    provider_id = (await asked(client, 201, "POST", "/api/v1/providers", provider))["id"]
    body = {"provider_id": provider_id, "name": "m", "display_name": "Stored one"}
    model = await asked(client, 201, "POST", "/api/v1/models", body)
    try:
        before = stack.status()["models"]
        await asked(client, 200, "PATCH", f"/api/v1/models/{model['id']}", {"is_default": True})
        after = stack.status()["models"]
    finally:
        await asked(client, 204, "DELETE", f"/api/v1/providers/{provider_id}")
    assert before.startswith("the scripted demo answers; make another model the default")
    assert after == "stored, Stored one by default"
    assert stack.status()["models"].startswith("the scripted demo answers")
