"""Wiring of the slice `streams`: hubs, feeds, relays and the replica watch of a process."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from chatd.chats.store.access.break_glass import BreakGlass
from chatd.primitives.domain.ids import WorkerId
from chatd.streams.engine.live import LiveChats
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.access import Access
from chatd.streams.rpc.feeds import Feeds
from chatd.streams.rpc.metrics import measure_streams
from chatd.streams.rpc.relay_source import RelaySource
from chatd.streams.rpc.relays import PeerRelays
from chatd.streams.rpc.replicas import ReplicaChannels, ReplicaWatch, know_replicas
from chatd.streams.rpc.requests import Streams
from chatd.streams.rpc.servicer import StreamServicer
from chatd.streams.store.chat_reads import PostgresStreamReads
from chatd.streams.store.feeds import PostgresFeeds
from chatd.turns.store.workers import PostgresWorkers
from chatd.users.domain.groups import Groups
from parley.identity import Caller, ServiceName
from parley.postgres import Pool
from parley.process import Neighbours, Process
from parley.rpc import TunnelledMethods
from parley.tasks import Starter

CONNECTIONS_MAX = 2


def stream_connections(connections_max: int) -> int:
    """Return how many of a process's database connections are reserved for its streams.

    Few are enough, as their reads are batched; but they must not queue behind the turns' reads.
    """
    return min(CONNECTIONS_MAX, max(1, connections_max // 8))


@dataclass(frozen=True, slots=True)
class StreamComponents:
    """The components that serve streams.

    Attributes:
        hubs: The followed chats.
        feeds: The followed chat lists.
    """

    hubs: Hubs
    feeds: Feeds
    _access: Access
    _replicas: ReplicaWatch
    _live: LiveChats
    _process: Process

    def loops(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """Return the background loops by name; they run for as long as the process serves."""
        return {
            "streams.poll": self.hubs.run,
            "streams.access": self._access.run,
            "replicas.look": self._replicas.run,
            "feeds.look": self.feeds.run,
        }

    def servicer(
        self, admission: Callable[[str, str], Caller], tunnelled: TunnelledMethods
    ) -> StreamServicer:
        """Return the servicer of StreamService."""
        streams = Streams(
            self.hubs,
            RelaySource(self._live),
            self._access,
            admission,
            self.feeds,
            self._replicas,
            self._process.clock,
        )
        return StreamServicer(streams, tunnelled)

    def close(self) -> None:
        """Close all subscriptions."""
        self.hubs.close()
        self.feeds.close()


async def open_streams(
    neighbours: Neighbours,
    process: Process,
    pool: Pool,
    stack: AsyncExitStack,
    *,
    workers: PostgresWorkers,
    worker_id: WorkerId,
    live: LiveChats,
    groups: Groups,
    tasks: Starter,
) -> StreamComponents:
    """Return the components of the slice; `stack` closes them."""
    followings = PostgresStreamReads(pool)
    peers = await stack.enter_async_context(neighbours.channels(ServiceName.CHATD, ()))
    replicas = ReplicaWatch(workers, process.clock, partial(know_replicas, peers))
    relays = PeerRelays(
        worker_id,
        ReplicaChannels(replicas, peers),
        hubs=lambda: hubs,
        tasks=tasks,
        clock=process.clock,
    )
    stack.callback(relays.close)
    feeds = Feeds(PostgresFeeds(pool), groups, process.clock)
    hubs = Hubs(
        followings, live, relays=relays, tasks=tasks, clock=process.clock, on_activity=feeds.poke
    )
    measure_streams(process.telemetry.meter, hubs, feeds.drops)
    access = Access(hubs, followings, groups, process.clock, BreakGlass(pool).record_read)
    return StreamComponents(hubs, feeds, access, replicas, live, process)
