"""Links between users and their identities at identity providers."""

from gateway.identity.domain import LinkedIdentity
from gateway.identity.engine.oidc_issuers import OidcIssuers
from gateway.identity.engine.passkeys import CONTINUATION_LIFETIME
from gateway.identity.errors import LinkedIdentityNotFound
from gateway.identity.secret_tokens import TokenBytes, digest_of, new_token
from gateway.identity.store.linked_identities import LinkedIdentityStore
from gateway.identity.store.second_factors import (
    SecondFactorStore,
    Unfinished,
    UnfinishedPurpose,
)
from parley.clock import Clock
from parley.identity import User


class IdentityLinks:
    """Lists, begins and ends the links of a user.

    Args:
        issuers: The identity providers.
        store: Stores links.
        unfinished: Stores links that are not finished.
        clock: The clock.
        token_bytes: Random bytes of tokens.
    """

    def __init__(
        self,
        issuers: OidcIssuers,
        store: LinkedIdentityStore,
        *,
        unfinished: SecondFactorStore,
        clock: Clock,
        token_bytes: TokenBytes,
    ) -> None:
        self._issuers = issuers
        self._store = store
        self._unfinished = unfinished
        self._clock = clock
        self._token_bytes = token_bytes

    async def all(self, caller: User) -> tuple[LinkedIdentity, ...]:
        """Return the caller's identities, oldest first."""
        return await self._store.of_user(caller.id)

    async def start(self, caller: User, name: str) -> str:
        """Begin to link an identity; return the path that the caller's browser opens.

        Raises:
            IssuerNotFound: There is no such issuer.
        """
        issuer = await self._issuers.find(name)
        token = new_token(self._token_bytes)
        now = self._clock.now()
        await self._unfinished.begin(
            digest_of(token),
            UnfinishedPurpose.OIDC_LINK,
            Unfinished(caller.id, issuer.name.encode()),
            now=now,
            expires_at=now + CONTINUATION_LIFETIME,
        )
        return f"/login/oidc/{issuer.name}?continuation={token}"

    async def unlink(self, caller: User, linked_identity_id: str) -> None:
        """Unlink an identity of the caller.

        Raises:
            LinkedIdentityNotFound: The caller has no such identity.
            LastWayToSignIn: The caller could not sign in any more.
        """
        if not await self._store.unlink(caller.id, linked_identity_id):
            raise LinkedIdentityNotFound(linked_identity_id)
