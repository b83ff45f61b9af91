"""Identity providers as administrators configure them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from gateway.identity.domain import OidcIssuer, StoredIssuer
from gateway.identity.engine.oidc_issuers import OidcIssuers, is_safe_address
from gateway.identity.errors import InvalidRequest, IssuerNotFound, IssuerReadOnly
from gateway.identity.store.oidc_issuers import IssuerStore
from parley.clock import Clock
from parley.rpc import Violation


@dataclass(frozen=True, slots=True)
class IssuerChange:
    """An issuer as it shall be.

    Attributes:
        issuer: All but the secret.
        client_secret: The secret; None keeps the stored one, empty removes it.
        expected_version: The version that it was made from; 0 for any.
    """

    issuer: OidcIssuer
    client_secret: str | None = field(repr=False)
    expected_version: int


class OidcAdministration:
    """Lists and changes identity providers."""

    def __init__(
        self,
        issuers: OidcIssuers,
        store: IssuerStore,
        *,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._issuers = issuers
        self._store = store
        self._clock = clock
        self._new_id = new_id

    async def all(self) -> tuple[StoredIssuer, ...]:
        """Return all issuers, ordered by name; those of the file have the version 0."""
        stored = {each.issuer.name: each for each in await self._store.stored()}
        fixed = {
            name: StoredIssuer(each, 0, each.client_secret != "")
            for name, each in self._issuers.of_file.items()
        }
        return tuple(each for _, each in sorted({**stored, **fixed}.items()))

    async def put(self, change: IssuerChange) -> StoredIssuer:
        """Create or replace an issuer.

        Raises:
            IssuerReadOnly: It is one of the file.
            InvalidRequest: It cannot be used so.
            VersionConflict: It changed since it was read.
            TooManyIssuers: There are as many as there may be.
            IssuerSecretsUnavailable: It has a secret, and there is no master key.
        """
        wanted = change.issuer
        self._refuse_fixed(wanted.name)
        present = await self._store.find(wanted.name)
        violations = tuple(_violations(change, present))
        if violations:
            raise InvalidRequest(*violations)
        secret = change.client_secret
        if secret is None:
            secret = "" if present is None else present.client_secret
        return await self._store.put(
            msgspec.structs.replace(wanted, client_secret=secret),
            new_id=self._new_id(),
            expected_version=change.expected_version,
            now=self._clock.now(),
        )

    async def delete(self, name: str) -> None:
        """Delete an issuer.

        Raises:
            IssuerReadOnly: It is one of the file.
            IssuerNotFound: None has this name.
        """
        self._refuse_fixed(name)
        if not await self._store.delete(name):
            raise IssuerNotFound(name)

    def _refuse_fixed(self, name: str) -> None:
        if name in self._issuers.of_file:
            raise IssuerReadOnly(name)


def _violations(change: IssuerChange, present: OidcIssuer | None) -> Iterator[Violation]:
    wanted = change.issuer
    if not is_safe_address(wanted.issuer):
        yield Violation("issuer", "give an https address")
    if "openid" not in wanted.scopes:
        yield Violation("scopes", "ask for openid too")
    if wanted.groups and not wanted.groups_claim:
        yield Violation("groups_claim", "name the claim that the groups are in")
    # A stored secret must not be sent to another issuer than the one that it is for.
    has_secret = present is not None and present.client_secret != ""
    is_moved = present is not None and present.issuer != wanted.issuer
    if change.client_secret is None and has_secret and is_moved:
        yield Violation("client_secret", "give the secret of this issuer, or an empty one")
