"""The events that wait to be told, one for each chat; users share the places fairly."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.push.domain.notification import ChatEvent

EVENTS_MAX: Final = 1000
#: Events of one user that are told at a time.
OF_OWNER_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that waits.

    Attributes:
        due_s: When it is told, by the monotonic clock.
        label: The label of the turn; empty as long as there is none.
        looks: How often was looked whether a goal continues the chat.
    """

    event: ChatEvent
    due_s: float
    label: str = ""
    looks: int = 0


class WaitingEvents:
    """Keeps the events that wait, and counts those that are being told.

    Events whose owner is not known yet count as those of one user.
    """

    def __init__(self) -> None:
        self._of_chat: dict[ChatId, Waiting] = {}
        self._told: Counter[OwnerId | None] = Counter()

    def get(self, chat_id: ChatId) -> Waiting | None:
        """Return the event of a chat."""
        return self._of_chat.get(chat_id)

    def pop(self, chat_id: ChatId) -> Waiting | None:
        """Remove and return the event of a chat."""
        return self._of_chat.pop(chat_id, None)

    def put(self, waiting: Waiting) -> None:
        """Add an event, or replace that of its chat in its place."""
        self._of_chat[waiting.event.chat_id] = waiting

    def put_back(self, waiting: Waiting) -> None:
        """Add an event that was taken out, unless its chat has a newer one."""
        self._of_chat.setdefault(waiting.event.chat_id, waiting)

    def pop_surplus(self) -> Waiting | None:
        """Remove and return the oldest event of the user with the most, if there are too many."""
        if len(self._of_chat) <= EVENTS_MAX:
            return None
        counts = Counter(each.event.owner_id for each in self._of_chat.values())
        owner_id = max(counts, key=lambda each: counts[each])
        oldest = next(each for each in self._of_chat.values() if each.event.owner_id == owner_id)
        return self._of_chat.pop(oldest.event.chat_id)

    def next_due(self, now_s: float) -> Waiting | None:
        """Return the first event that is due and whose user has a place left."""
        found = (each for each in self._of_chat.values() if each.due_s <= now_s)
        return next((each for each in found if self._has_place(each)), None)

    def next_due_s(self) -> float | None:
        """Return when the next event is due whose user has a place left; None if there is none."""
        return min(
            (each.due_s for each in self._of_chat.values() if self._has_place(each)), default=None
        )

    def begin(self, waiting: Waiting) -> None:
        """Take an event out that is being told now."""
        del self._of_chat[waiting.event.chat_id]
        self._told[waiting.event.owner_id] += 1

    def end(self, waiting: Waiting) -> None:
        """Give the place of an event back."""
        self._told[waiting.event.owner_id] -= 1
        if not self._told[waiting.event.owner_id]:
            del self._told[waiting.event.owner_id]

    def _has_place(self, waiting: Waiting) -> bool:
        return self._told[waiting.event.owner_id] < OF_OWNER_MAX
