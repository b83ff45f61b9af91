"""API keys, as people make their own and administrators those of service accounts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from unicodedata import category

from gateway.identity.domain import ApiKeyRecord, UserKind, UserRecord
from gateway.identity.engine.service_tokens import INVISIBLE_CATEGORIES
from gateway.identity.engine.users import Users
from gateway.identity.errors import (
    InvalidRequest,
    NotAServiceAccount,
    UnknownScopes,
)
from gateway.identity.secret_tokens import TokenBytes
from gateway.identity.store.api_keys import ApiKeyStore
from parley.clock import Clock
from parley.identity import ApiKey, User
from parley.rpc import Violation

LIFETIME_DEFAULT: Final = timedelta(days=90)
NAME_CHARACTERS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A request for a key; zero and empty values mean the defaults."""

    request_id: str
    user_id: str
    name: str
    scopes: tuple[str, ...] = ()
    lifetime_s: int = 0


@dataclass(frozen=True, slots=True)
class MadeApiKey:
    """A new key and its text, which is returned only once."""

    record: ApiKeyRecord
    text: str = field(repr=False)


class ApiKeys:
    """The API keys of users.

    Args:
        store: Stores keys.
        users: Reads users.
        scopes: The known scopes.
        clock: The clock.
        token_bytes: Random bytes of keys.
        changed: Called after a key was created or revoked.
    """

    def __init__(
        self,
        store: ApiKeyStore,
        users: Users,
        *,
        scopes: tuple[str, ...],
        clock: Clock,
        token_bytes: TokenBytes,
        changed: Callable[[], None],
    ) -> None:
        self._store = store
        self._users = users
        self._scopes = scopes
        self._clock = clock
        self._token_bytes = token_bytes
        self._changed = changed

    async def create(self, caller: User, asked: NewApiKey) -> MadeApiKey:
        """Make a key of the caller, or of a service account.

        Raises:
            InvalidRequest: Fields are outside their limits.
            UnknownScopes: No method requires one of the scopes.
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            NotAServiceAccount: The user is another person.
            SecretAlreadyShown: The request was made before.
            TooManyApiKeys: The user has as many keys as they may.
        """
        violations = tuple(_violations(asked))
        if violations:
            raise InvalidRequest(*violations)
        unknown = tuple(scope for scope in asked.scopes if scope not in self._scopes)
        if unknown:
            raise UnknownScopes(unknown, self._scopes)
        holder = await self._check_holder(caller, asked.user_id)
        if holder.id != caller.id and holder.kind is not UserKind.SERVICE:
            raise NotAServiceAccount(holder.id)
        now = self._clock.now()
        key = ApiKey.generate(self._token_bytes)
        record = ApiKeyRecord(
            id=key.id,
            user_id=holder.id,
            name=asked.name,
            scopes=tuple(sorted(set(asked.scopes))),
            created_at=now,
            expires_at=now + (timedelta(seconds=asked.lifetime_s) or LIFETIME_DEFAULT),
        )
        await self._store.add(
            record, key, created_by_user_id=caller.id, request_id=asked.request_id
        )
        self._changed()
        return MadeApiKey(record, key.reveal())

    async def list(
        self, caller: User, user_id: str, *, include_ended: bool
    ) -> Sequence[ApiKeyRecord]:
        """Return the keys of a user, newest first.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
        """
        holder = await self._check_holder(caller, user_id)
        now = self._clock.now()
        return await self._store.list(holder.id, include_ended=include_ended, now=now)

    async def revoke(self, caller: User, user_id: str, key_id: str) -> ApiKeyRecord:
        """Revoke a key permanently; idempotent.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            ApiKeyNotFound: The user has no such key.
        """
        holder = await self._check_holder(caller, user_id)
        revoked = await self._store.revoke(holder.id, key_id, self._clock.now())
        self._changed()
        return revoked

    async def _check_holder(self, caller: User, user_id: str) -> UserRecord:
        """Return a user whose keys the caller may manage."""
        if user_id.lower() == caller.id:
            return await self._users.find(caller.id)
        return await self._users.managed_by(caller, user_id)


def _violations(asked: NewApiKey) -> Iterator[Violation]:
    if not 1 <= len(asked.name.strip()) <= NAME_CHARACTERS_MAX:
        yield Violation("name", f"give 1 to {NAME_CHARACTERS_MAX} characters")
    # The name is shown in lists, where such characters could be misleading.
    if any(category(each) in INVISIBLE_CATEGORIES for each in asked.name):
        yield Violation("name", "leave out control characters, line breaks and invisible ones")
