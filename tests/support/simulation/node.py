"""One chatd of a simulation, put together as the real process is, that can be killed or stopped."""

import asyncio
import random  # noqa: TID251 (only the type; chance is an argument)
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar, cast

from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.bus_handlers import CHAT_TOPIC, SWEEP_TOPIC, follow_chats, follow_sweeps
from chatd.chats.domain.chat import ChatState, Claimed, NewMessage
from chatd.chats.domain.commands import Command
from chatd.chats.rpc.claims import reserved
from chatd.chats.store.chats import PostgresChats
from chatd.content.domain.messages import ChatMode
from chatd.models.domain.language_model import ModelEvent, ModelRequest
from chatd.models.domain.profile import ModelChoice, ModelProfile
from chatd.primitives.domain.ids import ChatId, Owner, WorkerId
from chatd.providers.scripted import ScriptedModel
from chatd.streams.engine.live import LiveChats
from chatd.streams.engine.partials import PartialWriter
from chatd.tools.agents.waits import AgentWaits
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.retries import RetryPolicy
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.calls import CallLimits
from chatd.turns.engine.chat_run import TurnRunner
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.stream import StreamLimits
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.worker import Worker
from chatd.workers.domain import is_ownerless
from chatd.workers.engine.endings import WorkerEndings
from parley.bus import Notice
from parley.tasks import ShieldedTasks
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.absent_ports import turn_ports
from support.host.supervised import no_supervision
from support.simulation.bus import ConnectedBus, SimulatedBus
from support.simulation.database import SimulatedDatabase
from support.simulation.executor import ConnectedTools, SimulatedExecutor
from support.simulation.files import ConnectedRestores
from support.simulation.loop import HOST, Host, VirtualClock, VirtualLoop
from support.simulation.mischief import Mischief
from support.simulation.model import CLIENT_TOOLS, GUARDED, Mood
from support.simulation.network import Network, fail_reply, settle_reply
from support.simulation.store import (
    ConnectedApplier,
    ConnectedChats,
    ConnectedPartials,
    ConnectedWaits,
    ConnectedWorkers,
    Line,
)

T = TypeVar("T")

SETUP = TurnSetup(ModelProfile("simulated"), client_tools=CLIENT_TOOLS)
LIMITS = TurnLimits(
    stream=StreamLimits(startup_s=8.0, silence_s=8.0),
    calls=CallLimits(unreachable_s=10.0),
    retries=RetryPolicy(attempts_max=6, backoff_max_s=4.0),
    steps_max=12,
)
RULES = (Rule("1", INSTALLATION, Effect.ASK, tool=GUARDED),)
SKEWS_S = (0.0, 0.0, -3600.0, 40.0, 3600.0)
ANSWER_MAX_S = 25.0
IMPATIENT_AFTER_MAX_S = 0.03
EFFECT_MARGIN = timedelta(seconds=2.999)  # What a worker leaves of its lease, but for rounding.


class UnluckySetups:
    """Prepares turns; now and then it crashes, as code with a bug does."""

    def __init__(
        self,
        mood: Mood,
        rng: random.Random,
        mode_of: Callable[[ChatId], ChatMode],
        crashing: Callable[[ChatId], None],
    ) -> None:
        self._mood = mood
        self._mode_of = mode_of
        self._rng = rng
        self._crashing = crashing

    async def prepare(
        self, chat_id: ChatId, owner: Owner, choice: ModelChoice | None = None
    ) -> TurnSetup:
        """Return the setup."""
        if self._mood.is_moody and self._rng.random() < self._mood.climate.crashes:
            self._crashing(chat_id)
            raise RuntimeError("a bug")
        return replace(SETUP, mode=self._mode_of(chat_id))


class Gone(Exception):
    """A process did not answer: what it was asked may have happened."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a simulation is made of; to plant a bug, one of them is replaced."""

    database: type[SimulatedDatabase] = SimulatedDatabase
    applier: type[ConnectedApplier] = ConnectedApplier
    turns: type[TurnRunner] = TurnRunner


