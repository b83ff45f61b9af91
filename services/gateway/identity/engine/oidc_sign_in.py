"""Signing in with an identity provider: the two requests, and users who come for the first time."""

import base64
import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gateway.identity.domain import OidcIssuer, UserKind, UserRecord, UserState
from gateway.identity.engine.groups import name_key
from gateway.identity.engine.oidc_issuers import (
    AuthorizationRequest,
    OidcIdentity,
    OidcIssuers,
)
from gateway.identity.engine.passkeys import CONTINUATION_LIFETIME
from gateway.identity.engine.sign_in import Origin, SignedIn, SignIns
from gateway.identity.engine.users import (
    EMAIL_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    Users,
    shown_name,
)
from gateway.identity.errors import (
    IdentityNotKnown,
    IssuerRefused,
    LoginTaken,
    SignInNotBegun,
    SignInRefused,
)
from gateway.identity.secret_tokens import TokenBytes, digest_of, new_token
from gateway.identity.store.groups import GroupStore
from gateway.identity.store.linked_identities import LinkedIdentityStore
from gateway.identity.store.second_factors import (
    SecondFactorStore,
    Unfinished,
    UnfinishedPurpose,
)
from parley.clock import Clock
from parley.identity import Role, UserId

LOGIN_TRIES: Final = 20
LOGIN_CHARACTERS_MAX: Final = 60
GROUP_PAGE: Final = 200
#: Why a sign-in was refused, in the audit log.
REFUSED: Final = "issuer_refused"
NOT_KNOWN: Final = "identity_not_known"
DEACTIVATED: Final = "user_deactivated"

_log = logging.getLogger(__name__)


class _Begun(msgspec.Struct):
    issuer: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class StartedOidc:
    """Where the browser goes, and the token that binds the answer to it."""

    url: str
    state: str = field(repr=False)


