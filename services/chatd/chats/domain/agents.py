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
        cost_micros_max: What the whole tree may have cost; 0 for no limit.
        tokens_max: The tokens that the whole tree may have used; 0 for no limit.
        duration_s_max: Seconds since the message that began the turn of the root, or for an agent
            since a person wrote to it, if that was later; 0 for no limit.

    A tree that has reached one of the last three starts no agents, sends them no messages, and its
    agents call no model.
    """

    depth_max: int = 1
    children_max: int = 100
    cost_micros_max: int = 0
    tokens_max: int = 0
    duration_s_max: int = 0

    @property
    def has_budget(self) -> bool:
        """Whether the money, the tokens or the time of a tree are limited."""
        return bool(self.cost_micros_max or self.tokens_max or self.duration_s_max)


@dataclass(frozen=True, slots=True)
class TreeUse:
    """What a chat tree has used of its limits.

    Attributes:
        duration_s: Seconds since the message that began the present turn of the root, or since a
            person wrote to the agent in question.
    """

    children: int
    cost_micros: int
    tokens: int
    duration_s: float


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


def require_start(depth: int, limits: AgentLimits, use: TreeUse) -> None:
    """Require that a tree may start an agent at a depth.

    Raises:
        AgentsRefused: It has reached a limit.
    """
    if depth > limits.depth_max:
        raise AgentsRefused(
            f"agents may be started {limits.depth_max} levels below a chat", "AGENTS_TOO_DEEP"
        )
    if use.children >= limits.children_max:
        raise AgentsRefused(
            f"this chat has started {use.children} agents, and may start {limits.children_max}",
            "AGENTS_TOO_MANY",
        )
    require_budget(limits, use)


def require_budget(limits: AgentLimits, use: TreeUse) -> None:
    """Require that the agents of a tree may work on.

    Raises:
        AgentsRefused: The tree has used up its money, its tokens or its time.
    """
    if limits.cost_micros_max and use.cost_micros >= limits.cost_micros_max:
        raise AgentsRefused(
            f"this chat and its agents have cost {_dollars(use.cost_micros)}, and may cost "
            f"{_dollars(limits.cost_micros_max)}",
            "AGENTS_TOO_EXPENSIVE",
        )
    if limits.tokens_max and use.tokens >= limits.tokens_max:
        raise AgentsRefused(
            f"this chat and its agents have used {use.tokens} tokens, and may use "
            f"{limits.tokens_max}",
            "AGENTS_TOO_MANY_TOKENS",
        )
    if limits.duration_s_max and use.duration_s >= limits.duration_s_max:
        raise AgentsRefused(
            f"the agents of this chat may work for {limits.duration_s_max} seconds after a message "
            "to it or to them, and that time is over",
            "AGENTS_TOO_LATE",
        )


def _dollars(micros: int) -> str:
    return f"${micros / 1_000_000:.4f}"


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
