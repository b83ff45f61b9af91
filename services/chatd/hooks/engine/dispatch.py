"""Tells hooks of events, one after the other, and returns what they decide together.

The first refusal decides; an input that a hook replaces is what the next one sees. A delivery that
fails ends the operation, unless the hook fails open.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from chatd.hooks.domain.answers import Allowed, Asked, BadAnswer, Denied, Verdict, verdict_of
from chatd.hooks.domain.errors import HookFailed
from chatd.hooks.domain.hooks import DECIDED, Hook, HookEvent, Occurrence, bounded
from chatd.hooks.domain.ports import Delivery, DeliveryFailed, DeliveryLog, HookSender
from chatd.hooks.engine.cached_hooks import CachedHooks
from chatd.primitives.domain.ids import OwnerId
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

logger = logging.getLogger(__name__)

PROBLEM_CHARACTERS_MAX = 500
#: The name of what a hook may replace, by event.
INPUTS = {HookEvent.USER_PROMPT_SUBMIT: "prompt", HookEvent.PRE_TOOL_USE: "tool_input"}


@dataclass(frozen=True, slots=True)
class _Outcome:
    verdict: Verdict | None
    status: int
    problem: str


class HookDispatcher:
    """Tells hooks of events.

    Args:
        hooks: The hooks of users and of the installation.
        sender: Sends signed requests.
        log: The log of deliveries.
        clock: The clock.
        clean: Returns a text without secrets.
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

    async def is_told(self, owner_id: OwnerId, event: HookEvent, tool_name: str = "") -> bool:
        """Return whether an event has hooks; without any, the answer needs no query."""
        return bool(await self._hooks.matching(owner_id, event, tool_name))

    async def dispatch(self, occurrence: Occurrence) -> Verdict:
        """Tell the hooks of an event; return what they decide.

        Raises:
            HookFailed: One that must be asked failed.
        """
        asked: Asked | None = None
        rewrite: object | None = None
        found = await self._hooks.matching(
            occurrence.owner_id, occurrence.event, occurrence.tool_name
        )
        for hook in found:
            verdict = await self._ask(hook, occurrence)
            match verdict:
                case Denied():
                    return verdict
                case Asked():
                    asked = asked or verdict
                case Allowed(given) if given is not None:
                    rewrite = given
                    data = {**occurrence.data, INPUTS[occurrence.event]: given}
                    occurrence = replace(occurrence, data=data)
                case _:
                    pass
        # Nobody approves what is not shown: a question is about the call as it was made.
        if asked is not None and rewrite is not None:
            return Denied("one hook asks a person about a call that another one replaces")
        return asked or Allowed(rewrite)

    async def deliver(self, hook: Hook, occurrence: Occurrence) -> Delivery:
        """Deliver an event to one hook, and add that to the log."""
        return (await self._deliver(hook, occurrence))[1]

    async def _ask(self, hook: Hook, occurrence: Occurrence) -> Verdict:
        verdict, delivery = await self._deliver(hook, occurrence)
        if verdict is not None:
            return verdict
        if hook.fails_open:
            return Allowed()
        raise HookFailed(hook.id, delivery.problem)

    async def _deliver(self, hook: Hook, occurrence: Occurrence) -> tuple[Verdict | None, Delivery]:
        began_s = self._clock.monotonic()
        outcome = await self._outcome(hook, occurrence)
        verdict = outcome.verdict
        delivery = Delivery(
            hook_id=hook.id,
            dispatch_id=occurrence.dispatch_id,
            chat_id=occurrence.chat_id,
            event=occurrence.event,
            tool_name=occurrence.tool_name,
            decision="" if verdict is None else _word(verdict),
            status=outcome.status,
            problem=self._clean(outcome.problem)[:PROBLEM_CHARACTERS_MAX],
            duration_ms=round((self._clock.monotonic() - began_s) * 1000),
        )
        try:
            await self._log.add(delivery)
        except DatabaseUnavailable as error:
            logger.warning("a delivery is not in the log: %s", error)
        return verdict, delivery

    async def _outcome(self, hook: Hook, occurrence: Occurrence) -> _Outcome:
        data, is_changed = self._sendable(occurrence.data)
        body = occurrence.payload(data, is_changed=is_changed)
        try:
            answer = await self._sender.send(hook, occurrence.dispatch_id, body)
        except DeliveryFailed as failure:
            return _Outcome(None, 0, str(failure))
        try:
            verdict = verdict_of(occurrence.event, answer.status, answer.content)
        except BadAnswer as bad:
            return _Outcome(None, answer.status, str(bad))
        if is_changed and isinstance(verdict, Allowed) and verdict.rewrite is not None:
            problem = "it replaces an input that it has not seen as a whole"
            return _Outcome(None, answer.status, problem)
        return _Outcome(verdict, answer.status, "")

    def _sendable(self, data: Mapping[str, object]) -> tuple[Mapping[str, object], bool]:
        """Return data without secrets and the ends of long texts, and whether any is missing."""
        whole = json.dumps(data, ensure_ascii=False)
        sent = json.dumps(bounded(json.loads(self._clean(whole))), ensure_ascii=False)
        found = json.loads(sent)
        assert isinstance(found, dict)
        return found, sent != whole


def _word(verdict: Verdict) -> str:
    match verdict:
        case Denied():
            return "deny"
        case Asked():
            return "ask"
        case Allowed(rewrite):
            return "allow" if rewrite is None else "rewrite"


assert frozenset(INPUTS) == DECIDED
