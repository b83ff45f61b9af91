"""Sends events to hooks, one after the other, and returns what they decide together.

The first refusal decides; an input that a hook replaces is what the next one gets. A delivery that
fails ends the operation, unless the hook fails open. The end of a turn is sent to all hooks, even
if one refuses it: it may end all the same, and then no other event says so.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from chatd.chats.domain.errors import HookFailed
from chatd.content.domain.parts import HookAddition, HookContext, Notice
from chatd.hooks.domain.answers import (
    Allowed,
    Asked,
    BadAnswer,
    Denied,
    Verdict,
    merged,
    verdict_of,
)
from chatd.hooks.domain.hooks import INPUTS, FailPolicy, Hook, HookEvent, Occurrence, sendable
from chatd.hooks.domain.ports import (
    Delivery,
    DeliveryFailed,
    DeliveryLog,
    HookOutcome,
    HookSender,
)
from chatd.hooks.engine.cached_hooks import CachedHooks
from parley.clock import Clock
from parley.tasks import captured, result_of
from parley.telemetry import Durations, Histograms

logger = logging.getLogger(__name__)

PROBLEM_CHARACTERS_MAX = 500
DURATION = "chatd_hook_delivery_duration_seconds"
LABELS = ("event", "outcome")
CONTEXT_BYTES = "chatd_hook_context_bytes"
CONTEXT_BOUNDS = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
#: How long all hooks of one event may take together.
EVENT_MS_MAX = 10_000
#: How many of several events are sent at the same time.
CONCURRENT_MAX = 8


@dataclass(frozen=True, slots=True)
class _Answered:
    verdict: Verdict | None
    http_status: int = 0
    problem: str = ""


class HookDispatcher:
    """Sends events to hooks.

    Args:
        hooks: The hooks.
        sender: Sends signed requests.
        log: The log of deliveries.
        clock: The clock.
        clean: Returns a text without secrets.

    Attributes:
        durations: How long deliveries took, by event and outcome.
        contexts: Bytes of the texts that hooks add for models, by event.
    """

    def __init__(
        self,
        hooks: CachedHooks,
        *,
        sender: HookSender,
        log: DeliveryLog,
        clock: Clock,
        clean: Callable[[str], str],
    ) -> None:
        self._hooks = hooks
        self._sender = sender
        self._log = log
        self._clock = clock
        self._clean = clean
        self.durations = Durations(
            DURATION, "How long deliveries to hooks took, by event and outcome.", LABELS
        )
        self.contexts = Histograms(
            CONTEXT_BYTES, "Bytes that hooks add for models.", ("event",), CONTEXT_BOUNDS
        )

    def are_absent(self, event: HookEvent) -> bool:
        """Return whether an event is known to have no hooks; False if they have to be read."""
        return self._hooks.are_absent(event)

    async def has_hooks(self, event: HookEvent, tool_name: str = "") -> bool:
        """Return whether an event has hooks, without a query unless they just changed."""
        return bool(await self._hooks.matching(event, tool_name))

    async def dispatch(self, occurrence: Occurrence) -> Verdict:
        """Send an event to its hooks; return what they decide.

        Raises:
            HookFailed: One that fails closed failed.
        """
        return await self._dispatch(occurrence, self._until_s())

    async def notify(self, occurrences: Sequence[Occurrence]) -> tuple[HookAddition, ...]:
        """Send several events, some at a time, all together within the time of one.

        What hooks add is returned in the order of the events.

        Raises:
            HookFailed: One that fails closed failed; the other events were sent.
        """
        until_s, few = self._until_s(), asyncio.Semaphore(CONCURRENT_MAX)

        async def send(occurrence: Occurrence) -> tuple[HookAddition, ...]:
            async with few:
                return (await self._dispatch(occurrence, until_s)).added

        async with asyncio.TaskGroup() as group:
            sent = [group.create_task(captured(send(each))) for each in occurrences]
        return tuple(addition for task in sent for addition in result_of(task.result()))

    def _until_s(self) -> float:
        return self._clock.monotonic() + EVENT_MS_MAX / 1000

    async def _dispatch(self, occurrence: Occurrence, until_s: float) -> Verdict:
        verdict: Verdict = Allowed()
        for hook in await self._hooks.matching(occurrence.event, occurrence.tool_name):
            left_ms = round((until_s - self._clock.monotonic()) * 1000)
            given = await self._ask(hook, occurrence, left_ms)
            verdict = merged(verdict, given)
            if isinstance(verdict, Denied) and occurrence.event is not HookEvent.STOP:
                return verdict
            if isinstance(given, Allowed) and given.rewrite is not None:
                data = {**occurrence.data, INPUTS[occurrence.event]: given.rewrite}
                occurrence = replace(occurrence, data=data)
        return verdict

    async def deliver(self, hook: Hook, occurrence: Occurrence) -> Delivery:
        """Deliver an event to one hook, add that to the log and return it."""
        _, delivery = await self._deliver(hook, occurrence, EVENT_MS_MAX)
        return delivery

    async def _ask(self, hook: Hook, occurrence: Occurrence, left_ms: int) -> Verdict:
        verdict, delivery = await self._deliver(hook, occurrence, left_ms)
        if verdict is not None:
            return verdict
        if hook.fail_policy is FailPolicy.OPEN:
            return Allowed()
        raise HookFailed(hook.id, delivery.problem)

    async def _deliver(
        self, hook: Hook, occurrence: Occurrence, left_ms: int
    ) -> tuple[Verdict | None, Delivery]:
        began_s = self._clock.monotonic()
        answered = await self._answered(hook, occurrence, left_ms)
        delivery = Delivery(
            hook_id=hook.id,
            dispatch_id=occurrence.dispatch_id,
            chat_id=occurrence.chat_id,
            event=occurrence.event,
            tool_name=occurrence.tool_name,
            outcome=_outcome_of(answered.verdict),
            http_status=answered.http_status,
            problem=self._clean(answered.problem)[:PROBLEM_CHARACTERS_MAX],
            duration_ms=round((self._clock.monotonic() - began_s) * 1000),
            created_at=self._clock.now(),
            notice=_notice_of(answered.verdict),
        )
        series = self.durations.of(delivery.event.value, delivery.outcome.value)
        series.record(delivery.duration_ms / 1000)
        for each in () if answered.verdict is None else answered.verdict.added:
            if isinstance(each, HookContext):
                self.contexts.of(delivery.event.value).record(len(each.text.encode()))
        try:
            await self._log.add(delivery)
        except Exception as error:  # The log must not decide; its hook may just be deleted.
            logger.warning("a delivery to a hook is not in its log: %s", error)
        return answered.verdict, delivery

    async def _answered(self, hook: Hook, occurrence: Occurrence, left_ms: int) -> _Answered:
        if left_ms <= 0:
            return _Answered(None, problem="deliveries before it took all the time of the event")
        data, is_shortened = self._sendable(occurrence.data)
        body = occurrence.payload(data, is_shortened=is_shortened)
        bounded = replace(hook, timeout_ms=min(hook.timeout_ms, left_ms))
        try:
            answer = await self._sender.send(bounded, occurrence.dispatch_id, body)
        except DeliveryFailed as failure:
            return _Answered(None, problem=str(failure))
        try:
            verdict = verdict_of(occurrence.event, answer.status, answer.content, hook.name)
        except BadAnswer as bad:
            return _Answered(None, answer.status, str(bad))
        if is_shortened and isinstance(verdict, Allowed) and verdict.rewrite is not None:
            problem = "it replaces an input of which it did not get secrets or the end"
            return _Answered(None, answer.status, problem)
        return _Answered(verdict, answer.status)

    def _sendable(self, data: Mapping[str, object]) -> tuple[object, bool]:
        """Return data without secrets and the ends of long texts, and whether any is missing."""
        sent = sendable(data, self._clean)
        return sent, sent != data


def _notice_of(verdict: Verdict | None) -> str:
    """Return the notice of one hook's verdict; empty without one."""
    added = () if verdict is None else verdict.added
    return next((each.text for each in added if isinstance(each, Notice)), "")


def _outcome_of(verdict: Verdict | None) -> HookOutcome:
    match verdict:
        case None:
            return HookOutcome.FAILED
        case Denied():
            return HookOutcome.DENY
        case Asked():
            return HookOutcome.ASK
        case Allowed(rewrite):
            return HookOutcome.ALLOW if rewrite is None else HookOutcome.REWRITE
