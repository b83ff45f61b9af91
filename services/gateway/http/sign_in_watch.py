"""Noticing that the sign-in behind an open stream is over.

A request is signed in once, but a stream goes on for long after. Every few seconds one look at the
database tells which of all the sign-ins with open streams are still good, however many there are.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn, Protocol

from gateway.http.authentication import Principal
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

CHECK_EVERY_S = 5.0


class SignIns(Protocol):
    """Knows which sign-ins are good."""

    async def still_valid(self, signed_in: Collection[Principal]) -> frozenset[Principal]:
        """Return those of the sign-ins that would come about again now, for the same user."""
        ...


class SignInWatch:
    """Watches the sign-ins that streams depend on; its owner runs `run`."""

    def __init__(self, sign_ins: SignIns, *, clock: Clock) -> None:
        self._sign_ins = sign_ins
        self._clock = clock
        self._watched: dict[Principal, dict[object, Callable[[], None]]] = {}

    @contextmanager
    def watching(self, principal: Principal, is_over: Callable[[], None]) -> Iterator[None]:
        """Call `is_over` when the sign-in is over."""
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
        """Check for as long as the task lives."""
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
            # Nobody can be told apart now; the streams end with their age if this goes on.
            return
        for principal in asked:
            if principal not in good:
                for is_over in tuple(self._watched.get(principal, {}).values()):
                    is_over()
