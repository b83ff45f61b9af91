"""What turns need from the world, and how patient they are with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chatd.domain.chat import OwnerId
from chatd.domain.ledger import LedgerEntry
from chatd.domain.open_calls import InheritedCalls, NoInheritedCalls
from chatd.domain.ports import (
    Chats,
    Files,
    LanguageModel,
    NoFiles,
    Partials,
    Setups,
    Spending,
    Tools,
    Unlimited,
)
from chatd.domain.retries import RetryPolicy
from chatd.domain.steps import STEPS_MAX
from chatd.domain.turn import TurnEnded
from chatd.engine.calls import CallLimits
from chatd.engine.live import LiveChats
from chatd.engine.metering import CallWatch, NoCallWatch
from chatd.engine.stream import StreamLimits
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
    calls: CallWatch = field(default_factory=NoCallWatch)
    inherited: InheritedCalls = field(default_factory=NoInheritedCalls)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long and how often a turn may try."""

    stream: StreamLimits = field(default_factory=StreamLimits)
    calls: CallLimits = field(default_factory=CallLimits)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    steps_max: int = STEPS_MAX


@dataclass(frozen=True, slots=True)
class TurnWorld:
    """Everything a turn is given.

    Attributes:
        ports: The services that it talks to.
        clock: Time.
        chance: Gives numbers between 0 and 1.
        may_act: Says whether the lease of this process still allows to start anything.
        ended: Is told of every turn that ended.
        unbilled: Is told of calls that no commit could carry into the ledger, with their owner.
        limits: Its patience.
        chats_running: Says how many chats this process runs, which may all ask one provider.
    """

    ports: TurnPorts
    clock: Clock
    chance: Callable[[], float]
    may_act: Callable[[], bool]
    ended: Callable[[TurnEnded], None]
    limits: TurnLimits
    unbilled: Callable[[LedgerEntry, OwnerId], None]
    chats_running: Callable[[], int]
