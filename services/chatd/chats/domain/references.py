"""Ports to the services that check whether an id in a request exists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import ChatId, Owner

NO_SUCH_SERVER = "names no MCP server that you may use"
SERVER_DISABLED = "names an MCP server that is switched off"


class McpServers(Protocol):
    """The MCP servers that chats can choose, checked by mcpgateway."""

    async def refused(
        self, chat_id: ChatId, owner: Owner, server_ids: Sequence[str], stored: Sequence[str]
    ) -> Mapping[str, str]:
        """Return which servers a chat may not choose, each with the reason.

        Args:
            chat_id: The chat.
            owner: Its owner.
            server_ids: The new choice.
            stored: The servers that the chat has already; these are never refused.

        Raises:
            CheckUnavailable: No mcpgateway answers.
        """
        ...


class KnownServers:
    """A fixed set of MCP servers."""

    def __init__(self, enabled: Iterable[str] = (), disabled: Iterable[str] = ()) -> None:
        self.enabled = set(enabled)
        self.disabled = set(disabled)
        self.is_available = True

    async def refused(
        self, chat_id: ChatId, owner: Owner, server_ids: Sequence[str], stored: Sequence[str]
    ) -> Mapping[str, str]:
        """Return those that are not in the set.

        Raises:
            CheckUnavailable: `is_available` is false.
        """
        if not self.is_available:
            raise CheckUnavailable("MCP server")
        return {
            each: SERVER_DISABLED if each in self.disabled else NO_SUCH_SERVER
            for each in server_ids
            if each not in stored and each not in self.enabled
        }
