"""The composition root of chatd: opens what the process needs and serves until it is stopped."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime

from chatd.assembly.barring import open_barring
from chatd.assembly.groups import open_groups
from chatd.assembly.labelling import open_labelling
from chatd.assembly.models import open_catalogue
from chatd.assembly.streams import connections_of_streams, open_streaming
from chatd.assembly.tools import open_tools
from chatd.assembly.workspaces import open_workspaces
from chatd.clients.nodes import Nodes
from chatd.clients.repositories import NodeRepositories, TouchingTools
from chatd.domain.chat import ChatId, ChatState, NewMessage, WorkerId
from chatd.domain.workers import is_ownerless
from chatd.engine.barring import AllowedSetups
from chatd.engine.configuration import CHAT_PREFIX
from chatd.engine.diffs import DiffStatuses
from chatd.engine.files import CachedFiles
from chatd.engine.janitor import Janitor
from chatd.engine.late_bills import LateBills
from chatd.engine.leases import LeaseTiming
from chatd.engine.live import LiveChats
from chatd.engine.partials import PartialWriter
from chatd.engine.resting import Resting
from chatd.engine.setups import ConfiguredSetups
from chatd.engine.small_jobs import SmallJobs
from chatd.engine.spending import LimitedSpending
from chatd.engine.turn import TurnPorts, TurnRunner
from chatd.engine.worker import Worker, WorkerLimits, WorkerPorts
from chatd.faults import Faults
from chatd.news import (
    CHAT_TOPIC,
    LIMITS_TOPIC,
    SWEEP_TOPIC,
    follow_chats,
    follow_config,
    follow_groups,
    follow_limits,
    follow_sweeps,
    follow_users,
    follow_workspaces,
)
from chatd.rpc.admission import AllowedSpending
from chatd.rpc.attach_tickets import AttachTickets
from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.defaults import ConfiguredDefaults
from chatd.rpc.errors import DOMAIN, ERRORS
from chatd.rpc.file_servicer import FileServicer
from chatd.rpc.model_servicer import ModelServicer
from chatd.rpc.settings_servicer import SettingsServicer
from chatd.rpc.usage_servicer import UsagePorts, UsageServicer
from chatd.rpc.workspace_door import Door, Sites
from chatd.rpc.workspace_servicer import WorkspaceAccessServicer
from chatd.settings import Settings
from chatd.store.attachments import Attachments
from chatd.store.diffs import PostgresDiffs
from chatd.store.file_bytes import PostgresFiles
from chatd.store.fingerprints import check_keyring
from chatd.store.held_files import HeldFiles
from chatd.store.housekeeping import PostgresHousekeeping
from chatd.store.ledger import PostgresLedger
from chatd.store.limits import PostgresLimits
from chatd.store.partials import PostgresPartials
from chatd.store.preferences import Preferences
from chatd.store.schema import MIGRATIONS, SCHEMA
from chatd.store.stores import Stores
from chatd.store.usage import PostgresUsage
from chatd.store.workers import PostgresWorkers
from parley.bus import Notice, PostgresBus
from parley.identity import ServiceName
from parley.postgres import Database, Session, migrate
from parley.process import Neighbours, Process
from parley.rpc import current_method
from parley.secrets import Keyring
from parley.telemetry import Statements

BILLS_S = 2.0


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop, then hand its own over."""
    faults = Faults(settings.faultpoints_directory, process)
    process = faults.process
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
                put_aside=connections_of_streams(settings.database_connections_max),
                statements=Statements(process.telemetry, current_method),
            )
        )
        await check_keyring(database.pool, keyring)
        bus = await stack.enter_async_context(
            PostgresBus.open(database_url, application_name=process.instance, clock=process.clock)
        )
        toolrunners = await stack.enter_async_context(
            neighbours.channels(ServiceName.TOOLRUNNER, settings.toolrunner)
        )
        partials = PostgresPartials(database.pool)
        writer = PartialWriter(partials, process.clock)
        live = LiveChats(writer.shown, clock=process.clock)

        def moved(state: ChatState) -> None:
            live.moved(state)
            hubs.moved(state)
            writer.moved(state)
            worker.deliver(state)
            resting.moved(state)
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
            faults.chats(database.pool, moved, appended=appended)
        )
        workers = PostgresWorkers(database.pool, Session(database_url, f"{process.instance} lease"))
        stack.callback(workers.close)
        catalogue = await open_catalogue(settings, process, database, bus, stack)
        configuration, model = catalogue.configuration, catalogue.model
        stores = Stores.over(database.pool, chats)
        gateways = await stack.enter_async_context(
            neighbours.channels(ServiceName.GATEWAY, settings.gateway)
        )
        barring = open_barring(gateways, stores, database.pool, process)
        bills = LateBills(PostgresLedger(database.pool), process.clock)
        limits = PostgresLimits(database.pool)
        jobs = SmallJobs()
        resting = Resting(jobs.add, process.clock)

        def noted(chat_id: ChatId, snapshot_version: int) -> None:
            hubs.heard(chat_id, snapshot_version)
            bus.publish(Notice(CHAT_TOPIC, chat_id, snapshot_version))

        def limits_changed() -> None:
            spending.forget()
            bus.publish(Notice(LIMITS_TOPIC, LIMITS_TOPIC, 0))

        known = open_groups(
            gateways, database.pool, limits_changed=limits_changed, clock=process.clock
        )
        groups = known.groups
        spending = LimitedSpending(limits, groups, process.clock)
        worker_id = WorkerId(process.new_id())
        reached = Nodes(toolrunners)

        def door_to(sites: Sites) -> Door:
            return Door(stores.reading, groups, barring.check, sites=sites, placed=reached.placed)

        rooms = open_workspaces(
            settings,
            process,
            database.pool,
            bus,
            worker_id=worker_id,
            toolrunners=toolrunners,
            configuration=configuration,
            changed=catalogue.changed,
            groups=groups,
            box=catalogue.box,
            tickets=lambda sites: AttachTickets(door_to(sites), reached, neighbours.ticket_office),
        )
        setups = AllowedSetups(
            ConfiguredSetups(configuration, catalogue.book, rooms.sites), barring
        )
        diffs = DiffStatuses(
            NodeRepositories(toolrunners, process.clock, rooms.sites),
            PostgresDiffs(database.pool),
            process.clock,
            changed=noted,
        )
        offered = await open_tools(
            settings,
            neighbours,
            process.clock,
            bus,
            stack,
            toolrunners=toolrunners,
            shelf=Attachments(database.pool),
            sites=rooms.sites,
            lifecycle=rooms.tools,
        )
        tools = faults.tools(
            TouchingTools(offered, lambda chat_id, owner: diffs.touched(chat_id, owner))
        )
        labeller = open_labelling(
            process,
            database.pool,
            catalogue=catalogue,
            setups=setups,
            spending=spending,
            bills=bills,
            jobs=jobs,
            resting=resting,
            noted=noted,
        )
        turns = TurnRunner(
            TurnPorts(
                chats=chats,
                model=faults.model(model),
                tools=tools,
                setups=setups,
                live=live,
                partials=partials,
                spending=spending,
                files=CachedFiles(PostgresFiles(database.pool)),
            ),
            clock=process.clock,
            chance=process.random.random,
            may_act=lambda: worker.may_act(),
            ended=labeller.ended,
            unbilled=bills.add,
        )
        worker = Worker(
            worker_id,
            address=str(settings.advertise or settings.listen),
            ports=WorkerPorts(
                leases=workers,
                claims=workers,
                apply=chats.apply,
                run_chat=faults.runner(turns.run),
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
            timing=LeaseTiming.of(settings.lease_s, settings.lease_renew_s),
        )
        janitor = Janitor(
            PostgresHousekeeping(database.pool), process.clock, chance=process.random.random
        )
        background = await stack.enter_async_context(asyncio.TaskGroup())
        streaming = await open_streaming(
            neighbours,
            process,
            database.side_pool,
            stack,
            workers=workers,
            worker_id=worker_id,
            live=live,
            groups=groups,
            tasks=background,
        )
        hubs = streaming.hubs
        working = background.create_task(worker.run())
        labelling = background.create_task(jobs.run())
        for following in (
            background.create_task(resting.run()),
            background.create_task(diffs.run()),
            background.create_task(follow_chats(bus, chats, hubs, worker)),
            background.create_task(follow_sweeps(bus, worker)),
            background.create_task(follow_limits(bus, spending)),
            background.create_task(follow_config(bus, configuration)),
            background.create_task(configuration.run()),
            background.create_task(catalogue.discovery.run()),
            background.create_task(follow_users(bus, barring, groups)),
            background.create_task(barring.run()),
            background.create_task(follow_groups(bus, groups, known.remains)),
            background.create_task(known.remains.run()),
            background.create_task(bills.run()),
            background.create_task(writer.run()),
            background.create_task(janitor.run()),
            background.create_task(live.run()),
            *map(background.create_task, streaming.works()),
            background.create_task(follow_workspaces(bus, rooms.changes)),
            background.create_task(rooms.driver.run()),
            background.create_task(rooms.keeper.run()),
        ):
            stack.callback(following.cancel)
        await worker.until_registered()
        revocations = await stack.enter_async_context(neighbours.revocations(settings.gateway))
        servicers = (
            ChatServicer(
                stores,
                claims=worker,
                groups=groups,
                tasks=background,
                spending=AllowedSpending(spending, barring.check),
                created=labeller.created,
                defaults=ConfiguredDefaults(configuration),
                changed=lambda chat_id: catalogue.changed(f"{CHAT_PREFIX}{chat_id}", 0),
            ),
            streaming.servicer(neighbours.admission(revocations)),
            UsageServicer(
                UsagePorts(
                    PostgresUsage(database.pool),
                    limits,
                    spending,
                    groups,
                    limits_changed,
                    process.clock,
                )
            ),
            FileServicer(HeldFiles(database.pool), groups),
            ModelServicer(catalogue.ports),
            SettingsServicer(Preferences(catalogue.changes)),
            WorkspaceAccessServicer(door_to(rooms.sites), reached, process.stopping, diffs.touched),
            *rooms.servicers,
        )
        await stack.enter_async_context(
            neighbours.serve(servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN)
        )
        await process.stopping.wait()
        streaming.close()
        await worker.drain()
        await working
        labelling.cancel()
        await asyncio.wait((labelling,))
        await bills.flushed_within(BILLS_S)
