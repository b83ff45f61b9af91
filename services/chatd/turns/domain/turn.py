"""Values of a turn: its setup, and how it ended."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from chatd.chats.domain.chat import ChatState
from chatd.content.domain.agent_types import AgentType
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.profile import THRESHOLD_PERCENT, ModelProfile
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.turns.domain.system_prompt import SystemPrompt


@dataclass(frozen=True, slots=True)
class TurnSetup:
    """The setup of a turn.

    Attributes:
        model: The model that answers.
        summariser: The model that summarises, if it is another one.
        fallback: The model that continues the turn when the provider of its own is down or over
            quota; None if there is none.
        fallback_model_id: The one that was chosen for the chat; empty for the installation's.
        own_model_id: The turn's own model, if a fallback model continues it; otherwise empty.
        threshold_percent: How full the context window may be before the history is summarised; 100
            never.
        is_final_step_compacted: Whether a turn whose last answer crossed the threshold is
            summarised and continues from there.
        system_prompt: The inputs of the system blocks before the history.
        client_tools: Tools that the client executes.
        mode: The mode of the chat.
        ancestor_ids: The chats that started it, the nearest first.
        mcp_server_ids: The MCP servers that were chosen for it; None for the default ones.
        workspace_id: The workspace that was chosen for it or its root; empty for none.
        is_attended: Whether somebody can answer questions.
        agent_types: The types of agents that its workspace describes.
    """

    model: ModelProfile
    summariser: ModelProfile | None = None
    threshold_percent: int = THRESHOLD_PERCENT
    is_final_step_compacted: bool = True
    system_prompt: SystemPrompt = field(default_factory=SystemPrompt)
    client_tools: tuple[ToolSpec, ...] = ()
    mode: ChatMode = ChatMode.ORDINARY
    ancestor_ids: tuple[ChatId, ...] = ()
    mcp_server_ids: tuple[str, ...] | None = ()
    workspace_id: str = ""
    is_attended: bool = True
    fallback: ModelProfile | None = None
    fallback_model_id: str = ""
    own_model_id: str = ""
    agent_types: tuple[AgentType, ...] = ()

    def taken_over(self) -> "TurnSetup":
        """Return the setup with which the fallback model continues, if there is one.

        It summarises as well: the model for summaries may have the provider that is down.
        """
        if self.fallback is None:
            return self
        return replace(
            self,
            model=self.fallback,
            summariser=None,
            fallback=None,
            own_model_id=self.model.id,
        )

    def context(
        self, chat_id: ChatId, owner: Owner, *, turn_id: int = 0, has_agents: bool = False
    ) -> TurnContext:
        """Return the context of a turn of a chat; without its id, outside of turns."""
        return TurnContext(
            chat_id,
            owner,
            mode=self.mode,
            ancestor_ids=self.ancestor_ids,
            model_id=self.model.id,
            own_model_id=self.own_model_id or self.model.id,
            fallback_model_id=self.fallback_model_id,
            model_name=self.model.name,
            mcp_server_ids=self.mcp_server_ids,
            workspace_id=self.workspace_id,
            turn_id=turn_id,
            is_attended=self.is_attended,
            has_advisor=self.system_prompt.has_advisor,
            skills=self.system_prompt.skills,
            agent_types=self.agent_types,
            orders=self.system_prompt.orders,
            has_agents=has_agents,
        )

    @property
    def context_limit_tokens(self) -> int:
        """Return the smallest context window of the models that read the history; 0 if unknown."""
        models = (self.model,) if self.summariser is None else (self.model, self.summariser)
        known = [model.context_limit_tokens for model in models if model.context_limit_tokens > 0]
        return min(known, default=0)


class Ending(StrEnum):
    """How a turn ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    ASKED_CLIENT = "asked_client"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that just ended, with the data that its runner has at hand."""

    ending: Ending
    owner: Owner
    state: ChatState
    text: str  # The last answer's text; empty when there is none.
    asked: str = ""  # The text of the message that started the turn.
    model: ModelProfile | None = None  # The model that it ran with, if it came that far.
