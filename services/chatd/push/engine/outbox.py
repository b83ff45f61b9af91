"""Tells the owners of chats what happened, outside of turns.

Events wait in memory, one for each chat: a newer one replaces an older one. A turn that ended waits
a little for its label, which says more than the beginning of its answer, and for the next message.
An event is taken out before it is sent, so it is sent at most once; a process that is killed loses
those that wait. One user has a part of the places only, and of too many events those of the user
with the most are dropped.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn

from chatd.chats.domain.chat import ChatState
from chatd.primitives.domain.ids import ChatId
from chatd.push.domain.delivery import Dropped
from chatd.push.domain.notification import (
    ChatEvent,
    ChatFacts,
    Notification,
    NotificationKind,
    Verdict,
    after_failure,
    after_turn,
    notification_of,
    question_in,
    verdict_of,
)
from chatd.push.domain.ports import ChatReader
from chatd.push.domain.subscription import PushTarget
from chatd.push.engine.cached_targets import CachedTargets
from chatd.push.engine.delivery import PushDelivery
from chatd.push.engine.waiting import Waiting, WaitingEvents
from chatd.turns.domain.turn import TurnEnded
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.secrets import SecretsError
from parley.tasks import is_set_within

#: How long the end of a turn waits for the label of the turn.
LABEL_S: Final = 6.0
#: How often is looked whether a goal continues a chat, and for how long.
GOAL_S: Final = 15.0
GOAL_LOOKS_MAX: Final = 80
DELIVERIES_MAX: Final = 8
IDLE_S: Final = 60.0

logger = logging.getLogger(__name__)


class PushOutbox:
    """Sends the events of chats to the devices of their owners.

    Args:
        chats: Reads chats.
        targets: The devices of users.
        delivery: Delivers to one device.
        clock: The clock.
        clean: Returns a text without secrets.
    """

    def __init__(
        self,
        chats: ChatReader,
        targets: CachedTargets,
        delivery: PushDelivery,
        *,
        clock: Clock,
        clean: Callable[[str], str],
    ) -> None:
        self._chats = chats
        self._targets = targets
        self._delivery = delivery
        self._clock = clock
        self._clean = clean
        self._waiting = WaitingEvents()
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(DELIVERIES_MAX)

    def ended(self, ended: TurnEnded) -> None:
        """Keep the end of a turn to be told; costs the turn nothing else."""
        self._forget(ended.state.chat_id)
        event = after_turn(ended)
        if event is not None:
            is_labelled = event.kind is NotificationKind.FINISHED
            self._add(event, LABEL_S if is_labelled else 0.0)

    def failed(self, state: ChatState) -> None:
        """Keep the failure of a turn whose runner crashed or whose processes died."""
        event = after_failure(state)
        if event is not None:
            self._add(event, 0.0)

    def labelled(self, chat_id: ChatId, history_version: int, label: str) -> None:
        """Send the end of a turn with its label, without waiting longer."""
        waiting = self._waiting.get(chat_id)
        if waiting is not None and waiting.event.history_version == history_version:
            now_s = self._clock.monotonic()
            due_s = min(waiting.due_s, now_s)
            self._waiting.put(replace(waiting, label=label, due_s=due_s))
            self._changed.set()

    async def run(self) -> NoReturn:
        """Send events that are due until cancelled.

        A slow push service holds up the events of its user. It holds up those of others only if as
        many users have slow ones as fill all places, and then for as long as a request may take.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                await self._send_due(tasks)
                await is_set_within(self._changed, self._wait_s(), self._clock)

    async def _send_due(self, tasks: asyncio.TaskGroup) -> None:
        while self._next_due() is not None:
            await self._places.acquire()
            waiting = self._next_due()  # The chat of the one before may have gone on meanwhile.
            if waiting is None:
                self._places.release()
                return
            self._waiting.begin(waiting)
            tasks.create_task(self._tell(waiting))

    def _next_due(self) -> Waiting | None:
        return self._waiting.next_due(self._clock.monotonic())

    def _wait_s(self) -> float:
        due_s = self._waiting.next_due_s()
        return IDLE_S if due_s is None else max(0.0, due_s - self._clock.monotonic())

    def _add(self, event: ChatEvent, after_s: float) -> None:
        self._forget(event.chat_id)
        self._waiting.put(Waiting(event, self._clock.monotonic() + after_s))
        surplus = self._waiting.pop_surplus()
        if surplus is not None:
            self._delivery.dropped(surplus.event.kind.value, Dropped.QUEUE_FULL)
        self._changed.set()

    def _forget(self, chat_id: ChatId) -> None:
        """Drop the event of a chat that went on."""
        before = self._waiting.pop(chat_id)
        if before is not None:
            self._delivery.dropped(before.event.kind.value, Dropped.SUPERSEDED)

    async def _tell(self, waiting: Waiting) -> None:
        event = waiting.event
        try:
            await self._tell_owner(waiting)
        except (DatabaseUnavailable, SecretsError) as unreadable:
            self._delivery.dropped(event.kind.value, Dropped.UNREADABLE)
            logger.warning("the owner of a chat is not notified: %s", unreadable)
        except Exception:
            # One chat must not keep the owners of others from being told.
            logger.exception("the owner of a chat is not notified")
        finally:
            self._waiting.end(waiting)
            self._places.release()
            self._changed.set()

    async def _tell_owner(self, waiting: Waiting) -> None:
        event = waiting.event
        # Most users have no devices, which is known without a query.
        if event.owner_id is not None and not await self._targets.of(event.owner_id):
            return
        facts = await self._chats.facts(event.chat_id)
        if event.owner_id is None and facts is not None:
            # Its place has to be one of its owner before anything is sent.
            self._waiting.put_back(replace(waiting, event=replace(event, owner_id=facts.owner_id)))
            return
        verdict = Verdict.DROP if facts is None else verdict_of(event, facts)
        if verdict is Verdict.WAIT and waiting.looks < GOAL_LOOKS_MAX:
            self._look_again(waiting)
        elif facts is None or verdict is not Verdict.TELL:
            self._delivery.dropped(event.kind.value, Dropped.SUPERSEDED)
        else:
            await self._send(waiting, facts)

    def _look_again(self, waiting: Waiting) -> None:
        due_s = self._clock.monotonic() + GOAL_S
        again = replace(waiting, due_s=due_s, looks=waiting.looks + 1)
        self._waiting.put_back(again)

    async def _send(self, waiting: Waiting, facts: ChatFacts) -> None:
        event = waiting.event
        if event.tool_call_id:
            question = question_in(await self._chats.last_answer(event.chat_id), event.tool_call_id)
            event = replace(event, text=question or event.text)
        # Cleaned before anything is cut off, so that no part of a secret stays.
        event = replace(event, text=self._clean(event.text))
        notification = notification_of(event, self._clean(facts.title), self._clean(waiting.label))
        targets = await self._targets.of(facts.owner_id)
        async with asyncio.TaskGroup() as tasks:
            for target in targets:
                tasks.create_task(self._deliver(target, notification))

    async def _deliver(self, target: PushTarget, notification: Notification) -> None:
        try:
            await self._delivery.deliver(target, notification)
        except (DatabaseUnavailable, SecretsError) as unreadable:
            self._delivery.dropped(notification.kind.value, Dropped.UNREADABLE)
            logger.warning("a device is not notified, or that is not recorded: %s", unreadable)
        except Exception:
            # One device must not keep the other devices of its user from being told.
            self._delivery.dropped(notification.kind.value, Dropped.ERROR)
            logger.exception("a device is not notified")
