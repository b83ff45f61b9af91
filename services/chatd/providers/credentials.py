"""The order in which keys are tried for a call, and cooldowns of failed keys."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from parley.cache import BoundedCache
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
        self._cooldowns_s: BoundedCache[str, float] = BoundedCache(
            KEPT_MAX, clock=clock, ttl_of=lambda rest_s: rest_s
        )

    def put(self, credential_id: str, error: ModelError) -> float:
        """Start the cooldown of a key that failed; return its duration."""
        is_limited = error.kind is ErrorKind.RATE_LIMIT
        rest_s = error.retry_after_s or (LIMITED_S if is_limited else REFUSED_S)
        self._cooldowns_s.put(credential_id, rest_s)
        return rest_s

    def clear(self, credential_id: str) -> None:
        """End the cooldown of a key that worked."""
        self._cooldowns_s.pop(credential_id)

    def ordered(self, credentials: Iterable[Credential]) -> list[Credential]:
        """Return keys without a cooldown before those with one, otherwise in their order.

        A key in its cooldown is still better than none.
        """
        return sorted(credentials, key=lambda each: self._cooldowns_s.get(each.id) is not None)
