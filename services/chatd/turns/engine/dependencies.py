"""Dependencies of turns, and their limits."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chatd.content.domain.tool_servers import NoToolServers, ToolServers
from chatd.content.domain.tools import Tools
from chatd.files.domain.ports import Files
from chatd.models.domain.language_model import LanguageModel
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import InheritedCalls, LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.streams.engine.live import LiveChats
from chatd.turns.domain.agent_reports import AgentReports, NoAgents
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.ports import (
    Approvals,
    Chats,
    FileRestores,
    Hooks,
    NoFiles,
    NoHooks,
    Partials,
    Setups,
)
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.domain.steps import STEPS_MAX
from chatd.turns.domain.turn import TurnEnded
from chatd.turns.engine.calls import CallLimits, IsRestricted, never_restricted
from chatd.turns.engine.metering import CallObserver
from chatd.turns.engine.stream import StreamLimits
from parley.clock import Clock


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long and how often a turn may try."""

    stream: StreamLimits = field(default_factory=StreamLimits)
    calls: CallLimits = field(default_factory=CallLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    deadlines: ActionDeadlines = field(default_factory=ActionDeadlines)
    steps_max: int = STEPS_MAX


@dataclass(frozen=True, slots=True)
class TurnPorts:
    """The dependencies of a turn.

    Attributes:
        jitter: Returns numbers between 0 and 1.
        may_act: Returns whether the lease of this process still allows new effects.
        ended: Is called with every turn that ended.
        unbilled: Is called with calls that no commit entered into the ledger, and their owner.
        restores: Restores the files of reverts.
        tool_servers: Tells about the MCP servers of turns.
        reverted: Is called with every chat that a turn has reverted, whose mode may be another.
        agents: The agents that chats have started.
        hooks: The hooks of chats.
        is_restricted: Returns whether a chat above a chat is in a mode that changes nothing.
    """

    chats: Chats
    model: LanguageModel
    tools: Tools
    setups: Setups
    approvals: Approvals
    live: LiveChats
    partials: Partials
    spending: Spending
    files: Files
    calls: CallObserver
    inherited: InheritedCalls
    clock: Clock
    jitter: Callable[[], float]
    may_act: Callable[[], bool]
    ended: Callable[[TurnEnded], None]
    unbilled: Callable[[LedgerEntry, OwnerId], None]
    limits: TurnLimits
    restores: FileRestores = field(default_factory=NoFiles)
    tool_servers: ToolServers = field(default_factory=NoToolServers)
    reverted: Callable[[ChatId], None] = lambda _: None
    agents: AgentReports = field(default_factory=NoAgents)
    hooks: Hooks = field(default_factory=NoHooks)
    is_restricted: IsRestricted = never_restricted
