"""The composition root of chatd: opens what the process needs and serves until it is stopped."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial

from chatd.clients.mcpgateway import McpTools
from chatd.clients.routing import RoutedTools
from chatd.clients.toolrunner import WorkspaceTools
from chatd.domain.chat import ChatState, NewMessage, WorkerId
from chatd.domain.ports import Tools
from chatd.domain.tools import Executor
from chatd.domain.turn import FixedSetups, ModelProfile, TurnSetup
from chatd.domain.workers import is_ownerless
from chatd.engine.live import LiveChats
from chatd.engine.partials import PartialWriter
from chatd.engine.turn import TurnPorts, TurnRunner
from chatd.engine.worker import Worker, WorkerLimits, WorkerPorts
from chatd.news import CHAT_TOPIC, SWEEP_TOPIC, follow_chats, follow_sweeps
from chatd.providers.scripted import ScriptedModel, demo_with
from chatd.rpc.callers import KnownGroups
from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.errors import DOMAIN, ERRORS
from chatd.rpc.stream_servicer import StreamServicer
from chatd.rpc.streams.access import Access
from chatd.rpc.streams.feeds import Feeds
from chatd.rpc.streams.hubs import Hubs
from chatd.rpc.streams.peers import ReplicaChannels, know_replicas
from chatd.rpc.streams.relay_source import RelaySource
from chatd.rpc.streams.relays import PeerRelays
from chatd.rpc.streams.replicas import ReplicaWatch
from chatd.rpc.streams.serving import Streams
from chatd.settings import Settings
from chatd.store.chats import PostgresChats
from chatd.store.feeds import PostgresFeeds
from chatd.store.fingerprints import check_keyring
from chatd.store.following import Followings
from chatd.store.partials import PostgresPartials
from chatd.store.schema import MIGRATIONS, SCHEMA
from chatd.store.stores import Stores
from chatd.store.workers import PostgresWorkers
from parley.bus import Notice, PostgresBus
from parley.identity import ServiceName
from parley.postgres import Database, Session, migrate
from parley.process import Neighbours, Process
from parley.rpc import current_method
from parley.secrets import Keyring
from parley.telemetry import Statements

DEMO_SETUP = TurnSetup(ModelProfile("scripted"))


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop, then hand its own over."""
    database_url = settings.database_url.reveal()
    keyring = Keyring.load(settings.master_key_file)
    await migrate(database_url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    neighbours = Neighbours(settings, process)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                database_url,
                application_name=process.instance,
                connections_max=settings.database_connections_max,
                statements=Statements(process.telemetry, current_method),
            )
        )
        await check_keyring(database.pool, keyring)
        bus = await stack.enter_async_context(
            PostgresBus.open(database_url, application_name=process.instance, clock=process.clock)
        )
        tools = await _tools(settings, neighbours, stack)
        partials = PostgresPartials(database.pool)
        writer = PartialWriter(partials, process.clock)
        live = LiveChats(writer.shown, clock=process.clock)

        def moved(state: ChatState) -> None:
            live.moved(state)
            hubs.moved(state)
            writer.moved(state)
            worker.deliver(state)
            bus.publish(Notice(CHAT_TOPIC, state.chat_id, state.snapshot_version))
            if is_ownerless(state):
                offer()

        def offer() -> None:
            bus.publish(Notice(SWEEP_TOPIC, SWEEP_TOPIC, 0))

        def appended(
            before: ChatState,
            after: ChatState,
            messages: tuple[NewMessage, ...],
            at: datetime | None,
        ) -> None:
            turns.appended(before, after, messages)
            hubs.appended(before, after, messages, at)

        chats = await stack.enter_async_context(
            PostgresChats(database.pool, moved, process.clock, appended=appended)
        )
        workers = PostgresWorkers(database.pool, Session(database_url, f"{process.instance} lease"))
        stack.callback(workers.close)
        turns = TurnRunner(
            TurnPorts(
                chats=chats,
                model=ScriptedModel(demo_with(process.clock)),
                tools=tools,
                setups=FixedSetups(DEMO_SETUP),
                live=live,
                partials=partials,
            ),
            clock=process.clock,
            chance=process.random.random,
            may_act=lambda: worker.may_act(),
        )
        worker = Worker(
            WorkerId(process.new_id()),
            address=str(settings.advertise or settings.listen),
            ports=WorkerPorts(
                leases=workers,
                claims=workers,
                apply=chats.apply,
                run_chat=turns.run,
                moved=chats.noticed,
                offer=offer,
                clock=process.clock,
                chance=process.random,
            ),
            limits=WorkerLimits(
                slots_max=settings.running_chats_max,
                running_per_user_max=settings.running_chats_per_user_max,
                acquire_batch_max=settings.acquire_batch_max,
            ),
        )
        background = await stack.enter_async_context(asyncio.TaskGroup())
        followings = Followings(database.pool)
        peers = await stack.enter_async_context(neighbours.channels(ServiceName.CHATD, ()))
        replicas = ReplicaWatch(workers, process.clock, partial(know_replicas, peers))
        relays = PeerRelays(
            worker.worker_id,
            ReplicaChannels(replicas, peers),
            hubs=lambda: hubs,
            tasks=background,
            clock=process.clock,
        )
        stack.callback(relays.close)
        feeds = Feeds(PostgresFeeds(database.pool), process.clock)
        hubs = Hubs(
            followings,
            live,
            relays=relays,
            tasks=background,
            clock=process.clock,
            news=feeds.poke,
        )
        groups = KnownGroups()
        access = Access(followings, groups, process.clock)
        working = background.create_task(worker.run())
        for following in (
            background.create_task(follow_chats(bus, chats, hubs, worker)),
            background.create_task(follow_sweeps(bus, worker)),
            background.create_task(writer.run()),
            background.create_task(live.run()),
            background.create_task(hubs.run()),
            background.create_task(access.run()),
            background.create_task(replicas.run()),
            background.create_task(feeds.run()),
        ):
            stack.callback(following.cancel)
        await worker.until_registered()
        revocations = await stack.enter_async_context(neighbours.revocations(settings.gateway))
        servicers = (
            ChatServicer(
                Stores.over(database.pool, chats), claims=worker, groups=groups, tasks=background
            ),
            StreamServicer(
                Streams(
                    hubs,
                    RelaySource(live),
                    access,
                    neighbours.admission(revocations),
                    feeds,
                    replicas,
                    process.clock,
                )
            ),
        )
        await stack.enter_async_context(
            neighbours.serve(servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN)
        )
        await process.stopping.wait()
        hubs.close()
        feeds.close()
        await worker.drain()
        await working


async def _tools(settings: Settings, neighbours: Neighbours, stack: AsyncExitStack) -> Tools:
    """Return the tools of all executors, reached over channels that the stack closes."""
    toolrunners = await stack.enter_async_context(
        neighbours.channels(ServiceName.TOOLRUNNER, settings.toolrunner)
    )
    mcpgateways = await stack.enter_async_context(
        neighbours.channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
    )
    return RoutedTools(
        {
            Executor.TOOLRUNNER: WorkspaceTools(toolrunners),
            Executor.MCPGATEWAY: McpTools(mcpgateways),
        }
    )
