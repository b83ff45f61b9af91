"""Lists the tools of several servers, each of which may fail separately."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mcpgateway.client.tool_names import combined_digest, model_names
from mcpgateway.runtime.catalogues import CachedCatalogue, CatalogueCache
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.domain import (
    ApprovalPolicy,
    Reason,
    Server,
    ServerState,
    Target,
    Tool,
    ToolSearch,
)
from mcpgateway.servers.errors import (
    GroupsUnavailable,
    McpError,
    MissingUserValues,
    NeedsConnect,
    PlanModeDenied,
    ServerDisabled,
    UpstreamFailed,
)
from mcpgateway.servers.health import OF_LOGIN, state_of
from mcpgateway.servers.known_servers import KnownServers
from parley.cache import BoundedCache

LISTED_AT_ONCE_MAX: Final = 32
#: Tools whose offers are kept in memory.
OFFERS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as offered to a model."""

    model_name: str
    server: Server
    tool: Tool

    @property
    def needs_approval(self) -> bool:
        """Whether a user has to approve each call."""
        settings, hints = self.server.settings, self.tool.hints
        match settings.approval_policy:
            case ApprovalPolicy.NEVER:
                return False
            case ApprovalPolicy.ALWAYS:
                return True
            case ApprovalPolicy.DESTRUCTIVE:
                is_mild = hints.read_only is True or hints.destructive is False
                return not (settings.is_trusted and is_mild)

    @property
    def is_repeatable(self) -> bool:
        """Whether the call may be repeated after an unknown outcome."""
        hints = self.tool.hints
        return self.server.settings.is_trusted and bool(hints.read_only or hints.idempotent)


@dataclass(frozen=True, slots=True)
class ServerOutcome:
    """The outcome of one server in a listing."""

    server_id: str
    slug: str
    state: ServerState
    reason: Reason | None = None
    message: str = ""
    tool_count: int = 0
    dropped_tool_count: int = 0
    is_stale: bool = False
    fetched_at: datetime | None = None
    instructions: str = ""
    retry_after_ms: int = 0
    is_required: bool = False
    display_name: str = ""
    quarantined_tool_count: int = 0
    tool_search: ToolSearch = ToolSearch.AUTOMATIC


