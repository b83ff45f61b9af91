"""Managing users: permissions, validation of fields, and notices of changes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from unicodedata import bidirectional, category

from gateway.identity.domain import UserKind, UserRecord, UserState
from gateway.identity.engine.service_tokens import (
    INVISIBLE_CATEGORIES,
    REQUEST_ID_CHARACTERS_MAX,
    check_rank,
    is_uuid,
)
from gateway.identity.engine.service_tokens import TOPIC as TOKENS_TOPIC
from gateway.identity.errors import (
    GroupNotFound,
    InvalidRequest,
    RequestIdReused,
    UserNotFound,
)
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.memberships import GROUPS_MAX
from gateway.identity.store.users import UserStore
from parley.bus import Bus, Notice
from parley.clock import Clock
from parley.identity import Role, User, UserId
from parley.rpc import Violation

TOPIC: Final = "identity.users"
NAME_CHARACTERS_MAX: Final = 128
EMAIL_CHARACTERS_MAX: Final = 254
#: Unicode classes of characters that change the direction of the text around them.
_DIRECTIONS: Final = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
CHANGEABLE: Final = frozenset({"login", "display_name", "email", "role", "group_ids", "state"})
#: Fields that users may change themselves.
OWN: Final = frozenset({"display_name", "email"})

MANAGERS: Final = frozenset({Role.OWNER, Role.ADMIN})

_LOGIN: Final = re.compile(r"[a-z0-9._-]{1,64}")
#: In URLs and paths they name a folder and the one above it.
_DIRECTORIES: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class NewUser:
    """A request for a new user."""

    request_id: str
    login: str
    display_name: str
    email: str
    role: Role | None
    group_ids: tuple[str, ...] = ()
    kind: UserKind = UserKind.PERSON


@dataclass(frozen=True, slots=True)
class UserChange:
    """A request to change a user; only `fields` are changed."""

    user_id: str
    fields: frozenset[str]
    login: str = ""
    display_name: str = ""
    email: str = ""
    role: Role | None = None
    state: UserState | None = None
    group_ids: tuple[str, ...] = ()
    expected_version: int = 0


class Users:
    """The users of the installation; every change is published on the bus.

    Args:
        store: Writes users.
        people: Reads them.
        bus: Publishes changes to other processes.
        clock: The clock.
        new_id: Generates ids.
        changed: Called after a change, before it is published.
    """

    def __init__(
        self,
        store: UserStore,
        people: IdentityStore,
        *,
        bus: Bus,
        clock: Clock,
        new_id: Callable[[], str],
        changed: Callable[[], None],
    ) -> None:
        self._store = store
        self._identity_store = people
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._changed = changed

    async def create(self, caller: User, asked: NewUser) -> UserRecord:
        """Create an active user.

        Raises:
            InvalidRequest: Fields are outside their limits.
            RoleExceedsCaller: The new user's role exceeds that of `caller`.
            LoginTaken: Another user has the login.
            GroupNotFound: There is no such group.
            RequestIdReused: The caller used the request id before, with another request.
        """
        violations = tuple(_violations(asked))
        if violations:
            raise InvalidRequest(*violations)
        assert asked.role is not None
        check_rank(caller, asked.role)
        group_ids = _checked_groups(asked.group_ids)
        now = self._clock.now()
        user = UserRecord(
            id=UserId(self._new_id()),
            login=asked.login,
            display_name=asked.display_name or asked.login,
            email=asked.email,
            role=asked.role,
            state=UserState.ACTIVE,
            version=1,
            created_at=now,
            updated_at=now,
            deactivated_at=None,
            kind=asked.kind,
        )
        stored = await self._store.add(
            user, creation_request=f"{caller.id} {asked.request_id}", group_ids=group_ids
        )
        if stored.version == 1 and _content_of(stored) != _content_of(user):
            raise RequestIdReused
        self.announce(stored)
        return stored

    async def change(self, caller: User, asked: UserChange) -> UserRecord:
        """Change a user, or reactivate one.

        Raises:
            InvalidRequest: Fields are unknown or outside their limits.
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role, old or new, exceeds that of `caller`.
            VersionConflict: The user changed since it was read.
            LoginTaken: Another user has the login.
            LastOwner: No active owner would be left.
            GroupNotFound: There is no such group.
        """
        violations = tuple(_change_violations(asked))
        if violations:
            raise InvalidRequest(*violations)
        await self._check_caller(caller, asked.user_id)
        values: dict[str, object] = {
            name: getattr(asked, name) for name in asked.fields - {"group_ids", "state"}
        }
        if asked.role is not None and "role" in asked.fields:
            check_rank(caller, asked.role)
        group_ids = _checked_groups(asked.group_ids) if "group_ids" in asked.fields else None
        if "state" in asked.fields:
            values |= {"state": UserState.ACTIVE, "deactivated_at": None}
        now = self._clock.now()
        changed = await self._store.change(
            asked.user_id,
            values,
            expected_version=asked.expected_version,
            now=now,
            group_ids=group_ids,
        )
        self.announce(changed)
        return changed

    async def change_own(self, caller: User, asked: UserChange) -> UserRecord:
        """Change the fields that users may change themselves; `asked` is about the caller.

        Raises:
            InvalidRequest: Fields are not allowed, or outside their limits.
            UserNotFound: They were deleted meanwhile.
            VersionConflict: They changed since they were read.
        """
        violations = tuple(_change_violations(asked, OWN))
        if violations:
            raise InvalidRequest(*violations)
        changed = await self._store.change(
            caller.id,
            {name: getattr(asked, name) for name in asked.fields},
            expected_version=asked.expected_version,
            now=self._clock.now(),
        )
        self.announce(changed)
        return changed

    async def deactivate(self, caller: User, user_id: str) -> UserRecord:
        """Deactivate a user; idempotent.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            LastOwner: No active owner would be left.
        """
        await self._check_caller(caller, user_id)
        changed = await self._store.deactivate(user_id, now=self._clock.now())
        self.announce(changed)
        return changed

    async def delete(self, caller: User, user_id: str) -> None:
        """Delete a deactivated user permanently.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            UserStillActive: They are still active.
        """
        await self._check_caller(caller, user_id)
        self.announce(await self._store.erase(user_id, now=self._clock.now()))

    async def find(self, user_id: str) -> UserRecord:
        """Return one user.

        Raises:
            UserNotFound: There is no such user.
        """
        user = await self._identity_store.find_user(user_id) if is_uuid(user_id) else None
        if user is None or user.state is UserState.DELETED:
            raise UserNotFound(user_id)
        return user

    async def managed_by(self, caller: User, user_id: str) -> UserRecord:
        """Return a user whose credentials the caller may manage.

        Raises:
            UserNotFound: There is no such user, or the caller manages nobody.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
        """
        if caller.role not in MANAGERS:
            raise UserNotFound(user_id)
        user = await self.find(user_id)
        if user.id != caller.id:
            check_rank(caller, user.role)
        return user

    async def _check_caller(self, caller: User, user_id: str) -> None:
        user = await self._identity_store.find_user(user_id) if is_uuid(user_id) else None
        if user is None:
            raise UserNotFound(user_id)
        check_rank(caller, user.role)

    async def set_groups(self, user_id: str, group_ids: tuple[str, ...]) -> None:
        """Set the groups of a user.

        Raises:
            UserNotFound: There is no such user.
            GroupNotFound: There is no such group.
            TooManyGroups: They exceed the limit of groups.
        """
        self.announce(
            await self._store.change(
                user_id, {}, expected_version=0, now=self._clock.now(), group_ids=group_ids
            )
        )

    def announce(self, user: UserRecord) -> None:
        """Publish that a user changed."""
        self._changed()
        self._bus.publish(
            Notice(TOPIC, user.id, user.version), Notice(TOKENS_TOPIC, user.id, user.version)
        )


def _checked_groups(group_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups without duplicates, with canonical ids."""
    for group_id in group_ids:
        if not is_uuid(group_id):
            raise GroupNotFound(group_id)
    return tuple(dict.fromkeys(group_id.lower() for group_id in group_ids))


