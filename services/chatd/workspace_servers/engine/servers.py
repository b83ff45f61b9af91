"""The servers of workspaces: what is defined, trusted and offered.

Definitions and trust are cached for a short time, so that a warm turn needs neither a statement nor
a request for them. A call reads both again: a definition that changed, or a trust that was
withdrawn, ends it before anything is sent to the server.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from chatd.content.domain.tool_servers import ServerReport
from chatd.content.domain.tools import ToolSpec
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.workspace_servers.domain.definition import Definitions, ServerDefinition
from chatd.workspace_servers.domain.ports import DefinitionFiles, ServerPlace, TrustedServers
from chatd.workspace_servers.domain.state import (
    DefinitionChanged,
    ServerFailed,
    ServerState,
    ServerStatus,
    WorkspaceServerNotFound,
)
from chatd.workspace_servers.domain.tools import PREFIX, ServerTool, specs_of
from chatd.workspace_servers.engine.session import ServerSession
from chatd.workspace_servers.engine.sessions import ServerSessions
from parley.cache import BoundedCache
from parley.clock import Clock

logger = logging.getLogger(__name__)

WORKSPACES_MAX: Final = 4096
#: Listings that are kept after their servers stopped; one that is not kept starts its server.
LISTED_BYTES_MAX: Final = 64 * 1024 * 1024
TTL_S: Final = 30.0
UNTRUSTED: Final = "its definition is not trusted; the owner of the chat can trust it"


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a workspace defines, and what of that is trusted."""

    definitions: Definitions
    trusted: Mapping[str, str]

    def is_trusted(self, definition: ServerDefinition) -> bool:
        return bool(definition.digest) and self.trusted.get(definition.name) == definition.digest


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a server said when it was last started."""

    tools: tuple[ServerTool, ...]
    instructions: str
    dropped_count: int = 0

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory; a character may take four bytes there."""
        texts = (
            len(tool.name) + len(tool.description) + len(tool.input_schema_json)
            for tool in self.tools
        )
        return 4 * (len(self.instructions) + sum(texts))