#: The tools of a server that are offered, and its outcome.
ListedServer = tuple[tuple[OfferedTool, ...], ServerOutcome]


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of all requested servers, ordered by model name, and the outcome of each server."""

    tools: tuple[OfferedTool, ...]
    outcomes: tuple[ServerOutcome, ...]

    @property
    def digest(self) -> str:
        """Return a digest that changes when any tool does."""
        return combined_digest((each.model_name, each.tool.digest) for each in self.tools)


class ToolListing:
    """Lists tools for callers."""

    def __init__(self, servers: KnownServers, access: Access, catalogues: CatalogueCache) -> None:
        self._servers = servers
        self._access = access
        self._catalogues = catalogues
        self._turns = asyncio.Semaphore(LISTED_AT_ONCE_MAX)
        # Names and offers are made once for a catalogue, not for each turn and user.
        self._made: BoundedCache[tuple[str, int, int], tuple[CachedCatalogue, ListedServer]]
        self._made = BoundedCache(size_max=OFFERS_MAX, size_of=lambda made: 1 + len(made[1][0]))

    async def list(
        self,
        caller_context: CallerContext,
        server_ids: Sequence[str],
        *,
        wait_s: float,
        allow_stale: bool,
    ) -> Listing:
        """List the tools of all servers concurrently, waiting at most `wait_s` for each.

        Raises:
            DatabaseUnavailable: It is needed to know what may be listed.
        """
        found = await self._servers.find(server_ids)
        try:
            async with asyncio.TaskGroup() as tasks:
                listings = {
                    server_id: tasks.create_task(
                        self._list_one(
                            caller_context, server_id, found.get(server_id), wait_s, allow_stale
                        )
                    )
                    for server_id in dict.fromkeys(server_ids)
                }
        except ExceptionGroup as failures:
            # What failed for one server fails the listing, as the error that it is.
            raise failures.exceptions[0] from failures
        tools = [tool for listing in listings.values() for tool in listing.result()[0]]
        return Listing(
            tools=tuple(sorted(tools, key=lambda each: each.model_name)),
            outcomes=tuple(listings[server_id].result()[1] for server_id in server_ids),
        )

    async def _list_one(
        self,
        caller_context: CallerContext,
        server_id: str,
        server: Server | None,
        wait_s: float,
        allow_stale: bool,
    ) -> ListedServer:
        problem = await self._access.error(server_id, server, caller_context)
        if problem is not None or server is None:
            return (), _excluded(server_id, server, problem)
        target, is_asked = None, False
        try:
            async with asyncio.timeout(wait_s):
                target = await self._access.open_target(server, caller_context)
                known = self._catalogues.fresh(target)
                if known is None:
                    async with self._turns:
                        is_asked = True
                        known = await self._catalogues.current(target)
        except (NeedsConnect, MissingUserValues) as lacking:
            return (), _excluded(server_id, server, lacking)
        except (UpstreamFailed, TimeoutError) as error:
            failure = _failure(error, wait_s)
            # A listing that only waited for its turn says nothing about the server.
            if target is not None and is_asked and failure is not error:
                await self._catalogues.timed_out(target, failure)
            stale = None
            if target and allow_stale and failure.reason not in OF_LOGIN:
                stale = self._catalogues.known(target)
            listed = None if target is None or stale is None else self._ready(target, stale)
            return _with_failure(server, failure, listed)
        return self._ready(target, known)

    def _ready(self, target: Target, known: CachedCatalogue) -> ListedServer:
        """Return what a server offers, as long as its catalogue is the same."""
        server = target.server
        # What is cached holds the catalogue, so that no other one gets its identity.
        key = (server.id, server.version, id(known.catalogue))
        made = self._made.get(key)
        if made is None or made[0].quarantined != known.quarantined:
            made = (known, _ready(server, known))
            self._made.put(key, made)
        offered, outcome = made[1]
        return offered, replace(outcome, fetched_at=known.fetched_at)


def _ready(server: Server, known: CachedCatalogue) -> ListedServer:
    # Names depend on the whole catalogue, so that a change of the lists renames no tool.
    names = model_names(server.settings.slug, server.id, known.catalogue.tools)
    offered = tuple(
        OfferedTool(names[name], server, tool)
        for name, tool in known.catalogue.tools.items()
        if name in names and name not in known.quarantined and server.settings.allows_tool(name)
    )
    outcome = replace(
        _outcome(server, ServerState.READY),
        quarantined_tool_count=len(known.quarantined),
        tool_count=len(offered),
        dropped_tool_count=known.catalogue.dropped + len(known.catalogue.tools) - len(names),
        fetched_at=known.fetched_at,
        instructions=known.catalogue.instructions,
    )
    return offered, outcome


def _with_failure(
    server: Server, failure: UpstreamFailed, listed: ListedServer | None
) -> ListedServer:
    """Return the failure of a server, with what it listed before."""
    offered, outcome = listed or ((), _outcome(server, state_of(failure)))
    if listed is not None:
        outcome = replace(outcome, state=state_of(failure), is_stale=True)
    return offered, replace(
        outcome,
        reason=failure.reason,
        message=str(failure)[:1024],
        retry_after_ms=failure.retry_after_ms,
    )


def _failure(error: UpstreamFailed | TimeoutError, wait_s: float) -> UpstreamFailed:
    if isinstance(error, UpstreamFailed):
        return error
    return UpstreamFailed(
        Reason.CONNECT_TIMEOUT, f"the server did not list its tools within {wait_s:g} s"
    )


def _outcome(server: Server, state: ServerState) -> ServerOutcome:
    settings = server.settings
    return ServerOutcome(
        server.id,
        settings.slug,
        state,
        is_required=settings.is_required,
        display_name=settings.display_name,
        tool_search=settings.tool_search,
    )


def _excluded(server_id: str, server: Server | None, problem: McpError | None) -> ServerOutcome:
    match problem:
        case NeedsConnect() | MissingUserValues() if server is not None:
            return replace(
                _outcome(server, ServerState.NEEDS_AUTHORIZATION),
                reason=problem.reason,
                message=str(problem),
            )
        case GroupsUnavailable():
            state, reason = ServerState.UNAVAILABLE, Reason.CONNECT_FAILED
        case ServerDisabled():
            state, reason = ServerState.EXCLUDED, Reason.SERVER_DISABLED
        case PlanModeDenied():
            state, reason = ServerState.EXCLUDED, Reason.PLAN_MODE_DENIED
        case _:
            state, reason = ServerState.EXCLUDED, Reason.SERVER_NOT_FOUND
    return ServerOutcome(server_id, "", state, reason, str(problem))
