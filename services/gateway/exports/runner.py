"""Makes exports in the background: one at a time in each gateway, each by one of them.

Every file, and every part of a large one, is stored as soon as it is read. The claim is prolonged
meanwhile, also while nothing is stored, as while files are listed that are there already. If a
gateway dies, another one claims the export and goes on behind the files that are there.
"""

import asyncio
import logging
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, NoReturn

from gateway.exports.collection import PROBLEMS, Collection, problems_file
from gateway.exports.file import File
from gateway.exports.problems import EXPORT_FAILED, ExportProblems
from gateway.http.problems.errors import UpstreamProblem
from gateway.identity.domain import UserRecord, UserState
from gateway.identity.store.account_exports import (
    ClaimLost,
    ExportClaim,
    ExportStore,
    StoredPart,
)
from gateway.identity.store.credentials import IdentityStore
from parley.clock import Clock
from parley.postgres import DatabaseError, DatabaseUnavailable
from parley.tasks import owned_tasks

LOOK_EVERY_S: Final = 5.0
LEASE: Final = timedelta(seconds=60)
PROLONG_EVERY_S: Final = 20.0
KEPT: Final = timedelta(days=7)
#: How often one process tries an export that fails by a defect of this service.
FAILURES_MAX: Final = 3
#: What a person reads of an export that was given up.
FAILURE: Final = (
    "An error of the service stopped the export; its archive has only what was collected before. "
    "Begin a new export; if that fails too, give its id to an administrator, who finds the error "
    "in the log of the gateway."
)
#: Files that are written last or cost nothing, and are collected again each time.
ALWAYS: Final = frozenset({PROBLEMS, "profile.json"})

_log = logging.getLogger(__name__)

Collect = Callable[[UserRecord, Set[str]], Collection]


@dataclass(slots=True)
class _Held:
    """The claim of an export, which is prolonged, and the digest of the file so far.

    Attributes:
        claim: The claim.
        hashed: The digest.
        lock: Held while the claim is replaced by a longer one.
    """

    claim: ExportClaim
    hashed: Any = field(default_factory=sha256)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ExportRunner:
    """Makes exports.

    Args:
        store: The exports.
        people: The users.
        collect: Collects the files of a user, except known ones.
        clock: Time between two looks, and of claims.
    """

    def __init__(
        self, store: ExportStore, people: IdentityStore, collect: Collect, clock: Clock
    ) -> None:
        self._store = store
        self._people = people
        self._collect = collect
        self._clock = clock
        self._failures: dict[str, int] = {}

    async def run(self) -> NoReturn:
        """Make exports until cancelled."""
        while True:
            try:
                while await self.make_next():
                    pass
                await self._store.delete_expired(self._clock.now())
            except (UpstreamProblem, DatabaseUnavailable) as error:
                _log.warning("an export goes on later: %s", error)
            await self._clock.sleep(LOOK_EVERY_S)

    async def make_next(self) -> bool:
        """Make one export that no process is making; return whether there was one.

        Raises:
            UpstreamProblem: A service does not answer; the export is claimed again later.
            Exception: A defect; the export is tried again a few times before it fails.
        """
        claim = await self._store.claim(self._clock.now(), LEASE)
        if claim is None:
            return False
        held = _Held(claim)
        try:
            async with owned_tasks() as start:
                start(self._prolong(held))
                await self._make(held)
        except ClaimLost:
            _log.info("an export was taken over or deleted", extra={"export_id": claim.export_id})
        except (UpstreamProblem, DatabaseError):
            raise
        except Exception:
            # A defect of this service, which another attempt would probably meet again.
            failures = self._failures.get(claim.export_id, 0) + 1
            self._failures[claim.export_id] = failures
            if failures < FAILURES_MAX:
                raise
            _log.exception("an export is given up", extra={"export_id": claim.export_id})
            await self._give_up(held)
        self._failures.pop(claim.export_id, None)
        return True

    async def _give_up(self, held: _Held) -> None:
        """End an export as failed, with what it has, and say so in it too."""
        problems = ExportProblems()
        problems.add("", EXPORT_FAILED)
        with suppress(ClaimLost):
            await self._store_file(held, problems_file(problems))
            await self._complete(held, FAILURE)

    async def _make(self, held: _Held) -> None:
        claim = held.claim
        user = await self._people.find_user(claim.user_id)
        if user is None or user.state is UserState.DELETED:
            raise ClaimLost
        known = {entry.name for entry in await self._store.entries(claim.export_id)} - ALWAYS
        async for file in self._collect(user, known).files():
            await self._store_file(held, file)
        await self._complete(held)

    async def _store_file(self, held: _Held, file: File) -> None:
        if not file.part:
            held.hashed = sha256()
        held.hashed.update(file.data)
        digest = held.hashed.digest() if file.is_last else None
        stored = StoredPart(file.name, file.part, digest, file.data)
        async with held.lock:
            held.claim = await self._store.put(held.claim, stored, self._clock.now() + LEASE)

    async def _prolong(self, held: _Held) -> NoReturn:
        """Prolong a claim until cancelled.

        Raises:
            ClaimLost: It is not held any more.
        """
        while True:
            await self._clock.sleep(PROLONG_EVERY_S)
            try:
                async with held.lock:
                    held.claim = await self._store.prolong(held.claim, self._clock.now() + LEASE)
            except DatabaseUnavailable as error:
                _log.warning("the claim of an export was not prolonged: %s", error)

    async def _complete(self, held: _Held, failure: str = "") -> None:
        async with held.lock:
            now = self._clock.now()
            await self._store.complete(held.claim, now, now + KEPT, failure)
