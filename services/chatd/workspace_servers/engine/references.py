"""Asks workspace servers for what people refer to in messages: resources and prompts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from chatd.workspace_servers.domain import messages
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.references import (
    Entry,
    FilledPrompt,
    Listing,
    PromptEntry,
    ResourceEntry,
    filled_prompt,
    listed_prompts,
    listed_resources,
    resource_contents,
)
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspace_servers.engine.session import CallLost, CallTimedOut, ServerSession

PAGES_MAX: Final = 20


class ServerReferences:
    """The resources and prompts of the trusted servers of a workspace."""

    def __init__(self, servers: WorkspaceServers) -> None:
        self._servers = servers

    async def resources(self, place: ServerPlace, name: str) -> tuple[ResourceEntry, ...]:
        """Return the resources of a server; none if it has no resources.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, or does not answer.
            ChatError: The definitions cannot be read.
        """
        session = await self._servers.trusted_session(place, name)
        return await _listed(session, "resources", messages.LIST_RESOURCES, listed_resources)

    async def prompts(self, place: ServerPlace, name: str) -> tuple[PromptEntry, ...]:
        """Return the prompts of a server; none if it has no prompts.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, or does not answer.
            ChatError: The definitions cannot be read.
        """
        session = await self._servers.trusted_session(place, name)
        return await _listed(session, "prompts", messages.LIST_PROMPTS, listed_prompts)

    async def read(self, place: ServerPlace, name: str, uri: str) -> list[dict[str, str]]:
        """Return the contents of a resource.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, does not answer, or has no such resource.
            ChatError: The definitions cannot be read.
        """
        session = await self._servers.trusted_session(place, name)
        return resource_contents(await _asked(session, messages.READ_RESOURCE, {"uri": uri}))

    async def prompt(
        self, place: ServerPlace, name: str, prompt: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        """Return a prompt with its arguments filled in.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, does not answer, or has no such prompt.
            ChatError: The definitions cannot be read.
        """
        session = await self._servers.trusted_session(place, name)
        params = {"name": prompt, "arguments": dict(arguments)}
        return filled_prompt(await _asked(session, messages.GET_PROMPT, params))


async def _listed(
    session: ServerSession,
    what: str,
    method: str,
    listed: Callable[[Sequence[Any], Listing[Entry]], Listing[Entry]],
) -> tuple[Entry, ...]:
    """Return the entries of all pages; none if the server does not say that it has such."""
    listing: Listing[Entry] = Listing()
    params: dict[str, Any] = {}
    if what not in session.capabilities:
        return ()
    for _ in range(PAGES_MAX):
        page = await _asked(session, method, params)
        entries, cursor = page.get(what), page.get("nextCursor")
        # Page by page: what is not read is not kept.
        listing = listed(entries if isinstance(entries, list) else [], listing)
        if listing.is_full or not isinstance(cursor, str) or not cursor:
            break
        params = {"cursor": cursor}
    return listing.entries


async def _asked(session: ServerSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
    try:
        return await session.ask(method, params)
    except CallTimedOut:
        raise ServerFailed("it did not answer in time") from None
    except CallLost:
        raise ServerFailed("it ended before it answered") from None
