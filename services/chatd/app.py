"""The composition root of chatd: opens its components and serves until it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from chatd.actions.engine.dispatching import CallDispatcher
from chatd.actions.rpc.servicer import ActionPorts, ActionServicer
from chatd.actions.store.actions import Actions
from chatd.approvals.rpc.servicer import ApprovalServicer
from chatd.approvals.wiring import ApprovalComponents, open_approvals
from chatd.break_glass.rpc.servicer import BreakGlassServicer
from chatd.bus_handlers import (
    follow_approvals,
    follow_chats,
    follow_config,
    follow_groups,
    follow_hooks,
    follow_limits,
    follow_metadata,
    follow_sweeps,
    follow_users,
    follow_workspaces,
)
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.engine.search_indexing import SearchIndexing
from chatd.chats.rpc.admission import SuspensionCheckedSpending
from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.references import References
from chatd.chats.rpc.servicer import ChatServicer
from chatd.chats.store.cleanup.housekeeping import PostgresHousekeeping
from chatd.chats.store.text_search.index import SearchIndex
from chatd.chats.wiring import ChatComponents, open_chats
from chatd.errors import DOMAIN, ERRORS
from chatd.faults import Faults
from chatd.files.rpc.servicer import FileServicer
from chatd.files.store.files import StoredFiles
from chatd.goals.wiring import open_goals
from chatd.hooks.wiring import HookComponents, open_hooks
from chatd.housekeeping import HousekeepingLoop
from chatd.instructions.engine.pins import InstructionPins
from chatd.instructions.rpc.servicer import ContextPorts, ContextServicer
from chatd.instructions.store.skills import PostgresSkills
from chatd.instructions.wiring import open_instructions
from chatd.models.domain.preferences import InstallationSettings
from chatd.models.rpc.servicer import ModelServicer
from chatd.models.rpc.settings_servicer import SettingsServicer
from chatd.models.store.preferences import Preferences
from chatd.models.wiring import ModelComponents, open_models
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.offboarding.wiring import open_suspension
from chatd.primitives.domain.ids import WorkerId
from chatd.races.rpc.servicer import RaceServicer
from chatd.races.wiring import open_races
from chatd.resources import Resources, open_resources
from chatd.retention.wiring import RetentionComponents, open_retention
from chatd.reverts.clients.restores import NodeRestores
from chatd.reverts.rpc.servicer import RevertServicer
from chatd.schedules.wiring import ScheduleComponents, open_schedules
from chatd.schema import SCHEMA
from chatd.settings import Settings
from chatd.spend.rpc.servicer import UsagePorts, UsageServicer
from chatd.spend.store.usage import PostgresUsage
from chatd.spend.wiring import SpendComponents, open_spend
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.rpc.position import cursor_after
from chatd.streams.wiring import StreamComponents, open_streams
from chatd.turns.wiring import WorkerComponents, open_worker
from chatd.users.clients.existence import GatewayGrantees
from chatd.workers.domain import WorkerEnded
from chatd.workers.engine.instances import end_dead_workers
from chatd.workers.engine.quarantine import until_idle
from chatd.workers.rpc.servicer import WorkerServicer
from chatd.workspace_servers.rpc.servicer import ServerPorts, WorkspaceServerServicer
from chatd.workspaces.rpc.access_servicer import WorkspaceAccessServicer
from chatd.workspaces.wiring import WorkspaceComponents, open_workspaces
from parley.audit_log.delivery import AuditDelivery
from parley.instance_file import InstanceFile, lock_instance_file
from parley.process import Process
from parley.rpc import TunnelledMethods
from parley.tasks import BackgroundTasks

BILLS_S = 2.0


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a chatd process.

    Attributes:
        worker: Runs the chats that this process owns.
        streams: Streams events to readers.
        flush_timer: Runs deferred writes periodically.
        tasks: Background loops that run while the process serves; a failure of one does not end the
            process.
    """

    resources: Resources
    chats: ChatComponents
    approvals: ApprovalComponents
    hooks: HookComponents
    catalogue: ModelComponents
    spend: SpendComponents
    suspension: UserSuspension
    workspaces: WorkspaceComponents
    worker: WorkerComponents
    instructions: InstructionPins
    streams: StreamComponents
    retention: RetentionComponents
    flush_timer: FlushTimer
    tasks: BackgroundTasks


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
        chat_servicer = _chat_servicer(components)
        schedules = _open_schedules(components, chat_servicer)
        access_servicer = _access_servicer(components)
        goals = open_goals(resources, components.chats, chat_servicer, access_servicer)
        own_loops = {"schedules.run": schedules.runs.run, "goals.run": goals.pursuit.run}
        for name, loop in {**_loops(components), **own_loops}.items():
            components.tasks.keep(name, loop)
        await worker.until_registered()
        worker.poke()  # Chats of the dead may wait since before this worker could claim.
        revocations = await stack.enter_async_context(
            resources.neighbours.revocations(settings.gateway)
        )
        tunnelled = TunnelledMethods()
        servicers = (
            *_servicers(components, chat_servicer),
            _race_servicer(components),
            access_servicer,
            schedules.servicer,
            goals.servicer,
            components.streams.servicer(resources.neighbours.admission(revocations), tunnelled),
        )
        await stack.enter_async_context(
            resources.neighbours.serve(
                servicers,
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
    hooks = await open_hooks(resources, catalogue.box, stack)
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
    )
    tasks = await stack.enter_async_context(BackgroundTasks(resources.process.supervision))
    streams = await _open_streams(resources, stack, chats, spend, worker, tasks)
    _connect(chats, worker, streams)
    components = Components(
        resources,
        chats,
        approvals,
        hooks,
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


def _action_ports(components: Components) -> ActionPorts:
    """Return the dependencies of ActionService."""
    catalogue, worker = components.catalogue, components.worker
    return ActionPorts(
        Actions(components.resources.pool),
        components.chats.stores,
        CallDispatcher(
            worker.tools,
            catalogue.configuration.chat,
            components.approvals.judge,
            components.chats.chats.history,
        ),
        worker.worker,
        components.spend.groups,
        components.tasks,
        changed=catalogue.chat_changed,
        remembered=components.approvals.rules.changed,
    )


def _context_ports(components: Components) -> ContextPorts:
    """Return the dependencies of ContextService."""
    return ContextPorts(
        components.chats.stores.ownership.require,
        components.chats.chats.history,
        components.catalogue.configuration.chat,
        components.instructions,
        components.worker.setups,
        components.worker.tools,
        PostgresSkills(components.catalogue.changes),
    )


def _server_ports(components: Components) -> ServerPorts:
    """Return the dependencies of WorkspaceServerService."""
    return ServerPorts(
        components.chats.stores.ownership.require,
        components.workspaces.locator,
        components.worker.offered.workspace_servers,
    )


def _race_servicer(components: Components) -> RaceServicer:
    """Return the servicer of races."""
    resources, spend, worker = components.resources, components.spend, components.worker
    workspaces = components.workspaces
    return open_races(
        resources,
        components.chats,
        components.catalogue,
        workspaces,
        tools=worker.tools,
        spending=SuspensionCheckedSpending(spend.spending, components.suspension.check),
        groups=spend.groups,
        references=_references(components),
        tasks=components.tasks,
    )


def _chat_servicer(components: Components) -> ChatServicer:
    """Return the servicer of ChatService."""
    spend, worker, workspaces = components.spend, components.worker, components.workspaces
    return ChatServicer(
        components.chats.stores,
        claims=worker.worker,
        groups=spend.groups,
        tasks=components.tasks,
        references=_references(components),
        spending=SuspensionCheckedSpending(spend.spending, components.suspension.check),
        created=worker.titles.title_writer.created,
        defaults=ConfiguredDefaults(components.catalogue.configuration),
        cursor_after=cursor_after,
        fork_workspace=workspaces.control.fork_of_chat,
        propose_title=worker.titles.title_writer.propose,
        changed=components.catalogue.chat_changed,
        hooks=components.hooks.chats,
    )


def _access_servicer(components: Components) -> WorkspaceAccessServicer:
    """Return the servicer of WorkspaceAccessService."""
    return WorkspaceAccessServicer(
        components.workspaces.access,
        components.workspaces.nodes,
        components.resources.process.stopping,
        components.worker.diffs.files_changed,
    )


def _references(components: Components) -> References:
    """Return the checks of ids in requests."""
    return References(
        components.workspaces.control.workspaces,
        components.worker.servers,
        GatewayGrantees(components.resources.gateways),
    )


def _open_schedules(components: Components, chat_servicer: ChatServicer) -> ScheduleComponents:
    """Return the components of schedules, whose runs call ChatService as their owners."""
    return open_schedules(
        components.resources,
        components.chats,
        chat_servicer,
        references=_references(components),
        defaults=ConfiguredDefaults(components.catalogue.configuration),
    )


def _servicers(components: Components, chat_servicer: ChatServicer) -> tuple[object, ...]:
    """Return the servicers, except that of streams, which checks tokens itself."""
    resources, catalogue, spend = components.resources, components.catalogue, components.spend
    worker, workspaces = components.worker, components.workspaces
    grantees = GatewayGrantees(resources.gateways)
    usage = UsagePorts(
        PostgresUsage(resources.pool),
        spend.limits,
        spend.spending,
        spend.groups,
        grantees,
        spend.limits_changed,
        resources.process.clock,
    )
    restores = NodeRestores(resources.toolrunners, resources.process.clock, workspaces.locator)
    return (
        chat_servicer,
        RevertServicer(
            components.chats.stores,
            claims=worker.worker,
            groups=spend.groups,
            tasks=components.tasks,
            previews=restores,
            changed=catalogue.chat_changed,
        ),
        UsageServicer(usage),
        FileServicer(StoredFiles(resources.pool), spend.groups),
        WorkerServicer(worker.endings),
        ApprovalServicer(components.approvals.rules, worker.servers),
        components.hooks.servicer,
        components.retention.servicer,
        BreakGlassServicer(
            components.chats.stores.break_glass,
            grantees,
            components.chats.notifier.metadata_changed,
        ),
        ModelServicer(catalogue.ports),
        ActionServicer(_action_ports(components)),
        ContextServicer(_context_ports(components)),
        WorkspaceServerServicer(_server_ports(components)),
        SettingsServicer(Preferences(catalogue.changes), catalogue.ports.catalogue),
        *workspaces.servicers,
    )
