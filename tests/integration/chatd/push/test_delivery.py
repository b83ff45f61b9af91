"""Delivery to a push service on loopback that decrypts and verifies what it gets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chatd.chats.domain.chat import ChatState, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.push.clients.endpoints import NOT_ALLOWED
from chatd.push.domain.subscription import PushAddress, PushSubscription
from chatd.push.engine.outbox import LABEL_S
from chatd.push.store.subscriptions import NewSubscription
from chatd.turns.domain.turn import Ending, TurnEnded
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.push.served_push import ServedPush, served_push
from support.net.push_service import (
    Browser,
    LoopbackPushService,
    loopback_push_service,
    verified_claims,
)

ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
CHAT = ChatId("00000000-0000-4000-8000-00000000000c")
OTHER = ChatId("00000000-0000-4000-8000-0000000000c2")
STATE = ChatState(CHAT, Status.WAITING, 9, 7, 0, MessageId(5))
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 8
WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Notifications of one user, with a clock of the test."""

    push: ServedPush
    service: LoopbackPushService
    clock: FakeClock
    pool: Pool
    browser: Browser

    async def subscribe(self, name: str, endpoint: str = "") -> PushSubscription:
        """Store a device whose endpoint has a name, or is given."""
        number = sum(map(ord, name))
        address = PushAddress(
            endpoint or self.service.endpoint(name), self.browser.public_key, self.browser.auth
        )
        return await self.push.stored.put(
            NewSubscription(
                f"00000000-0000-4000-8000-{number:012}", ANN.id, name, "127.0.0.1", address, b"1"
            )
        )

    async def shown(self) -> dict[str, str]:
        """Return the last error of each device."""
        return {each.name: each.last_error for each in await self.push.stored.of_owner(ANN.id)}

    async def chat(self, state: ChatState = STATE) -> None:
        """Store a chat as it is after the turn."""
        await insert_chat(self.pool, state, ANN)

    def ended(self, text: str = "Done.", state: ChatState = STATE) -> None:
        """Tell that a turn ended."""
        self.push.outbox.ended(TurnEnded(Ending.FINISHED, ANN, state, text))

    def failed(self) -> None:
        """Tell that the turn failed, which is sent at once."""
        self.push.outbox.failed(failure())

    def texts(self, name: str) -> list[dict[str, Any]]:
        """Return the payloads that a device got."""
        return [json.loads(self.browser.decrypt(each.body)) for each in self.service.of(name)]

    def count(self, outcome: str) -> int:
        """Return how many notifications had an outcome."""
        series = self.push.delivery.durations.series
        return sum(each.count for each in series if each.values[1] == outcome)

    async def until_counted(self, outcome: str, count: int = 1) -> None:
        """Wait until so many notifications had an outcome."""
        async with asyncio.timeout(WITHIN_S):
            while self.count(outcome) < count:
                await self.pool.fetchval("SELECT 1")

    async def until_shown(self, **errors: str) -> None:
        """Wait until the devices have these last errors."""
        async with asyncio.timeout(WITHIN_S):
            while await self.shown() != errors:
                pass


def failure(chat_id: ChatId = CHAT) -> ChatState:
    error = TurnError("The provider is down.", ErrorKind.OVERLOADED)
    return replace(STATE, chat_id=chat_id, status=Status.ERROR, last_error=error)


@asynccontextmanager
async def staged(pool: Pool, **given: Any) -> AsyncIterator[Stage]:
    clock = FakeClock()
    async with (
        loopback_push_service() as service,
        served_push(pool, clock=clock, **given) as push,
        asyncio.TaskGroup() as tasks,
    ):
        running = tasks.create_task(push.outbox.run())
        yield Stage(push, service, clock, pool, Browser())
        running.cancel()


@pytest.fixture
async def stage(pool: Pool) -> AsyncIterator[Stage]:
    async with staged(pool) as given:
        yield given


async def test_the_end_of_a_turn_is_encrypted_for_each_device_and_signed(stage: Stage) -> None:
    await stage.chat()
    for name in ("phone", "tablet"):
        await stage.subscribe(name)
    stage.ended(f"**Found** it: {SECRET}")
    await stage.clock.until_sleeping_for(LABEL_S)
    stage.clock.advance(LABEL_S)
    await stage.until_counted("sent", 2)
    for name in ("phone", "tablet"):
        (arrived,) = stage.service.of(name)
        (shown,) = stage.texts(name)
        assert (shown["kind"], shown["path"]) == ("finished", f"/chats/{CHAT}")
        assert shown["body"].startswith("Found it: ")
        assert "a1B2c3D4" not in shown["body"]
        headers = {key: arrived.headers[key] for key in ("ttl", "urgency", "content-encoding")}
        assert headers == {"ttl": "86400", "urgency": "normal", "content-encoding": "aes128gcm"}
        public_key = await stage.push.public_key()
        claims = verified_claims(arrived.headers["authorization"], public_key)
        assert claims["aud"] == stage.service.url
    topics = {each.headers["topic"] for each in stage.service.pushed}
    assert (len(topics), len(topics.pop())) == (1, 32)


async def test_a_label_is_sent_at_once_in_place_of_the_answer(stage: Stage) -> None:
    await stage.chat()
    await stage.subscribe("phone")
    stage.ended()
    await stage.clock.until_sleeping_for(LABEL_S)
    stage.push.outbox.labelled(CHAT, STATE.history_version - 1, "Of an earlier turn")
    stage.push.outbox.labelled(CHAT, STATE.history_version, "Tests pass now")
    await stage.until_counted("sent")
    assert [each["body"] for each in stage.texts("phone")] == ["Tests pass now"]


