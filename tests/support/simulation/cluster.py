"""Three places for processes, and what can happen to those that stand there."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable
from itertools import count

from chatd.domain.chat import ChatId, ChatState
from parley.clock import Clock
from support.simulation.network import FAIR, Weather
from support.simulation.node import Node, World

PLACES = 3
PAUSE_MEAN_S = 2.5
STEPS_MAX = 60
OLD_NEWS_MAX = 40
HUNT_S = 75


class Cluster:
    """Keeps processes running, and troubles them for a while."""

    def __init__(self, world: World, clock: Clock, chance: random.Random) -> None:
        self._world = world
        self._clock = clock
        self._chance = chance
        self._numbers = count(1)
        self._is_troubled = True
        self._is_closed = False
        self.nodes = [self._new() for _ in range(PLACES)]
        self.told: list[str] = []

    def serving(self) -> Node | None:
        """Return a process that takes requests, if there is one."""
        serving = [node for node in self.nodes if node.is_serving and not node.host.is_dead]
        return self._chance.choice(serving) if serving else None

    async def drain(self) -> None:
        """Let every process hand its chats over and end."""
        self._is_closed = True
        for node in self.nodes:
            node.drain()
        for node in self.nodes:
            await node.until_over()

    def kill(self) -> None:
        """End every process at once and for good."""
        self._is_closed = True
        for node in self.nodes:
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
            (self._lose_news, 2),
            (self._repeat_news, 3),
        )
        while self._clock.monotonic() < until_s:
            await self._clock.sleep(self._chance.expovariate(1 / PAUSE_MEAN_S))
            (fault,) = self._chance.choices([f for f, _ in faults], [w for _, w in faults])
            fault()
        self._heal()

    async def hunt(self, chat_id: ChatId) -> None:
        """Kill whoever runs a chat, until its turn is given up or the others are tired of it."""
        for _ in range(HUNT_S):
            state = self._world.database.chat(chat_id).state
            for place, node in enumerate(self.nodes):
                if state.worker_id == node.worker_id and state.generation_attempt:
                    self._tell(f"{node.name} dies of its chat")
                    node.kill()
                    self._renew_later(place)
            await self._clock.sleep(1.0)

    def _heal(self) -> None:
        self._is_troubled = False
        world = self._world
        world.network.weather = FAIR
        world.database.is_down = False
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
        return Node(self._world, f"worker-{next(self._numbers)}")

    def _renew(self, place: int) -> None:
        """Start a new process where one ended, unless that has happened."""
        node = self.nodes[place]
        if not self._is_closed and (node.host.is_dead or node.is_over):
            self.nodes[place] = self._new()
            self._tell(f"{self.nodes[place].name} starts")

    def _renew_later(self, place: int) -> None:
        delay_s = self._chance.uniform(0, 12)
        self._world.network.later(delay_s, lambda: self._renew(place))

    def _kill(self) -> None:
        place = self._chance.randrange(PLACES)
        node = self.nodes[place]

        def kill() -> None:
            if not node.host.is_dead and not node.is_over:
                self._tell(f"{node.name} dies")
                node.kill()
                self._renew_later(place)

        node.host.surprise_after(self._chance.randrange(1, STEPS_MAX), kill)

    def _stop(self) -> None:
        node = self._chance.choice(self.nodes)
        seconds = self._chance.choice((2.0, 8.0, 14.0, 20.0, 35.0)) * self._chance.uniform(0.8, 1.2)

        def stop() -> None:
            if self._is_troubled:
                self._tell(f"{node.name} is stopped for {seconds:.1f} s")
                node.stop(seconds)

        node.host.surprise_after(self._chance.randrange(1, STEPS_MAX), stop)

    def _drain(self) -> None:
        place = self._chance.randrange(PLACES)
        self._tell(f"{self.nodes[place].name} drains")
        self.nodes[place].drain()
        self._world.network.later(self._chance.uniform(5, 15), lambda: self._renew(place))

    def _storm(self) -> None:
        weather = Weather(slow=self._chance.uniform(0, 0.4), lost=self._chance.uniform(0, 0.3))
        self._tell(f"{weather}")
        self._world.network.weather = weather
        self._for_a_while(8, self._calm)

    def _calm(self) -> None:
        self._world.network.weather = FAIR

    def _outage(self) -> None:
        self._tell("the database is down")
        self._world.database.is_down = True
        self._for_a_while(self._chance.choice((2, 10, 20, 40)), self._database_is_up)

    def _database_is_up(self) -> None:
        self._world.database.is_down = False

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
        self._world.bus.lost = self._chance.uniform(0.3, 1.0)
        self._for_a_while(15, self._news_is_back)

    def _news_is_back(self) -> None:
        self._world.bus.lost = 0.0

    def _repeat_news(self) -> None:
        """Tell somebody of states that are long over."""
        node = self._chance.choice(self.nodes)
        old: list[ChatState] = self._world.database.witness.latest[-OLD_NEWS_MAX:]
        if node.is_serving and not node.host.is_dead and old:
            for state in self._chance.choices(old, k=5):
                node.worker.deliver(state)

    def _for_a_while(self, seconds_max: float, end: Callable[[], None]) -> None:
        self._world.network.later(self._chance.uniform(0.2, seconds_max), end)

    def _tell(self, what: str) -> None:
        self.told.append(f"{self._clock.monotonic():8.3f} {what}")
