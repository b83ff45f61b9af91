"""One-time links, as administrators make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from gateway.identity.domain import LinkPurpose, LinkRecord, UserKind
from gateway.identity.engine.service_tokens import is_uuid
from gateway.identity.engine.users import Users
from gateway.identity.errors import IsServiceAccount, LinkNotFound
from gateway.identity.secret_tokens import TokenBytes, digest_of, new_token
from gateway.identity.store.sessions import SessionStore
from gateway.identity.store.sign_in_links import LinkStore
from parley.clock import Clock
from parley.identity import User, UserId

#: Purpose -> how long a link works.
LIFETIMES: Final = {
    LinkPurpose.INVITATION: timedelta(days=3),
    LinkPurpose.PASSWORD_RESET: timedelta(hours=1),
}
#: The page that a link opens.
PATH: Final = "/link"


@dataclass(frozen=True, slots=True)
class NewLink:
    """A request for a link; zero and None mean the defaults."""

    request_id: str
    user_id: str
    purpose: LinkPurpose | None = None
    lifetime_s: int = 0


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A new link and its address, which is returned only once."""

    record: LinkRecord
    url: str = field(repr=False)


class SignInLinks:
    """The one-time links of users."""

    def __init__(
        self,
        store: LinkStore,
        sessions: SessionStore,
        users: Users,
        *,
        public_url: str,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._users = users
        self._public_url = public_url
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes

    async def create(self, caller: User, asked: NewLink) -> MadeLink:
        """Make a link for a user, in place of older ones that are not used.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            IsServiceAccount: The user is one.
            UserDeactivated: They are deactivated.
            SecretAlreadyShown: The request was made before.
        """
        user = await self._users.managed_by(caller, asked.user_id)
        if user.kind is not UserKind.PERSON:
            raise IsServiceAccount(user.id)
        purpose = asked.purpose
        if purpose is None:
            has_password = await self._sessions.find_hash(user.id) is not None
            purpose = LinkPurpose.PASSWORD_RESET if has_password else LinkPurpose.INVITATION
        now = self._clock.now()
        lifetime = timedelta(seconds=asked.lifetime_s) or LIFETIMES[purpose]
        record = LinkRecord(
            id=self._new_id(),
            user_id=user.id,
            purpose=purpose,
            created_by_user_id=UserId(caller.id),
            created_at=now,
            expires_at=now + lifetime,
        )
        token = new_token(self._token_bytes)
        await self._store.add(record, digest=digest_of(token), request_id=asked.request_id)
        return MadeLink(record, f"{self._public_url}{PATH}?token={token}")

    async def list(self, caller: User, user_id: str) -> Sequence[LinkRecord]:
        """Return the links of a user, newest first.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
        """
        user = await self._users.managed_by(caller, user_id)
        return await self._store.list(user.id)

    async def revoke(self, caller: User, user_id: str, link_id: str) -> None:
        """Take a link back; idempotent.

        Raises:
            UserNotFound: There is no such user.
            RoleExceedsCaller: The user's role exceeds that of `caller`.
            LinkNotFound: The user has no such link.
        """
        user = await self._users.managed_by(caller, user_id)
        if not is_uuid(link_id):
            raise LinkNotFound(link_id)
        await self._store.revoke(user.id, link_id, self._clock.now())
