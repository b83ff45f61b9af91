"""Which hooks get an event, by which id, and what is left out of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from chatd.chats.domain.errors import HookFailed
from chatd.hooks.clients.webhooks import WebhookSender
from chatd.hooks.domain.answers import Allowed, Denied
from chatd.hooks.domain.hooks import FailPolicy, HookEvent, Occurrence, sendable
from chatd.hooks.domain.ports import Delivery, DeliveryFailed, HookAnswer, HookOutcome
from chatd.hooks.engine.dispatch import EVENT_MS_MAX, HookDispatcher
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable
from parley.secrets import KeyMissing
from parley.settings import Secret
from parley.telemetry.redaction import Redactor
from support.chatd.hooks.in_memory_hooks import HOOK_ID, hook, hook_stage
from support.chatd.turns.turn_stage import ANN, CHAT

PRE, STOP = HookEvent.PRE_TOOL_USE, HookEvent.STOP
OTHER_ID = "00000000-0000-4000-8000-0000000000f1"
CALL = Occurrence(
    PRE, CHAT, ANN.id, "1 a", {"tool_name": "execute", "tool_input": {"command": "ls"}}, "execute"
)


def test_a_hook_gets_its_events_of_the_tools_that_it_names() -> None:
    named = hook(PRE, STOP, tools=("exec*", "github__*"))
    assert [named.matches(PRE, name) for name in ("execute", "github__x", "Execute", "read")] == [
        True,
        True,
        False,
        False,
    ]
    assert named.matches(STOP, "")
    assert not named.matches(HookEvent.POST_TOOL_USE, "execute")
    assert hook(PRE).matches(PRE, "anything")
    assert not hook(PRE, is_disabled=True).matches(PRE, "anything")


def test_the_same_event_has_the_same_id_and_another_one_has_another() -> None:
    again = replace(CALL, data=json.loads(json.dumps(CALL.data)))
    others = (
        replace(CALL, key="2 a"),
        replace(CALL, event=HookEvent.POST_TOOL_USE),
        replace(CALL, chat_id=OTHER_ID),
        replace(CALL, data={**CALL.data, "tool_input": {"command": "rm"}}),
    )
    assert again.dispatch_id == CALL.dispatch_id
    assert len({each.dispatch_id for each in (CALL, *others)}) == 5


def test_secrets_are_masked_wherever_they_are() -> None:
    secret = "sk-abcdefgh12345678"
    sent = json.dumps(sendable({secret: [{"a": f"x {secret} y"}], "n": 1}, Redactor().clean))
    assert secret not in sent
    assert json.loads(sent) == {"[redacted]": [{"a": "x [redacted] y"}], "n": 1}


async def test_a_rewrite_of_an_input_with_a_masked_secret_is_a_failure() -> None:
    stage = hook_stage(lambda _: {"rewrite": {"command": "ls"}}, hook(PRE))
    occurrence = replace(CALL, data={"tool_input": {"command": "login sk-abcdefgh12345678"}})
    with pytest.raises(HookFailed) as failed:
        await stage.dispatcher.dispatch(occurrence)
    assert "did not get secrets" in failed.value.problem
    assert stage.consumer.got[0]["is_shortened"]


async def test_the_next_hook_gets_the_input_that_the_one_before_replaced() -> None:
    stage = hook_stage(
        lambda payload: {"rewrite": {"command": payload["data"]["tool_input"]["command"] + "!"}},
        hook(PRE),
        hook(PRE, id=OTHER_ID),
    )
    assert await stage.dispatcher.dispatch(CALL) == Allowed({"command": "ls!!"})
    assert [each["data"]["tool_input"] for each in stage.consumer.got] == [
        {"command": "ls"},
        {"command": "ls!"},
    ]


async def test_after_a_refusal_no_further_hook_is_asked() -> None:
    stage = hook_stage(lambda _: {"decision": "deny"}, hook(PRE), hook(PRE, id=OTHER_ID))
    assert await stage.dispatcher.dispatch(CALL) == Denied("it gave no reason")
    assert len(stage.consumer.got) == 1


async def test_every_hook_gets_the_end_of_a_turn_that_another_refuses() -> None:
    stage = hook_stage(
        lambda _: {"decision": "deny", "reason": "not yet"}, hook(STOP), hook(STOP, id=OTHER_ID)
    )
    for is_continued in (False, True):
        ending = Occurrence(STOP, CHAT, ANN.id, f"1 {is_continued}", {"continued": is_continued})
        assert await stage.dispatcher.dispatch(ending) == Denied("not yet")
    assert [each["data"]["continued"] for each in stage.consumer.got] == [False, False, True, True]


async def test_a_failure_is_ignored_only_by_hooks_that_fail_open() -> None:
    open_ = hook(PRE, fail_policy=FailPolicy.OPEN)
    assert await hook_stage(lambda _: None, open_).dispatcher.dispatch(CALL) == Allowed()
    closed = hook_stage(lambda _: None, open_, hook(PRE, id=OTHER_ID))
    with pytest.raises(HookFailed) as failed:
        await closed.dispatcher.dispatch(CALL)
    assert (failed.value.hook_id, failed.value.problem) == (OTHER_ID, "it is down")
    assert [(each.values, each.count) for each in closed.dispatcher.durations.series] == [
        (("pre_tool_use", "failed"), 2)
    ]
    (first,) = await closed.log.deliveries(HOOK_ID, 9)
    assert (first.outcome, first.problem) == (HookOutcome.FAILED, "it is down")


@dataclass(frozen=True, slots=True)
class BrokenLog:
    """A log in which nothing can be written."""

    async def add(self, delivery: Delivery) -> None:
        raise ValueError("the hook was deleted")

    async def deliveries(self, hook_id: str, length: int) -> tuple[Delivery, ...]:
        return ()


async def test_a_log_that_cannot_be_written_changes_no_decision() -> None:
    stage = hook_stage(lambda _: {"decision": "deny", "reason": "no"}, hook(PRE))
    dispatcher = HookDispatcher(
        stage.cached,
        sender=stage.consumer,
        log=BrokenLog(),
        clock=stage.clock,
        clean=Redactor().clean,
    )
    assert await dispatcher.dispatch(CALL) == Denied("no")


class Unreachable:
    """A sender that no request may reach."""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> HookAnswer:
        raise AssertionError("a request was sent")


async def test_a_secret_that_cannot_be_opened_is_a_failed_delivery() -> None:
    async def damaged(hook_id: str) -> tuple[Secret, ...]:
        raise KeyMissing("k1")

    sender = WebhookSender(Unreachable(), damaged, FakeClock())
    with pytest.raises(DeliveryFailed, match="its secret cannot be read"):
        await sender.send(hook(PRE), "id", b"{}")


async def test_a_database_that_is_away_is_no_failure_of_a_hook() -> None:
    async def away(hook_id: str) -> tuple[Secret, ...]:
        raise DatabaseUnavailable("it restarts")

    sender = WebhookSender(Unreachable(), away, FakeClock())
    with pytest.raises(DatabaseUnavailable):
        await sender.send(hook(PRE), "id", b"{}")


async def test_hooks_of_one_event_share_a_bounded_time() -> None:
    stage = hook_stage(lambda _: {}, hook(PRE), hook(PRE, id=OTHER_ID))

    def slow(payload: object) -> object:
        stage.clock.advance(EVENT_MS_MAX / 1000)
        return {}

    stage.consumer.answer = slow
    with pytest.raises(HookFailed) as failed:
        await stage.dispatcher.dispatch(CALL)
    assert "took all the time" in failed.value.problem
    assert len(stage.consumer.got) == 1


async def test_hooks_are_absent_only_as_long_as_that_is_known() -> None:
    stage = hook_stage(lambda payload: {}, hook(HookEvent.STOP))
    assert not stage.chats.are_absent(HookEvent.SESSION_START)
    await stage.dispatcher.has_hooks(HookEvent.STOP)
    known = {event: stage.chats.are_absent(event) for event in HookEvent}
    assert known == {event: event is not HookEvent.STOP for event in HookEvent}
    stage.cached.forget()
    assert not stage.chats.are_absent(HookEvent.SESSION_START)


async def test_without_a_change_hooks_are_read_once() -> None:
    stage = hook_stage(lambda _: {})
    for _ in range(3):
        assert not await stage.dispatcher.has_hooks(PRE, "execute")
    assert stage.stored.reads == 1
    stage.stored.kept.append(hook(PRE))
    stage.cached.forget()
    assert await stage.dispatcher.has_hooks(PRE, "execute")
    assert stage.stored.reads == 2
