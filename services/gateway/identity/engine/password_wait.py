"""Lets a sign-in wait a moment for a place among the passwords that are hashed.

A client that is refused asks again, often at once. Many of those would cost the gateway more than
the passwords that are hashed, so a refusal takes a moment, and a place that becomes free meanwhile
is used.
"""

from typing import Final

from gateway.identity.engine.passwords import Passwords
from gateway.identity.errors import SignInBusy
from parley.clock import Clock

WAIT_S: Final = 1.0
#: Of sign-ins that wait at the same time; further ones are refused at once.
WAITING_MAX: Final = 256


class PasswordWait:
    """Waits for places.

    Args:
        passwords: Has the places.
        clock: The clock.
    """

    def __init__(self, passwords: Passwords, clock: Clock) -> None:
        self._passwords = passwords
        self._clock = clock
        self._waiting = 0

    async def require_place(self, *, is_known: bool) -> None:
        """Return if a password could be hashed, now or in a moment.

        Args:
            is_known: As for `Passwords.require_place`.

        Raises:
            SignInBusy: Too many passwords wait.
        """
        try:
            self._passwords.require_place(is_known=is_known)
        except SignInBusy:
            if self._waiting >= WAITING_MAX:
                raise
            self._waiting += 1
            try:
                await self._clock.sleep(WAIT_S)
            finally:
                self._waiting -= 1
            self._passwords.require_place(is_known=is_known)
