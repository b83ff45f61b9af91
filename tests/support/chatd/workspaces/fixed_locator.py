"""A locator without stored workspaces."""

from collections.abc import Sequence

from chatd.primitives.domain.ids import ChatId, Owner
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.rpc import Channels


class FixedLocator:
    """Gives every chat a workspace under its own id, on the node that the id hashes to."""

    def __init__(self, channels: Channels, epoch: int = 0) -> None:
        self._channels = channels
        self._epoch = epoch

    async def locate_for_turn(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the location of the chat's tools."""
        address = str(self._channels.address_for(chat_id))
        return WorkspaceLocation(address, chat_id, self._epoch)

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return the same location: a node creates the directory at its first use."""
        return await self.locate_for_turn(chat_id)

    async def locate(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the same location."""
        return await self.locate_for_turn(chat_id)

    async def last_known(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the same location."""
        return await self.locate_for_turn(chat_id)

    async def node_addresses(self) -> Sequence[str]:
        """Return the addresses of all nodes."""
        return tuple(map(str, self._channels.addresses))

    def forget(self, chat_id: ChatId) -> None:
        """Do nothing: no location is cached."""
