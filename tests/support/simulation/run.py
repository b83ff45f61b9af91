"""One run of the core under chance: its seed says everything that happens in it."""

import asyncio
import random  # noqa: TID251 (here chance comes from the seed)
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from chatd.chats.domain.chat import ChatState, Status
from chatd.content.domain.messages import ChatMode
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.turns.worker.ports import WorkerLimits
from support.chatd.chats.in_memory_chats import StoredChat
from support.simulation.bus import SimulatedBus
from support.simulation.checks import ownerless, violations
from support.simulation.climate import Climate
from support.simulation.cluster import Cluster
from support.simulation.executor import SimulatedExecutor
from support.simulation.inspector import Inspector
from support.simulation.loop import Host, VirtualClock, VirtualLoop
from support.simulation.mischief import Mischief
from support.simulation.model import Mood
from support.simulation.network import NOWHERE, Network
from support.simulation.node import Parts, World
from support.simulation.users import Request, User
from support.simulation.witness import Violation

FIRST_CHAT_NUMBER = 1
FIRST_CHAT = ChatId(str(uuid.UUID(int=FIRST_CHAT_NUMBER)))
USERS_PER_CHAT = 2
CHATS_PER_CROWD = 5  # So many can share the places that one process or person has at least.
HUNTS = 0.08
REACTION_MEAN_S = 0.2
CHANGES = 0.15
WHOLE_AFTER_S = 10.0  # What was sent in bad weather may arrive until then.
AT_REST = (Status.WAITING, Status.ERROR)
OWNERS = (Owner(OwnerId("ann"), "member"), Owner(OwnerId("bob"), "member"))
OWNED_WITHIN_S = 60
AT_REST_WITHIN_S = 240
DRAINED_WITHIN_S = 30.0
SWEEP_EVERY_S = 3.0  # Rarer than in life, because most of them find nothing.
SOUND = Parts()


@dataclass(frozen=True, slots=True)
class Run:
    """What happened, enough to see that two runs were the same."""

    seconds: float
    commits: int
    starts: int
    acknowledged: int
    states: tuple[ChatState, ...]


def simulate(seed: int, parts: Parts = SOUND) -> Run:
    """Run the simulation of a seed, with other parts than the sound ones to plant a bug.

    Raises:
        Violation: something was wrong; the text says with which seed and what happened.
    """
    with _loop() as loop:
        return loop.run_until_complete(_Simulation(loop, seed, parts).run())


@contextmanager
def _loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    try:
        yield loop
    finally:
        loop.close()


