"""The header Authorization of requests on behalf of users, and what a refusal of it leads to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcpgateway.oauth.domain.grants import Grant, GrantFailure, GrantStatus, status_text
from mcpgateway.oauth.domain.metadata import merged_scopes, read_challenge
from mcpgateway.oauth.engine.renewal import Renewal
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.domain import Reason, Server, Target
from mcpgateway.servers.errors import (
    CredentialsRefused,
    NeedsConnect,
    NeedsReconnect,
    UpstreamFailed,
)
from parley.clock import Clock

HEADER = "Authorization"


class UserGrants:
    """The grants of users; implements `Grants` of access and `Logins` of sessions."""

    def __init__(self, store: GrantStore, renewal: Renewal, clock: Clock) -> None:
        self._store = store
        self._renewal = renewal
        self._clock = clock

    async def headers(self, server: Server, user_id: str) -> Mapping[str, str]:
        """Return the header of requests on behalf of a user; a grant that is due is renewed first.

        Raises:
            NeedsConnect: The user has no grant.
            NeedsReconnect: The server or the authorization server no longer accepts it.
            UpstreamFailed: It has expired and cannot be renewed now.
        """
        grant = await self._store.find(server, user_id)
        now = self._clock.now()
        if grant is None:
            raise NeedsConnect(server.id, status_text(None, server, now))
        if grant.failure:
            raise NeedsReconnect(server.id, status_text(grant, server, now))
        if grant.is_due(now):
            grant = await self._renewal.renewed(server, grant)
        return {HEADER: grant.authorization}

    async def statuses(self, user_id: str, found: Sequence[Server]) -> Mapping[str, GrantStatus]:
        """Return the states of the grants that a user has at servers, by server."""
        grants, now = await self._store.find_all(user_id, found), self._clock.now()
        return {server_id: grant.status(now) for server_id, grant in grants.items()}

    async def delete_of_user(self, user_id: str) -> None:
        """Delete all grants of a user who is gone."""
        await self._store.delete_of_user(user_id)

    async def renewed(
        self, target: Target, refusal: CredentialsRefused, *, is_last: bool
    ) -> Target:
        """Return the target with a newer login than the one that its server refused.

        Raises:
            UpstreamFailed: There is none; the user has to connect again, or to grant more.
        """
        server = target.server
        grant = await self._store.find(server, target.user_id)
        now = self._clock.now()
        if grant is None:
            raise UpstreamFailed(Reason.NEEDS_CONNECT, status_text(None, server, now))
        if refusal.status != 401:
            raise await self._insufficient(server, grant, refusal)
        if grant.authorization == target.headers.get(HEADER):
            if is_last:
                raise await self._refused(server, grant)
            try:
                grant = await self._renewal.renewed(server, grant, is_forced=True)
            except NeedsReconnect:
                raise await self._refused(server, grant) from None
            except NeedsConnect as error:
                raise UpstreamFailed(error.reason, str(error)) from None
        elif is_last:
            # Another request renewed it meanwhile, so the next call may work.
            raise refusal
        return replace(target, headers={**target.headers, HEADER: grant.authorization})

    async def _refused(self, server: Server, grant: Grant) -> UpstreamFailed:
        """Mark a grant that its server refuses, and return the error for its user."""
        current = await self._store.find(server, grant.user_id)
        if current is not None and current.version == grant.version and not current.failure:
            await self._store.fail(grant, GrantFailure.TOKEN_REFUSED)
            current = await self._store.find(server, grant.user_id)
        return UpstreamFailed(
            Reason.NEEDS_RECONNECT, status_text(current, server, self._clock.now())
        )

    async def _insufficient(
        self, server: Server, grant: Grant, refusal: CredentialsRefused
    ) -> UpstreamFailed:
        """Return the error for a user whose grant lacks scopes.

        Scopes that were granted are not asked for again, so a server cannot make users log in
        for ever.
        """
        challenge = read_challenge(refusal.challenge)
        missing = tuple(each for each in challenge.scopes if each not in grant.granted_scopes)
        if challenge.error != "insufficient_scope" or not missing:
            return refusal
        missing = merged_scopes(grant.missing_scopes, missing)
        await self._store.miss(grant, missing)
        lacking = replace(grant, missing_scopes=missing)
        text = status_text(lacking, server, self._clock.now())
        return UpstreamFailed(Reason.INSUFFICIENT_SCOPE, text)
