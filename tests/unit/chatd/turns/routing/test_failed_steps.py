"""What is recorded after a failed step, and how long the next attempt is waited for."""

import asyncio
from datetime import timedelta

from chatd.chats.domain.chat import Claimed, Retry
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import Fallback
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.retries import GiveUp, RetryPolicy
from chatd.turns.engine.failed_steps import FailedSteps, FallbackCandidate, GoOn
from chatd.turns.engine.history import History
from chatd.turns.engine.session import Session
from parley.clock.fake import EPOCH
from support.chatd.turns.absent_ports import NoCallObserver
from support.chatd.turns.turn_stage import ANN, Stage

BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True, provider="first")
REFUSED = ModelError(ErrorKind.AUTH, "no key", is_retryable=False)
QUOTA = ModelError(ErrorKind.USAGE_LIMIT, "over quota", is_retryable=False)
OWN = ModelProfile("own", provider="first", provider_id="p1")
OTHER = ModelProfile("other", provider="second", provider_id="p2", is_fallback=True)
CANDIDATE = FallbackCandidate(OWN, OTHER, ModelRequest(OWN.id, (), ()))


class ClaimedChat:
    """A claimed chat whose turn runs, and its failed steps."""

    def __init__(self) -> None:
        self.stage = Stage(lambda _: ())
        self.stage.send()
        self.session = Session(
            Claimed(self.stage.state, ANN),
            self.stage.mailbox,
            History(),
            chats=self.stage.commits,
            clock=self.stage.clock,
            calls=NoCallObserver(),
        )
        self.steps = FailedSteps(
            self.session,
            clock=self.stage.clock,
            policy=RetryPolicy(),
            jitter=lambda: 0.0,
            chats_running=lambda: 1,
        )


async def test_an_attempt_of_the_same_model_is_recorded_and_awaited() -> None:
    chat = ClaimedChat()
    assert await chat.steps.wait_until_due()
    assert await chat.steps.record(BUSY, CANDIDATE) == GoOn()
    due = EPOCH + timedelta(seconds=1)
    assert chat.session.state.retry == Retry(1, 1000, due, BUSY.turn_error, outage_since=EPOCH)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(chat.steps.wait_until_due())
        assert await chat.stage.clock.until_sleeping() == 1
        chat.stage.clock.advance(1)
    assert waiting.result()


async def test_a_chat_that_changes_while_an_attempt_is_awaited_is_looked_at_again() -> None:
    chat = ClaimedChat()
    await chat.steps.record(BUSY, None)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(chat.steps.wait_until_due())
        await chat.stage.clock.until_sleeping()
        chat.stage.interrupt()
    assert not waiting.result()
    assert chat.session.state == chat.stage.state


async def test_the_fallback_model_makes_the_next_attempt_at_once() -> None:
    chat = ClaimedChat()
    assert await chat.steps.record(QUOTA, CANDIDATE) == GoOn(is_model_changed=True)
    retry = chat.session.state.retry
    assert retry is not None
    assert (retry.delay_ms, retry.fallback) == (
        0,
        Fallback("own", "other", "usage_limit", "over quota"),
    )
    assert await chat.steps.wait_until_due()


async def test_the_model_stays_the_same_for_a_chat_that_changed_meanwhile() -> None:
    chat = ClaimedChat()
    chat.stage.interrupt()
    assert await chat.steps.record(QUOTA, CANDIDATE) == GoOn()
    assert chat.session.state == chat.stage.state


async def test_without_another_attempt_the_turn_ends_with_the_number_of_attempts() -> None:
    chat = ClaimedChat()
    ended = await chat.steps.record(REFUSED, CANDIDATE)
    assert isinstance(ended, GiveUp)
    assert (ended.error.message, ended.error.attempts) == ("no key", 1)
    assert chat.stage.commits.commands == []
