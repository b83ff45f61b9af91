"""Handlers of the bus topics that mcpgateway subscribes to."""

from typing import Final

from mcpgateway.admin.deleted_users import DeletedUsers
from mcpgateway.admin.servicer import Governance
from mcpgateway.client.sessions import Sessions
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.stored_catalogues import StoredCatalogues
from mcpgateway.servers.groups import GatewayGroups
from mcpgateway.servers.known_servers import KnownServers
from parley.bus import Bus, Notice, Resync

SERVERS_TOPIC: Final = "mcp.servers"
#: Its ids name the server and the user whose login there was given up.
LOGINS_TOPIC: Final = "mcp.logins"
USERS_TOPIC: Final = "identity.users"


def login_given_up(server_id: str, user_id: str) -> Notice:
    """Return the notice that a user gave up their login at a server."""
    return Notice(LOGINS_TOPIC, f"{server_id} {user_id}", 0)


class Notices:
    """Applies to this process what happened in others."""

    def __init__(
        self,
        known_servers: KnownServers,
        governance: Governance,
        groups: GatewayGroups,
        catalogues: CatalogueCache,
        stored_catalogues: StoredCatalogues,
        sessions: Sessions,
        executor: CallExecutor,
    ) -> None:
        self._known_servers = known_servers
        self._governance = governance
        self._groups = groups
        self._catalogues = catalogues
        self._stored_catalogues = stored_catalogues
        self._sessions = sessions
        self._executor = executor

    async def follow_servers(self, bus: Bus) -> None:
        """Close the sessions of changed servers, and read their definitions again."""
        async with bus.subscribe(SERVERS_TOPIC) as notices:
            async for notice in notices:
                match notice:
                    case Notice(_, server_id, version):
                        self._governance.definitions.forget(server_id)
                        if version:
                            self._known_servers.forget(server_id)
                            self._catalogues.expire(server_id)
                            await self._sessions.retire(server_id, version)
                    case Resync():
                        self._known_servers.forget()
                        self._governance.definitions.forget()
                        self._catalogues.expire()

    async def follow_logins(self, bus: Bus) -> None:
        """Close the sessions of logins that were given up.

        A lost notice leaves a session that no request can use, until it has been idle too long.
        """
        async with bus.subscribe(LOGINS_TOPIC) as notices:
            async for notice in notices:
                if isinstance(notice, Notice):
                    server_id, _, user_id = notice.id.partition(" ")
                    self._executor.cancel_calls_of_user(user_id, server_id)
                    self._catalogues.forget_user(user_id, server_id)
                    self._sessions.forget_user(user_id, server_id)

    async def follow_users(self, bus: Bus, deleted_users: DeletedUsers) -> None:
        """Read groups again; of deleted users nothing is kept and no call goes on."""
        async with bus.subscribe(USERS_TOPIC) as notices:
            async for notice in notices:
                self._groups.forget()
                match notice:
                    case Notice(_, user_id):
                        await deleted_users.check(user_id)
                    case Resync():
                        deleted_users.ask()

    async def forget_user(self, user_id: str) -> None:
        """Delete all that is kept of a user who is gone, and end their calls of this process."""
        await self._governance.values.delete_of_user(user_id)
        await self._governance.grants.delete_of_user(user_id)
        await self._stored_catalogues.delete_of_user(user_id)
        self._executor.cancel_calls_of_user(user_id)
        self._catalogues.forget_user(user_id)
        self._sessions.forget_user(user_id)
