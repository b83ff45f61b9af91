"""The composition root of chatd: opens its components and serves until it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial

from chatd.approvals.wiring import open_approvals
from chatd.bus_handlers import (
    follow_approvals,
    follow_chats,
    follow_config,
    follow_groups,
    follow_hooks,
    follow_limits,
    follow_metadata,
    follow_push,
    follow_sweeps,
    follow_users,
    follow_workspaces,
)
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.engine.search_indexing import SearchIndexing
from chatd.chats.store.cleanup.housekeeping import PostgresHousekeeping
from chatd.chats.store.text_search.index import SearchIndex
from chatd.chats.wiring import ChatComponents, open_chats
from chatd.components import Components
from chatd.errors import DOMAIN, ERRORS
from chatd.faults import Faults
from chatd.goals.wiring import open_goals
from chatd.hooks.wiring import open_hooks
from chatd.housekeeping import HousekeepingLoop
from chatd.instructions.wiring import open_instructions
from chatd.models.domain.preferences import InstallationSettings
from chatd.models.wiring import open_models
from chatd.monitors.wiring import open_monitors
from chatd.offboarding.wiring import open_suspension
from chatd.primitives.domain.ids import WorkerId
from chatd.push.wiring import open_push
from chatd.resources import Resources, open_resources
from chatd.retention.wiring import open_retention
from chatd.schema import SCHEMA
from chatd.servicers import (
    access_servicer_of,
    chat_servicer_of,
    race_servicer,
    schedules_of,
    servicers,
)
from chatd.settings import Settings
from chatd.spend.wiring import SpendComponents, open_spend
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.wiring import StreamComponents, open_streams
from chatd.turns.wiring import WorkerComponents, open_worker
from chatd.workers.domain import WorkerEnded
from chatd.workers.engine.instances import end_dead_workers
from chatd.workers.engine.quarantine import until_idle
from chatd.workspaces.wiring import open_workspaces
from parley.audit_log.delivery import AuditDelivery
from parley.instance_file import InstanceFile, lock_instance_file
from parley.process import Process
from parley.rpc import TunnelledMethods
from parley.tasks import BackgroundTasks

BILLS_S = 2.0


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop, then release the chats that it owns."""
    faults = Faults(settings.faultpoints_directory, process)
    async with AsyncExitStack() as stack:
        resources = await open_resources(settings, faults.process, stack)
        components = await _open_components(resources, faults, stack)
        worker, jobs = components.worker.worker, components.worker.titles.jobs
        locked = await _own_instance(components)
        if settings.is_quarantine and settings.instance_file is not None and locked is None:
            return  # Another process in quarantine runs on this machine.
        owning = components.tasks.keep("chats.run", worker.run)
        titles = components.tasks.keep("labels.generate", jobs.run)
        chat_servicer = chat_servicer_of(components)
        schedules = schedules_of(components, chat_servicer)
        access_servicer = access_servicer_of(components)
        goals = open_goals(components, chat_servicer, access_servicer)
        monitors = open_monitors(components, chat_servicer, access_servicer)
        own_loops = {
            "schedules.run": schedules.runs.run,
            "goals.run": goals.pursuit.run,
            "monitors.run": monitors.rounds.run,
        }
        for name, loop in {**_loops(components), **own_loops}.items():
            components.tasks.keep(name, loop)
        await worker.until_registered()
        worker.poke()  # Chats of the dead may wait since before this worker could claim.
        revocations = await stack.enter_async_context(
            resources.neighbours.revocations(settings.gateway)
        )
        tunnelled = TunnelledMethods()
        served = (
            *servicers(components, chat_servicer),
            race_servicer(components),
            access_servicer,
            schedules.servicer,
            goals.servicer,
            monitors.servicer,
            components.streams.servicer(resources.neighbours.admission(revocations), tunnelled),
        )
        await stack.enter_async_context(
            resources.neighbours.serve(
                served,
                revocations=revocations,
                errors=ERRORS,
                domain=DOMAIN,
                tunnelled=tunnelled,
                master_keys=components.catalogue.key_rotation,
            )
        )
        await process.stopping.wait()
        if worker.has_ended:
            # Its chats belong to others, so there is nothing to hand over or to wait for.
            raise WorkerEnded(worker.worker_id)
        components.streams.close()
        await worker.drain()
        await owning
        titles.cancel()
        await asyncio.wait((titles,))
        await components.spend.bills.flushed_within(BILLS_S)
        if locked is not None:
            locked.clear()


async def _own_instance(components: Components) -> InstanceFile | None:
    """End the dead workers of this machine, then lock and name the instance file."""
    path = components.resources.settings.instance_file
    if path is None:
        return None
    await end_dead_workers(path.parent, components.worker.endings.end)
    return await lock_instance_file(
        path, components.worker.worker.worker_id, components.resources.process.clock
    )


