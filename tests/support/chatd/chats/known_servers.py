"""A fixed set of MCP servers."""

from collections.abc import Iterable, Mapping, Sequence

from chatd.chats.domain.references import NO_SUCH_SERVER, SERVER_DISABLED
from chatd.primitives.domain.errors import CheckUnavailable
from chatd.primitives.domain.ids import ChatId, Owner


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
