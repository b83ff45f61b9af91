"""The ports of a worker, and its limits."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chatd.chats.domain.chat import ChatState, Claimed
from chatd.chats.domain.commands import Command
from chatd.primitives.domain.ids import ChatId
from chatd.turns.engine.mailbox import Mailbox
from chatd.workers.domain import Claims, Leases
from parley.clock import Clock
from parley.tasks import Supervision

Runner = Callable[[Claimed, Mailbox], Awaitable[None]]
Apply = Callable[[ChatId, Command], Awaitable[ChatState]]


@dataclass(frozen=True, slots=True)
class WorkerPorts:
    """The dependencies of a worker.

    Attributes:
        state_changed: Is called with every state that the worker wrote itself, after its commit.
        request_sweep: Notifies the other processes that chats may wait for an owner.
        request_quarantine: Starts a process for suspects, which other workers do not take.
        on_ended: Is called when this worker was declared dead, so that its process stops.
        supervision: Isolates the failure of one loop or one turn from the others.
    """

    leases: Leases
    claims: Claims
    apply: Apply
    run_chat: Runner
    state_changed: Callable[[ChatState], None]
    request_sweep: Callable[[], None]
    on_ended: Callable[[], None]
    request_quarantine: Callable[[], None]
    clock: Clock
    rng: random.Random
    supervision: Supervision


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """How many chats a worker runs, and its timeouts when it drains.

    Attributes:
        is_quarantine: Whether it runs suspects only, each until its next progress.
    """

    slots_max: int
    running_per_user_max: int
    is_quarantine: bool = False
    acquire_batch_max: int = 10
    sweep_every_s: float = 2.0
    claims_settle_max_s: float = 5.0
    runners_stop_max_s: float = 5.0
