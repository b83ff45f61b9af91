"""The notices sent between processes, and the port that publishes and delivers them."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import msgspec

TOPIC_BYTES_MAX = 64
ID_BYTES_MAX = 512
VERSION_MAX = 2**63 - 1


class BusError(Exception):
    """Base of the errors of this package.

    BusError
    └── NoticeTooLong
    """


class NoticeTooLong(BusError):
    """A notice holds more than an identifier: data does not belong on the bus."""

    def __init__(self, field: str, found_bytes: int, max_bytes: int) -> None:
        super().__init__(
            f"the {field} of a notice has {found_bytes} bytes of at most {max_bytes}; "
            "send an id and let the receiver read the rest"
        )
        self.field = field
        self.found_bytes = found_bytes
        self.max_bytes = max_bytes


class Notice(msgspec.Struct, frozen=True):
    """The object `id` of kind `topic` has reached `version`; its new state is in the database.

    Raises:
        NoticeTooLong: The topic or the id is longer than allowed.
        ValueError: The text is not valid Unicode, or the version does not fit in a bigint.
    """

    topic: str
    id: str
    version: int

    def __post_init__(self) -> None:
        limits = (("topic", self.topic, TOPIC_BYTES_MAX), ("id", self.id, ID_BYTES_MAX))
        for field, text, max_bytes in limits:
            if text.isascii() and len(text) <= max_bytes:
                continue
            if (found_bytes := len(text.encode())) > max_bytes:
                raise NoticeTooLong(field, found_bytes, max_bytes)
        if not 0 <= self.version <= VERSION_MAX:
            raise ValueError(f"a version is between 0 and {VERSION_MAX}, not {self.version}")


@dataclass(frozen=True, slots=True)
class Resync:
    """Notices may have been lost: read the state of all objects of the topic again."""


BusItem = Notice | Resync


class Bus(Protocol):
    """Notifies every process of changes; a notice is a hint, the database holds the state.

    Notices may be repeated, arrive out of order, and be merged into the newest version of their id.
    If notices are lost, every subscriber that could have missed them gets a `Resync`.
    """

    def publish(self, *notices: Notice) -> None:
        """Queue the notices for subscribers in this and other processes; return without waiting."""
        ...

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[BusItem]]:
        """Yield all notices of `topic` from now on, as long as the context is open."""
        ...
