"""The order in which keys are tried for a call, and cooldowns of failed keys."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from parley.clock import Clock
from parley.settings import Secret

KEPT_MAX = 4096
# Default cooldowns, for providers that do not specify one.
REFUSED_S = 600.0
LIMITED_S = 30.0

# Errors that another key of the same provider may avoid.
KEY_ERROR_KINDS = frozenset(
    {ErrorKind.AUTH, ErrorKind.RATE_LIMIT, ErrorKind.USAGE_LIMIT, ErrorKind.MISSING_KEY}
)


@dataclass(frozen=True, slots=True)
class Credential:
    """A key with its value, for one call; an empty id means no key."""

    id: str = ""
    value: Secret = field(default_factory=lambda: Secret(""))


class CredentialCooldowns:
    """Keys that failed recently, with the ends of their cooldowns."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s: OrderedDict[str, float] = OrderedDict()

    def put(self, credential_id: str, error: ModelError) -> float:
        """Start the cooldown of a key that failed; return its duration."""
        is_limited = error.kind is ErrorKind.RATE_LIMIT
        rest_s = error.retry_after_s or (LIMITED_S if is_limited else REFUSED_S)
        self._until_s[credential_id] = self._clock.monotonic() + rest_s
        self._until_s.move_to_end(credential_id)
        if len(self._until_s) > KEPT_MAX:
            self._until_s.popitem(last=False)
        return rest_s

    def clear(self, credential_id: str) -> None:
        """End the cooldown of a key that worked."""
        self._until_s.pop(credential_id, None)

    def ordered(self, credentials: Iterable[Credential]) -> list[Credential]:
        """Return keys without a cooldown before those with one, otherwise in their order.

        A key in its cooldown is still better than none.
        """
        now_s = self._clock.monotonic()
        return sorted(credentials, key=lambda each: self._until_s.get(each.id, 0.0) > now_s)
