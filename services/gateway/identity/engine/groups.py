"""Managing groups: validation of names, visibility, and notices of changes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from unicodedata import category, normalize

from gateway.identity.domain import GroupRecord
from gateway.identity.engine.service_tokens import (
    INVISIBLE_CATEGORIES,
    REQUEST_ID_CHARACTERS_MAX,
    is_uuid,
)
from gateway.identity.engine.users import TOPIC as USERS_TOPIC
from gateway.identity.errors import (
    GroupNotFound,
    InvalidRequest,
    RequestIdReused,
    UserNotFound,
)
from gateway.identity.store.groups import GroupStore, MembershipChange
from parley.bus import Bus, Notice
from parley.clock import Clock
from parley.identity import Role, User
from parley.rpc import Violation

#: Topic of groups that were created, renamed or deleted. A change of members is published as a
#: change of the user.
TOPIC: Final = "identity.groups"
NAME_CHARACTERS_MAX: Final = 64
READERS_OF_ALL_GROUPS: Final = frozenset({Role.OWNER, Role.ADMIN, Role.AUDITOR})


@dataclass(frozen=True, slots=True)
class NewGroup:
    """A request for a new group."""

    request_id: str
    name: str


@dataclass(frozen=True, slots=True)
class GroupRename:
    """A request to rename a group; a version of 0 is unconditional."""

    group_id: str
    name: str
    expected_version: int = 0


def name_key(name: str) -> str:
    """Return the key for comparing names, independent of case and Unicode form."""
    return normalize("NFKC", normalize("NFKC", name).casefold())


class Groups:
    """The groups of the installation; every change is published on the bus."""

    def __init__(
        self, store: GroupStore, *, bus: Bus, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._new_id = new_id

    async def read(self, caller: User, group_id: str) -> GroupRecord:
        """Return a group; a member sees only their own groups.

        Raises:
            GroupNotFound: There is no such group for this caller.
        """
        found = await self._store.find(_group_id(group_id))
        if found is None:
            raise GroupNotFound(group_id)
        if caller.role not in READERS_OF_ALL_GROUPS:
            own = await self._store.ids_of_users((caller.id,))
            if found.id not in own[caller.id]:
                raise GroupNotFound(group_id)
        return found

    async def create(self, caller: User, asked: NewGroup) -> GroupRecord:
        """Create a group without members.

        Raises:
            InvalidRequest: Fields are outside their limits.
            GroupNameTaken: Another group has the name.
            RequestIdReused: The caller used the request id before, with another request.
        """
        _refuse(*_request_violations(asked.request_id), *_name_violations(asked.name))
        now, name = self._clock.now(), asked.name.strip()
        stored = await self._store.add(
            GroupRecord(self._new_id(), name, 0, 1, now, now),
            name_key=name_key(name),
            creation_request=f"{caller.id} {asked.request_id}",
        )
        if stored.version == 1 and stored.name != name:
            raise RequestIdReused
        self._announce(stored.id, stored.version)
        return stored

    async def rename(self, asked: GroupRename) -> GroupRecord:
        """Rename a group.

        Raises:
            InvalidRequest: The name is outside its limits.
            GroupNotFound: There is no such group.
            VersionConflict: It changed since it was read.
            GroupNameTaken: Another group has the name.
        """
        _refuse(*_name_violations(asked.name))
        name = asked.name.strip()
        changed = await self._store.rename(
            _group_id(asked.group_id),
            name,
            name_key=name_key(name),
            expected_version=asked.expected_version,
            now=self._clock.now(),
        )
        self._announce(changed.id, changed.version)
        return changed

    async def delete(self, group_id: str) -> None:
        """Delete a group permanently; idempotent.

        Raises:
            GroupNotFound: There was never such a group.
        """
        known = _group_id(group_id)
        self._announce(known, await self._store.erase(known, now=self._clock.now()))

    async def add_member(self, group_id: str, user_id: str) -> GroupRecord:
        """Add a user to a group; idempotent.

        Raises:
            GroupNotFound: There is no such group.
            UserNotFound: There is no such user.
            TooManyGroups: The user has reached the limit of groups.
        """
        known, user = _group_id(group_id), _user_id(user_id)
        changed = await self._store.add_member(known, user, now=self._clock.now())
        return self._told(user, changed)

    async def remove_member(self, group_id: str, user_id: str) -> GroupRecord:
        """Remove a user from a group; idempotent.

        Raises:
            GroupNotFound: There is no such group.
            UserNotFound: There is no such user.
        """
        known, user = _group_id(group_id), _user_id(user_id)
        changed = await self._store.remove_member(known, user, now=self._clock.now())
        return self._told(user, changed)

    def _told(self, user_id: str, changed: MembershipChange) -> GroupRecord:
        if changed.user_version is not None:
            self._bus.publish(Notice(USERS_TOPIC, user_id, changed.user_version))
        return changed.group

    def _announce(self, group_id: str, version: int) -> None:
        self._bus.publish(Notice(TOPIC, group_id, version))


def _group_id(text: str) -> str:
    """Return the canonical form of an id; an invalid one is not found."""
    if not is_uuid(text):
        raise GroupNotFound(text)
    return text.lower()


def _user_id(text: str) -> str:
    if not is_uuid(text):
        raise UserNotFound(text)
    return text.lower()


def _refuse(*violations: Violation) -> None:
    if violations:
        raise InvalidRequest(*violations)


def _request_violations(request_id: str) -> Iterator[Violation]:
    if not 1 <= len(request_id) <= REQUEST_ID_CHARACTERS_MAX or "\0" in request_id:
        yield Violation("request_id", f"give 1 to {REQUEST_ID_CHARACTERS_MAX} characters, no NUL")


def _name_violations(name: str) -> Iterator[Violation]:
    if not 1 <= len(name.strip()) <= NAME_CHARACTERS_MAX:
        yield Violation("name", f"give 1 to {NAME_CHARACTERS_MAX} characters")
    if any(category(each) in INVISIBLE_CATEGORIES for each in name):
        yield Violation("name", "leave out control characters and line breaks")
