"""The budget of a chat tree stops its agents before their next step, and not its root."""

from chatd.chats.domain.agents import AgentLimits, AgentsRefused
from chatd.content.domain.messages import ChatMode, ErrorKind, TurnError
from chatd.models.domain.profile import NO_CHOICE
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.turns.engine.tree_budget import TreeSpending

ANN = Owner(OwnerId("ann"), "member")
ROOT, AGENT = ChatId("root"), ChatId("agent")
LIMITED = AgentLimits(tokens_max=10)
SPENT = TurnError("The spending limit is reached.", ErrorKind.USAGE_LIMIT)


class Tree:
    """A tree whose tokens are used up; what is read of it is counted."""

    def __init__(self, spent: TurnError | None = None) -> None:
        self.reads = 0
        self._spent = spent

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        return self._spent

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        ancestor_ids = (ChatId("parent"), ROOT) if chat_id == AGENT else ()
        return ChatFacts(NO_CHOICE, ChatMode.ORDINARY, ancestor_ids=ancestor_ids)

    async def require_budget(
        self, root_chat_id: ChatId, limits: AgentLimits, agent_id: ChatId
    ) -> None:
        assert (root_chat_id, agent_id) == (ROOT, AGENT)
        self.reads += 1
        raise AgentsRefused("the tokens are used up", "AGENTS_TOO_MANY_TOKENS")


async def test_an_agent_of_a_tree_without_budget_is_stopped_and_its_root_is_not() -> None:
    tree = Tree()
    spending = TreeSpending(tree, tree, tree, LIMITED)

    stopped = await spending.refusal(AGENT, ANN)

    assert stopped == TurnError(
        "This agent was stopped: the tokens are used up.",
        ErrorKind.USAGE_LIMIT,
        detail="AGENTS_TOO_MANY_TOKENS",
    )
    assert await spending.refusal(ROOT, ANN) is None
    assert tree.reads == 1


async def test_without_a_limit_nothing_is_read_and_spend_limits_come_first() -> None:
    tree, spent = Tree(), Tree(SPENT)

    assert await TreeSpending(tree, tree, tree, AgentLimits()).refusal(AGENT, ANN) is None
    assert await TreeSpending(spent, spent, spent, LIMITED).refusal(AGENT, ANN) is SPENT

    assert (tree.reads, spent.reads) == (0, 0)
