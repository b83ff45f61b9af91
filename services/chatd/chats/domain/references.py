"""Ports to the services that check whether an id in a request exists."""

from collections.abc import Mapping, Sequence
from typing import Protocol

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
