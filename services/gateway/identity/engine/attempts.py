"""Slows down attempts to sign in, and never stops a real person for good.

Each attempt is counted before it is checked, and one that succeeds is not counted after all. A
browser that signed in before is counted by itself, so attempts of others do not slow its user down.
Another browser is counted with its address, with its login, and with both together: a person who
mistypes waits half a minute at most, and so does everyone while the login is under attack.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.identity.errors import TooManyAttempts
from gateway.identity.store.attempts import AttemptStore, Charge
from parley.clock import Clock


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many attempts are accepted at once, and how fast they are accepted again."""

    name: str
    attempts: int
    refill_s: float

    def charge(self, *subject: str) -> Charge:
        """Return one attempt of a subject; its parts cannot be read from the digest's input."""
        parts = "\0".join((self.name, *subject))
        refill = timedelta(seconds=self.refill_s)
        return Charge(hashlib.sha256(parts.encode()).digest(), refill, self.attempts * refill)


DEVICE: Final = Bucket("device", 10, 20.0)
LOGIN_AND_ADDRESS: Final = Bucket("login and address", 5, 30.0)
ADDRESS: Final = Bucket("address", 30, 4.0)
LOGIN: Final = Bucket("login", 20, 20.0)
SECOND_FACTOR: Final = Bucket("second factor", 5, 120.0)
PASSWORD_CHANGE: Final = Bucket("password change", 5, 30.0)


class Attempts:
    """Counts attempts in the database, for all gateways together."""

    def __init__(self, store: AttemptStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def count(self, charges: Sequence[Charge]) -> None:
        """Count one attempt.

        Raises:
            TooManyAttempts: It has to wait; then it is not counted.
        """
        wait = await self._store.charge(charges, self._clock.now())
        if wait is not None:
            raise TooManyAttempts(wait.total_seconds())

    async def forgive(self, charges: Sequence[Charge]) -> None:
        """Take back an attempt that succeeded."""
        await self._store.refund(charges)


def sign_in_charges(login: str, address: str, known_device: str | None) -> tuple[Charge, ...]:
    """Return what an attempt with a password is counted for."""
    if known_device is not None:
        return (DEVICE.charge(login, known_device),)
    return (
        LOGIN_AND_ADDRESS.charge(login, address),
        ADDRESS.charge(address),
        LOGIN.charge(login),
    )
