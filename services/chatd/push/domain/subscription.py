"""Push subscriptions: what is stored of them, their bounds, and why a delivery failed."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import OwnerId

SUBSCRIPTIONS_MAX: Final = 20
LAST_ERROR_CHARACTERS_MAX: Final = 300


class TooManySubscriptions(ChatError):
    """A user has as many push subscriptions as may be.

    Attributes:
        subscriptions_max: How many that are.
    """

    def __init__(self, subscriptions_max: int) -> None:
        super().__init__(f"there are {subscriptions_max} push subscriptions already")
        self.subscriptions_max = subscriptions_max


class PushNotAccepted(ChatError):
    """A test notification was not accepted.

    Attributes:
        problem: Why, in words for the user.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class PushTestedTooOften(ChatError):
    """A device was tested a moment ago.

    Attributes:
        every_s: How often a device is tested at most.
    """

    def __init__(self, every_s: float) -> None:
        super().__init__(f"the device is tested at most once in {every_s:g} s")
        self.every_s = every_s


@dataclass(frozen=True, slots=True)
class PushAddress:
    """Where and how a device is reached. Anybody who has it can send to the device.

    Attributes:
        endpoint: The URL at the push service.
        public_key: The public key of the browser, an uncompressed P-256 point.
        auth: The secret of the browser.
    """

    endpoint: str = field(repr=False)
    public_key: bytes = field(repr=False)
    auth: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """A device of a user, as its user sees it.

    Attributes:
        host: The host of its push service.
        last_sent_at: When a notification was last accepted.
        last_error: Why the last notification was not accepted; empty if it was.
    """

    id: str
    name: str
    host: str
    created_at: datetime
    last_sent_at: datetime | None = None
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class PushTarget:
    """A device with what is needed to send to it."""

    id: str
    owner_id: OwnerId
    address: PushAddress
