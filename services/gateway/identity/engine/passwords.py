"""Passwords: which are accepted, and their hashes.

Hashing takes tens of milliseconds and megabytes on purpose, so it runs in a few threads of low
priority, and no more than some passwords wait for them: a burst of sign-ins costs bounded memory
and takes the processors that turns of other users leave. Estimates run one at a time in an ordinary
thread: they hold the interpreter's lock, and a thread of low priority would hold it for long.
"""

import asyncio
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError
from zxcvbn import zxcvbn

from gateway.identity.errors import InvalidRequest, SignInBusy
from parley.rpc import Violation

CHARACTERS_MIN: Final = 12
CHARACTERS_MAX: Final = 256
#: The least that OWASP advises for argon2id.
MEMORY_KIB: Final = 19 * 1024
PASSES: Final = 2
LANES: Final = 1
THREADS_MAX: Final = 2
WAITING_MAX: Final = 64
#: The lowest: with the processors busy, such a thread gets about a hundredth of an ordinary one.
NICENESS: Final = 19
#: Estimated guesses of 10^10 or more, the highest of the scale 0 to 4.
SCORE_MIN: Final = 4
#: Words that make a password easy to guess here, beside those of the estimate's own lists.
GUESSED: Final = ("parley", "correcthorsebatterystaple")
#: Estimating takes longer than linearly, and so many characters of a bad password are bad as well.
ESTIMATED_CHARACTERS: Final = 64

T = TypeVar("T")


class Passwords:
    """Hashes and verifies passwords with argon2id; `close` ends its threads."""

    def __init__(self, *, threads: int = THREADS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._hasher = PasswordHasher(
            time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES, type=Type.ID
        )
        self._threads = ThreadPoolExecutor(
            threads, thread_name_prefix="passwords", initializer=_yield_to_others
        )
        self._places = threads + waiting_max
        self._estimating = asyncio.Semaphore(1)
        # Verified in place of the hash of a user who has none, which takes the same time.
        self._nobodys_hash = self._hasher.hash("")

    async def hash(self, password: str) -> str:
        """Return a new hash of a password.

        Raises:
            SignInBusy: Too many passwords wait.
        """
        return await self._in_thread(lambda: self._hasher.hash(_normalized(password)))

    async def matches(self, password: str, stored: str | None) -> bool:
        """Return whether a password has the stored hash; without one it takes the same time.

        Raises:
            SignInBusy: Too many passwords wait.
        """
        return await self._in_thread(lambda: self._verify(password, stored))

    def is_outdated(self, stored: str) -> bool:
        """Return whether a hash was made with other parameters."""
        return self._hasher.check_needs_rehash(stored)

    async def check(self, password: str, field: str, about: Iterable[str]) -> None:
        """Refuse a password that is short, common or easy to guess.

        Args:
            password: The password.
            field: The field of the request, for the error.
            about: What is known of the user, which makes a password easy to guess.

        Raises:
            InvalidRequest: It is refused.
            SignInBusy: Too many passwords wait.
        """
        known = [*about, *GUESSED]
        with self._place():
            async with self._estimating:
                problem = await asyncio.to_thread(problem_of, password, known)
        if problem is not None:
            raise InvalidRequest(Violation(field, problem))

    def close(self) -> None:
        """End the threads; passwords that wait are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        with self._place():
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places:
            raise SignInBusy
        self._places -= 1
        try:
            yield
        finally:
            self._places += 1

    def _verify(self, password: str, stored: str | None) -> bool:
        try:
            self._hasher.verify(stored or self._nobodys_hash, _normalized(password))
        except (VerificationError, InvalidHashError):
            return False
        return stored is not None


def threads_for(processors: int) -> int:
    """Return how many threads hash: one processor is left to everything else if there are two."""
    return max(1, min(THREADS_MAX, processors - 1))


def _yield_to_others() -> None:
    """Lower the priority of the calling thread, which Linux has for each thread."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(own, NICENESS))


def problem_of(password: str, about: Iterable[str]) -> str | None:
    """Return why a password is refused; None if it is accepted."""
    normalized = _normalized(password)
    if not CHARACTERS_MIN <= len(normalized) <= CHARACTERS_MAX:
        return f"give {CHARACTERS_MIN} to {CHARACTERS_MAX} characters"
    found = zxcvbn(normalized[:ESTIMATED_CHARACTERS], user_inputs=[each for each in about if each])
    if found["score"] < SCORE_MIN:
        return "is common or easy to guess; give several unrelated words, or random characters"
    return None


def _normalized(password: str) -> str:
    """Return the form that is hashed: keyboards write one character in several ways."""
    return unicodedata.normalize("NFKC", password)
