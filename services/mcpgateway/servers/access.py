"""Access of one user to a server: why it is refused, or the server with decrypted secrets."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mcpgateway.servers.domain import AuthKind, ChatContext, Reason, Server, Target
from mcpgateway.servers.errors import (
    GroupsUnavailable,
    McpError,
    MissingUserValues,
    PlanModeDenied,
    ServerDisabled,
    ServerNotFound,
    UpstreamFailed,
)
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.user_values import UserValues
from parley.secrets import SecretsError


@dataclass(frozen=True, slots=True)
class CallerContext:
    """The user and the chat of a request."""

    user_id: str
    context: ChatContext


class Groups(Protocol):
    """The groups of users."""

    async def of(self, user_id: str) -> frozenset[str]:
        """Return the ids of a user's groups.

        Raises:
            GroupsUnavailable: They cannot be read now.
        """
        ...


class Grants(Protocol):
    """The grants that users have at authorization servers."""

    async def headers(self, server: Server, user_id: str) -> Mapping[str, str]:
        """Return the headers of requests on behalf of a user.

        Raises:
            McpError: The user has no grant, or has to connect again.
        """
        ...


class Access:
    """Decides which servers a user may use, and with which headers.

    Args:
        servers: The stored servers.
        values: The values that users gave.
        groups: The groups of users.
        grants: Their grants at authorization servers.
    """

    def __init__(
        self, servers: KnownServers, values: UserValues, groups: Groups, grants: Grants
    ) -> None:
        self._servers = servers
        self._values = values
        self._groups = groups
        self._grants = grants

    async def allows(self, server: Server, user_id: str) -> bool:
        """Return whether the lists of users and groups allow a user.

        Raises:
            GroupsUnavailable: It depends on groups, which cannot be read now.
        """
        settings = server.settings
        if not settings.is_restricted or (user_id and user_id in settings.user_ids):
            return True
        if not (user_id and settings.group_ids):
            return False
        return not (await self._groups.of(user_id)).isdisjoint(settings.group_ids)

    async def visible(
        self, found: Iterable[Server], user_id: str, *, keeps_undecided: bool = False
    ) -> Mapping[str, Server]:
        """Return the servers that a user may use, by id.

        Args:
            found: The servers.
            user_id: The user.
            keeps_undecided: Whether to return also those of which that cannot be decided now, so
                that their listing says why they have no tools; otherwise it fails.

        Raises:
            GroupsUnavailable: It depends on groups, which cannot be read now.
        """
        seen: dict[str, Server] = {}
        for server in found:
            try:
                if await self.allows(server, user_id):
                    seen[server.id] = server
            except GroupsUnavailable:
                if not keeps_undecided:
                    raise
                seen[server.id] = server
        return seen

    async def error(
        self, server_id: str, server: Server | None, caller: CallerContext
    ) -> McpError | None:
        """Return why a chat may not use a server, before its secrets are read."""
        try:
            if server is None or not await self.allows(server, caller.user_id):
                return ServerNotFound(server_id)
        except GroupsUnavailable as error:
            return error
        if not server.settings.is_enabled:
            return ServerDisabled(server_id)
        if not caller.context.allows(server.settings):
            return PlanModeDenied(server_id)
        return None

    async def open_target(self, server: Server, caller: CallerContext) -> Target:
        """Return the server with the headers of requests for a caller.

        Raises:
            MissingUserValues: The user has not given all values.
            NeedsConnect: The user has no grant.
            UpstreamFailed: Its secrets cannot be decrypted.
        """
        settings = server.settings
        try:
            headers = dict((await self._servers.credentials(server)).headers)
            if settings.user_values:
                headers |= await self._values.opened(server, caller.user_id)
        except SecretsError as error:
            raise UpstreamFailed(Reason.MISCONFIGURED, str(error)) from error
        missing = [slot.header for slot in settings.user_values if slot.header not in headers]
        if missing:
            raise MissingUserValues(server.id, missing)
        if settings.auth_kind is AuthKind.OAUTH2:
            headers |= await self._grants.headers(server, caller.user_id)
        return Target(server, headers, caller.user_id, caller.context.chat_id)

    async def target_for(self, server_id: str, caller: CallerContext) -> Target:
        """Return the server with the headers of requests for a caller, if they may use it.

        Raises:
            McpError: They may not, or its secrets cannot be decrypted.
        """
        return await self.open_target(await self.server_for(server_id, caller), caller)

    async def stored_target_for(self, server_id: str, caller: CallerContext) -> Target:
        """Return the same of the server as it is stored now, for requests without a journal.

        Raises:
            McpError: They may not, or its secrets cannot be decrypted.
        """
        server = await self._servers.stored(server_id)
        return await self.open_target(await self._permitted(server_id, server, caller), caller)

    async def server_for(self, server_id: str, caller: CallerContext) -> Server:
        """Return a server, if a caller may use it.

        Raises:
            McpError: They may not.
        """
        found = await self._servers.find([server_id])
        return await self._permitted(server_id, found.get(server_id), caller)

    async def _permitted(
        self, server_id: str, server: Server | None, caller: CallerContext
    ) -> Server:
        problem = await self.error(server_id, server, caller)
        if problem is not None or server is None:
            raise problem or AssertionError("a missing server is refused")
        return server


@dataclass(frozen=True, slots=True)
class Selection:
    """The servers of a chat.

    Attributes:
        stored: The servers to store with the chat; forced servers are not stored.
        effective: The servers that can be used now.
        forced: Those of the effective ones that are forced on.
        invalid: Requested servers that may not be chosen, and why.
    """

    stored: tuple[str, ...]
    effective: tuple[str, ...]
    forced: tuple[str, ...]
    invalid: tuple[tuple[str, Reason], ...]


def select(
    context: ChatContext,
    *,
    requested: Sequence[str] | None,
    stored: Sequence[str],
    known: Mapping[str, Server],
    forced: Sequence[str],
    defaults: Sequence[str] = (),
) -> Selection:
    """Return the servers that the chat stores and uses.

    A stored server is kept even if it cannot be used now, so that it is used again after it is
    enabled; only newly requested ones have to be usable.

    Args:
        context: The chat.
        requested: The servers of the request; None keeps the stored ones.
        stored: The stored servers of the chat.
        known: The servers that the user may use, by id, forced and default ones included.
        forced: Ids of the enabled servers that every chat uses.
        defaults: Ids of those that the chat uses because it has not chosen any.
    """
    wanted = tuple(dict.fromkeys(stored if requested is None else requested))
    reasons = {
        server_id: _reason(known.get(server_id)) for server_id in wanted if server_id not in stored
    }
    invalid = tuple((id_, reason) for id_, reason in reasons.items() if reason is not None)
    chosen = tuple(server_id for server_id in wanted if reasons.get(server_id) is None)
    candidates = dict.fromkeys((*chosen, *defaults, *forced))
    effective = tuple(id_ for id_ in candidates if _is_usable(known.get(id_), context))
    return Selection(
        stored=chosen,
        effective=effective,
        forced=tuple(id_ for id_ in effective if id_ in forced),
        invalid=invalid,
    )


def _reason(server: Server | None) -> Reason | None:
    if server is None:
        return Reason.SERVER_NOT_FOUND
    return None if server.settings.is_enabled else Reason.SERVER_DISABLED


def _is_usable(server: Server | None, context: ChatContext) -> bool:
    return server is not None and server.settings.is_enabled and context.allows(server.settings)
