"""The composition root of chatd: opens what the process needs and serves until it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

from chatd.bus_handlers import (
    follow_chats,
    follow_config,
    follow_groups,
    follow_limits,
    follow_notes,
    follow_sweeps,
    follow_users,
    follow_workspaces,
)
from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.rpc.admission import AllowedSpending
from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.references import References
from chatd.chats.rpc.servicer import ChatServicer
from chatd.chats.store.housekeeping import PostgresHousekeeping
from chatd.chats.wiring import ChatRooms, open_chats
from chatd.errors import DOMAIN, ERRORS
from chatd.faults import Faults
from chatd.files.rpc.servicer import FileServicer
from chatd.files.store.files import HeldFiles
from chatd.models.engine.configuration import CHAT_PREFIX
from chatd.models.rpc.servicer import ModelServicer
from chatd.models.rpc.settings_servicer import SettingsServicer
from chatd.models.store.preferences import Preferences
from chatd.models.wiring import open_catalogue
from chatd.offboarding.wiring import open_barring
from chatd.primitives.domain.ids import WorkerId
from chatd.resources import Ground, open_ground
from chatd.settings import Settings
from chatd.spend.rpc.servicer import UsagePorts, UsageServicer
from chatd.spend.store.usage import PostgresUsage
from chatd.spend.wiring import open_budget
from chatd.streams.engine.flush_timer import Beats
from chatd.streams.wiring import Streaming, open_streaming
from chatd.turns.wiring import Surroundings, Working, open_working
from chatd.turns.worker.housekeeping import Janitor
from chatd.users.clients.existence import GatewayGrantees
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.rpc.access_servicer import WorkspaceAccessServicer
from chatd.workspaces.wiring import Doors, open_workspaces
from parley.process import Process
from parley.rpc import TunnelledMethods
from parley.tasks import BackgroundTasks

BILLS_S = 2.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that a process is made of.

    Attributes:
        around: What the turns of chats meet.
        working: What is done about chats that this process owns.
        streaming: What readers are told by.
        doors: Who may look into workspaces.
        beats: When what can wait is done.
        tasks: What goes on for as long as the process serves; none of it ends the process.
    """

    around: Surroundings
    working: Working
    streaming: Streaming
    doors: Doors
    beats: Beats
    tasks: BackgroundTasks


async def run(settings: Settings, process: Process) -> None:
    """Serve chats until the process is asked to stop, then hand its own over."""
    faults = Faults(settings.faultpoints_directory, process)
    async with AsyncExitStack() as stack:
        ground = await open_ground(settings, faults.process, stack)
        parts = await _open_parts(ground, faults, stack)
        worker, jobs = parts.working.worker, parts.working.labelling.jobs
        owning = parts.tasks.keep("chats.run", worker.run)
        labelling = parts.tasks.keep("labels.generate", jobs.run)
        for name, loop in _loops(parts).items():
            parts.tasks.keep(name, loop)
        await worker.until_registered()
        revocations = await stack.enter_async_context(
            ground.neighbours.revocations(settings.gateway)
        )
        carried = TunnelledMethods()
        servicers = (
            *_servicers(parts),
            parts.streaming.servicer(ground.neighbours.admission(revocations), carried),
        )
        await stack.enter_async_context(
            ground.neighbours.serve(
                servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN, carried=carried
            )
        )
        await process.stopping.wait()
        parts.streaming.close()
        await worker.drain()
        await owning
        labelling.cancel()
        await asyncio.wait((labelling,))
        await parts.around.budget.bills.flushed_within(BILLS_S)


async def _open_parts(ground: Ground, faults: Faults, stack: AsyncExitStack) -> Parts:
    """Put the process together; nothing of it runs yet."""
    beats = Beats(ground.process.clock)
    chats = await open_chats(ground, faults, beats, stack)
    catalogue = await open_catalogue(ground, beats, stack)
    budget = open_budget(ground)
    barring = open_barring(ground, chats.stores)
    doors = Doors(
        ground,
        chats.stores.reading,
        chats.stores.ownership,
        budget.groups,
        barring,
        Nodes(ground.toolrunners),
    )
    worker_id = WorkerId(ground.process.new_id())
    workspaces = open_workspaces(ground, catalogue, doors, worker_id, chats.switchboard.noted)
    around = Surroundings(ground, faults, chats, catalogue, budget, barring, workspaces)
    working = await open_working(around, worker_id, stack)
    tasks = await stack.enter_async_context(BackgroundTasks(ground.process.supervision))
    streaming = await open_streaming(
        ground.neighbours,
        ground.process,
        ground.database.side_pool,
        stack,
        workers=working.workers,
        worker_id=worker_id,
        live=chats.live,
        groups=budget.groups,
        tasks=tasks,
    )
    _connect(chats, working, streaming)
    return Parts(around, working, streaming, doors, beats, tasks)


