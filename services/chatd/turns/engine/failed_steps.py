"""What follows a failed step: another attempt, one of the fallback model, or the end of the turn.

The next attempt is recorded before it is waited for, so that another owner of the chat continues
with the same attempt, the same wait and the same model.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from chatd.chats.domain.chat import ChatState, Retry
from chatd.chats.domain.commands import RecordRetry
from chatd.content.domain.parts import Fallback
from chatd.models.domain.language_model import ModelError, ModelRequest
from chatd.models.domain.profile import ModelProfile
from chatd.spend.domain.ledger import CallOutcome
from chatd.turns.domain.fallbacks import is_fallback_due, lacking
from chatd.turns.domain.retries import (
    Failed,
    GiveUp,
    RetryPolicy,
    Series,
    after_failed_step,
    seconds_since,
    series_of,
)
from chatd.turns.engine.session import Session
from parley.clock import Clock
from parley.tasks import first_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GoOn:
    """The turn goes on with another attempt, or with what changed its chat meanwhile.

    Attributes:
        is_model_changed: Whether the fallback model makes the attempt, which has its own setup.
    """

    is_model_changed: bool = False


@dataclass(frozen=True, slots=True)
class FallbackCandidate:
    """The fallback model of a turn, for a request that the turn's own model failed to answer."""

    model: ModelProfile
    fallback: ModelProfile | None
    request: ModelRequest


class FailedSteps:
    """Records and awaits the attempts that follow the failed steps of one claimed chat."""

    def __init__(
        self,
        session: Session,
        *,
        clock: Clock,
        policy: RetryPolicy,
        jitter: Callable[[], float],
        chats_running: Callable[[], int],
    ) -> None:
        """Prepare to handle failed steps.

        Args:
            session: The chat.
            clock: The time, in which attempts are awaited.
            policy: The limits of attempts.
            jitter: Returns numbers between 0 and 1.
            chats_running: Returns how many chats this process runs, which may all use one provider.
        """
        self._session = session
        self._clock = clock
        self._policy = policy
        self._jitter = jitter
        self._chats_running = chats_running

    async def record(self, error: ModelError, candidate: FallbackCandidate | None) -> GoOn | GiveUp:
        """Record the attempt that follows a failure; without one the turn has to end.

        Nothing is recorded of a chat that changed meanwhile: its next round continues from there.

        Args:
            error: The failure.
            candidate: The fallback model; None if the failed call was not of the turn's own model.

        Raises:
            OwnershipLost: Another process owns the chat now.
        """
        session, now = self._session, self._clock.now()
        session.unfinished = None
        attempt = session.state.generation_attempt
        series = series_of(session.state.retry, error, now)
        failed = Failed(
            error,
            attempt,
            self._chats_running(),
            seconds_since(series.unreachable_since, now),
            seconds_since(series.outage_since, now),
        )
        fallback = None if candidate is None else _due_fallback(failed, candidate)
        if fallback is not None:
            retry = Retry(attempt, 0, now, error.turn_error, fallback=fallback)
            return GoOn(is_model_changed=await self._apply(retry))
        decision = after_failed_step(failed, self._jitter(), self._policy)
        if isinstance(decision, GiveUp):
            return GiveUp(replace(decision.error, attempts=attempt))
        await self._apply(_retry_of(session.state, error, series, decision.delay_s, now))
        return GoOn()

    async def wait_until_due(self) -> bool:
        """Wait until the next attempt is due; return False when the chat changed meanwhile.

        Raises:
            OwnershipLost: Another process owns the chat now, or it rests.
        """
        retry = self._session.state.retry
        if retry is None:
            return True
        left_s = (retry.retrying_at - self._clock.now()).total_seconds()
        wait_s = min(left_s, retry.delay_ms / 1000)  # Clocks of two processes may disagree.
        if wait_s <= 0:
            return True

        async def waited() -> ChatState | None:
            await self._clock.sleep(wait_s)
            return None

        async def superseded() -> ChatState | None:
            return await self._session.superseded()

        newest = await first_of(waited(), superseded)
        if newest is not None:
            self._session.follow(newest)
        return newest is None

    async def _apply(self, retry: Retry) -> bool:
        session = self._session
        bill = session.billed(CallOutcome.FAILED)
        return await session.apply(RecordRetry(session.fence, retry, bill))


def _due_fallback(failed: Failed, candidate: FallbackCandidate) -> Fallback | None:
    """Return the change to the fallback model; None if it is not due or cannot be made."""
    model, fallback = candidate.model, candidate.fallback
    if fallback is None or not is_fallback_due(failed, model, fallback):
        return None
    if (lack := lacking(fallback, candidate.request)) is not None:
        logger.warning("the fallback model %s is left out: %s", fallback.id, lack)
        return None
    return Fallback(model.id, fallback.id, failed.error.kind, failed.error.message)


def _retry_of(
    state: ChatState, error: ModelError, series: Series, delay_s: float, now: datetime
) -> Retry:
    """Return the next attempt of the same model, after a delay."""
    delay_ms = ceil(delay_s * 1000)
    return Retry(
        state.generation_attempt,
        delay_ms,
        now + timedelta(milliseconds=delay_ms),
        error.turn_error,
        series.unreachable_since,
        series.held_back_since,
        None if state.retry is None else state.retry.fallback,
        series.outage_since,
    )