@dataclass(frozen=True, slots=True)
class World:
    """What all processes share."""

    loop: VirtualLoop
    group: asyncio.TaskGroup
    rng: random.Random
    network: Network
    database: SimulatedDatabase
    executor: SimulatedExecutor
    bus: SimulatedBus
    mood: Mood
    mischief: Mischief
    limits: WorkerLimits
    has_partials: bool
    parts: Parts


class NobodyFollows:
    """No reader follows a chat here."""

    def on_notice(self, chat_id: ChatId, version: int) -> None:
        pass

    def on_resync(self) -> None:
        pass


class Node:
    """A process from its start to its death or the end of its drain."""

    def __init__(
        self,
        world: World,
        name: str,
        request_quarantine: Callable[[], None],
        *,
        is_quarantine: bool = False,
    ) -> None:
        self.host = Host()
        self._request_quarantine = request_quarantine
        self._limits = world.limits
        if is_quarantine:
            self._limits = replace(world.limits, slots_max=1, is_quarantine=True)
        self.name = name
        self.worker_id = WorkerId(name)
        self.is_serving = False
        self.is_over = False
        self._world = world
        self._clock = VirtualClock(world.loop, self.host, skew_s=world.rng.choice(SKEWS_S))
        self._context = Context()
        self._context.run(HOST.set, self.host)
        self._bus = ConnectedBus(world.bus, self.host)
        self._stopping = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[object]] = {}  # Ordered, unlike a set.
        self._tasks: asyncio.TaskGroup | None = None
        self._completions: ShieldedTasks | None = None
        self._running: Counter[ChatId] = Counter()
        self._told: dict[ChatId, int] = {}
        self.crashed_at_s: dict[ChatId, float] = {}
        self._task = world.group.create_task(self._lived(), context=self._context.copy())

    @property
    def is_able(self) -> bool:
        """Whether it serves and nothing keeps it from doing what it should."""
        host = self.host
        is_up = self.is_serving and not host.is_dead and not host.is_stopped
        is_connected = self._world.loop.time() >= host.cut_off_until_s
        return is_up and is_connected and not self._stopping.is_set()

    def has_told(self, chat_id: ChatId, version: int) -> bool:
        """Return whether the process told of a state that it wrote, or could not know of it."""
        return self._told.get(chat_id, 0) >= version or chat_id in self._applier.gave_up

    def kill(self) -> None:
        """End the process between two of its steps; nothing of it reaches the world any more."""
        if self.is_over or self.host.is_dead:
            return
        self.host.is_dead = True
        self.is_serving = False
        self._world.loop.go_on(self.host)
        self._task.cancel()
        self._hang_up()

    def stop(self, seconds: float) -> None:
        """Freeze the process for a while, as SIGSTOP does."""
        self.host.is_stopped = True
        self._world.network.later(seconds, self.go_on)

    def cut_off(self, seconds: float) -> None:
        """Keep everything of it from the database for a while."""
        self.host.cut_off_until_s = self._world.loop.time() + seconds

    def go_on(self) -> None:
        """Let it run again, and reach what it could not."""
        if self.host.cut_off_until_s > self._world.loop.time():
            self.host.cut_off_until_s = self._world.loop.time()
        if self.host.is_stopped:
            self._world.loop.go_on(self.host)

    def drain(self) -> None:
        """Ask it to end, as SIGTERM does."""
        self._stopping.set()

    async def until_over(self) -> None:
        """Wait for the end of the process."""
        await asyncio.wait((self._task,))

    async def ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """Have the process do something for somebody outside.

        Raises:
            Gone: it is not there, or died, or its answer was lost.
        """
        network, rng = self._world.network, self._world.rng
        reply: asyncio.Future[T] = self._world.loop.create_future()
        self._waiting[id(reply)] = cast("asyncio.Future[object]", reply)

        async def served() -> None:
            try:
                answer = await work()
            except Exception as error:
                self.host.require_life()
                refusal = error
                network.later(network.delay_s(), lambda: fail_reply(reply, refusal))
            else:
                self.host.require_life()
                if network.is_lost():
                    network.later(network.delay_s(), lambda: fail_reply(reply, Gone()))
                else:
                    network.later(network.delay_s(), lambda: settle_reply(reply, answer))

        def arrive() -> None:
            if self._tasks is None or not self.is_serving or network.is_lost():
                fail_reply(reply, Gone())
                return
            serving = self._tasks.create_task(served(), context=self._context.copy())
            mood = self._world.mood
            if mood.is_moody and rng.random() < mood.climate.impatience:

                def give_up() -> None:
                    fail_reply(reply, Gone())
                    serving.cancel()

                network.later(rng.uniform(0, IMPATIENT_AFTER_MAX_S), give_up)

        network.later(network.delay_s(), arrive)
        try:
            async with asyncio.timeout(ANSWER_MAX_S):
                return await reply
        except TimeoutError:
            raise Gone from None
        finally:
            del self._waiting[id(reply)]

    async def execute(
        self,
        chat_id: ChatId,
        owner: Owner,
        key: str,
        command_for: Callable[[WorkerId | None], Command],
        *,
        may_claim: bool = True,
    ) -> bool:
        """Execute a user's command once, and run the chat if it was claimed by it.

        Returns whether the command is stored now.
        """

        async def claim() -> None:
            with reserved(self.worker, owner) as reservation:
                command = command_for(reservation.claimed_by)
                state = await self._chats.once(chat_id, command, key)
                if state is not None:
                    reservation.start(state)

        if may_claim:
            assert self._completions is not None
            await self._completions.complete(claim())
        else:
            await self._chats.once(chat_id, command_for(None), key)
        return await self._chats.is_used(chat_id, key)

    async def _lived(self) -> None:
        try:
            await self._live()
        except BaseException:
            if not self.host.is_dead:
                raise
        finally:
            self.is_over = True
            self.is_serving = False
            self._world.bus.lines.pop(self.host, None)
            self._hang_up()

    async def _live(self) -> None:
        """Do what the composition root of the service does."""
        world, host = self._world, self.host
        line = Line(world.database, world.network, host, victim=self, mischief=world.mischief)
        self._partials = ConnectedPartials(line)
        self._writer = PartialWriter(self._partials, self._clock)
        self._live_chats = LiveChats(*((self._writer.shown,) if world.has_partials else ()))
        async with AsyncExitStack() as stack:
            self._applier = await stack.enter_async_context(
                world.parts.applier(
                    line,
                    self.worker_id,
                    state_changed=self._state_changed,
                    appended=self._appended,
                    clock=self._clock,
                )
            )
            self._chats = ConnectedChats(line, self._applier, self._state_changed)
            self._turns = self._new_turns()
            workers = ConnectedWorkers(line, self.worker_id)
            self.worker = self._new_worker(workers)
            self._waits = AgentWaits(ConnectedWaits(line), self._chats, self.worker, self._clock)
            self.endings = WorkerEndings(workers, self._chats.publish_state)
            self._completions = await stack.enter_async_context(ShieldedTasks())
            self._tasks = background = await stack.enter_async_context(asyncio.TaskGroup())
            working = background.create_task(self.worker.run())
            for each in self._start_following(background):
                stack.callback(each.cancel)
            await self.worker.until_registered()
            self.is_serving = True
            await self._stopping.wait()
            self.is_serving = False
            await self.worker.drain()
            await working

    def _new_turns(self) -> TurnRunner:
        world, clock = self._world, self._clock

        def play(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            self._require_lease("the model is asked")
            return world.mood.play(clock, request)

        tools = ConnectedTools(
            world.executor, world.network, self.host, world.group, self._require_lease
        )
        deadlines = ActionDeadlines(*world.mood.climate.deadlines_s)
        return world.parts.turns(
            turn_ports(
                chats=self._chats,
                model=ScriptedModel(play),
                tools=tools,
                restores=ConnectedRestores(world.executor, tools.ask, clock, self._require_lease),
                setups=UnluckySetups(
                    world.mood,
                    world.rng,
                    lambda chat_id: world.database.chat(chat_id).mode,
                    self._crashing,
                ),
                approvals=judge_of(Rules(list(RULES))),
                live=self._live_chats,
                partials=self._partials if world.has_partials else None,
                clock=clock,
                jitter=world.rng.random,
                may_act=lambda: self.worker.may_act(),
                limits=replace(LIMITS, deadlines=deadlines),
            )
        )

    def _new_worker(self, workers: ConnectedWorkers) -> Worker:
        return Worker(
            self.worker_id,
            address=f"unix:/{self.name}",
            ports=WorkerPorts(
                leases=workers,
                claims=workers,
                apply=self._chats.apply,
                run_chat=self._run_chat,
                state_changed=self._chats.publish_state,
                request_sweep=self._offer,
                on_ended=self._stopping.set,
                request_quarantine=self._request_quarantine,
                clock=self._clock,
                rng=self._world.rng,
                supervision=no_supervision(self._clock),
            ),
            limits=self._limits,
        )

    def _start_following(self, background: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        # All they ask of chats is their state, which these have too.
        chats = cast(PostgresChats, self._chats)
        following = [
            background.create_task(follow_chats(self._bus, chats, NobodyFollows(), self.worker)),
            background.create_task(follow_sweeps(self._bus, self.worker)),
        ]
        if self._world.has_partials:
            following.append(background.create_task(self._writer.run()))
        if self._world.mood.climate.waits:
            following.append(background.create_task(self._waits.run()))
        return following

    async def _run_chat(self, claimed: Claimed, mailbox: Mailbox) -> None:
        """Run a chat as the service does; only one runner of it, and no more than have a slot."""
        chat_id, witness = claimed.state.chat_id, self._world.database.witness
        self._running[chat_id] += 1
        is_alone = self._running[chat_id] == 1
        witness.require(is_alone, f"two runners of one chat in {self.name}", claimed.state)
        is_placed = self._running.total() <= self._limits.slots_max
        witness.require(is_placed, f"{self.name} runs more than it may", claimed.state)
        try:
            await self._turns.run(claimed, mailbox)
        finally:
            self._running[chat_id] -= 1

    def _crashing(self, chat_id: ChatId) -> None:
        self.crashed_at_s[chat_id] = self._world.loop.time()

    def _require_lease(self, what: object) -> None:
        """Note what begins under a lease that ends; a stop before it began nobody can foresee."""
        world = self._world
        is_just_resumed = world.loop.time() - self.host.resumed_at_s < 0.001
        row = world.database.workers.rows.get(self.worker_id)
        is_held = row is not None and row.lease_until >= world.loop.now() + EFFECT_MARGIN
        if not self.host.is_dead and not is_just_resumed:
            world.database.witness.require(is_held, f"{self.name} acts without a lease", what)

    def _state_changed(self, state: ChatState) -> None:
        self._told[state.chat_id] = max(self._told.get(state.chat_id, 0), state.snapshot_version)
        self._applier.gave_up.discard(state.chat_id)
        self._live_chats.state_changed(state)
        self._writer.state_changed(state)
        self.worker.deliver(state)
        self._waits.on_state(state)
        self._bus.publish(Notice(CHAT_TOPIC, state.chat_id, state.snapshot_version))
        if is_ownerless(state):
            self._offer()

    def _offer(self) -> None:
        self._bus.publish(Notice(SWEEP_TOPIC, SWEEP_TOPIC, 0))

    def _appended(
        self,
        before: ChatState,
        after: ChatState,
        messages: tuple[NewMessage, ...],
        at: datetime | None,
    ) -> None:
        self._turns.appended(before, after, messages)

    def _hang_up(self) -> None:
        """Let everybody who waits for an answer know that none will come."""
        for reply in self._waiting.values():
            fail_reply(reply, Gone())
