"""Ports of turns that do nothing, for tests of other things."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from chatd.approvals.domain.judgement import Judgement
from chatd.chats.domain.chat import Message
from chatd.chats.domain.pieces import Piece
from chatd.content.domain.messages import TurnError
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tool_servers import NoToolServers, ToolServers
from chatd.content.domain.tools import Tools, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.files.domain.ports import Files
from chatd.models.domain.language_model import FileData, LanguageModel
from chatd.primitives.domain.ids import ChatId, Fence, Owner, OwnerId
from chatd.spend.domain.ledger import (
    InheritedCalls,
    LedgerEntry,
    OpenCall,
)
from chatd.spend.domain.limits import Spending
from chatd.streams.engine.live import LiveChats
from chatd.turns.domain.agent_reports import AgentReports, NoAgents
from chatd.turns.domain.ports import (
    Approvals,
    Chats,
    FileRestores,
    Hooks,
    NoHooks,
    Partials,
    Setups,
)
from chatd.turns.domain.ports import NoFiles as NoRestores
from chatd.turns.domain.turn import TurnEnded
from chatd.turns.engine.calls import IsRestricted, never_restricted
from chatd.turns.engine.dependencies import TurnLimits, TurnPorts
from chatd.turns.engine.metering import CallObserver, MeteredCall
from parley.clock import Clock


class NoFiles:
    """A file port without files."""

    async def load(self, file_ids: Collection[str], owner_id: OwnerId) -> Mapping[str, FileData]:
        """Return no files."""
        return {}


class NoRules:
    """Approvals without rules."""

    async def judge(
        self,
        context: TurnContext,
        history: Sequence[Message],
        calls: Iterable[ToolCall],
        specs: Mapping[str, ToolSpec],
    ) -> Mapping[str, Judgement]:
        """Return no judgement: every call runs."""
        return {}


class NoInheritedCalls:
    """Returns no calls."""

    async def find(self, chat_id: ChatId, fence: Fence) -> OpenCall | None:
        """Return None."""
        return None


class Unlimited:
    """Spending without limits."""

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        """Return None."""
        return None

    async def admit(self, owner_id: OwnerId, group_ids: tuple[str, ...]) -> None:
        """Admit every user."""

    async def remember_groups(self, chat_id: ChatId, group_ids: tuple[str, ...]) -> None:
        """Do nothing: no limit depends on groups."""

    async def depend_on_groups(self) -> bool:
        """Return False."""
        return False


class NoCallObserver:
    """Observes nothing."""

    def opened(self, call: MeteredCall, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Do nothing."""

    def closed(self, call: MeteredCall) -> None:
        """Do nothing."""


class NoPartials:
    """A store without partial answers."""

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return no pieces."""
        return ()


def turn_ports(
    chats: Chats,
    model: LanguageModel,
    tools: Tools,
    setups: Setups,
    live: LiveChats,
    *,
    approvals: Approvals | None = None,
    partials: Partials | None = None,
    spending: Spending | None = None,
    files: Files | None = None,
    calls: CallObserver | None = None,
    inherited: InheritedCalls | None = None,
    clock: Clock,
    jitter: Callable[[], float] = lambda: 0.0,
    may_act: Callable[[], bool] = lambda: True,
    ended: Callable[[TurnEnded], None] = lambda ended: None,
    unbilled: Callable[[LedgerEntry, OwnerId], None] = lambda entry, owner_id: None,
    limits: TurnLimits | None = None,
    restores: FileRestores | None = None,
    tool_servers: ToolServers | None = None,
    agents: AgentReports | None = None,
    hooks: Hooks | None = None,
    is_restricted: IsRestricted = never_restricted,
) -> TurnPorts:
    """Return the ports of a turn; those that are not given do nothing."""
    return TurnPorts(
        chats,
        model,
        tools,
        setups,
        approvals or NoRules(),
        live,
        partials or NoPartials(),
        spending or Unlimited(),
        files or NoFiles(),
        calls or NoCallObserver(),
        inherited or NoInheritedCalls(),
        clock,
        jitter,
        may_act,
        ended,
        unbilled,
        limits or TurnLimits(),
        restores or NoRestores(),
        tool_servers or NoToolServers(),
        agents=agents or NoAgents(),
        hooks=hooks or NoHooks(),
        is_restricted=is_restricted,
    )