class OidcSignIns:
    """Signs users of identity providers in.

    Args:
        issuers: Calls identity providers.
        sign_ins: Makes sessions.
        unfinished: Stores sign-ins that are not finished.
        links: Stores users of identity providers.
        users: Changes users.
        groups: Reads groups.
        public_url: The origin of this installation.
        clock: The clock.
        new_id: Generates ids.
        token_bytes: Random bytes of tokens.
    """

    def __init__(
        self,
        issuers: OidcIssuers,
        sign_ins: SignIns,
        *,
        unfinished: SecondFactorStore,
        links: LinkedIdentityStore,
        users: Users,
        groups: GroupStore,
        public_url: str,
        clock: Clock,
        new_id: Callable[[], str],
        token_bytes: TokenBytes,
    ) -> None:
        self.issuers = issuers
        self._sign_ins = sign_ins
        self._unfinished = unfinished
        self._links = links
        self._users = users
        self._groups = groups
        self.public_url = public_url
        self._clock = clock
        self._new_id = new_id
        self._token_bytes = token_bytes

    async def start_link(self, name: str, continuation: str, user_id: str) -> StartedOidc:
        """Begin to link an identity to a user whose browser this is.

        Raises:
            IssuerNotFound: There is no such issuer.
            SignInNotBegun: This user did not ask for it, or it took too long.
            IssuerUnavailable: It does not answer.
            IssuerRefused: It is not what its configuration says.
        """
        asked = await self._unfinished.take(
            digest_of(continuation), UnfinishedPurpose.OIDC_LINK, self._clock.now()
        )
        if asked is None or asked.user_id != user_id or asked.content.decode() != name:
            raise SignInNotBegun
        return await self.start(name, asked.user_id)

    async def start(self, name: str, user_id: UserId | None = None) -> StartedOidc:
        """Begin a sign-in, or the link of an identity to a user.

        Raises:
            IssuerNotFound: There is no such issuer.
            IssuerUnavailable: It does not answer.
            IssuerRefused: It is not what its configuration says.
        """
        issuer = await self.issuers.find(name)
        state, nonce, verifier = (new_token(self._token_bytes) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        asked = AuthorizationRequest(self._redirect_uri(name), state, nonce, challenge)
        url = await self.issuers.authorization_url(issuer, asked)
        now = self._clock.now()
        await self._unfinished.begin(
            digest_of(state),
            UnfinishedPurpose.OIDC,
            Unfinished(user_id, msgspec.json.encode(_Begun(name, nonce, verifier))),
            now=now,
            expires_at=now + CONTINUATION_LIFETIME,
        )
        return StartedOidc(url, state)

    async def finish(
        self,
        name: str,
        answer: Mapping[str, str],
        *,
        expected_state: str,
        origin: Origin,
        present_user_id: str | None = None,
    ) -> SignedIn | None:
        """Finish a sign-in with the parameters that the issuer sent the browser back with.

        None if an identity was linked in place of a sign-in.

        Raises:
            IssuerNotFound: There is no such issuer.
            SignInNotBegun: It was not begun in this browser, was finished, or took too long.
            IssuerUnavailable: The issuer does not answer.
            IssuerRefused: The issuer refused, or its answer is not valid for this sign-in.
            IdentityNotKnown: The user is not known here, and the issuer creates none.
            SignInRefused: The user is deactivated.
            IdentityNotLinked: The identity is that of another user.
        """
        issuer = await self.issuers.find(name)
        state = answer.get("state", "")
        if not state or state != expected_state:
            raise SignInNotBegun
        # Taken before anything else, so that an answer is used once.
        now = self._clock.now()
        begun = await self._unfinished.take(digest_of(state), UnfinishedPurpose.OIDC, now)
        if begun is None:
            raise SignInNotBegun
        asked = msgspec.json.decode(begun.content, type=_Begun)
        if asked.issuer != name:
            raise SignInNotBegun
        try:
            identity = await self._identity(issuer, asked, answer)
            if begun.user_id is not None:
                await self._link(identity, begun.user_id, present_user_id)
                return None
            user = await self._user_of(identity)
        except (IssuerRefused, IdentityNotKnown) as error:
            is_known = isinstance(error, IssuerRefused)
            await self._sign_ins.refuse_issuer(REFUSED if is_known else NOT_KNOWN)
            raise
        if not user.is_active:
            await self._sign_ins.refuse_issuer(DEACTIVATED, user.id)
            raise SignInRefused
        await self._follow_groups(identity, user.id)
        return await self._sign_ins.by_issuer(user.id, origin)

    async def _link(
        self, identity: OidcIdentity, user_id: UserId, present_user_id: str | None
    ) -> None:
        # Somebody else may have signed in with this browser meanwhile.
        if present_user_id != user_id:
            raise SignInNotBegun
        await self._links.link(
            user_id,
            issuer=identity.issuer.issuer,
            subject=identity.subject,
            new_id=self._new_id(),
            now=self._clock.now(),
        )

    async def _identity(
        self, issuer: OidcIssuer, asked: _Begun, answer: Mapping[str, str]
    ) -> OidcIdentity:
        if answer.get("iss", issuer.issuer) != issuer.issuer:
            raise IssuerRefused("the answer comes from another issuer")
        if "error" in answer or not answer.get("code"):
            raise IssuerRefused("the issuer refused the sign-in")
        return await self.issuers.identity(
            issuer,
            code=answer["code"],
            verifier=asked.verifier,
            redirect_uri=self._redirect_uri(asked.issuer),
            nonce=asked.nonce,
        )

    def _redirect_uri(self, name: str) -> str:
        return f"{self.public_url}/login/oidc/{name}/callback"

    async def _user_of(self, identity: OidcIdentity) -> UserRecord:
        issuer = identity.issuer
        known = await self._links.find(issuer.issuer, identity.subject)
        if known is not None:
            return known
        email = _text(identity.claims, "email", EMAIL_CHARACTERS_MAX)
        if issuer.links_by_email and email and identity.claims.get("email_verified") is True:
            linked = await self._links.link_by_email(
                email,
                issuer=issuer.issuer,
                subject=identity.subject,
                new_id=self._new_id(),
                now=self._clock.now(),
            )
            if linked is not None:
                return linked
        if not issuer.creates_users:
            raise IdentityNotKnown
        wanted = _login_of(identity.claims)
        for number in range(1, LOGIN_TRIES + 1):
            login = wanted if number == 1 else f"{wanted}-{number}"
            user = self._new_user(identity, login)
            try:
                made = await self._links.create(
                    user,
                    issuer=issuer.issuer,
                    subject=identity.subject,
                    new_id=self._new_id(),
                    now=user.created_at,
                )
            except LoginTaken:
                # Never taken for the same person: an issuer says nothing about users of others.
                continue
            if made is not None:
                self._users.announce(made)
                _log.info("user %s was created for a user of %s", made.id, issuer.name)
                return made
            known = await self._links.find(issuer.issuer, identity.subject)
            if known is not None:
                return known
        raise IdentityNotKnown

    def _new_user(self, identity: OidcIdentity, login: str) -> UserRecord:
        now = self._clock.now()
        return UserRecord(
            id=UserId(self._new_id()),
            login=login,
            display_name=shown_name(_text(identity.claims, "name", NAME_CHARACTERS_MAX)) or login,
            email=_text(identity.claims, "email", EMAIL_CHARACTERS_MAX),
            role=Role(identity.issuer.role),
            state=UserState.ACTIVE,
            version=1,
            created_at=now,
            updated_at=now,
            deactivated_at=None,
            kind=UserKind.PERSON,
        )

    async def _follow_groups(self, identity: OidcIdentity, user_id: UserId) -> None:
        """Set the membership of the groups that the issuer decides about; others stay."""
        issuer = identity.issuer
        if not issuer.groups_claim:
            return
        claimed = identity.claims.get(issuer.groups_claim, [])
        listed = claimed if isinstance(claimed, list) else []
        said = {each for each in listed if isinstance(each, str)}
        decided = await self._group_ids(issuer)
        wanted = {decided[theirs] for theirs in issuer.groups if theirs in said & decided.keys()}
        present = set((await self._groups.ids_of_users((user_id,)))[user_id])
        after = (present - set(decided.values())) | wanted
        if after != present:
            await self._users.set_groups(user_id, tuple(sorted(after)))

    async def _group_ids(self, issuer: OidcIssuer) -> dict[str, str]:
        """Return the ids of the groups here, by the issuer's names; unknown ones are left out."""
        found: dict[str, str] = {}
        for theirs, ours in issuer.groups.items():
            page = await self._groups.page(after="", limit=GROUP_PAGE, query=name_key(ours))
            for group in page:
                if name_key(group.name) == name_key(ours):
                    found[theirs] = group.id
        return found


def _login_of(claims: Mapping[str, Any]) -> str:
    """Return the login that a new user would like."""
    preferred = _text(claims, "preferred_username", 256) or _text(claims, "email", 256)
    plain = re.sub(r"[^a-z0-9._-]+", "-", preferred.partition("@")[0].lower()).strip("-.")
    login = plain[:LOGIN_CHARACTERS_MAX]
    return "user" if not login or login.startswith("deleted-") else login


def _text(claims: Mapping[str, Any], name: str, characters_max: int) -> str:
    value = claims.get(name)
    if not isinstance(value, str):
        return ""
    return value.replace("\0", "").strip()[:characters_max]