class _Simulation:
    """Everything of one run."""

    def __init__(self, loop: VirtualLoop, seed: int, parts: Parts) -> None:
        self._seed = seed
        self._parts = parts
        self._rng = rng = random.Random(seed)
        self._loop = loop
        self._clock = VirtualClock(loop, Host())
        self._network = Network(loop, rng)
        self._database = parts.database(self._clock)
        self._climate = (
            Climate.drawn(rng)
            .with_waits(random.Random(f"waits of {seed}"))
            .with_reverts(random.Random(f"reverts of {seed}"))
            .with_rushes(random.Random(f"rushes of {seed}"))
        )
        self._executor = SimulatedExecutor(
            self._network, rng, self._database, has_waits=bool(self._climate.waits)
        )

    async def run(self) -> Run:
        async with asyncio.TaskGroup() as group:
            cluster = Cluster(self._world(group), self._clock, self._rng)
            users = self._users(cluster)
            inspector = Inspector(self._database, lambda: cluster.everyone, self._clock)
            inspecting = group.create_task(inspector.run())
            trouble_s = self._rng.uniform(8, 30)
            async with asyncio.TaskGroup() as acting:
                cluster.react = self._reactions(users, acting)
                acting.create_task(cluster.trouble(trouble_s))
                if self._rng.random() < HUNTS:
                    acting.create_task(cluster.hunt(FIRST_CHAT))
                for user in users:
                    pause_s = self._rng.uniform(0.7, 4)
                    acting.create_task(user.act(self._rng.randrange(3, 8), pause_s))
            if self._rng.random() < CHANGES:
                await self._change_one(cluster, users)
            problems = [*await self._never_resting(), *await self._never_ending(cluster)]
            cluster.kill()
            inspecting.cancel()
        requests = [request for user in users for request in user.requests]
        problems += violations(
            self._database, self._executor.starts, self._executor.waiting(), requests
        )
        if problems:
            raise Violation("\n".join((f"seed {self._seed}", *cluster.told, *problems)))
        return self._summary(requests)

    def _reactions(
        self, users: list[User], acting: asyncio.TaskGroup
    ) -> Callable[[ChatId], object]:
        """Return what lets a user of a chat do one thing more, at once."""

        def react(chat_id: ChatId) -> None:
            user = self._rng.choice([user for user in users if user.chat_id == chat_id])
            acting.create_task(user.act(1, REACTION_MEAN_S), context=NOWHERE.copy())

        return react

    async def _change_one(self, cluster: Cluster, users: list[User]) -> None:
        """Replace a process while everybody talks, in a world in which nothing goes wrong."""
        await self._clock.sleep(WHOLE_AFTER_S)
        self._database.is_whole = True
        async with asyncio.TaskGroup() as acting:
            for user in users:
                acting.create_task(user.act(1, 0.5))
            await self._clock.sleep(self._rng.uniform(0, 2))
            await cluster.change_one()

    def _world(self, group: asyncio.TaskGroup) -> World:
        rng, climate = self._rng, self._climate
        crowd = max(1, climate.chats // CHATS_PER_CROWD)
        return World(
            loop=self._loop,
            group=group,
            rng=rng,
            network=self._network,
            database=self._database,
            executor=self._executor,
            bus=SimulatedBus(self._network, rng),
            mood=Mood(rng, climate),
            mischief=Mischief(rng, climate),
            limits=WorkerLimits(
                slots_max=crowd * rng.randrange(1, 5),
                running_per_user_max=crowd * rng.randrange(1, 5),
                sweep_every_s=SWEEP_EVERY_S,
            ),
            has_partials=rng.random() < 0.1,
            parts=self._parts,
        )

    def _users(self, cluster: Cluster) -> list[User]:
        users: list[User] = []
        numbers = count(1)
        for place in range(self._climate.chats):
            chat_id = ChatId(str(uuid.UUID(int=FIRST_CHAT_NUMBER + place)))
            owner = self._rng.choice(OWNERS)
            fresh = ChatState(chat_id, Status.WAITING, 1, 0, 0, MessageId(1))
            self._database.add(fresh, owner)
            if self._climate.people:
                self._database.chat(chat_id).mode = ChatMode.PLAN
            users += [
                User(
                    self._database,
                    chat_id,
                    owner,
                    cluster,
                    self._clock,
                    self._rng,
                    numbers,
                    self._climate,
                    self._executor,
                    f"person {person} of {chat_id}",
                )
                for person in range(USERS_PER_CHAT)
            ]
        return users

    async def _never_resting(self) -> list[str]:
        """Wait until nothing happens any more; return what should have ended and did not."""
        for waited_s in range(AT_REST_WITHIN_S):
            if not self._moving():
                return []
            if waited_s == OWNED_WITHIN_S and (alone := list(ownerless(self._database))):
                return alone
            await self._clock.sleep(1.0)
        return [f"it does not come to rest: {state}" for state in self._moving()]

    def _moving(self) -> list[ChatState]:
        return [c.state for c in self._stored() if c.state.status not in AT_REST]

    async def _never_ending(self, cluster: Cluster) -> list[str]:
        """Stop all processes; return what is wrong with how they end."""
        ending = [node.worker_id for node in cluster.everyone if node.is_serving]
        try:
            async with asyncio.timeout(DRAINED_WITHIN_S):
                await cluster.drain()
        except TimeoutError:
            return ["a process does not end"]
        rows = self._database.workers.rows
        left = [each for each in ending if not rows[each].has_ended]
        return [f"{each} left its lease behind" for each in left]

    def _stored(self) -> Iterable[StoredChat]:
        return self._database.chats.chats.values()

    def _summary(self, requests: list[Request]) -> Run:
        return Run(
            self._loop.time(),
            self._database.witness.commits,
            self._executor.starts.total(),
            sum(request.is_acknowledged for request in requests),
            tuple(chat.state for chat in self._stored()),
        )
