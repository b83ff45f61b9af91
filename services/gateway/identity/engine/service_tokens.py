"""Issues, lists and revokes service tokens, for HTTP and gRPC."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from unicodedata import category
from uuid import UUID

from gateway.identity.domain import ServiceTokenRecord, UserKind, UserRecord
from gateway.identity.errors import (
    InvalidRequest,
    RoleExceedsCaller,
    TokenForAnotherUser,
    TokenNotFound,
    UnknownScopes,
    UserDeactivated,
    UserNotFound,
)
from gateway.identity.store.credentials import IdentityStore
from gateway.identity.store.service_tokens import TokenStore
from parley.bus import Bus, Notice
from parley.clock import Clock
from parley.identity import Role, Signer, User
from parley.rpc import Violation

TOPIC = "identity.tokens"
NAME_CHARACTERS_MAX = 64
SCOPES_MAX = 32
REQUEST_ID_CHARACTERS_MAX = 128
LIFETIME_S_MIN = 60
LIFETIME_S_MAX = 366 * 24 * 3600
LIFETIME_S_DEFAULT = 90 * 24 * 3600
PAGE_SIZE_MAX = 200
PAGE_SIZE_DEFAULT = 50

# Unicode categories of control, format and surrogate characters, line and paragraph separators.
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

RANK = {Role.OWNER: 2, Role.ADMIN: 1, Role.MEMBER: 0, Role.AUDITOR: 0}


@dataclass(frozen=True, slots=True)
class NewToken:
    """A request for a new token; empty and zero values mean the defaults."""

    request_id: str
    name: str
    scopes: tuple[str, ...]
    user_id: str = ""
    lifetime_s: int = 0


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token and its text, which is returned only once."""

    record: ServiceTokenRecord
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenPage:
    """A page of tokens and the token of the next page; empty at the end."""

    records: tuple[ServiceTokenRecord, ...]
    next_page_token: str


