"""Makes exports in the background: one at a time in each gateway, each by one of them.

Every file, and every part of a large one, is stored as soon as it is read and prolongs the claim.
If a gateway dies, another one claims the export and goes on behind the files that are there.
"""

import logging
from collections.abc import Callable, Set
from datetime import timedelta
from hashlib import sha256
from typing import Final, NoReturn

from gateway.exports.collection import PROBLEMS, Collection
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
from parley.postgres import DatabaseUnavailable

LOOK_EVERY_S: Final = 5.0
LEASE: Final = timedelta(seconds=60)
KEPT: Final = timedelta(days=7)
#: Files that are written last or cost nothing, and are collected again each time.
ALWAYS: Final = frozenset({PROBLEMS, "profile.json"})

_log = logging.getLogger(__name__)

Collect = Callable[[UserRecord, Set[str]], Collection]


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
        """Make one export that nobody makes; return whether there was one.

        Raises:
            UpstreamProblem: A service does not answer; the export is claimed again later.
        """
        claim = await self._store.claim(self._clock.now(), LEASE)
        if claim is None:
            return False
        try:
            await self._make(claim)
        except ClaimLost:
            _log.info("an export was taken over or deleted", extra={"export_id": claim.export_id})
        return True

    async def _make(self, claim: ExportClaim) -> None:
        user = await self._people.find_user(claim.user_id)
        if user is None or user.state is UserState.DELETED:
            raise ClaimLost
        known = {entry.name for entry in await self._store.entries(claim.export_id)} - ALWAYS
        hashed = sha256()
        async for file in self._collect(user, known).files():
            if not file.part:
                hashed = sha256()
            hashed.update(file.data)
            digest = hashed.digest() if file.is_last else None
            stored = StoredPart(file.name, file.part, digest, file.data)
            claim = await self._store.put(claim, stored, self._clock.now() + LEASE)
        now = self._clock.now()
        await self._store.complete(claim, now, now + KEPT)