def _connect(chats: ChatRooms, working: Working, streaming: Streaming) -> None:
    """Have everybody told what happens to chats: readers before those who do something about it."""
    hubs = streaming.hubs

    def appended(
        before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime | None
    ) -> None:
        working.turns.appended(before, after, messages)

    chats.switchboard.connect(
        moved=(
            chats.live.moved,
            hubs.moved,
            chats.writer.moved,
            working.worker.deliver,
            working.labelling.resting.moved,
        ),
        appended=(appended, hubs.appended),
        noted=(streaming.feeds.noted,),
    )


def _loops(parts: Parts) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return by name what goes on for as long as the process serves."""
    around, working, hubs = parts.around, parts.working, parts.streaming.hubs
    process, bus = around.ground.process, around.ground.bus
    budget, catalogue, workspaces = around.budget, around.catalogue, around.workspaces
    barring, chats, worker = around.barring, around.chats, working.worker
    janitor = Janitor(
        PostgresHousekeeping(around.ground.pool), process.clock, chance=process.random.random
    )
    return {
        "labels.wait": working.labelling.resting.run,
        "diffs.look": working.diffs.run,
        "calls.store": working.open_calls.run,
        "chats.follow": lambda: follow_chats(bus, chats.chats, hubs, worker),
        "notes.follow": lambda: follow_notes(bus, parts.streaming.feeds),
        "sweeps.follow": lambda: follow_sweeps(bus, worker),
        "limits.follow": lambda: follow_limits(bus, budget.spending),
        "configuration.follow": lambda: follow_config(bus, catalogue.configuration),
        "configuration.read": catalogue.configuration.run,
        "models.discover": catalogue.discovery.run,
        "users.follow": lambda: follow_users(bus, barring, budget.groups),
        "users.check": barring.run,
        "groups.follow": lambda: follow_groups(bus, budget.groups, budget.remains),
        "groups.check": budget.remains.run,
        "ledger.enter": budget.bills.run,
        "partials.write": chats.writer.run,
        "rows.expire": janitor.run,
        "timer.flush": parts.beats.run,
        **parts.streaming.loops(),
        "workspaces.follow": lambda: follow_workspaces(bus, workspaces.changes),
        "workspaces.drive": workspaces.driver.run,
        "workspaces.check": workspaces.keeper.run,
    }


def _servicers(parts: Parts) -> tuple[object, ...]:
    """Return what is served, but for streams, which look at tokens themselves."""
    around, working, budget = parts.around, parts.working, parts.around.budget
    ground, catalogue = around.ground, around.catalogue
    grantees = GatewayGrantees(ground.gateways)
    usage = UsagePorts(
        PostgresUsage(ground.pool),
        budget.limits,
        budget.spending,
        budget.groups,
        grantees,
        budget.limits_changed,
        ground.process.clock,
    )
    return (
        ChatServicer(
            around.chats.stores,
            claims=working.worker,
            groups=budget.groups,
            tasks=parts.tasks,
            references=References(around.workspaces.control.workspaces, working.servers, grantees),
            spending=AllowedSpending(budget.spending, around.barring.check),
            created=working.labelling.labeller.created,
            defaults=ConfiguredDefaults(catalogue.configuration),
            changed=lambda chat_id: catalogue.changed(f"{CHAT_PREFIX}{chat_id}", 0),
        ),
        UsageServicer(usage),
        FileServicer(HeldFiles(ground.pool), budget.groups),
        ModelServicer(catalogue.ports),
        SettingsServicer(Preferences(catalogue.changes), catalogue.ports.catalogue),
        WorkspaceAccessServicer(
            parts.doors.to(around.workspaces.sites),
            parts.doors.nodes,
            ground.process.stopping,
            working.diffs.touched,
        ),
        *around.workspaces.servicers,
    )