class ServiceTokens:
    """The tokens of internal callers."""

    def __init__(
        self,
        tokens: TokenStore,
        people: IdentityStore,
        *,
        signer: Signer,
        bus: Bus,
        clock: Clock,
        new_id: Callable[[], str],
        scopes: tuple[str, ...],
        is_trusted: Callable[[str], bool],
    ) -> None:
        self._tokens = tokens
        self._identity_store = people
        self._signer = signer
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._scopes = scopes
        self._is_trusted = is_trusted

    async def issue(self, caller: User, asked: NewToken) -> IssuedToken:
        """Issue a token on behalf of `caller`.

        Raises:
            InvalidRequest: Fields are outside their limits.
            UnknownScopes: No method requires one of the scopes.
            UserNotFound: There is no such user.
            UserDeactivated: That user is deactivated.
            TokenForAnotherUser: That user is another person.
            RoleExceedsCaller: That user is a service account whose role exceeds that of `caller`.
            TokenAlreadyIssued: The request was made before.
            TooManyTokens: The limit of unexpired tokens is reached.
        """
        violations = tuple(_violations(asked))
        if violations:
            raise InvalidRequest(*violations)
        unknown = tuple(scope for scope in asked.scopes if scope not in self._scopes)
        if unknown:
            raise UnknownScopes(unknown, self._scopes)
        holder = await self._holder(caller, asked.user_id)
        # Tokens contain whole seconds, and the stored times must be the same.
        now = self._clock.now().replace(microsecond=0)
        record = ServiceTokenRecord(
            id=self._new_id(),
            name=asked.name,
            user_id=holder.id,
            scopes=tuple(sorted(set(asked.scopes))),
            issued_by_user_id=caller.id,
            issued_at=now,
            expires_at=now + timedelta(seconds=asked.lifetime_s or LIFETIME_S_DEFAULT),
            signing_key_id=self._signer.key_id,
        )
        await self._tokens.add(record, request_id=asked.request_id)
        text = self._signer.service_token(
            record.id, record.name, holder.as_user, record.scopes, record.expires_at
        )
        return IssuedToken(record, text)

    async def page(
        self, *, page_size: int, page_token: str, user_id: str = "", include_ended: bool = False
    ) -> TokenPage:
        """Return a page of tokens, newest first.

        Raises:
            InvalidRequest: The page's size or token, or the user's id, is invalid.
        """
        if not 0 <= page_size <= PAGE_SIZE_MAX:
            raise InvalidRequest(Violation("page_size", f"give 0 to {PAGE_SIZE_MAX}"))
        if page_token and not is_uuid(page_token):
            raise InvalidRequest(Violation("page_token", "give that of the page before"))
        if user_id and not is_uuid(user_id):
            return TokenPage((), "")
        size = page_size or PAGE_SIZE_DEFAULT
        used = await self._tokens.signing_key_ids()
        retired = frozenset(key_id for key_id in used if not self._is_trusted(key_id))
        records = await self._tokens.page(
            before_id=page_token or None,
            limit=size + 1,
            user_id=user_id or None,
            include_ended=include_ended,
            retired_key_ids=retired,
            now=self._clock.now(),
        )
        has_more = len(records) > size
        shown = tuple(
            replace(record, is_key_retired=record.signing_key_id in retired)
            for record in records[:size]
        )
        return TokenPage(shown, shown[-1].id if has_more else "")

    async def revoke(self, caller: User, token_id: str) -> ServiceTokenRecord:
        """Revoke a token permanently; idempotent.

        Raises:
            TokenNotFound: There is none with this id.
            RoleExceedsCaller: Its user is an owner, and `caller` is not.
        """
        found = await self._tokens.find(token_id) if is_uuid(token_id) else None
        if found is None:
            raise TokenNotFound(token_id)
        holder = await self._identity_store.find_user(found.user_id)
        if holder is not None and RANK[holder.role] > RANK[caller.role]:
            raise RoleExceedsCaller(holder.role)
        record, version = await self._tokens.revoke(token_id, now=self._clock.now())
        self._bus.publish(Notice(TOPIC, token_id, version))
        return record

    async def _holder(self, caller: User, user_id: str) -> UserRecord:
        wanted = user_id or caller.id
        holder = await self._identity_store.find_user(wanted) if is_uuid(wanted) else None
        if holder is None:
            raise UserNotFound(wanted)
        if holder.id != caller.id:
            if holder.kind is not UserKind.SERVICE:
                raise TokenForAnotherUser(holder.id)
            check_rank(caller, holder.role)
        if not holder.is_active:
            raise UserDeactivated(wanted)
        return holder


def check_rank(caller: User, role: Role) -> None:
    """Check that `caller` may manage users with a role, or act as programs with it.

    Raises:
        RoleExceedsCaller: The role is higher, or `caller` is an administrator and so is the user.
    """
    if RANK[role] > RANK[caller.role] or (role is Role.ADMIN and caller.role is not Role.OWNER):
        raise RoleExceedsCaller(role)


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID in the format of this API."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _violations(asked: NewToken) -> Iterator[Violation]:
    if not 1 <= len(asked.request_id) <= REQUEST_ID_CHARACTERS_MAX:
        yield Violation("request_id", f"give 1 to {REQUEST_ID_CHARACTERS_MAX} characters")
    if not 1 <= len(asked.name.strip()) <= NAME_CHARACTERS_MAX:
        yield Violation("name", f"give 1 to {NAME_CHARACTERS_MAX} characters")
    if not 1 <= len(asked.scopes) <= SCOPES_MAX:
        yield Violation("scopes", f"give 1 to {SCOPES_MAX} scopes")
    if asked.lifetime_s and not LIFETIME_S_MIN <= asked.lifetime_s <= LIFETIME_S_MAX:
        yield Violation(
            "lifetime_s", f"give {LIFETIME_S_MIN} to {LIFETIME_S_MAX} seconds, or 0 for 90 days"
        )
    if "\0" in asked.request_id:
        yield Violation("request_id", "leave out the NUL character")
    # The name is shown in lists and logs, where such characters could be misleading.
    if any(category(each) in INVISIBLE_CATEGORIES for each in asked.name):
        yield Violation("name", "leave out control characters, line breaks and invisible ones")
