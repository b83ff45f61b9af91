"""Passwords: which are accepted, and their hashes.

Hashing takes tens of milliseconds and megabytes on purpose, so it runs in a few processes of low
priority, each with a thread that waits for it, and no more than some passwords wait for them: a
burst of sign-ins costs bounded memory and takes the processors that turns of other users leave. A
part of the places is left to people who are known, so that a burst of strangers does not lock out
everyone.
Estimates run one at a time in an ordinary thread, because they are rare.
"""

import asyncio
import unicodedata
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

from zxcvbn import zxcvbn

from gateway.identity.engine.breached_passwords import BreachedPasswords
from gateway.identity.errors import InvalidRequest, SignInBusy
from gateway.identity.hashing.hasher import HASHER, Answer, Hash, Request, Verify
from gateway.identity.hashing.process import HashingFailed, HashingProcess
from parley.rpc import Violation

CHARACTERS_MIN: Final = 12
CHARACTERS_MAX: Final = 256
PROCESSES_MAX: Final = 2
WAITING_MAX: Final = 64
#: One in so many waiting places is for people who are known.
RESERVED_EVERY: Final = 4
#: Estimated guesses of 10^10 or more, the highest of the scale 0 to 4.
SCORE_MIN: Final = 4
#: Words that make a password easy to guess here, beside those of the estimate's own lists.
GUESSED: Final = ("parley", "correcthorsebatterystaple")
#: Estimating takes longer than linearly, and so many characters of a bad password are bad as well.
ESTIMATED_CHARACTERS: Final = 64


class Passwords:
    """Hashes and verifies passwords with argon2id; `close` ends its processes.

    Args:
        processes: How many hash.
        waiting_max: How many passwords wait for them.
        breached: Passwords that are refused; `close` closes it too.
    """

    def __init__(
        self,
        *,
        processes: int = PROCESSES_MAX,
        waiting_max: int = WAITING_MAX,
        breached: BreachedPasswords | None = None,
    ) -> None:
        self._breached = breached
        self._processes = tuple(HashingProcess() for _ in range(processes))
        self._idle: SimpleQueue[HashingProcess] = SimpleQueue()
        for process in self._processes:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="passwords")
        self._places = processes + waiting_max
        self._reserved = waiting_max // RESERVED_EVERY
        self._estimating = asyncio.Semaphore(1)
        # Verified in place of the hash of a user who has none, which takes the same time.
        self._nobodys_hash = HASHER.hash("")

    def require_place(self, *, is_known: bool) -> None:
        """Refuse a password before anything else is done for it, if it could not be hashed.

        Args:
            is_known: Whether it is of a person who signed in before, in the same browser.

        Raises:
            SignInBusy: Too many passwords wait.
        """
        if self._places <= (0 if is_known else self._reserved):
            raise SignInBusy

    async def hash(self, password: str) -> str:
        """Return a new hash of a password of a person who is known.

        Raises:
            SignInBusy: Too many passwords wait, or no process can hash.
        """
        return str(await self._answer(Hash(_normalized(password)), is_known=True))

    async def matches(self, password: str, stored: str | None, *, is_known: bool) -> bool:
        """Return whether a password has the stored hash; without one it takes the same time.

        Args:
            password: The password.
            stored: The hash.
            is_known: As for `require_place`.

        Raises:
            SignInBusy: Too many passwords wait, or no process can hash.
        """
        verified = Verify(_normalized(password), stored or self._nobodys_hash)
        return await self._answer(verified, is_known=is_known) is True and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Return whether a hash was made with other parameters."""
        return HASHER.check_needs_rehash(stored)

    async def check(self, password: str, field: str, about: Iterable[str]) -> None:
        """Refuse a password that is short, common, easy to guess or known from a breach.

        Args:
            password: The password.
            field: The field of the request, for the error.
            about: What is known of the user, which makes a password easy to guess.

        Raises:
            InvalidRequest: It is refused.
            SignInBusy: Too many passwords wait.
        """
        known = [*about, *GUESSED]
        with self._place(is_known=True):
            async with self._estimating:
                problem = await asyncio.to_thread(self._problem, password, known)
        if problem is not None:
            raise InvalidRequest(Violation(field, problem))

    def close(self) -> None:
        """End the processes; passwords that wait are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.close()
        if self._breached is not None:
            self._breached.close()

    def _problem(self, password: str, about: Iterable[str]) -> str | None:
        problem = problem_of(password, about)
        # In the form that is hashed: another one of the same password is as well known.
        known = None if self._breached is None else self._breached.contain(_normalized(password))
        if problem is None and known:
            return "is known from a breach; give one that was never used elsewhere"
        return problem

    async def _answer(self, request: Request, *, is_known: bool) -> Answer:
        with self._place(is_known=is_known):
            asked = asyncio.get_running_loop().run_in_executor(self._threads, self._ask, request)
            try:
                return await asked
            except HashingFailed as error:
                raise SignInBusy from error

    def _ask(self, request: Request) -> Answer:
        # There are as many as threads.
        process = self._idle.get()
        try:
            return process.ask(request)
        finally:
            self._idle.put(process)

    @contextmanager
    def _place(self, *, is_known: bool) -> Iterator[None]:
        self.require_place(is_known=is_known)
        self._places -= 1
        try:
            yield
        finally:
            self._places += 1


def processes_for(processors: int) -> int:
    """Return how many processes hash: one processor is left to everything else if there are two."""
    return max(1, min(PROCESSES_MAX, processors - 1))


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