def _content_of(user: UserRecord) -> tuple[str, str, str, Role, UserKind]:
    """Return what a request that creates a user says of them."""
    return user.login, user.display_name, user.email, user.role, user.kind


def _violations(asked: NewUser) -> Iterator[Violation]:
    if not 1 <= len(asked.request_id) <= REQUEST_ID_CHARACTERS_MAX or "\0" in asked.request_id:
        yield Violation("request_id", f"give 1 to {REQUEST_ID_CHARACTERS_MAX} characters, no NUL")
    if asked.role is None:
        yield Violation("role", "give a role")
    if len(asked.group_ids) > GROUPS_MAX:
        yield Violation("group_ids", f"give at most {GROUPS_MAX} groups")
    yield from _text_violations(asked.login, asked.display_name or asked.login, asked.email)


def _change_violations(
    asked: UserChange, changeable: frozenset[str] = CHANGEABLE
) -> Iterator[Violation]:
    unknown = sorted(asked.fields - changeable)
    if unknown or not asked.fields:
        yield Violation("update_mask", f"name some of {', '.join(sorted(changeable))}")
    if "state" in asked.fields and asked.state is not UserState.ACTIVE:
        yield Violation("user.state", "can only become active; deactivate with DeactivateUser")
    if "role" in asked.fields and asked.role is None:
        yield Violation("user.role", "give a role")
    if "group_ids" in asked.fields and len(asked.group_ids) > GROUPS_MAX:
        yield Violation("user.group_ids", f"give at most {GROUPS_MAX} groups")
    shown = {"login": "x", "display_name": "x", "email": ""}
    for name in shown.keys() & asked.fields:
        shown[name] = getattr(asked, name)
    yield from _text_violations(**shown)


def shown_name(name: str) -> str:
    """Return a name without what misleads where others see it: controls, lines, directions.

    Invisible characters that join letters stay: some scripts need them.
    """
    return "".join(
        letter
        for letter in name
        if category(letter) not in INVISIBLE_CATEGORIES - {"Cf"}
        and bidirectional(letter) not in _DIRECTIONS
    )


def _text_violations(login: str, display_name: str, email: str) -> Iterator[Violation]:
    if not _LOGIN.fullmatch(login) or login.startswith("deleted-"):
        yield Violation("login", "give 1 to 64 of a-z, 0-9, dot, underscore and dash")
    elif login in _DIRECTORIES:
        yield Violation("login", "give a letter or a digit too: paths use this name for a folder")
    if not 1 <= len(display_name.strip()) <= NAME_CHARACTERS_MAX or "\0" in display_name:
        yield Violation("display_name", f"give 1 to {NAME_CHARACTERS_MAX} characters, no NUL")
    elif shown_name(display_name) != display_name:
        yield Violation("display_name", "leave out control characters and line breaks")
    if len(email) > EMAIL_CHARACTERS_MAX or "\0" in email:
        yield Violation("email", f"give at most {EMAIL_CHARACTERS_MAX} characters, no NUL")
