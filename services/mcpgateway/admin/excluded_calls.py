"""Cancels the calls of users who may not use a server any more."""

import logging

from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.access import Access
from mcpgateway.servers.domain import Server
from mcpgateway.servers.errors import GroupsUnavailable

logger = logging.getLogger(__name__)


class ExcludedCalls:
    """Cancels running calls, in whichever process they are made.

    Args:
        journal: The journal of calls, where other processes read what is cancelled.
        executor: The calls of this process.
        access: Who may use a server.
    """

    def __init__(self, journal: Journal, executor: CallExecutor, access: Access) -> None:
        self._journal = journal
        self._executor = executor
        self._access = access

    async def cancel_all(self, server_id: str) -> None:
        """Cancel all calls of a server."""
        await self._journal.cancel_calls_of(server_id)
        self._executor.cancel_calls_of(server_id)

    async def cancel_of_user(self, server_id: str, user_id: str) -> None:
        """Cancel the calls that a user makes to a server."""
        await self._journal.cancel_calls_of_user(server_id, user_id)
        self._executor.cancel_calls_of_user(user_id, server_id)

    async def cancel_excluded(self, server: Server) -> None:
        """Cancel what a server as it is now does not allow: all calls, or those of some users."""
        if not server.settings.is_enabled:
            await self.cancel_all(server.id)
        elif server.settings.is_restricted:
            for user_id in await self._journal.users_calling(server.id):
                if not await self._is_allowed(server, user_id):
                    await self.cancel_of_user(server.id, user_id)

    async def _is_allowed(self, server: Server, user_id: str) -> bool:
        try:
            return await self._access.allows(server, user_id)
        except GroupsUnavailable:
            # A call of a user who may make it must not end because no gateway answers.
            logger.warning("running calls are not checked: groups cannot be read")
            return True
