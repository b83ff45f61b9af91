"""Three places for processes, and what can happen to those that stand there."""

import asyncio
import math
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from chatd.chats.domain.chat import ChatState, Status
from chatd.primitives.domain.ids import ChatId, WorkerId
from parley.clock import Clock
from support.simulation.mischief import Tricks, Twist, Victim
from support.simulation.network import FAIR, Weather
from support.simulation.node import Node, World

PLACES = 3
WAKES = 0.8
PROOFS = 0.5
PROVEN_S_MAX = 3.0
QUARANTINE_S_MAX = 3.0
REPLACED_S = 27.0
AWAITED_S = 22.0
REACTIONS = 0.6
LAST_HOLD_S = 25.0
OVERTAKEN_S = 0.05
PAUSE_MEAN_S = 2.5
STEPS_MAX = 60
OLD_NEWS_MAX = 40
HUNT_S = 100.0
REVERTING_DEATHS = 0.3
REVERTING_S = 0.05


class Cluster:
    """Keeps processes running, and troubles them for a while."""

    def __init__(self, world: World, clock: Clock, rng: random.Random) -> None:
        self._world = world
        self._climate = world.mood.climate
        self._clock = clock
        self._rng = rng
        self._numbers = count(1)
        self._is_troubled = True
        self._is_closed = False
        self._quarantine: Node | None = None
        self._is_quarantine_due = False
        self.nodes = [self._new() for _ in range(PLACES)]
        self.told: list[str] = []
        self.waiting: dict[ChatId, list[asyncio.Event]] = {}
        self.react: Callable[[ChatId], object] = lambda chat_id: None
        self._late: dict[ChatId, Node] = {}
        self._whole_since_s = math.inf
        self._awaited: set[ChatId] = set()  # Chats of which somebody is held up until they move.
        self._hunted: ChatId | None = None
        world.database.witness.watchers.append(self._noticed)
        world.database.witness.answering = self._answering
        world.mischief.begin(
            Tricks(
                always=((self._kill_then, 1), (self._outage_then, 1), (self._hold_up_then, 3)),
                to_writes=(
                    (self._lose_answer, 5),
                    (self._cut_off_then, 4),
                    (self._cut_off, 3),
                    (self._cut_off_to_the_edge, 3),
                ),
                to_claims=((self._drain_before, 1), (self._cut_off_to_the_edge, 4)),
                to_interruptions=((self._cut_off_until_replaced, 1),),
                to_retries=((self._cut_off_then, 1),),
            )
        )

    def serving(self) -> Node | None:
        """Return a process that takes requests, if there is one."""
        serving = [node for node in self.nodes if node.is_serving and not node.host.is_dead]
        return self._rng.choice(serving) if serving else None

    async def drain(self) -> None:
        """Let every process hand its chats over and end."""
        self._is_closed = True
        for node in self.everyone:
            node.go_on()
            node.drain()
        for node in self.everyone:
            await node.until_over()

    def kill(self) -> None:
        """End every process at once and for good."""
        self._is_closed = True
        for node in self.everyone:
            node.kill()

    async def trouble(self, seconds: float) -> None:
        """Let faults happen for a while, then make everything whole again."""
        until_s = self._clock.monotonic() + seconds
        faults = (
            (self._kill, 4),
            (self._stop, 4),
            (self._drain, 1),
            (self._storm, 3),
            (self._outage, 2),
            (self._lose_executor, 3),
            (self._lose_answers, 1),
            (self._lose_journal, 1),
            (self._lose_news, 4),
            (self._repeat_news, 3),
        )
        self._world.bus.lost = self._climate.lost_news
        usual = [each for each in faults if self._rng.random() < self._climate.faults]
        while self._clock.monotonic() < until_s:
            await self._clock.sleep(self._rng.expovariate(1 / PAUSE_MEAN_S))
            if usual:
                (fault,) = self._rng.choices([f for f, _ in usual], [w for _, w in usual])
                fault()
        while self._awaited and self._clock.monotonic() < until_s + AWAITED_S:
            await self._clock.sleep(1.0)
        self._heal()

    async def change_one(self) -> None:
        """Replace a process in good order, in a world that is whole."""
        names = {chat.state.worker_id for chat in self._world.database.chats.chats.values()}
        able = [place for place, node in enumerate(self.nodes) if node.is_able]
        busy = [place for place in able if self.nodes[place].worker_id in names]
        place = self._rng.choice(busy or able)
        self._drain_at(place)
        await self.nodes[place].until_over()
        self._renew(place)

    async def hunt(self, chat_id: ChatId) -> None:
        """Kill whoever runs a chat, until its turn is given up or the others are tired of it."""
        self._hunted = chat_id
        await self._clock.sleep(HUNT_S)
        self._hunted = None

    def _heal(self) -> None:
        self._is_troubled = False
        self._whole_since_s = self._clock.monotonic()
        world = self._world
        world.network.weather = FAIR
        self._database_is_up()
        world.mischief.is_on = False
        world.executor.is_reachable = True
        world.executor.loses_answers = False
        world.bus.lost = 0.0
        world.mood.is_moody = False
        for place, node in enumerate(self.nodes):
            node.host.surprise_after(1 << 60, lambda: None)
            node.go_on()
            if node.host.is_dead or node.is_over:
                self._renew(place)
        self._tell("everything is whole again")

    def _new(self) -> Node:
        return Node(self._world, f"worker-{next(self._numbers)}", self._quarantine_later)

    @property
    def everyone(self) -> list[Node]:
        """All processes, also that in quarantine."""
        return self.nodes if self._quarantine is None else [*self.nodes, self._quarantine]

    def _quarantine_later(self) -> None:
        """Start a process in quarantine soon, unless there is one."""
        if not self._is_quarantine_due:
            self._is_quarantine_due = True
            self._world.network.later(self._rng.uniform(0.5, QUARANTINE_S_MAX), self._isolate)

    def _isolate(self) -> None:
        self._is_quarantine_due = False
        before = self._quarantine
        if self._is_closed or not (before is None or before.host.is_dead or before.is_over):
            return
        name = f"quarantine-{next(self._numbers)}"
        self._quarantine = Node(self._world, name, lambda: None, is_quarantine=True)
        self._tell(f"{name} starts")

    def _renew(self, place: int) -> None:
        """Start a new process where one ended, unless that has happened."""
        node = self.nodes[place]
        if not self._is_closed and (node.host.is_dead or node.is_over):
            self.nodes[place] = self._new()
            self._tell(f"{self.nodes[place].name} starts")

    def _renew_later(self, place: int) -> None:
        delay_s = self._rng.uniform(0, 12)
        self._world.network.later(delay_s, lambda: self._renew(place))

    def _kill(self) -> None:
        place = self._rng.randrange(PLACES)
        node = self.nodes[place]

        def kill() -> None:
            if not node.host.is_dead and not node.is_over:
                self._tell(f"{node.name} dies")
                node.kill()
                self._prove_later(node)
                self._renew_later(place)

        node.host.surprise_after(self._rng.randrange(1, STEPS_MAX), kill)

    def _prove_later(self, dead: Node) -> None:
        """Let a living process learn of a death from somebody who can prove it."""
        if self._rng.random() >= PROOFS:
            return

        async def report(living: Node) -> None:
            with suppress(Exception):
                await living.ask(lambda: living.endings.end(dead.worker_id))

        def prove() -> None:
            living = self.serving()
            if living is not None:
                self._tell(f"{living.name} learns that {dead.name} is dead")
                self._world.group.create_task(report(living))

        self._world.network.later(self._rng.uniform(0, PROVEN_S_MAX), prove)

    def _stop(self) -> None:
        node = self._rng.choice(self.nodes)
        seconds = self._rng.choice((2.0, 8.0, 14.0, 20.0, 35.0)) * self._rng.uniform(0.8, 1.2)

        def stop() -> None:
            if self._is_troubled:
                self._tell(f"{node.name} is stopped for {seconds:.1f} s")
                node.stop(seconds)

        node.host.surprise_after(self._rng.randrange(1, STEPS_MAX), stop)

    def _drain(self) -> None:
        place = self._rng.randrange(PLACES)
        self._drain_at(place)
        self._renew_after_drain(place)

    def _renew_after_drain(self, place: int) -> None:
        node = self.nodes[place]

        def renew() -> None:
            if self.nodes[place] is node and not (node.host.is_dead or node.is_over):
                self._world.network.later(1.0, renew)
            else:
                self._renew(place)

        self._world.network.later(self._rng.uniform(5, 15), renew)

    def _drain_at(self, place: int) -> None:
        self._tell(f"{self.nodes[place].name} drains")
        self.nodes[place].drain()

    def _storm(self) -> None:
        weather = Weather(slow=self._rng.uniform(0, 0.4), lost=self._rng.uniform(0, 0.3))
        self._tell(f"{weather}")
        self._world.network.weather = weather
        self._for_a_while(8, self._calm)

    def _calm(self) -> None:
        self._world.network.weather = FAIR

    def _outage(self) -> None:
        self._tell("the database is down")
        self._world.database.go_down()
        self._for_a_while(self._rng.choice((2, 10, 20, 40)), self._database_is_up)

    def _database_is_up(self) -> None:
        self._world.database.come_up()

    def _lose_executor(self) -> None:
        self._tell("the executor cannot be reached")
        self._world.executor.is_reachable = False
        self._for_a_while(15, self._executor_is_back)

    def _executor_is_back(self) -> None:
        self._world.executor.is_reachable = True

    def _lose_answers(self) -> None:
        self._tell("the executor's answers are lost")
        self._world.executor.loses_answers = True
        self._for_a_while(6, self._answers_are_back)

    def _answers_are_back(self) -> None:
        self._world.executor.loses_answers = False

    def _lose_journal(self) -> None:
        self._tell("the executor's journal is lost")
        self._world.executor.forget_journal()

    def _lose_news(self) -> None:
        self._tell("news is lost and repeated")
        self._world.bus.lost = self._rng.uniform(0.3, 1.0)
        self._for_a_while(15, self._news_is_back)

    def _news_is_back(self) -> None:
        self._world.bus.lost = self._climate.lost_news

    def _repeat_news(self) -> None:
        """Tell somebody of states that are long over."""
        node = self._rng.choice(self.nodes)
        old: list[ChatState] = self._world.database.witness.latest[-OLD_NEWS_MAX:]
        if node.is_serving and not node.host.is_dead and old:
            for state in self._rng.choices(old, k=5):
                node.worker.deliver(state)

    def _noticed(self, before: ChatState, after: ChatState) -> None:
        """Hold an owner up that is to stop its turn, and let it go on when it is too late."""
        taker = after.worker_id
        if after.chat_id == self._hunted and taker is not None and taker != before.worker_id:
            self._kill_soon(taker)
        self._kill_who_reverts(before, after)
        is_asking = after.status is Status.REQUIRES_ACTION is not before.status
        if is_asking and self._climate.rushes:
            self._rush(after.chat_id)
        if is_asking:
            self._awaited.discard(after.chat_id)
        if is_asking and (late := self._late.pop(after.chat_id, None)) is not None:
            self._wake(late)
        if not self._is_troubled:
            return
        owner = self._of(before.worker_id)
        if owner is None:
            return
        is_interrupted = (before.status, after.status) == (Status.RUNNING, Status.INTERRUPTING)
        if is_interrupted and self._rng.random() < self._climate.holds:
            self._hold_up(owner)
        if after.takeovers > before.takeovers and self._rng.random() < WAKES:
            self._awaited.discard(after.chat_id)
            heir = self._of(after.worker_id)
            if after.status is Status.INTERRUPTING and heir is not None:
                self._hold_up(heir)
            self._wake(owner)

    def _answering(self, worker_id: WorkerId, chat_id: ChatId) -> None:
        """Hold somebody up who is about to answer for a client, until it was asked again."""
        node = self._of(worker_id)
        is_wanted = self._rng.random() < self._climate.late_answers
        is_time = self._clock.monotonic() < self._whole_since_s + LAST_HOLD_S
        if is_wanted and is_time and node is not None and not self._late:
            self._hold_up(node, REPLACED_S)
            self._late[chat_id] = node
            self._awaited.add(chat_id)
            self._world.network.later(REPLACED_S, lambda: self._late.pop(chat_id, None))

    def _of(self, worker_id: WorkerId | None) -> Node | None:
        return next((node for node in self.everyone if node.worker_id == worker_id), None)

    def _place_of(self, victim: Victim) -> int | None:
        return next((place for place, node in enumerate(self.nodes) if node is victim), None)

    def _hold_up(self, node: Node, seconds: float = 0.0) -> None:
        seconds = seconds or self._some_s()
        if self._rng.random() < 0.5:
            self._tell(f"{node.name} is stopped for {seconds:.1f} s")
            node.stop(seconds)
        else:
            self._tell(f"{node.name} is cut off for {seconds:.1f} s")
            node.cut_off(seconds)

    def _some_s(self) -> float:
        return self._rng.choice(self._climate.holds_s) * self._rng.uniform(0.95, 1.05)

    def _wake(self, node: Node) -> None:
        self._tell(f"{node.name} may go on")
        self._world.network.later(self._rng.uniform(0, 0.5), node.go_on)

    def _kill_who_reverts(self, before: ChatState, after: ChatState) -> None:
        """Let the owner of a chat die between two phases of a revert."""
        is_begun = after.revert is not None and before.owner_epoch != after.owner_epoch
        if not is_begun or after.worker_id is None or not self._is_troubled:
            return
        if self._rng.random() < REVERTING_DEATHS:
            self._kill_soon(after.worker_id, REVERTING_S)

    def _rush(self, chat_id: ChatId) -> None:
        """Let all users of a chat do something at the same moment."""
        for patience in self.waiting.get(chat_id, ()):
            self._world.network.later(0.0, patience.set)

    def _kill_soon(self, worker_id: WorkerId, within_s: float = 0.3) -> None:
        def kill() -> None:
            node = self._of(worker_id)
            if node is not None and not node.host.is_dead and not node.is_over:
                self._tell(f"{node.name} dies of its chat")
                node.kill()
                self._prove_later(node)
                if node in self.nodes:
                    self._renew_later(self.nodes.index(node))

        self._world.network.later(self._rng.uniform(0, within_s), kill)

    def _lose_answer(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        return Twist(lambda: self._provoke(chat_id))

    def _hold_up_then(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        def hold_up() -> bool:
            place = self._place_of(victim)
            if place is not None:
                self._hold_up(self.nodes[place])
            return self._rng.random() < 0.5

        return Twist(hold_up)

    def _cut_off_then(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        """Keep a process from learning of its commit until others have gone on from it."""

        def cut_off() -> bool:
            self._cut_off(victim, chat_id)
            return True

        return Twist(cut_off)

    def _cut_off(self, victim: Victim, chat_id: ChatId | None, seconds: float = 0.0) -> Twist:
        place = self._place_of(victim)
        if place is not None:
            seconds = seconds or self._rng.uniform(0.3, 2.5)
            self._tell(f"{victim.name} is cut off for {seconds:.1f} s")
            self.nodes[place].cut_off(seconds)
            self._provoke(chat_id)
        return Twist(is_lost=True)

    def _cut_off_to_the_edge(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        """Let a claim be repeated when the lease that it needs is about to end."""
        return self._cut_off(victim, chat_id, self._rng.uniform(11.5, 14.5))

    def _cut_off_until_replaced(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        """Let a write be repeated when somebody else has the chat."""
        if chat_id is not None:
            self._awaited.add(chat_id)
        return self._cut_off(victim, chat_id, REPLACED_S)

    def _kill_then(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        def kill() -> bool:
            place = self._place_of(victim)
            if place is not None and not self.nodes[place].is_over:
                self._tell(f"{victim.name} dies of its statement")
                self.nodes[place].kill()
                self._renew_later(place)
            return True

        return Twist(kill)

    def _outage_then(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        def go_down() -> bool:
            self._outage()
            return True

        return Twist(go_down)

    def _drain_before(self, victim: Victim, chat_id: ChatId | None) -> Twist:
        place = self._place_of(victim)
        if place is not None:
            self._drain_at(place)
            self._renew_after_drain(place)
        return Twist(delay_s=OVERTAKEN_S)

    def _provoke(self, chat_id: ChatId | None) -> bool:
        """Let the users of a chat do something at once."""
        if chat_id is not None:
            for patience in self.waiting.get(chat_id, ()):
                self._world.network.later(self._rng.uniform(0, 0.4), patience.set)
            if self._rng.random() < REACTIONS:
                self.react(chat_id)
        return True

    def _for_a_while(self, seconds_max: float, end: Callable[[], None]) -> None:
        self._world.network.later(self._rng.uniform(0.2, seconds_max), end)

    def _tell(self, what: str) -> None:
        self.told.append(f"{self._clock.monotonic():8.3f} {what}")
