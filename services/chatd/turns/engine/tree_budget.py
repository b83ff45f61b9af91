"""The budget of a chat tree, checked before each step of its agents beside the spend limits.

The root itself goes on: it reads what its agents did and answers. Without a budget, and for chats
that are no agents, nothing is read.
"""

from typing import Protocol

from chatd.chats.domain.agents import AgentLimits, AgentsRefused
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.spend.domain.limits import Spending


class TreeBudgets(Protocol):
    """The chat trees."""

    async def require_budget(
        self, root_chat_id: ChatId, limits: AgentLimits, agent_id: ChatId
    ) -> None:
        """Require that an agent of a tree may work on.

        Raises:
            AgentsRefused: The tree has used up its money, its tokens or its time.
        """
        ...


class CachedChats(Protocol):
    """The properties of chats; cached while nothing changed."""

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the properties of a chat."""
        ...


class TreeSpending:
    """Checks spend limits, and for agents the budget of their tree.

    Args:
        spending: The spend limits.
        trees: The chat trees.
        chats: The properties of chats.
        limits: The limits of a tree.
    """

    def __init__(
        self, spending: Spending, trees: TreeBudgets, chats: CachedChats, limits: AgentLimits
    ) -> None:
        self._spending = spending
        self._trees = trees
        self._chats = chats
        self._limits = limits

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return why no model may be called for a chat now, None if one may."""
        error = await self._spending.refusal(chat_id, owner)
        if error is not None or not self._limits.has_budget:
            return error
        ancestor_ids = (await self._chats.chat(chat_id)).ancestor_ids
        if not ancestor_ids:
            return None
        try:
            await self._trees.require_budget(ancestor_ids[-1], self._limits, chat_id)
        except AgentsRefused as refused:
            return TurnError(
                f"This agent was stopped: {refused}.", ErrorKind.USAGE_LIMIT, detail=refused.reason
            )
        return None