async def test_only_the_newest_of_a_chat_is_sent_and_none_of_one_that_went_on(
    stage: Stage,
) -> None:
    await stage.chat(replace(STATE, history_version=8))
    await stage.subscribe("phone")
    stage.ended("first")
    stage.ended("second", replace(STATE, history_version=8))
    running = replace(STATE, chat_id=OTHER, status=Status.RUNNING, history_version=8)
    await stage.chat(running)
    stage.ended("other", replace(STATE, chat_id=OTHER))
    await stage.clock.until_sleeping_for(LABEL_S)
    stage.clock.advance(LABEL_S)
    await stage.until_counted("sent")
    await stage.until_counted("superseded", 2)
    assert [each["body"] for each in stage.texts("phone")] == ["second"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("429 Too Many\r\nRetry-After: 90", "the push service asks for fewer notifications (429)"),
        ("500 Oops", "the push service failed (500)"),
        ("413 Large", "the notification is too large for the push service (413)"),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", "the push service redirects (302)"),
    ],
)
async def test_a_device_that_fails_is_left_alone_and_says_why(
    stage: Stage, answer: str, problem: str
) -> None:
    await stage.chat(failure())
    await stage.subscribe("phone")
    stage.service.answers["/phone"] = answer
    stage.failed()
    await stage.service.until(lambda: len(stage.service.of("phone")) == 1)
    await stage.until_shown(**{"phone": problem})
    stage.failed()
    await stage.until_counted("backoff")
    del stage.service.answers["/phone"]
    stage.clock.advance(91)
    stage.failed()
    await stage.until_shown(**{"phone": ""})
    assert [each["kind"] for each in stage.texts("phone")] == ["failed", "failed"]


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
async def test_a_subscription_that_has_ended_is_deleted_and_others_go_on(
    stage: Stage, status: str
) -> None:
    await stage.chat(failure())
    for name in ("gone", "phone"):
        await stage.subscribe(name)
    stage.service.answers["/gone"] = status
    stage.failed()
    await stage.until_shown(**{"phone": ""})
    stage.failed()
    await stage.until_counted("sent", 2)
    assert (len(stage.service.of("gone")), len(stage.service.of("phone"))) == (1, 2)


async def test_a_silent_push_service_holds_up_nobody(pool: Pool) -> None:
    async with staged(pool, timeout_s=1.0) as stage:
        await stage.chat(failure())
        for name in ("silent", "phone"):
            await stage.subscribe(name)
        stage.service.silent.add("/silent")
        stage.failed()
        await stage.until_counted("sent")
        problem = "it did not answer within 1 s"
        await stage.until_shown(**{"phone": "", "silent": problem})


async def test_a_name_that_resolves_to_a_private_address_is_not_reached(pool: Pool) -> None:
    async with staged(pool, allowed="127.0.0.1:1") as stage:
        await stage.chat(failure())
        await stage.subscribe("phone")
        stage.failed()
        await stage.until_counted("failed")
        assert stage.service.pushed == []


async def test_users_learn_no_difference_between_private_and_unknown_hosts(pool: Pool) -> None:
    known: dict[str, tuple[str, ...]] = {"private.test": ("10.0.0.7",)}
    async with staged(pool, allowed="", look_up=lambda host, _: known.get(host, ())) as stage:
        await stage.chat(failure())
        for name in ("private", "unknown"):
            await stage.subscribe(name, f"https://{name}.test/1")
        await stage.subscribe("plain", "http://push.example.com/1")
        stage.failed()
        await stage.until_shown(private=NOT_ALLOWED, unknown=NOT_ALLOWED, plain=NOT_ALLOWED)


async def test_a_deleted_device_and_chats_of_suspended_users_are_not_told(stage: Stage) -> None:
    await stage.chat(failure())
    subscription = await stage.subscribe("phone")
    stage.failed()
    await stage.until_counted("sent")
    await stage.pool.execute(SUSPEND, ANN.id)
    stage.failed()
    await stage.until_counted("superseded")
    await stage.pool.execute("DELETE FROM chat.suspended_users")
    await stage.push.stored.delete(ANN.id, subscription.id)
    other = await stage.subscribe("tablet")
    stage.failed()
    await stage.until_counted("sent", 2)
    assert len(stage.service.of("phone")) == 1
    assert len(stage.service.of("tablet")) == 1
    assert other.id != subscription.id


async def test_a_goal_is_waited_for_and_its_end_is_told_once(stage: Stage) -> None:
    await stage.chat()
    await stage.subscribe("phone")
    await stage.pool.execute(INSERT_GOAL, CHAT, ANN.id)
    stage.ended("step")
    await stage.clock.until_sleeping_for(LABEL_S)
    stage.clock.advance(LABEL_S)
    await stage.clock.until_sleeping_for(15.0)
    assert stage.service.pushed == []
    await stage.pool.execute("UPDATE chat.goals SET state = 'reached'")
    stage.clock.advance(15.0)
    await stage.until_counted("sent")
    assert [each["body"] for each in stage.texts("phone")] == ["step"]


SUSPEND = """
    INSERT INTO chat.suspended_users (user_id, is_deleted, suspended_at)
    VALUES ($1, false, clock_timestamp())
"""
INSERT_GOAL = """
    INSERT INTO chat.goals (chat_id, id, owner_id, owner_role, text, check_command, turns_max,
        seconds_max, cost_max_micros, state, reason, turns_count, check_output, resumes_count,
        resumed_version, request_hash, created_at)
    VALUES ($1, gen_random_uuid(), $2, 'member', 'goal', '', 9, 9, 9, 'active', '', 0, '', 0, 0,
        '', clock_timestamp())
"""
