"""Notifications of a real stack at a push service on this machine, as a browser gets them."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.net.http_client import HttpClient
from support.net.push_service import (
    Browser,
    LoopbackPushService,
    loopback_push_service,
    verified_claims,
)
from support.stack.local_stack import LocalStack
from support.stack.own_stack import reaching_here

pytestmark = pytest.mark.slow

REST_S_MAX = 120
PATH = "/api/v1/me/push-subscriptions"
ASKING = json.dumps(
    {"questions": [{"question": "Tea or coffee?", "options": [{"label": "a"}, {"label": "b"}]}]}
)
SPAWNING = json.dumps({"prompt": "repeat after me: child"})


@dataclass(frozen=True, slots=True)
class Device:
    """A browser with a subscription, and a client of its user."""

    stack: LocalStack
    client: HttpClient
    service: LoopbackPushService
    browser: Browser
    id: str

    @classmethod
    async def subscribed(
        cls, stack: LocalStack, service: LoopbackPushService, name: str = "laptop"
    ) -> "Device":
        """Subscribe as the page does."""
        key = stack.home.api_key_file.read_text().strip()
        port = int(stack.http.rpartition(":")[2])
        client = HttpClient(port, {"Authorization": f"Bearer {key}"})
        browser = Browser()
        body = {"endpoint": service.endpoint(name), "name": name, **browser.keys()}
        made = await client.request("POST", PATH, body)
        assert made.status == 201, made.body
        assert set(made.json()) == {
            "id",
            "name",
            "host",
            "created_at",
            "last_sent_at",
            "last_error",
        }
        return cls(stack, client, service, browser, made.json()["id"])

    async def chat(self, text: str, *statuses: str, mode: str | None = None) -> str:
        """Return a new chat once it is in one of these statuses."""
        body = {"content": [{"type": "text", "text": text}], "mode": mode}
        made = await self.client.request("POST", "/api/v1/chats", body)
        assert made.status == 201, made.body
        chat_id = str(made.json()["id"])
        await self.until(chat_id, *statuses)
        return chat_id

    async def until(self, chat_id: str, *statuses: str) -> None:
        """Wait for a status."""
        async with asyncio.timeout(REST_S_MAX):
            while True:
                chat = (await self.client.request("GET", f"/api/v1/chats/{chat_id}")).json()
                if chat["status"] in statuses:
                    return

    def shown(self) -> list[dict[str, Any]]:
        """Return what the browser decrypted, in order."""
        return [json.loads(self.browser.decrypt(each.body)) for each in self.service.pushed]

    async def until_shown(self, count: int) -> dict[str, Any]:
        """Wait for so many notifications in all, and return the last one."""
        await self.service.until(lambda: len(self.service.pushed) >= count)
        assert len(self.service.pushed) == count
        return self.shown()[-1]


async def test_a_person_who_closed_the_page_is_told_once_what_chats_wait_for(
    tmp_path: Path,
) -> None:
    async with (
        reaching_here(tmp_path / "home") as stack,
        loopback_push_service() as service,
    ):
        device = await Device.subscribed(stack, service)
        finished = await device.chat("repeat after me: **done**", "waiting")
        shown = await device.until_shown(1)
        assert shown == {
            "kind": "finished",
            "chat_id": finished,
            "title": shown["title"],
            "body": "done",
            "path": f"/chats/{finished}",
        }
        public_key = (await device.client.request("GET", "/api/v1/push-key")).json()["public_key"]
        header = service.pushed[0].headers["authorization"]
        assert verified_claims(header, public_key)["aud"] == service.url

        # Neither an interrupted turn nor an agent is told, the chat that started it is.
        stopped = await device.chat("count to 500", "running")
        await device.client.request("POST", f"/api/v1/chats/{stopped}/interrupt")
        await device.until(stopped, "waiting")
        parent = await device.chat(f"call: spawn_agent {SPAWNING}\nsay: parent", "waiting")
        assert (await device.until_shown(2))["chat_id"] == parent

        asking = await device.chat(
            f"call: ask_user_question {ASKING}", "requires_action", mode="plan"
        )
        asked = await device.until_shown(3)
        assert (asked["kind"], asked["chat_id"], asked["body"]) == (
            "asks",
            asking,
            "Tea or coffee?",
        )
        assert service.pushed[-1].headers["urgency"] == "high"

        # A killed process loses at most what waits in it.
        await asyncio.to_thread(kill_every_chatd, stack)
        after = await device.chat("repeat after me: again", "waiting")
        assert (await device.until_shown(4))["chat_id"] == after

        listed = await asyncio.to_thread(stack.parley, "notifications", "ls")
        assert ("laptop" in listed.stdout, service.url in listed.stdout) == (True, False)
        tested = await asyncio.to_thread(stack.parley, "notifications", "test", "laptop")
        assert tested.returncode == 0, tested.stderr
        assert (await device.until_shown(5))["kind"] == "test"
        removed = await asyncio.to_thread(stack.parley, "notifications", "rm", device.id[:8])
        assert removed.returncode == 0, removed.stderr
        await device.chat(f"call: ask_user_question {ASKING}", "requires_action", mode="plan")
        other = await Device.subscribed(stack, service, "phone")
        again = await other.client.request("POST", f"{PATH}/{other.id}/test")
        assert (again.status, len(service.of("laptop"))) == (204, 5)


def kill_every_chatd(stack: LocalStack) -> None:
    """Kill one after the other, and wait for its successor."""
    for process in stack.status()["processes"]:
        if process["service"] == "chatd":
            psutil.Process(process["pid"]).kill()
            stack.until_whole(without=process["pid"])
