"""Delivers a notification to one device, and leaves a device alone after failures."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chatd.push.domain.delivery import Answer, Dropped, Result, backoff_s
from chatd.push.domain.notification import Notification
from chatd.push.domain.ports import DeliveryRecords, NotificationSender
from chatd.push.domain.subscription import (
    LAST_ERROR_CHARACTERS_MAX,
    PushTarget,
    PushTestedTooOften,
)
from chatd.push.engine.owner_limits import OwnerLimits
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.telemetry import Durations

DURATION: Final = "chatd_push_delivery_duration_seconds"
LABELS: Final = ("kind", "outcome")
BACKOFFS_MAX: Final = 10_000
#: Connections to push services for one user, and for all; the guarded client may have more, so
#: that none is waited for there, where the time of the request passes.
CONNECTIONS_OF_OWNER_MAX: Final = 4
CONNECTIONS_MAX: Final = 64
#: How often a device may be tested, whether it is left alone or not.
TEST_S: Final = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Backoff:
    failures: int
    until_s: float


class PushDelivery:
    """Delivers notifications.

    Args:
        sender: Sends them.
        records: Keeps what became of them.
        clock: The clock.
        clean: Returns a text without secrets.

    Attributes:
        durations: How long deliveries took, by kind and outcome.
    """

    def __init__(
        self,
        sender: NotificationSender,
        records: DeliveryRecords,
        *,
        clock: Clock,
        clean: Callable[[str], str],
    ) -> None:
        self._sender = sender
        self._records = records
        self._clock = clock
        self._clean = clean
        self._backoffs: BoundedCache[str, _Backoff] = BoundedCache(BACKOFFS_MAX)
        self._tested: BoundedCache[str, bool] = BoundedCache(
            BACKOFFS_MAX, clock=clock, ttl_of=lambda _: TEST_S
        )
        self._connections = OwnerLimits(
            of_owner_max=CONNECTIONS_OF_OWNER_MAX, all_max=CONNECTIONS_MAX
        )
        self.durations = Durations(
            DURATION, "How long notifications took to deliver, by kind and outcome.", LABELS
        )

    async def deliver(self, target: PushTarget, notification: Notification) -> Answer | None:
        """Deliver a notification, unless the device is left alone for now; then return None.

        Raises:
            DatabaseUnavailable: The key pair cannot be read, or the result cannot be stored.
            SecretsError: The key pair cannot be decrypted.
        """
        async with self._connections.place(target.owner_id):
            # While a place was waited for, another notification may have failed.
            if self._is_left_alone(target):
                self._count(notification, Dropped.BACKOFF.value, 0.0)
                return None
            answer = await self._answer_of(target, notification)
        return await self._recorded(target, answer)

    async def test(self, target: PushTarget, notification: Notification) -> Answer:
        """Deliver a test, also to a device that is left alone; one within a few seconds.

        Raises:
            PushTestedTooOften: The device was tested a moment ago.
            DatabaseUnavailable: The key pair cannot be read, or the result cannot be stored.
            SecretsError: The key pair cannot be decrypted.
        """
        if self._tested.get(target.id) is not None:
            raise PushTestedTooOften(TEST_S)
        self._tested.put(target.id, True)
        async with self._connections.place(target.owner_id):
            answer = await self._answer_of(target, notification)
        return await self._recorded(target, answer)

    def dropped(self, kind: str, why: Dropped) -> None:
        """Count a notification that is not sent."""
        self.durations.of(kind, why.value).record(0.0)

    async def _answer_of(self, target: PushTarget, notification: Notification) -> Answer:
        """Send a notification, and note for how long the device is left alone then."""
        began_s = self._clock.monotonic()
        answer = await self._sender.send(target, notification)
        self._count(notification, answer.result.value, self._clock.monotonic() - began_s)
        match answer.result:
            case Result.SENT | Result.GONE:
                self._backoffs.pop(target.id)
            case Result.REFUSED | Result.LIMITED | Result.FAILED:
                self._leave_alone(target, answer)
            case Result.BUSY:
                pass
        return answer

    async def _recorded(self, target: PushTarget, answer: Answer) -> Answer:
        """Record what became of a notification, and return it without secrets."""
        problem = self._clean(answer.problem)[:LAST_ERROR_CHARACTERS_MAX]
        match answer.result:
            case Result.SENT:
                await self._records.record(target, "")
            case Result.GONE:
                logger.info("a push subscription has ended and is deleted")
                await self._records.delete_ended(target)
            case Result.REFUSED | Result.LIMITED | Result.FAILED:
                logger.info("a notification was not accepted: %s", problem)
                await self._records.record(target, problem)
            case Result.BUSY:
                logger.warning("a notification is not sent: %s", problem)
        return Answer(answer.result, problem, answer.retry_after_s)

    def _is_left_alone(self, target: PushTarget) -> bool:
        backoff = self._backoffs.get(target.id)
        return backoff is not None and self._clock.monotonic() < backoff.until_s

    def _leave_alone(self, target: PushTarget, answer: Answer) -> None:
        before = self._backoffs.get(target.id)
        failures = 1 if before is None else before.failures + 1
        until_s = self._clock.monotonic() + backoff_s(answer, failures)
        self._backoffs.put(target.id, _Backoff(failures, until_s))

    def _count(self, notification: Notification, outcome: str, duration_s: float) -> None:
        self.durations.of(notification.kind.value, outcome).record(duration_s)
