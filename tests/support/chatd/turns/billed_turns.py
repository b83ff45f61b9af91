"""Turns over real chats in PostgreSQL: a scripted model, real commits, a ledger to look at."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

import asyncpg

from chatd.chats.domain.chat import ChatState, Claimed, NewMessage
from chatd.chats.domain.commands import Command, SendMessage
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import ModelError, ModelEvent, ModelRequest, UsageReported
from chatd.models.domain.price import Price
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, QueuedMessageId, WorkerId
from chatd.providers.scripted import Play, ScriptedModel
from chatd.spend.domain.limits import Spending
from chatd.spend.engine.late_bills import DeferredBills
from chatd.spend.store.ledger import PostgresLedger
from chatd.spend.store.open_calls import PostgresOpenCalls
from chatd.streams.engine.live import LiveChats
from chatd.streams.store.partials import PostgresPartials
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.chat_run import TurnRunner
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.open_calls import OpenCallWriter
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable, Pool
from support.chatd.turns.absent_ports import turn_ports
from support.chatd.turns.fixed_setups import FixedSetups
from support.chatd.turns.journaling_tools import JournalingTools

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
PROFILE = ModelProfile("m", price=Price(Decimal("0.5"), Decimal(2)), provider="p", name="big")
USED = UsageReported(10, 3)
COST_MICROS = 11

INSERT_WORKER = """
    INSERT INTO chat.workers VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())
"""
SELECT_LEDGER = """
    SELECT purpose, outcome, cost_micros, message_id FROM chat.usage
    WHERE chat_id = $1 ORDER BY created_at, message_id
"""


class Plays:
    """Plays one script for each request; an error in it is raised."""

    def __init__(self, *plays: tuple[ModelEvent | ModelError, ...]) -> None:
        self._plays = list(plays)

    def __call__(self, _: ModelRequest) -> Iterable[ModelEvent]:
        for event in self._plays.pop(0):
            if isinstance(event, ModelError):
                raise event
            yield event


class Stuck:
    """Says some things and then nothing more."""

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events
        self.said_all = asyncio.Event()

    async def __call__(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            yield event
        self.said_all.set()
        await asyncio.Event().wait()


class CutPool:
    """A pool whose line is cut after the next statements of a kind, which are executed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.cuts: list[str] = []

    async def fetchrow(self, text: str, *arguments: object) -> asyncpg.Record | None:
        row = await self._pool.fetchrow(text, *arguments)
        if self.cuts and self.cuts[0] in text:
            self.cuts.pop(0)
            raise DatabaseUnavailable("the line was cut")
        return row

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


@dataclass(slots=True)
class BilledTurns:
    """One chat of Ann's and a runner for it."""

    pool: Pool
    cut: CutPool
    chats: PostgresChats
    bills: DeferredBills
    clock: FakeClock
    live: LiveChats
    stored_calls: PostgresOpenCalls
    open_calls: OpenCallWriter
    mailboxes: dict[ChatId, Mailbox] = field(default_factory=dict)

    def runner(self, play: Play, spending: Spending | None = None) -> TurnRunner:
        """Return a runner whose model plays a script."""
        return TurnRunner(
            turn_ports(
                self.chats,
                ScriptedModel(play),
                JournalingTools(),
                FixedSetups(TurnSetup(PROFILE)),
                self.live,
                partials=PostgresPartials(self.pool),
                spending=spending,
                calls=self.open_calls,
                inherited=self.stored_calls,
                clock=self.clock,
                unbilled=self.bills.add,
            )
        )

    async def create(self, text: str = "hello") -> ChatState:
        """Make the chat, claimed by the worker."""
        message = NewMessage(Role.USER, (Text(text),), ANN.id)
        new = NewChat(CHAT, ANN, text, has_own_title=False, messages=(message,))
        state = await self.chats.add(new, claimed_by=WORKER)
        assert state is not None
        return state

    async def send(self, text: str = "more") -> ChatState:
        """Send another message, which the worker claims."""
        message = NewMessage(Role.USER, (Text(text),), ANN.id)
        queued = QueuedMessageId("00000000-0000-0000-0000-0000000000bb")
        return await self.do(SendMessage(message, queued, WORKER))

    async def do(self, command: Command) -> ChatState:
        """Apply a command; a runner of the chat hears of it."""
        state = await self.chats.apply(CHAT, command)
        if CHAT in self.mailboxes:
            self.mailboxes[CHAT].put(state)
        return state

    async def run(self, state: ChatState, play: Play, spending: Spending | None = None) -> None:
        """Run the chat as its worker until it rests."""
        self.mailboxes[CHAT] = Mailbox(state)
        runner = self.runner(play, spending)
        async with asyncio.timeout(10):
            await runner.run(Claimed(state, ANN), self.mailboxes[CHAT])

    async def ledger(self) -> list[tuple[object, ...]]:
        """Return what the ledger knows of the chat, once all late bills are in it."""
        await self.bills.flushed_within(5)
        return [tuple(row) for row in await self.pool.fetch(SELECT_LEDGER, CHAT)]


@asynccontextmanager
async def billed_turns(
    pool: Pool,
    state_changed: Callable[[ChatState], None] = lambda state: None,
) -> AsyncIterator[BilledTurns]:
    """Give turns over a migrated database."""
    await pool.execute(INSERT_WORKER, WORKER)
    clock = FakeClock()
    cut = CutPool(pool)
    bills = DeferredBills(PostgresLedger(pool), clock)
    async with (
        asyncio.TaskGroup() as group,
        PostgresChats(cast(Pool, cut), state_changed, clock) as chats,
    ):
        entering = group.create_task(bills.run())
        stored = PostgresOpenCalls(pool, WORKER)
        writer = OpenCallWriter(stored, clock)
        yield BilledTurns(pool, cut, chats, bills, clock, LiveChats(), stored, writer)
        entering.cancel()
