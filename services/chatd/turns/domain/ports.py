"""The ports of the turn engine."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from chatd.approvals.domain.judgement import Judgement
from chatd.chats.domain.chat import ChatState, Message, Revert
from chatd.chats.domain.commands import Command
from chatd.chats.domain.pieces import Piece
from chatd.content.domain.parts import HookAddition, ToolCall
from chatd.content.domain.tools import StoredExecution, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.hooks.domain.answers import Allowed, Verdict
from chatd.hooks.domain.hooks import HookEvent, HookNotice
from chatd.models.domain.profile import ModelChoice, ModelProfile
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    MessageId,
    Owner,
    OwnerClaim,
)
from chatd.spend.domain.ledger import CallPurpose
from chatd.turns.domain.turn import TurnSetup


class Chats(Protocol):
    """Stored chats."""

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide and write a command; return the state that was written."""
        ...

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the current state of a chat's execution."""
        ...

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the live messages in order, or all that changed after a revision.

        Changed messages include deleted ones, marked as such, so that a caller can drop its copies.
        """
        ...

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        """Return the dispatched calls of an assistant message."""
        ...


class Approvals(Protocol):
    """The approval rules."""

    async def judge(
        self,
        context: TurnContext,
        history: Sequence[Message],
        calls: Iterable[ToolCall],
        specs: Mapping[str, ToolSpec],
    ) -> Mapping[str, Judgement]:
        """Return the judgement of every call of an offered tool, by its id."""
        ...


class Hooks(Protocol):
    """The hooks of chats."""

    def are_absent(self, event: HookEvent) -> bool:
        """Return whether an event is known to have no hooks; False if they have to be read."""
        ...

    async def judge(
        self, context: TurnContext, history_version: int, calls: Sequence[ToolCall]
    ) -> Mapping[str, Verdict]:
        """Return what hooks decide on calls, by their ids; calls without hooks are left out.

        Raises:
            HookFailed: One that fails closed failed, or two calls have the same id.
        """
        ...

    async def stop(self, context: TurnContext, notice: HookNotice) -> Verdict:
        """Send that a turn ends; return what hooks decide on that.

        Raises:
            HookFailed: One that fails closed failed.
        """
        ...

    async def notify(
        self, context: TurnContext, notices: Sequence[HookNotice]
    ) -> tuple[HookAddition, ...]:
        """Send events that hooks do not decide on, together within the time of one.

        What hooks add is returned.

        Raises:
            HookFailed: One that fails closed failed.
        """
        ...


class NoHooks:
    """No hooks."""

    def are_absent(self, event: HookEvent) -> bool:
        """Return that there are none."""
        return True

    async def judge(
        self, context: TurnContext, history_version: int, calls: Sequence[ToolCall]
    ) -> Mapping[str, Verdict]:
        """Return no verdicts."""
        return {}

    async def stop(self, context: TurnContext, notice: HookNotice) -> Verdict:
        """Let the turn end."""
        return Allowed()

    async def notify(
        self, context: TurnContext, notices: Sequence[HookNotice]
    ) -> tuple[HookAddition, ...]:
        """Do nothing."""
        return ()


class Setups(Protocol):
    """The setups of turns."""

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return the setup of the next turn of a chat.

        Args:
            chat_id: The chat.
            owner: The user whose credentials it uses.
            choice: The model choice of the message that starts it; None if it is not known.

        Raises:
            ModelError: No model can be used, for example because its key is missing.
        """
        ...


class Partials(Protocol):
    """Published parts of answers that were never finished."""

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of one episode in order."""
        ...


class RestoreFailed(ChatError):
    """Files could not be restored; the text is for the user."""


class FileRestores(Protocol):
    """Restores files of chats' workspaces."""

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        """Restore files by the id of a revert, or go on with it; return the encoded report.

        Raises:
            RestoreFailed: They cannot be restored now.
            FenceLost: The claim is over: another process owns the chat.
        """
        ...


class NoFiles:
    """The files of chats without workspaces: there is nothing to restore."""

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        """Return an empty report."""
        return b""


class UtilityModels(Protocol):
    """Models for small generations beside the chat's own model."""

    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        """Return the model configured for a purpose; None for the chat's own.

        Raises:
            ModelError: The configured one cannot be used; then nothing is generated.
        """
        ...
