"""Detects that the credential of an open stream is no longer valid.

A request is authenticated once, but a stream lasts long. Every few seconds one read of the database
checks the credentials of all open streams, however many there are.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn, Protocol

from gateway.http.authentication import Principal
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_EVERY_S = 5.0


class SignIns(Protocol):
    """Checks which principals are still valid."""

    async def still_valid(self, signed_in: Collection[Principal]) -> frozenset[Principal]:
        """Return the principals whose credentials are still valid, for the same user."""
        ...


class SignInWatch:
    """Watches the credentials of streams; its owner runs `run`."""

    def __init__(self, sign_ins: SignIns, *, clock: Clock) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._watched: dict[Principal, dict[object, Callable[[], None]]] = {}

    @contextmanager
    def watching(self, principal: Principal, is_over: Callable[[], None]) -> Iterator[None]:
        """Call `is_over` when the credential is no longer valid."""
        key = object()
        self._watched.setdefault(principal, {})[key] = is_over
        try:
            yield
        finally:
            watchers = self._watched[principal]
            del watchers[key]
            if not watchers:
                del self._watched[principal]

    async def run(self) -> NoReturn:
        """Check periodically until cancelled."""
        while True:
            await self._clock.sleep(CHECK_EVERY_S)
            await self._check()

    async def _check(self) -> None:
        asked = tuple(self._watched)
        if not asked:
            return
        try:
            good = await self._sign_ins.still_valid(asked)
        except DatabaseUnavailable:
            # Validity is unknown now; the streams end by their lifetime if this continues.
            return
        for principal in asked:
            if principal not in good:
                for is_over in tuple(self._watched.get(principal, {}).values()):
                    is_over()
