"""Which key a call is made with: the order in which keys are tried, and those set aside."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import ModelError
from parley.clock import Clock
from parley.settings import Secret

KEPT_MAX = 4096
# How long a key rests whose provider did not say.
REFUSED_S = 600.0
LIMITED_S = 30.0

# What another key of the same provider may not suffer from.
KEY_ERROR_KINDS = frozenset(
    {ErrorKind.AUTH, ErrorKind.RATE_LIMIT, ErrorKind.USAGE_LIMIT, ErrorKind.MISSING_KEY}
)


@dataclass(frozen=True, slots=True)
class Credential:
    """A key with its value, for one call; one without an id is none."""

    id: str = ""
    value: Secret = field(default_factory=lambda: Secret(""))


class CredentialCooldowns:
    """Keys that failed lately, and until when they rest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_s: OrderedDict[str, float] = OrderedDict()

    def put(self, credential_id: str, error: ModelError) -> float:
        """Let a key rest that failed; return for how long."""
        is_limited = error.kind is ErrorKind.RATE_LIMIT
        rest_s = error.retry_after_s or (LIMITED_S if is_limited else REFUSED_S)
        self._until_s[credential_id] = self._clock.monotonic() + rest_s
        self._until_s.move_to_end(credential_id)
        if len(self._until_s) > KEPT_MAX:
            self._until_s.popitem(last=False)
        return rest_s

    def clear(self, credential_id: str) -> None:
        """Use a key again that worked."""
        self._until_s.pop(credential_id, None)

    def ordered(self, credentials: Iterable[Credential]) -> list[Credential]:
        """Return those that do not rest before those that do, otherwise in their order.

        A key that rests is still better than none.
        """
        now_s = self._clock.monotonic()
        return sorted(credentials, key=lambda each: self._until_s.get(each.id, 0.0) > now_s)
