"""Stream metrics: followed chats, and events dropped for slow readers."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from chatd.streams.rpc.drops import Drops

FOLLOWED: Final = "chat.stream.followed_chats"
DROPPED_EVENTS: Final = "chat.stream.dropped_events"
DROPPED_READERS: Final = "chat.stream.dropped_readers"


class FollowedChats(Protocol):
    """The chats that are followed in this process."""

    drops: Drops

    def __len__(self) -> int: ...


def measure_streams(meter: Meter, chats: FollowedChats, feed_drops: Drops) -> None:
    """Register metrics that are computed only when they are collected."""
    meter.create_observable_gauge(
        FOLLOWED,
        callbacks=[lambda _: [Observation(len(chats))]],
        unit="{chat}",
        description="Chats that somebody follows through this process.",
    )
    meter.create_observable_counter(
        DROPPED_EVENTS,
        callbacks=[_of_both(chats.drops, feed_drops, lambda drops: drops.events)],
        unit="{event}",
        description="Events that waited for readers who fell behind and were dropped.",
    )
    meter.create_observable_counter(
        DROPPED_READERS,
        callbacks=[_of_both(chats.drops, feed_drops, lambda drops: drops.readers)],
        unit="{reader}",
        description="Readers that fell behind and were told to begin anew.",
    )


def _of_both(
    chats: Drops, feeds: Drops, count: Callable[[Drops], int]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [
        Observation(count(drops), {"stream": name})
        for name, drops in (("chat", chats), ("feed", feeds))
    ]
