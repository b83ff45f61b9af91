"""Asks workspace servers for what people refer to in messages: resources and prompts."""

from collections.abc import Mapping
from typing import Any, Final

from chatd.workspace_servers.domain import messages
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.references import (
    ENTRIES_MAX,
    FilledPrompt,
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
        return listed_resources(await _pages(session, "resources", messages.LIST_RESOURCES))

    async def prompts(self, place: ServerPlace, name: str) -> tuple[PromptEntry, ...]:
        """Return the prompts of a server; none if it has no prompts.

        Raises:
            WorkspaceServerNotFound: The workspace defines no such server.
            ServerFailed: It is not trusted, or does not answer.
            ChatError: The definitions cannot be read.
        """
        session = await self._servers.trusted_session(place, name)
        return listed_prompts(await _pages(session, "prompts", messages.LIST_PROMPTS))

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


async def _pages(session: ServerSession, what: str, method: str) -> list[Any]:
    """Return the entries of all pages; none if the server does not say that it has such."""
    entries: list[Any] = []
    params: dict[str, Any] = {}
    if what not in session.capabilities:
        return entries
    for _ in range(PAGES_MAX):
        page = await _asked(session, method, params)
        listed, cursor = page.get(what), page.get("nextCursor")
        entries += listed if isinstance(listed, list) else []
        if len(entries) >= ENTRIES_MAX or not isinstance(cursor, str) or not cursor:
            break
        params = {"cursor": cursor}
    return entries


async def _asked(session: ServerSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
    try:
        return await session.ask(method, params)
    except CallTimedOut:
        raise ServerFailed("it did not answer in time") from None
    except CallLost:
        raise ServerFailed("it ended before it answered") from None
