"""What becomes of an export that cannot be made, and of its claim while it is made."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence, Set
from datetime import datetime, timedelta

import pytest

from gateway.exports.collection import Collection
from gateway.exports.file import File
from gateway.exports.runner import FAILURE, LEASE, ExportRunner
from gateway.http.problems.errors import UpstreamProblem
from gateway.identity.domain import UserRecord, UserState
from gateway.identity.store.account_exports import (
    ClaimLost,
    ExportClaim,
    ExportEntry,
    ExportStore,
    StoredPart,
)
from gateway.identity.store.credentials import IdentityStore
from parley.clock import FakeClock
from parley.identity import Role, UserId
from parley.rpc import Problem

USER_ID = "00000000-0000-0000-0000-000000000001"
FAILURES_MAX = 3
EXPORT_ID = "00000000-0000-0000-0000-0000000000e1"


class OneExport(ExportStore):
    """One export in memory."""

    def __init__(self, clock: FakeClock) -> None:
        self.files: dict[str, bytes] = {}
        self.is_complete = False
        self.failure = ""
        self.claimed_until = clock.now()

    async def claim(self, now: datetime, lease: timedelta) -> ExportClaim | None:
        """Claim it, if it is not claimed."""
        if self.is_complete or self.claimed_until > now:
            return None
        self.claimed_until = now + lease
        return ExportClaim(EXPORT_ID, USER_ID, self.claimed_until)

    async def entries(self, export_id: str) -> Sequence[ExportEntry]:
        """Return what is stored."""
        return tuple(ExportEntry(name, b"", len(self.files[name]), 0) for name in self.files)

    async def put(self, claim: ExportClaim, stored: StoredPart, until: datetime) -> ExportClaim:
        """Store a file."""
        held = self._held(claim, until)
        self.files[stored.name] = stored.data
        return held

    async def prolong(self, claim: ExportClaim, until: datetime) -> ExportClaim:
        """Prolong the claim."""
        return self._held(claim, until)

    async def complete(
        self, claim: ExportClaim, now: datetime, expires_at: datetime, failure: str = ""
    ) -> None:
        """Complete it, or end it as failed."""
        self._held(claim, now)
        self.is_complete, self.failure = True, failure

    def _held(self, claim: ExportClaim, until: datetime) -> ExportClaim:
        if self.claimed_until != claim.until or self.is_complete:
            raise ClaimLost
        self.claimed_until = until
        return ExportClaim(EXPORT_ID, USER_ID, until)


class OneUser(IdentityStore):
    """One user in memory."""

    def __init__(self) -> None:
        pass

    async def find_user(self, user_id: str) -> UserRecord | None:
        """Return the user."""
        now = FakeClock().now()
        of_user = (UserId(user_id), "ada", "Ada", "", Role.MEMBER, UserState.ACTIVE)
        return UserRecord(*of_user, 1, now, now, None)


class Failing(Collection):
    """A collection that stores one file and fails then.

    Args:
        error: What it fails with.
    """

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def files(self) -> AsyncIterator[File]:
        """Yield one file."""
        yield File("profile.json", b"{}")
        raise self._error


def runner_of(store: OneExport, collection: Collection, clock: FakeClock) -> ExportRunner:
    def collect(user: UserRecord, known: Set[str]) -> Collection:
        return collection

    return ExportRunner(store, OneUser(), collect, clock)


async def test_an_export_that_fails_by_a_defect_is_given_up() -> None:
    clock = FakeClock()
    store = OneExport(clock)
    runner = runner_of(store, Failing(LookupError("a defect")), clock)
    for _ in range(FAILURES_MAX - 1):
        with pytest.raises(LookupError):
            await runner.make_next()
        clock.advance(LEASE.total_seconds())
        assert not store.is_complete
    assert await runner.make_next()

    assert (store.is_complete, store.failure) == (True, FAILURE)
    assert store.files["profile.json"] == b"{}"
    assert json.loads(store.files["problems.json"]) == [{"name": "", "code": "EXPORT_FAILED"}]


async def test_an_export_waits_for_a_service_that_does_not_answer_for_any_time() -> None:
    clock = FakeClock()
    store = OneExport(clock)
    away = UpstreamProblem(Problem.of("UPSTREAM_UNAVAILABLE", "chatd is away"))
    runner = runner_of(store, Failing(away), clock)
    for _ in range(3 * FAILURES_MAX):
        with pytest.raises(UpstreamProblem):
            await runner.make_next()
        clock.advance(LEASE.total_seconds())

    assert not store.is_complete


class Listing(Collection):
    """A collection that lists for a long time before its only file."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def files(self) -> AsyncIterator[File]:
        """Yield one file at the end."""
        self.begun.set()
        await self.ended.wait()
        yield File("profile.json", b"{}")


async def test_a_claim_is_held_while_nothing_is_stored() -> None:
    clock, listing = FakeClock(), Listing()
    store = OneExport(clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        made = tasks.create_task(runner_of(store, listing, clock).make_next())
        await listing.begun.wait()
        for _ in range(10):
            clock.advance(await clock.until_sleeping())
            await clock.until_sleeping()
            assert await store.claim(clock.now(), LEASE) is None
        listing.ended.set()

    assert (made.result(), store.is_complete, store.failure) == (True, True, "")
    assert clock.now() - FakeClock().now() > 2 * LEASE


async def test_an_export_is_left_to_the_gateway_that_took_the_claim() -> None:
    clock, listing = FakeClock(), Listing()
    store = OneExport(clock)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        made = tasks.create_task(runner_of(store, listing, clock).make_next())
        await listing.begun.wait()
        await clock.until_sleeping()
        store.claimed_until += LEASE
        clock.advance(LEASE.total_seconds())

    assert (made.result(), store.is_complete, store.files) == (True, False, {})
