"""What turns need from the world, and how patient they are with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chatd.content.domain.tools import Tools
from chatd.files.domain.ports import Files, NoFiles
from chatd.models.domain.language_model import LanguageModel
from chatd.primitives.domain.ids import OwnerId
from chatd.spend.domain.ledger import LedgerEntry
from chatd.spend.domain.open_calls import InheritedCalls, NoInheritedCalls
from chatd.spend.domain.ports import Spending, Unlimited
from chatd.streams.engine.live import LiveChats
from chatd.turns.domain.ports import Chats, Partials, Setups
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.domain.steps import STEPS_MAX
from chatd.turns.domain.turn import TurnEnded
from chatd.turns.engine.calls import CallLimits
from chatd.turns.engine.metering import CallObserver, NoCallObserver
from chatd.turns.engine.stream import StreamLimits
from parley.clock import Clock


@dataclass(frozen=True, slots=True)
class TurnPorts:
    """What a turn needs from the world."""

    chats: Chats
    model: LanguageModel
    tools: Tools
    setups: Setups
    live: LiveChats
    partials: Partials | None = None
    spending: Spending = field(default_factory=Unlimited)
    files: Files = field(default_factory=NoFiles)
    calls: CallObserver = field(default_factory=NoCallObserver)
    inherited: InheritedCalls = field(default_factory=NoInheritedCalls)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long and how often a turn may try."""

    stream: StreamLimits = field(default_factory=StreamLimits)
    calls: CallLimits = field(default_factory=CallLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    steps_max: int = STEPS_MAX


@dataclass(frozen=True, slots=True)
class TurnDependencies:
    """Everything a turn is given.

    Attributes:
        ports: The services that it talks to.
        clock: Time.
        jitter: Gives numbers between 0 and 1.
        may_act: Says whether the lease of this process still allows to start anything.
        ended: Is told of every turn that ended.
        unbilled: Is told of calls that no commit could carry into the ledger, with their owner.
        limits: Its patience.
        chats_running: Says how many chats this process runs, which may all ask one provider.
    """

    ports: TurnPorts
    clock: Clock
    jitter: Callable[[], float]
    may_act: Callable[[], bool]
    ended: Callable[[TurnEnded], None]
    limits: TurnLimits
    unbilled: Callable[[LedgerEntry, OwnerId], None]
    chats_running: Callable[[], int]
