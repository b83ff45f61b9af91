"""Chats without defaults from a configuration."""

from chatd.chats.store.creation import NewChat
from chatd.models.domain.profile import ModelChoice


class NoDefaults:
    """Returns every request unchanged."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return it unchanged."""
        return wanted

    async def complete(self, new: NewChat) -> NewChat:
        """Return it unchanged."""
        return new