class WorkspaceServers:
    """Lists, trusts and calls the servers of workspaces.

    Args:
        files: Reads definitions.
        store: Stores what is trusted.
        sessions: Runs servers.
        clock: The clock.
        publish: Announces to other processes that the trust of a workspace changed.
    """

    def __init__(
        self,
        files: DefinitionFiles,
        store: TrustedServers,
        sessions: ServerSessions,
        clock: Clock,
        publish: Callable[[str], None],
    ) -> None:
        self._publish = publish
        self._files = files
        self._store = store
        self._sessions = sessions
        self._offers: BoundedCache[tuple[str, int], _Offer] = BoundedCache(
            WORKSPACES_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )
        self._listed: BoundedCache[tuple[str, str], _Listed] = BoundedCache(
            WORKSPACES_MAX, size_max=LISTED_BYTES_MAX, size_of=lambda listed: listed.size_bytes
        )
        self._reports: BoundedCache[ChatId, tuple[ServerReport, ...]] = BoundedCache(WORKSPACES_MAX)

    async def offered(self, place: ServerPlace, journal_generation: str) -> tuple[ToolSpec, ...]:
        """Return the tools of the trusted servers of a workspace, for a turn."""
        try:
            offer = await self._offer(place)
        except ChatError as unknown:
            logger.warning("the MCP servers of a workspace cannot be read: %s", unknown)
            return ()
        usable = [each for each in offer.definitions.servers if offer.is_trusted(each)]
        if not usable:
            self._reports.pop(place.chat_id)
            return ()
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._listing(place, each)) for each in usable]
        specs: list[ToolSpec] = []
        reports: list[ServerReport] = []
        for definition, task in zip(usable, asked, strict=True):
            listed, problem = task.result()
            server_id, slug = _server_id(place, definition.name), PREFIX + definition.name
            specs += specs_of(slug, server_id, listed.tools, definition.digest, journal_generation)
            reports.append(
                ServerReport(
                    server_id,
                    slug,
                    definition.name,
                    listed.instructions,
                    problem,
                    dropped_count=listed.dropped_count,
                    is_of_workspace=True,
                )
            )
        self._reports.put(place.chat_id, tuple(reports))
        return tuple(specs)

    def reports(self, chat_id: ChatId) -> tuple[ServerReport, ...]:
        """Return what is known of the servers whose tools a chat was offered last."""
        return self._reports.get(chat_id) or ()

    async def session(self, place: ServerPlace, name: str, digest: str) -> ServerSession:
        """Return a session for a call; definition and trust are read again.

        Raises:
            ServerFailed: The server may not be called, or cannot be started now.
            ChatError: The definitions cannot be read.
        """
        self.forget(place)
        offer = await self._offer(place)
        definition = offer.definitions.named(name)
        if definition is None:
            raise ServerFailed(f"the workspace no longer defines {name}")
        if not offer.is_trusted(definition) or definition.digest != digest:
            self._sessions.stop(place.location.workspace_id, name)
            raise ServerFailed(UNTRUSTED)
        return await self._sessions.session(place, definition)

    async def trusted_session(self, place: ServerPlace, name: str) -> ServerSession:
        """Return a session with a server as it is defined and trusted now.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, or cannot be started now.
            ChatError: The definitions cannot be read.
        """
        definition = (await self._offer(place)).definitions.named(name)
        if definition is None or not definition.digest:
            raise WorkspaceServerNotFound(name)
        return await self.session(place, name, definition.digest)

    async def statuses(self, place: ServerPlace) -> tuple[tuple[ServerStatus, ...], str]:
        """Return all servers of a workspace with their states, and the problem of their file.

        Raises:
            ChatError: The definitions cannot be read.
        """
        self.forget(place)
        offer = await self._offer(place)
        statuses = tuple(self._status(place, offer, each) for each in offer.definitions.servers)
        return statuses, offer.definitions.problem

    async def trust(
        self, place: ServerPlace, name: str, digest: str, owner_id: OwnerId
    ) -> ServerStatus:
        """Trust the definition of a server that a person has seen.

        Raises:
            WorkspaceServerNotFound: There is no such server that can be started.
            DefinitionChanged: The definition is another one.
            ChatError: The definitions cannot be read.
        """
        definition = (await self._files.read(place)).named(name)
        if definition is None or not definition.digest:
            raise WorkspaceServerNotFound(name)
        if definition.digest != digest:
            raise DefinitionChanged(name)
        await self._store.trust(place.location.workspace_id, name, digest, owner_id)
        self._publish(place.location.workspace_id)
        return await self._current(place, name)

    async def untrust(self, place: ServerPlace, name: str, owner_id: OwnerId) -> None:
        """Trust a server no longer, and stop it."""
        await self._store.untrust(place.location.workspace_id, name, owner_id)
        self._publish(place.location.workspace_id)
        self.forget(place)
        self._sessions.stop(place.location.workspace_id, name)

    async def on_notice(self, workspace_id: str) -> None:
        """Stop what is trusted no longer, after another process changed what is."""
        for key in [key for key, _ in self._offers.items() if key[0] == workspace_id]:
            self._offers.forget(key)
        if workspace_id in self._sessions.workspaces():
            self._sessions.keep_only(workspace_id, await self._store.trusted(workspace_id))

    async def on_resync(self) -> None:
        """Do the same for all workspaces, after notices may have been lost."""
        self._offers.clear()
        for workspace_id in self._sessions.workspaces():
            await self.on_notice(workspace_id)

    def forget(self, place: ServerPlace) -> None:
        """Read definitions and trust again at the next use."""
        self._offers.forget((place.location.workspace_id, place.location.epoch))

    async def _current(self, place: ServerPlace, name: str) -> ServerStatus:
        statuses, _ = await self.statuses(place)
        return next(each for each in statuses if each.definition.name == name)

    async def _offer(self, place: ServerPlace) -> _Offer:
        async def read() -> _Offer:
            definitions = await self._files.read(place)
            workspace_id = place.location.workspace_id
            trusted = await self._store.trusted(workspace_id) if definitions.servers else {}
            offer = _Offer(definitions, trusted)
            offered = {
                each.name: each.digest for each in definitions.servers if offer.is_trusted(each)
            }
            # Servers of an earlier definition run no longer than until this one is read.
            self._sessions.keep_only(workspace_id, offered)
            return offer

        key = place.location.workspace_id, place.location.epoch
        return await self._offers.get_or_read(key, read)

    async def _listing(
        self, place: ServerPlace, definition: ServerDefinition
    ) -> tuple[_Listed, str]:
        """Return the tools of a server; it is started only if they were never listed."""
        key = place.location.workspace_id, definition.digest
        running = self._sessions.running(place, definition)
        known = self._listed.get(key)
        if running is None and known is not None:
            return known, ""
        try:
            session = running or await self._sessions.session(place, definition)
        except ServerFailed as failed:
            return _Listed((), ""), f"{failed}."
        listed = _Listed(session.tools, session.instructions, session.dropped_count)
        self._listed.put(key, listed)
        return listed, ""

    def _status(
        self, place: ServerPlace, offer: _Offer, definition: ServerDefinition
    ) -> ServerStatus:
        if definition.problem:
            return ServerStatus(definition, ServerState.INVALID, definition.problem)
        if not offer.is_trusted(definition):
            is_changed = definition.name in offer.trusted
            return ServerStatus(definition, ServerState.UNTRUSTED, is_changed=is_changed)
        listed = self._listed.get((place.location.workspace_id, definition.digest))
        tools = () if listed is None else tuple(tool.name for tool in listed.tools)
        places = (replace(place, is_read_only=each) for each in (False, True))
        ways = [
            (self._sessions.running(each, definition), self._sessions.failure(each, definition))
            for each in places
        ]
        session = next((running for running, _ in ways if running is not None), None)
        if session is not None:
            # It may run for a person, and no turn has listed its tools yet.
            names = tuple(tool.name for tool in session.tools)
            return ServerStatus(definition, ServerState.RUNNING, tool_names=names)
        reason = next((failure for _, failure in ways if failure), "")
        state = ServerState.FAILED if reason else ServerState.TRUSTED
        return ServerStatus(definition, state, reason, tools)


def _server_id(place: ServerPlace, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{place.location.workspace_id} {name}"))
