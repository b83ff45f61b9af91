"""Waits for agents: read rarely while there are none, and soon after one begins."""

import asyncio

from chatd.chats.domain.agents import AgentWait
from chatd.chats.domain.chat import ChatState, Claimed, PendingCall, Slot, Status
from chatd.chats.domain.commands import Command
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerId, WorkerId
from chatd.tools.agents.waits import EVERY_S, RARELY_S, AgentWaits
from parley.clock import FakeClock

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
EXECUTION = ExecutionId("00000000-0000-0000-0000-0000000000e1")
OWNER = Owner(OwnerId("ann"), "member")
OPEN = AgentWait(CHAT, OWNER, EXECUTION, is_over=False)
OVER = AgentWait(CHAT, OWNER, EXECUTION, is_over=True)
CALL = PendingCall("c1", "wait_agents", EXECUTION, kind=PendingKind.AGENTS, question_id=EXECUTION)
WAITING = ChatState(CHAT, Status.REQUIRES_ACTION, 1, 1, 0, MessageId(1), pending=(CALL,))


class Waits:
    """Waits in a list; counts how often they are read."""

    def __init__(self) -> None:
        self.found: tuple[AgentWait, ...] = ()
        self.reads = 0
        self.read, self.is_answered = asyncio.Event(), asyncio.Event()
        self.answered: list[ChatId] = []

    async def waits(self, waits_max: int) -> tuple[AgentWait, ...]:
        self.reads += 1
        if self.found:
            self.read.set()
        return self.found

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        self.answered.append(chat_id)
        self.found = ()
        self.is_answered.set()
        return WAITING


class FullWorker:
    """A worker without a free slot."""

    worker_id = WorkerId("worker")

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        return None

    def start(self, claimed: Claimed, slot: Slot) -> None:
        raise AssertionError("there is no slot to start in")

    def release_slot(self, slot: Slot) -> None:
        raise AssertionError("there is no slot to release")


async def test_a_process_that_knows_of_no_wait_looks_rarely_until_it_hears_of_one() -> None:
    clock, store = FakeClock(), Waits()
    agent_waits = AgentWaits(store, store, FullWorker(), clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(agent_waits.run())
        # Once at its start; then it sleeps for a minute.
        assert (await clock.until_sleeping(), store.reads) == (RARELY_S, 1)
        clock.advance(RARELY_S)
        assert (await clock.until_sleeping(), store.reads) == (RARELY_S, 2)
        store.found = (OPEN,)
        agent_waits.on_state(WAITING)
        await store.read.wait()
        assert await clock.until_sleeping() == EVERY_S
        store.found = (OVER,)
        clock.advance(EVERY_S)
        await store.is_answered.wait()
        running.cancel()
    assert store.answered == [CHAT]
