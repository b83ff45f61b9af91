"""Agents: children that a chat starts to work for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import Interrupt
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode, FinishReason, TurnError
from chatd.content.domain.orders import NO_ORDERS, AgentOrders
from chatd.models.domain.profile import NO_CHOICE, ModelChoice
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner

#: Stops an agent for good: a message that its parent queued must not start it again.
STOP_AGENT: Final = Interrupt(MessageId(0), None, drops_queue=True)


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of one chat tree.

    Attributes:
        depth_max: How many levels of agents there may be below a root; 0 for no agents.
        children_max: How many agents a root and those below it may start together.
        cost_micros_max: What the whole tree may have cost before it starts no more; 0 for no limit.
    """

    depth_max: int = 1
    children_max: int = 100
    cost_micros_max: int = 0


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """A child to start.

    Attributes:
        chat_id: Its id, derived from the call that starts it.
        depth: Its level below the root, from 1.
        model: Its model and effort.
        is_forked: Whether it works in a fork of its parent's workspace, which has its id.
        mcp_server_ids: The MCP servers of its parent; None for the default ones.
        fallback_model_id: The fallback model of its parent; empty for the installation's.
    """

    chat_id: ChatId
    root_chat_id: ChatId
    depth: int
    owner: Owner
    title: str
    prompt: str
    mode: ChatMode
    model: ModelChoice
    mcp_server_ids: tuple[str, ...] | None
    is_forked: bool = False
    fallback_model_id: str = ""
    orders: AgentOrders = NO_ORDERS


@dataclass(frozen=True, slots=True)
class Agent:
    """A child of a chat as its parent sees it.

    Attributes:
        is_forked: Whether it works in a fork of its parent's workspace, which has its id.
        is_done: Whether it has ended its work, successfully or not.
        report: Its last answer.
        finish_reason: Why that ended; interrupted also if it stopped without a further answer.
        error: Why it failed; None if it did not.
        model: The model and effort that it was started with.
    """

    chat_id: ChatId
    name: str
    is_explorer: bool
    status: Status
    is_done: bool
    report: str
    error: TurnError | None
    cost_micros: int
    version: int  # The version of its history, which tells one end from the next.
    is_forked: bool = False
    orders: AgentOrders = NO_ORDERS
    finish_reason: FinishReason | None = None
    model: ModelChoice = NO_CHOICE


@dataclass(frozen=True, slots=True)
class AgentPage:
    """Some children of a chat, and how many it has; without children it is not counted."""

    agents: tuple[Agent, ...]
    total: int


@dataclass(frozen=True, slots=True)
class AgentWait:
    """A call that waits for agents; if that is over, its chat can go on."""

    chat_id: ChatId
    owner: Owner
    action_id: ExecutionId
    is_over: bool


class AgentsRefused(Exception):
    """No agent is started, because of a limit.

    Attributes:
        reason: The limit.
    """

    def __init__(self, problem: str, reason: str) -> None:
        super().__init__(problem)
        self.reason = reason


class ChatsBelow(Protocol):
    """The chats below a chat."""

    async def below(self, chat_id: ChatId) -> tuple[ChatId, ...]:
        """Return all chats below a chat, the nearest first."""
        ...


async def stop_below(
    agents: ChatsBelow, chat_id: ChatId, stop: Callable[[ChatId], Awaitable[object]]
) -> None:
    """Stop all agents below a chat that starts no more, each after its parent.

    They are listed until nothing is new: an agent that still ran can have started others after it
    was listed, and none after it was stopped. One that was deleted or archived has nothing to stop.

    Raises:
        AgentsRefused: The chat whose tool stops them was interrupted itself.
        FenceLost: Another process owns that chat.
    """
    stopped: set[ChatId] = set()
    while new := [each for each in await agents.below(chat_id) if each not in stopped]:
        for each in new:
            try:
                await stop(each)
            except FenceLost:
                raise
            except ChatError:
                continue
        stopped.update(new)