async def _open_components(
    resources: Resources, faults: Faults, stack: AsyncExitStack
) -> Components:
    """Build the components of the process without starting them."""
    flush_timer = FlushTimer(resources.process.clock)
    chats = await open_chats(resources, faults, flush_timer, stack)
    catalogue = await open_models(resources, flush_timer, stack)
    spend = open_spend(resources)
    suspension = open_suspension(resources, chats.stores)
    worker_id = WorkerId(resources.process.new_id())
    workspaces = open_workspaces(
        resources,
        worker_id,
        catalogue=catalogue,
        stores=chats.stores,
        groups=spend.groups,
        suspension=suspension,
        metadata_changed=chats.notifier.metadata_changed,
    )
    approvals = open_approvals(resources, catalogue, workspaces, chats.chats.history)
    hooks = await open_hooks(resources, faults, catalogue.box, stack)
    push = await open_push(resources, catalogue.box, stack)
    instructions = open_instructions(resources, catalogue, workspaces, chats)
    worker = await open_worker(
        resources,
        faults,
        worker_id,
        stack,
        chats=chats,
        catalogue=catalogue,
        spend=spend,
        suspension=suspension,
        workspaces=workspaces,
        approvals=approvals.judge,
        instructions=instructions,
        hooks=hooks.chats,
        observer=push.outbox,
    )
    tasks = await stack.enter_async_context(BackgroundTasks(resources.process.supervision))
    streams = await _open_streams(resources, stack, chats, spend, worker, tasks)
    _connect(chats, worker, streams)
    components = Components(
        resources,
        chats,
        approvals,
        hooks,
        push,
        catalogue,
        spend,
        suspension,
        workspaces,
        worker,
        instructions,
        streams,
        open_retention(resources, chats, catalogue),
        flush_timer,
        tasks,
    )
    catalogue.configuration.follow_settings(partial(_follow_settings, components))
    return components


async def _open_streams(
    resources: Resources,
    stack: AsyncExitStack,
    chats: ChatComponents,
    spend: SpendComponents,
    worker: WorkerComponents,
    tasks: BackgroundTasks,
) -> StreamComponents:
    return await open_streams(
        resources.neighbours,
        resources.process,
        resources.database.side_pool,
        stack,
        workers=worker.workers,
        worker_id=worker.worker.worker_id,
        live=chats.live,
        groups=spend.groups,
        tasks=tasks,
    )


def _follow_settings(components: Components, changed: InstallationSettings) -> None:
    """Apply settings of the installation that take effect outside of turns."""
    default = components.resources.settings.running_chats_per_user_max
    limit = changed.running_chats_per_user_max or default
    components.worker.worker.limit_running_per_user(limit)
    components.retention.rounds.follow(changed)


def _connect(chats: ChatComponents, worker: WorkerComponents, streams: StreamComponents) -> None:
    """Connect the chat callbacks: readers are notified before components that act on the change."""
    hubs = streams.hubs

    def appended(
        before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime | None
    ) -> None:
        worker.turns.appended(before, after, messages)

    chats.notifier.connect(
        state_changed=(
            chats.live.state_changed,
            hubs.state_changed,
            chats.writer.state_changed,
            worker.worker.deliver,
            worker.titles.debouncer.state_changed,
            worker.offered.acknowledgements.state_changed,
            worker.agent_waits.on_state,
        ),
        appended=(appended, hubs.appended),
        metadata_changed=(streams.feeds.metadata_changed,),
    )


def _loops(components: Components) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return the background loops of the process by name."""
    process, bus = components.resources.process, components.resources.bus
    chats, catalogue, spend = components.chats, components.catalogue, components.spend
    suspension, workspaces = components.suspension, components.workspaces
    worker, hubs = components.worker, components.streams.hubs
    housekeeping_loop = HousekeepingLoop(
        PostgresHousekeeping(components.resources.pool),
        process.clock,
        jitter=process.random.random,
    )
    indexing = SearchIndexing(
        SearchIndex(components.resources.pool), process.clock, jitter=process.random.random
    )
    return {
        "quarantine.run": lambda: _quarantine(components),
        "labels.wait": worker.titles.debouncer.run,
        "diffs.look": worker.diffs.run,
        "calls.store": worker.open_calls.run,
        "agents.resume": worker.agent_waits.run,
        "chats.follow": lambda: follow_chats(bus, chats.chats, hubs, worker.worker),
        "notes.follow": lambda: follow_metadata(bus, components.streams.feeds),
        "sweeps.follow": lambda: follow_sweeps(bus, worker.worker),
        "limits.follow": lambda: follow_limits(bus, spend.spending),
        "configuration.follow": lambda: follow_config(bus, catalogue.configuration),
        "approvals.follow": lambda: follow_approvals(bus, components.approvals.cached),
        "hooks.follow": lambda: follow_hooks(bus, components.hooks.cached),
        "hooks.read": components.hooks.cached.run,
        "push.follow": lambda: follow_push(bus, components.push.targets),
        "push.send": components.push.outbox.run,
        "configuration.read": catalogue.configuration.run,
        "models.discover": catalogue.discovery.run,
        "master_keys.follow": catalogue.key_rotation.run,
        "users.follow": lambda: follow_users(
            bus, suspension, spend.groups, components.streams.feeds
        ),
        "users.check": suspension.run,
        "audit_events.deliver": AuditDelivery(
            components.resources.pool, SCHEMA, components.resources.gateways, process.clock
        ).run,
        "groups.follow": lambda: follow_groups(
            bus, spend.groups, spend.group_cleanup, components.streams.feeds
        ),
        "groups.check": spend.group_cleanup.run,
        "ledger.enter": spend.bills.run,
        "partials.write": chats.writer.run,
        "retention.run": components.retention.rounds.run,
        "rows.expire": housekeeping_loop.run,
        "search.index": indexing.run,
        "timer.flush": components.flush_timer.run,
        **components.streams.loops(),
        "workspaces.follow": lambda: follow_workspaces(bus, workspaces.changes),
        "workspaces.drive": workspaces.driver.run,
        "workspaces.check": workspaces.workspace_timers.run,
    }


async def _quarantine(components: Components) -> None:
    """Start processes in quarantine as needed; one of these ends itself when it is idle."""
    resources, worker = components.resources, components.worker
    if resources.settings.is_quarantine:
        await until_idle(lambda: worker.worker.is_idle, resources.process.clock)
        resources.process.stopping.set()
    else:
        await worker.quarantine.run()
