"""The worker of a process, with all that the turns of its chats need."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.chats.domain.references import McpServers
from chatd.chats.store.diffs import PostgresDiffs
from chatd.chats.wiring import ChatRooms
from chatd.faults import Faults
from chatd.files.engine.cache import CachedFiles
from chatd.files.store.file_bytes import PostgresFiles
from chatd.model_limits import turn_limits
from chatd.models.wiring import Catalogue
from chatd.offboarding.engine.suspended_users import AllowedSetups, Barring
from chatd.primitives.domain.ids import WorkerId
from chatd.resources import Ground
from chatd.settings import Settings
from chatd.spend.store.open_calls import PostgresOpenCalls
from chatd.spend.wiring import Budget
from chatd.titles.wiring import Labelling, open_labelling
from chatd.tools.wiring import open_tools
from chatd.turns.engine.open_calls import OpenCallWriter
from chatd.turns.engine.setups import ConfiguredSetups
from chatd.turns.engine.turn import TurnPorts, TurnRunner
from chatd.turns.store.workers import PostgresWorkers
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.worker import Worker
from chatd.workers.engine.leases import LeaseTiming
from chatd.workspaces.clients.repositories import NodeRepositories, TouchingTools
from chatd.workspaces.engine.diffs import DiffStatuses
from chatd.workspaces.wiring import WorkspaceRooms


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What turns meet that is no part of them."""

    ground: Ground
    faults: Faults
    chats: ChatRooms
    catalogue: Catalogue
    budget: Budget
    barring: Barring
    workspaces: WorkspaceRooms


@dataclass(frozen=True, slots=True)
class Working:
    """What a process does about the chats that it owns.

    Attributes:
        worker: Owns them.
        workers: Who owns which, as it is stored.
        turns: Runs them.
        labelling: Makes notes about them.
        diffs: Looks what was changed in their workspaces.
        servers: The MCP servers whose tools they use.
        open_calls: Stores which models are being called, and charges calls of dead processes.
    """

    worker: Worker
    workers: PostgresWorkers
    turns: TurnRunner
    labelling: Labelling
    diffs: DiffStatuses
    servers: McpServers
    open_calls: OpenCallWriter


async def open_working(around: Surroundings, worker_id: WorkerId, stack: AsyncExitStack) -> Working:
    """Return the worker; it owns nothing before it is run."""
    ground, catalogue = around.ground, around.catalogue
    setups = AllowedSetups(
        ConfiguredSetups(catalogue.configuration, catalogue.book, around.workspaces.sites),
        around.barring,
    )
    diffs = DiffStatuses(
        NodeRepositories(ground.toolrunners, ground.process.clock, around.workspaces.sites),
        PostgresDiffs(ground.pool),
        ground.process.clock,
        changed=around.chats.switchboard.noted,
    )
    stored_calls = PostgresOpenCalls(ground.pool, worker_id)
    open_calls = OpenCallWriter(stored_calls, ground.process.clock)
    labelling = open_labelling(
        ground,
        catalogue,
        around.budget,
        setups=setups,
        calls=open_calls,
        switchboard=around.chats.switchboard,
    )
    offered = await open_tools(
        ground,
        catalogue.configuration,
        stack,
        sites=around.workspaces.sites,
        lifecycle=around.workspaces.tools,
    )
    ports = TurnPorts(
        chats=around.chats.chats,
        model=around.faults.model(catalogue.model),
        tools=around.faults.tools(TouchingTools(offered.tools, diffs.touched)),
        setups=setups,
        live=around.chats.live,
        partials=around.chats.partials,
        spending=around.budget.spending,
        files=CachedFiles(PostgresFiles(ground.pool)),
        calls=open_calls,
        inherited=stored_calls,
    )
    turns = TurnRunner(
        ports,
        clock=ground.process.clock,
        chance=ground.process.random.random,
        may_act=lambda: worker.may_act(),
        ended=labelling.labeller.ended,
        unbilled=around.budget.bills.add,
        limits=turn_limits(ground.settings),
    )
    workers = PostgresWorkers(ground.pool, ground.lease_session)
    stack.callback(workers.close)
    worker = _worker(around, worker_id, workers, turns)
    return Working(worker, workers, turns, labelling, diffs, offered.servers, open_calls)


def _worker(
    around: Surroundings, worker_id: WorkerId, workers: PostgresWorkers, turns: TurnRunner
) -> Worker:
    settings, process = around.ground.settings, around.ground.process
    return Worker(
        worker_id,
        address=str(settings.address),
        ports=WorkerPorts(
            leases=workers,
            claims=workers,
            apply=around.chats.chats.apply,
            run_chat=around.faults.runner(turns.run),
            moved=around.chats.chats.noticed,
            offer=around.chats.switchboard.offer,
            clock=process.clock,
            chance=process.random,
            supervision=process.supervision,
        ),
        limits=_limits(settings),
        timing=LeaseTiming.of(settings.lease_s, settings.lease_renew_s),
    )


def _limits(settings: Settings) -> WorkerLimits:
    return WorkerLimits(
        slots_max=settings.running_chats_max,
        running_per_user_max=settings.running_chats_per_user_max,
        acquire_batch_max=settings.acquire_batch_max,
    )
