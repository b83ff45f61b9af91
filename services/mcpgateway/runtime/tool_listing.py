"""Lists the tools of several servers, each of which may fail separately."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mcpgateway.client.call import Upstream
from mcpgateway.client.tool_names import combined_digest, model_names
from mcpgateway.servers.access import CallerContext, access_error, open_target
from mcpgateway.servers.domain import (
    ApprovalPolicy,
    Catalogue,
    Reason,
    Server,
    ServerState,
    Target,
    Tool,
)
from mcpgateway.servers.errors import (
    McpError,
    NeedsConnect,
    PlanModeDenied,
    ServerDisabled,
    UpstreamFailed,
)
from mcpgateway.servers.store import Servers
from parley.cache import BoundedCache
from parley.clock import Clock

TTL_S: Final = 300.0
# Servers with a TTL of 0 would be asked at every turn; a definition that changed meanwhile is
# detected by its digest when the tool is called.
TTL_MIN_S: Final = 5.0
CATALOGUES_MAX: Final = 2000
LISTED_AT_ONCE_MAX: Final = 32

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedCatalogue:
    """A catalogue and its age."""

    catalogue: Catalogue
    fetched_at: datetime
    fresh_until: float


class CatalogueCache:
    """Caches the catalogues of servers per user, in memory, newest last.

    Args:
        upstream: Requests the tools from servers.
        clock: The clock of the TTL.
        changed: Called when the tools of a server changed.
    """

    def __init__(self, upstream: Upstream, clock: Clock, changed: Callable[[], None]) -> None:
        self._upstream = upstream
        self._clock = clock
        self._changed = changed
        self._known: BoundedCache[tuple[str, int, str], CachedCatalogue] = BoundedCache(
            CATALOGUES_MAX
        )

    def known(self, target: Target) -> CachedCatalogue | None:
        """Return the last catalogue, of any age."""
        return self._known.get(target.catalogue_key)

    async def current(self, target: Target) -> CachedCatalogue:
        """Return a fresh catalogue from the cache, or request it from the server.

        Raises:
            UpstreamFailed: The server does not respond.
        """
        known = self.known(target)
        if known is not None and self._clock.monotonic() < known.fresh_until:
            return known
        return await self.fetch(target)

    async def fetch(self, target: Target) -> CachedCatalogue:
        """Request the catalogue from the server.

        Raises:
            UpstreamFailed: It does not respond.
        """
        catalogue = await self._upstream.list_tools(target)
        ttl_s = TTL_S if catalogue.ttl_s is None else min(max(catalogue.ttl_s, TTL_MIN_S), TTL_S)
        fetched = CachedCatalogue(catalogue, self._clock.now(), self._clock.monotonic() + ttl_s)
        before = self.known(target)
        if before is not None and before.catalogue.tools != catalogue.tools:
            self._changed()
        self._known.put(target.catalogue_key, fetched)
        return fetched


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

    def __init__(self, servers: Servers, catalogues: CatalogueCache) -> None:
        self._servers = servers
        self._catalogues = catalogues
        self._turns = asyncio.Semaphore(LISTED_AT_ONCE_MAX)

    async def list(
        self,
        caller_context: CallerContext,
        server_ids: Sequence[str],
        *,
        wait_s: float,
        allow_stale: bool,
    ) -> Listing:
        """List the tools of all servers concurrently, waiting at most `wait_s` for each."""
        found = await self._servers.find(server_ids)
        async with asyncio.TaskGroup() as tasks:
            listings = {
                server_id: tasks.create_task(
                    self._list_one(
                        caller_context, server_id, found.get(server_id), wait_s, allow_stale
                    )
                )
                for server_id in dict.fromkeys(server_ids)
            }
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
    ) -> tuple[tuple[OfferedTool, ...], ServerOutcome]:
        problem = access_error(server_id, server, caller_context.context)
        if problem is not None or server is None:
            return (), _excluded(server_id, problem)
        target = None
        try:
            async with asyncio.timeout(wait_s), self._turns:
                target = await open_target(self._servers, server, caller_context)
                known = await self._catalogues.current(target)
        except (UpstreamFailed, TimeoutError) as error:
            failure = _failure(error, wait_s)
            logger.warning("server %s was not listed: %s", server.settings.slug, failure)
            stale = self._catalogues.known(target) if target and allow_stale else None
            return _with_failure(server, failure, stale)
        return _ready(server, known)


def _ready(server: Server, known: CachedCatalogue) -> tuple[tuple[OfferedTool, ...], ServerOutcome]:
    # Names depend on the whole catalogue, so that a change of the lists renames no tool.
    names = model_names(server.settings.slug, server.id, known.catalogue.tools)
    offered = tuple(
        OfferedTool(names[name], server, tool)
        for name, tool in known.catalogue.tools.items()
        if name in names and server.settings.allows_tool(name)
    )
    outcome = ServerOutcome(
        server_id=server.id,
        slug=server.settings.slug,
        state=ServerState.READY,
        tool_count=len(offered),
        dropped_tool_count=known.catalogue.dropped + len(known.catalogue.tools) - len(names),
        fetched_at=known.fetched_at,
        instructions=known.catalogue.instructions,
    )
    return offered, outcome


def _with_failure(
    server: Server, failure: UpstreamFailed, stale: CachedCatalogue | None
) -> tuple[tuple[OfferedTool, ...], ServerOutcome]:
    is_ours = failure.reason in (Reason.MISCONFIGURED, Reason.ADDRESS_BLOCKED)
    outcome = ServerOutcome(
        server_id=server.id,
        slug=server.settings.slug,
        state=ServerState.MISCONFIGURED if is_ours else ServerState.UNAVAILABLE,
    )
    offered: tuple[OfferedTool, ...] = ()
    if stale is not None:
        offered, listed = _ready(server, stale)
        outcome = replace(listed, state=outcome.state, is_stale=True)
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


def _excluded(server_id: str, problem: McpError | None) -> ServerOutcome:
    match problem:
        case NeedsConnect():
            state, reason = ServerState.NEEDS_AUTHORIZATION, Reason.NEEDS_CONNECT
        case ServerDisabled():
            state, reason = ServerState.EXCLUDED, Reason.SERVER_DISABLED
        case PlanModeDenied():
            state, reason = ServerState.EXCLUDED, Reason.PLAN_MODE_DENIED
        case _:
            state, reason = ServerState.EXCLUDED, Reason.SERVER_NOT_FOUND
    return ServerOutcome(server_id, "", state, reason, str(problem))
