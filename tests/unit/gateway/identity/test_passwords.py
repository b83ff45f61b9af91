"""Estimates of passwords: in which thread, how many at once, and who may ask for how many."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from gateway.identity.domain import UserRecord, UserState
from gateway.identity.engine import passwords as module
from gateway.identity.engine.attempts import PASSWORD_CHANGE, Attempts
from gateway.identity.engine.own_sessions import OwnSessions
from gateway.identity.engine.passwords import Passwords
from gateway.identity.errors import InvalidRequest, SignInBusy, SignInRefused, TooManyAttempts
from gateway.identity.store.attempts import AttemptStore, Charge
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.sessions import SessionStore
from parley.clock import FakeClock
from parley.identity import Role, User, UserId

USER = User(UserId("00000000-0000-0000-0000-000000000001"), Role.MEMBER)
GOOD = "eleven loud turtles sing"
WEAK = "passwordpassword"


class Estimates:
    """Notes where and how many at once passwords are estimated."""

    def __init__(self) -> None:
        self.niceness: list[int] = []
        self.at_once_max = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._met = threading.Barrier(2)

    def estimate(self, password: str, user_inputs: Sequence[str]) -> dict[str, Any]:
        """Wait a little for another one."""
        with self._lock:
            self._at_once += 1
            self.at_once_max = max(self.at_once_max, self._at_once)
            self.niceness.append(os.getpriority(os.PRIO_PROCESS, 0))
        with suppress(threading.BrokenBarrierError):
            self._met.wait(timeout=0.2)
        with self._lock:
            self._at_once -= 1
        return {"score": 0 if password == WEAK else 4}


@pytest.fixture
def estimates(monkeypatch: pytest.MonkeyPatch) -> Estimates:
    found = Estimates()
    monkeypatch.setattr(module, "zxcvbn", found.estimate)
    return found


@pytest_asyncio.fixture
async def passwords() -> AsyncIterator[Passwords]:
    found = Passwords(processes=2, waiting_max=2)
    yield found
    found.close()


async def test_passwords_are_estimated_one_at_a_time_with_ordinary_priority(
    passwords: Passwords, estimates: Estimates
) -> None:
    async with asyncio.TaskGroup() as tasks:
        checks = [tasks.create_task(passwords.check(GOOD, "password", ())) for _ in range(4)]
        await asyncio.wait(checks, timeout=0)
        with pytest.raises(SignInBusy):
            await passwords.check(GOOD, "password", ())

    assert estimates.niceness == [os.getpriority(os.PRIO_PROCESS, 0)] * 4
    assert estimates.at_once_max == 1


class CountedAttempts(AttemptStore):
    """Attempts in memory, of which no time makes more."""

    def __init__(self) -> None:
        self._counted: Counter[bytes] = Counter()

    async def charge(self, charges: Sequence[Charge], now: datetime) -> timedelta | None:
        """Count an attempt."""
        (charge,) = charges
        if self._counted[charge.subject] * charge.refill >= charge.burst:
            return charge.refill
        self._counted[charge.subject] += 1
        return None

    async def refund(self, charges: Sequence[Charge]) -> None:
        """Take back an attempt."""
        self._counted.subtract(each.subject for each in charges)


class OneUser(IdentityStore):
    """One user in memory."""

    def __init__(self) -> None:
        pass

    async def find_user(self, user_id: str) -> UserRecord | None:
        """Return the user."""
        now = FakeClock().now()
        return UserRecord(USER.id, "ada", "", "", USER.role, UserState.ACTIVE, 1, now, now, None)


class OnePassword(SessionStore):
    """The password of one user in memory."""

    def __init__(self) -> None:
        self.stored: str | None = None

    async def find_hash(self, user_id: str) -> str | None:
        """Return the hash."""
        return self.stored

    async def change_password(self, user_id: str, new_hash: str, **_: object) -> None:
        """Replace the hash."""
        self.stored = new_hash


async def test_a_refused_password_counts_as_an_attempt_and_a_good_one_does_not(
    passwords: Passwords, estimates: Estimates
) -> None:
    clock = FakeClock()
    attempts = Attempts(CountedAttempts(), clock)
    own = OwnSessions(OneUser(), OnePassword(), passwords=passwords, attempts=attempts, clock=clock)

    async def change(new: str, current: str = GOOD) -> None:
        await own.change_password(USER, current=current, new=new, kept_session="")

    for _ in range(2 * PASSWORD_CHANGE.attempts):
        await change(GOOD)
    with pytest.raises(SignInRefused):
        await change(GOOD, current=WEAK)
    for _ in range(PASSWORD_CHANGE.attempts - 1):
        with pytest.raises(InvalidRequest):
            await change(WEAK)
    estimates.niceness.clear()
    with pytest.raises(TooManyAttempts):
        await change(WEAK)

    assert estimates.niceness == []
