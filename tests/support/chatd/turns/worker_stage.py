"""A stage for workers: chats, leases and time in memory, and runners that end when told to."""

import asyncio
import random  # noqa: TID251 (a test chooses its chance)
import types
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from datetime import timedelta

from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.chats.domain.commands import Command
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.worker import Worker
from parley.clock import FakeClock
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.host.supervised import supervision

ANN = Owner(OwnerId("ann"), "member")
BOB = Owner(OwnerId("bob"), "member")
ONE = WorkerId("worker-1")
TWO = WorkerId("worker-2")
DEAD = WorkerId("worker-dead")
A, B, C = ChatId("chat-a"), ChatId("chat-b"), ChatId("chat-c")
LIMITS = WorkerLimits(slots_max=3, running_per_user_max=10)
STEP_S = 0.25


@types.coroutine
def _one_turn_of_the_loop() -> Generator[None, None, None]:
    yield


async def settle() -> None:
    """Let everything happen that needs no time."""
    for _ in range(50):
        await _one_turn_of_the_loop()


class HeldRunners:
    """Runs chats until the test says how each run ends."""

    def __init__(self) -> None:
        self.started: list[Claimed] = []
        self.ended: list[ChatId] = []
        self.mailboxes: dict[ChatId, Mailbox] = {}
        self.cancellations_to_swallow = 0
        self._endings: dict[ChatId, asyncio.Future[None]] = {}

    async def run(self, claimed: Claimed, mailbox: Mailbox) -> None:
        """Run until `end` or `crash` is called for this chat."""
        chat_id = claimed.state.chat_id
        ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.started.append(claimed)
        self.mailboxes[chat_id] = mailbox
        self._endings[chat_id] = ending
        try:
            while not ending.done():
                try:
                    await asyncio.shield(ending)
                except asyncio.CancelledError:
                    if self.cancellations_to_swallow == 0:
                        raise
                    self.cancellations_to_swallow -= 1
            ending.result()
        finally:
            self.ended.append(chat_id)

    def end(self, chat_id: ChatId) -> None:
        """Let a run return."""
        self._endings[chat_id].set_result(None)

    def crash(self, chat_id: ChatId, error: Exception) -> None:
        """Let a run fail."""
        self._endings[chat_id].set_exception(error)


class Stage:
    """Everything around workers, shared by those that run on it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.chats = InMemoryChats()
        self.workers = InMemoryWorkers(self.chats, self.clock)
        self.runners = HeldRunners()
        self.state_changed: list[ChatState] = []
        self.offers = 0
        self.ended: list[WorkerId] = []  # Workers that were declared dead and know it.
        self.quarantined: list[WorkerId] = []  # Workers that asked for a quarantine.
        self.left: list[WorkerId] = []  # Workers whose run returned by itself.
        self._cast: list[Worker] = []

    @asynccontextmanager
    async def worker(
        self, worker_id: WorkerId = ONE, limits: WorkerLimits = LIMITS
    ) -> AsyncIterator[Worker]:
        """Run a worker; leaving kills it, unless it was drained."""
        worker = Worker(
            worker_id,
            address=f"unix:/{worker_id}",
            ports=WorkerPorts(
                leases=self.workers,
                claims=self.workers,
                apply=self.apply,
                run_chat=self.runners.run,
                state_changed=self.publish,
                request_sweep=self._offer,
                on_ended=lambda: self.ended.append(worker_id),
                request_quarantine=lambda: self.quarantined.append(worker_id),
                clock=self.clock,
                rng=random.Random(7),
                supervision=supervision(self.clock),
            ),
            limits=limits,
        )
        self._cast.append(worker)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            running = group.create_task(self._run(worker))
            await worker.until_registered()
            await settle()
            try:
                yield worker
            finally:
                running.cancel()
                self._cast.remove(worker)

    def add(
        self,
        chat_id: ChatId,
        *,
        status: Status = Status.RUNNING,
        worker_id: WorkerId | None = None,
        takeovers: int = 0,
        owner: Owner = ANN,
    ) -> ChatState:
        """Store a chat in the middle of a turn."""
        state = ChatState(
            chat_id,
            status,
            snapshot_version=5,
            history_version=4,
            generation_attempt=2,
            next_message_id=MessageId(1),
            owner_epoch=7,
            worker_id=worker_id,
            takeovers=takeovers,
        )
        self.workers.add(state, owner, self.clock.now() - timedelta(seconds=60))
        return state

    def run_here(self, worker: Worker, chat_id: ChatId, owner: Owner = ANN) -> ChatState:
        """Start a new chat as a claim on write does."""
        slot = worker.reserve(owner.id)
        assert slot is not None
        state = self.add(chat_id, worker_id=worker.worker_id, owner=owner)
        worker.start(Claimed(state, owner), slot)
        return state

    def state(self, chat_id: ChatId) -> ChatState:
        """Return what is stored."""
        return self.chats.chats[chat_id].state

    def store(self, state: ChatState) -> None:
        """Change what is stored behind everybody's back."""
        self.chats.chats[state.chat_id].state = state

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Apply a command and tell everybody."""
        if self.workers.is_down:
            await self.workers.states((chat_id,))  # Fails as everything does.
        state = await self.chats.apply(chat_id, command)
        self.publish(state)
        return state

    async def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, and everything happen that is due meanwhile."""
        await settle()
        for _ in range(round(seconds / STEP_S)):
            self.clock.advance(STEP_S)
            await settle()

    async def _run(self, worker: Worker) -> None:
        await worker.run()
        self.left.append(worker.worker_id)

    def publish(self, state: ChatState) -> None:
        """Tell everybody of a state."""
        self.state_changed.append(state)
        for worker in self._cast:
            worker.deliver(state)

    def _offer(self) -> None:
        self.offers += 1
        for worker in self._cast:
            worker.poke()
