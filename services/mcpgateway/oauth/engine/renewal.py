"""Renews grants, each version once over all processes.

Authorization servers replace a refresh token at each use, and revoke the whole grant if an old one
comes again. So a version of a grant is renewed by the process that holds its lease in the database;
all others wait for the next version. No connection to the database is held meanwhile: a slow
authorization server delays only those who use its grants. New tokens are stored before they are
used, and a caller that is cancelled does not interrupt it.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from mcpgateway.oauth.domain.grants import ClientKind, Grant, GrantFailure, status_text
from mcpgateway.oauth.engine.registration import Registration
from mcpgateway.oauth.engine.tokens import ClientRefused, GrantRefused, TokenEndpoint
from mcpgateway.oauth.errors import IssuerFailed
from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.servers.domain import Reason, Server
from mcpgateway.servers.errors import McpError, NeedsConnect, NeedsReconnect, UpstreamFailed
from parley.clock import Clock
from parley.secrets import SecretsError
from parley.tasks import Shielding

#: Longer than a request to an authorization server may take.
LEASE: Final = timedelta(seconds=20)
WAIT_S_MAX: Final = 25.0
POLL_S: Final = 0.1

logger = logging.getLogger(__name__)


class Renewal:
    """Renews grants.

    Args:
        store: The stored grants.
        registration: The secrets of clients.
        tokens: Calls token endpoints.
        clock: The clock of expiries.
        tasks: Owns renewals whose callers were cancelled.
    """

    def __init__(
        self,
        store: GrantStore,
        registration: Registration,
        tokens: TokenEndpoint,
        clock: Clock,
        tasks: Shielding,
    ) -> None:
        self._store = store
        self._registration = registration
        self._tokens = tokens
        self._clock = clock
        self._shielding = tasks
        self._running: dict[tuple[str, int, bool], asyncio.Future[Grant | McpError]] = {}

    async def renewed(self, server: Server, grant: Grant, *, is_forced: bool = False) -> Grant:
        """Return a newer version of a grant; the same one if it still works and others renew it.

        Args:
            server: The server.
            grant: The version to renew.
            is_forced: Whether the version is known not to work any more.

        Raises:
            NeedsConnect: The user gave the grant up meanwhile.
            NeedsReconnect: The grant cannot be renewed any more.
            UpstreamFailed: It cannot be renewed now.
        """
        if not grant.tokens.refresh_token:
            if is_forced or grant.is_expired(self._clock.now()):
                raise NeedsReconnect(server.id, status_text(grant, server, self._clock.now()))
            return grant
        key = (grant.id, grant.version, is_forced)
        running = self._running.get(key)
        if running is None:
            running = asyncio.get_running_loop().create_future()
            self._running[key] = running
            await self._shielding.complete(self._run(server, grant, is_forced, running))
        result = await asyncio.shield(running)
        if isinstance(result, McpError):
            raise result
        return result

    async def _run(
        self,
        server: Server,
        grant: Grant,
        is_forced: bool,
        running: "asyncio.Future[Grant | McpError]",
    ) -> None:
        """Renew once for all callers of this process; errors are values."""
        try:
            running.set_result(await self._renew(server, grant, is_forced))
        except McpError as error:
            running.set_result(error)
        except BaseException as error:
            text = "the login could not be renewed"
            running.set_result(UpstreamFailed(Reason.CONNECT_FAILED, text))
            if not isinstance(error, Exception):
                raise
            logger.exception("renewing a login at %s failed", server.settings.slug)
        finally:
            del self._running[grant.id, grant.version, is_forced]

    async def _renew(self, server: Server, grant: Grant, is_forced: bool) -> Grant:
        is_usable = not is_forced and not grant.is_expired(self._clock.now())
        deadline = self._clock.monotonic() + WAIT_S_MAX
        while not await self._store.lease(grant, LEASE):
            newer = await self._newer(server, grant)
            if newer is not None:
                return newer
            if is_usable:
                return grant
            if self._clock.monotonic() > deadline:
                raise UpstreamFailed(Reason.CONNECT_TIMEOUT, "the login is still being renewed")
            await self._clock.sleep(POLL_S)
        try:
            return await self._with_lease(server, grant)
        except IssuerFailed as error:
            await self._store.release(grant)
            if is_usable:
                logger.warning("a login at %s was not renewed: %s", server.settings.slug, error)
                return grant
            text = f"the login cannot be renewed now: {error}"
            raise UpstreamFailed(Reason.CONNECT_FAILED, text) from error

    async def _newer(self, server: Server, grant: Grant) -> Grant | None:
        """Return the version that another process made; None as long as there is none.

        Raises:
            NeedsConnect: The user gave the grant up.
            NeedsReconnect: It cannot be renewed any more.
        """
        current = await self._store.find(server, grant.user_id)
        now = self._clock.now()
        if current is None:
            raise NeedsConnect(server.id, status_text(None, server, now))
        if current.failure:
            raise NeedsReconnect(server.id, status_text(current, server, now))
        return current if current.version != grant.version else None

    async def _with_lease(self, server: Server, grant: Grant) -> Grant:
        try:
            secret = await self._registration.secret_of(server, grant.terms)
        except SecretsError as error:
            await self._store.release(grant)
            raise UpstreamFailed(Reason.MISCONFIGURED, str(error)) from error
        if secret is None:
            return await self._failed(server, grant, GrantFailure.CLIENT_REFUSED)
        try:
            answer = await self._tokens.refresh(grant.terms, secret, grant.tokens.refresh_token)
        except GrantRefused:
            return await self._failed(server, grant, GrantFailure.REFRESH_REFUSED)
        except ClientRefused as error:
            if grant.terms.client_kind is ClientKind.REGISTERED:
                await self._registration.forget(server.id, grant.terms)
                return await self._failed(server, grant, GrantFailure.CLIENT_REFUSED)
            await self._store.release(grant)
            text = "the authorization server refuses the client; an admin has to check its secret"
            raise UpstreamFailed(Reason.MISCONFIGURED, text) from error
        stored = await self._store.renew(grant, answer, self._clock.now())
        if stored is not None:
            return stored
        newer = await self._newer(server, grant)
        if newer is None:
            raise NeedsConnect(server.id)
        return newer

    async def _failed(self, server: Server, grant: Grant, failure: GrantFailure) -> Grant:
        """Mark the version, unless there is a newer one meanwhile, which is returned."""
        await self._store.fail(grant, failure)
        newer = await self._newer(server, grant)
        if newer is None:
            raise NeedsReconnect(server.id)
        return newer
