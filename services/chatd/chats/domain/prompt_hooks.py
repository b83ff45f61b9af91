"""The port to hooks that are asked before a message of a user is accepted."""

from typing import Protocol

from chatd.content.domain.parts import Part
from chatd.primitives.domain.ids import ChatId, Owner


class PromptHooks(Protocol):
    """Hooks that see messages before they are accepted."""

    async def submitted(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: str,
        content: tuple[Part, ...],
        system_prompt: str = "",
    ) -> tuple[Part, ...]:
        """Return the content with which a message is accepted.

        Args:
            chat_id: The chat.
            owner: Its owner.
            key: Distinguishes the message from others of the chat.
            content: The message.
            system_prompt: What its author has the model read before it, in a new chat.

        Raises:
            HookDenied: A hook refuses it.
            HookFailed: One that fails closed failed.
        """
        ...


class NoPromptHooks:
    """No hooks."""

    async def submitted(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: str,
        content: tuple[Part, ...],
        system_prompt: str = "",
    ) -> tuple[Part, ...]:
        """Return the content."""
        return content
