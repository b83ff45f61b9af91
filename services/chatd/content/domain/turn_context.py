"""The context of a turn: everything that its tools may depend on."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from chatd.content.domain.agent_types import AgentType
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.content.domain.parts import CallProgress, Part, Skill, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.primitives.domain.ids import ChatId, Owner


@dataclass(frozen=True, slots=True)
class CallProcess:
    """The process of a running call."""

    process_id: str


class Progress(Protocol):
    """Receives the output of a call while it runs; neither blocks nor raises."""

    def report(self, tool_call_id: str, update: str | CallProcess | CallProgress) -> None:
        """Append text to the live result of a call, or name its process or its progress."""
        ...

    def reset(self, tool_call_id: str) -> None:
        """Discard the live text of a call: what follows replaces it."""
        ...


class NoProgress:
    """Discards the output of running calls."""

    def report(self, tool_call_id: str, update: str | CallProcess | CallProgress) -> None:
        """Discard it."""

    def reset(self, tool_call_id: str) -> None:
        """Do nothing."""


def _nothing() -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class TurnContext:
    """A turn as its tools see it.

    Attributes:
        owner: The user whose credentials it uses.
        mode: The mode in which the turn was prepared.
        ancestor_ids: The chats that started it, the nearest first; a root has none.
        model_id: The id of the model that answers.
        own_model_id: The id of the turn's own model, also while a fallback model continues it.
        fallback_model_id: The fallback model that was chosen for the chat; empty for the
            installation's.
        model_name: The model's name at its provider.
        mcp_server_ids: The MCP servers that were chosen for the chat; None for the default ones.
        workspace_id: The workspace that was chosen for it or its root; empty for none.
        turn_id: The message that started the turn; 0 outside of turns.
        is_attended: Whether somebody can answer questions; programs may say that nobody can.
        has_advisor: Whether it may ask the advisor.
        skills: The skills that it may read.
        agent_types: The types of agents that its workspace describes.
        orders: What it was started with, if it is an agent.
        has_agents: Whether it may have started agents, by its history.
        workspace_server_ids: The MCP servers of its workspace whose words are in its prompt.
        step: The number of the step within the turn; 0 while the turn is prepared.
        history_version: The version of the history that the calls of the step belong to.
        prompt: Returns the prompt that the model saw last.
        answer: Returns the answer that made the calls of the step.
        results: Returns the results of the turn's earlier calls.
        progress: Receives the output of running calls.
    """

    chat_id: ChatId
    owner: Owner
    _: KW_ONLY
    mode: ChatMode = ChatMode.ORDINARY
    ancestor_ids: tuple[ChatId, ...] = ()
    model_id: str = ""
    own_model_id: str = ""
    fallback_model_id: str = ""
    model_name: str = ""
    mcp_server_ids: tuple[str, ...] | None = ()
    workspace_id: str = ""
    turn_id: int = 0
    is_attended: bool = True
    has_advisor: bool = False
    skills: tuple[Skill, ...] = ()
    agent_types: tuple[AgentType, ...] = ()
    orders: AgentOrders = NO_ORDERS
    has_agents: bool = False
    workspace_server_ids: tuple[str, ...] = ()
    step: int = 0
    history_version: int = 0
    prompt: Callable[[], tuple[PromptMessage, ...]] = field(default=_nothing, compare=False)
    answer: Callable[[], tuple[Part, ...]] = field(default=_nothing, compare=False)
    results: Callable[[], tuple[ToolResult, ...]] = field(default=_nothing, compare=False)
    progress: Progress = field(default_factory=NoProgress, compare=False)

    @property
    def root_chat_id(self) -> ChatId:
        """The first chat of its tree."""
        return self.ancestor_ids[-1] if self.ancestor_ids else self.chat_id

    @property
    def is_child(self) -> bool:
        """Whether another chat started it."""
        return bool(self.ancestor_ids)
