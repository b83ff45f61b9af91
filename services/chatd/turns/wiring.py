"""Wiring of the slice `turns`: the worker of a process and the dependencies of its turns."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from chatd.chats.domain.agents import AgentLimits
from chatd.chats.domain.references import McpServers
from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.store.diffs import PostgresDiffs
from chatd.chats.wiring import ChatComponents
from chatd.content.domain.tools import Tools
from chatd.faults import Faults
from chatd.files.engine.cache import CachedFiles
from chatd.files.store.files import PostgresFiles
from chatd.instructions.clients.files import NodeSkillFiles
from chatd.instructions.engine.nested import NestedInstructionTools
from chatd.instructions.store.skills import PostgresSkills
from chatd.model_limits import retry_policy, turn_limits
from chatd.models.engine.agent_models import ConfiguredAgentModels
from chatd.models.store.catalogue import ChatFacts
from chatd.models.wiring import ModelComponents
from chatd.monitors.store.monitors import PostgresMonitors
from chatd.offboarding.engine.suspended_users import SuspensionCheckedSetups, UserSuspension
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner, WorkerId
from chatd.resources import Resources
from chatd.reverts.clients.restores import NodeRestores
from chatd.settings import Settings
from chatd.spend.domain.limits import Spending
from chatd.spend.store.open_calls import PostgresOpenCalls
from chatd.spend.wiring import SpendComponents
from chatd.titles.wiring import TitleComponents, open_titles
from chatd.tools.advisor.tool import AdvisorTools
from chatd.tools.agents.tools import AgentTools
from chatd.tools.agents.types import AgentTypes
from chatd.tools.agents.waits import AgentWaits
from chatd.tools.local import NamedTools
from chatd.tools.monitors import MonitorTools
from chatd.tools.node_processes import NodeProcesses
from chatd.tools.skills import SkillTools
from chatd.tools.todos import TodoTools
from chatd.tools.wiring import ToolComponents, open_tools
from chatd.turns.domain.ports import Approvals, Hooks, Setups
from chatd.turns.engine.chat_run import TurnRunner
from chatd.turns.engine.context_metrics import MeasuredCalls
from chatd.turns.engine.dependencies import TurnPorts
from chatd.turns.engine.metering import CallObserver
from chatd.turns.engine.observers import TurnObserver, told_to, with_failures_told
from chatd.turns.engine.open_calls import OpenCallWriter
from chatd.turns.engine.setups import (
    ConfiguredSetups,
    ConfiguredUtilityModels,
    Instructions,
)
from chatd.turns.engine.side_calls import SideCallPorts, SideCalls
from chatd.turns.engine.tree_budget import TreeSpending
from chatd.turns.store.workers import PostgresWorkers
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.worker import Worker
from chatd.workers.engine.endings import WorkerEndings
from chatd.workers.engine.leases import LeaseTiming
from chatd.workers.engine.quarantine import Quarantine
from chatd.workspaces.clients.repositories import ChangeTrackingTools, NodeRepositories
from chatd.workspaces.engine.diffs import DiffStatuses
from chatd.workspaces.wiring import WorkspaceComponents
from parley.postgres import ConflictRetries

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerComponents:
    """The components that run the chats that a process owns.

    Attributes:
        worker: Owns the chats.
        workers: Leases and claims in the database.
        turns: Runs the chats.
        titles: Generates titles and summaries of them.
        diffs: Tracks changes in their workspaces.
        offered: The tools of all executors, with their MCP servers and acknowledgements.
        setups: Prepares turns.
        endings: Ends workers whose process is proven dead.
        quarantine: The process for turns whose processes keep dying.
        agent_waits: Lets chats go on whose agents have ended.
        open_calls: Stores model calls under way, and charges those of dead processes.
    """

    worker: Worker
    workers: PostgresWorkers
    turns: TurnRunner
    titles: TitleComponents
    diffs: DiffStatuses
    offered: ToolComponents
    setups: Setups
    open_calls: OpenCallWriter
    endings: WorkerEndings
    quarantine: Quarantine
    agent_waits: AgentWaits

    @property
    def tools(self) -> Tools:
        """The tools of all executors."""
        return self.offered.tools

    @property
    def servers(self) -> McpServers:
        """The MCP servers of administrators."""
        return self.offered.servers


class ComparedInstructions(Instructions, Protocol):
    """Instruction files that are compared with those of the workspace."""

    async def compare(self, chat_id: ChatId, owner: Owner, facts: ChatFacts) -> bool:
        """Return whether the files of the workspace differ, and publish it if that is new."""
        ...


def _restores(
    resources: Resources, workspaces: WorkspaceComponents, chats: ChatComponents
) -> NodeRestores:
    clock, agents = resources.process.clock, chats.stores.agents
    return NodeRestores(resources.toolrunners, clock, workspaces.locator, agents)


async def open_worker(
    resources: Resources,
    faults: Faults,
    worker_id: WorkerId,
    stack: AsyncExitStack,
    *,
    chats: ChatComponents,
    catalogue: ModelComponents,
    spend: SpendComponents,
    suspension: UserSuspension,
    workspaces: WorkspaceComponents,
    approvals: Approvals,
    instructions: ComparedInstructions,
    hooks: Hooks,
    observer: TurnObserver,
) -> WorkerComponents:
    """Return the worker; it owns nothing before it is run."""
    process = resources.process
    setups = _setups(catalogue, workspaces, suspension, instructions)
    diffs = _diffs(resources, chats, catalogue, workspaces, instructions)
    stored_calls = PostgresOpenCalls(resources.pool, worker_id)
    open_calls = OpenCallWriter(stored_calls, process.clock)
    side_calls = side_calls_of(resources, catalogue, spend, setups, open_calls)
    titles = _titles(resources, chats, spend, side_calls, observer)
    offered = await open_tools(
        resources,
        stack,
        locator=workspaces.locator,
        local=_local_tools(resources, chats, catalogue, spend, workspaces, side_calls),
        below=chats.stores.agents.below,
    )
    suspension.connect(offered.servers.acknowledge)
    turns = TurnRunner(
        TurnPorts(
            chats=chats.chats,
            model=faults.model(catalogue.model),
            tools=faults.tools(_turn_tools(resources, workspaces, offered, diffs)),
            setups=setups,
            approvals=approvals,
            live=chats.live,
            partials=chats.partials,
            spending=_spending(resources, chats, catalogue, spend),
            files=CachedFiles(PostgresFiles(resources.pool)),
            calls=_measured(resources, stack, open_calls),
            inherited=stored_calls,
            clock=process.clock,
            jitter=process.random.random,
            may_act=lambda: worker.may_act(),
            ended=told_to(titles.title_writer.ended, observer.ended),
            unbilled=spend.bills.add,
            limits=turn_limits(resources.settings),
            restores=faults.restores(_restores(resources, workspaces, chats)),
            tool_servers=offered.servers_of_turns,
            reverted=catalogue.chat_changed,
            agents=chats.stores.agents,
            hooks=hooks,
            is_restricted=catalogue.configuration.is_restricted,
        )
    )
    workers = _workers(resources, stack)
    endings = WorkerEndings(workers, chats.chats.publish_state)
    quarantine = _quarantine(resources, endings)
    worker = _worker(resources, faults, worker_id, chats, workers, turns, quarantine, observer)
    return WorkerComponents(
        worker,
        workers,
        turns,
        titles,
        diffs,
        offered,
        setups,
        open_calls,
        endings,
        quarantine,
        AgentWaits(chats.stores.agents, chats.chats, worker, process.clock),
    )


def _titles(
    resources: Resources,
    chats: ChatComponents,
    spend: SpendComponents,
    side_calls: SideCalls,
    observer: TurnObserver,
) -> TitleComponents:
    return open_titles(
        resources,
        spend,
        side_calls=side_calls,
        notifier=chats.notifier,
        labelled=observer.labelled,
    )


def _turn_tools(
    resources: Resources,
    workspaces: WorkspaceComponents,
    offered: ToolComponents,
    diffs: DiffStatuses,
) -> Tools:
    """Return the tools as turns call them."""
    files = NodeSkillFiles(resources.toolrunners, workspaces.locator)
    tracked = ChangeTrackingTools(offered.tools, diffs.files_changed)
    return NestedInstructionTools(tracked, files)


def _measured(resources: Resources, stack: AsyncExitStack, calls: CallObserver) -> CallObserver:
    """Return the observer of the calls of turns, which measures their prompts."""
    measured, registry = MeasuredCalls(calls), resources.process.telemetry.registry
    for metric in measured.metrics:
        registry.register(metric)
        stack.callback(registry.unregister, metric)
    return measured


def _workers(resources: Resources, stack: AsyncExitStack) -> PostgresWorkers:
    process = resources.process
    retries = ConflictRetries(process.clock, process.random.random)
    workers = PostgresWorkers(resources.pool, resources.lease_session, retries)
    stack.callback(workers.close)
    return workers


def _diffs(
    resources: Resources,
    chats: ChatComponents,
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    instructions: ComparedInstructions,
) -> DiffStatuses:
    clock = resources.process.clock

    async def compare(chat_id: ChatId, owner: Owner) -> None:
        try:
            await instructions.compare(chat_id, owner, await catalogue.configuration.chat(chat_id))
        except ChatError as unknown:
            logger.info("the instruction files of a chat cannot be compared: %s", unknown)

    return DiffStatuses(
        NodeRepositories(resources.toolrunners, clock, workspaces.locator),
        PostgresDiffs(resources.pool),
        clock,
        changed=chats.notifier.metadata_changed,
        seen=compare,
    )


def side_calls_of(
    resources: Resources,
    catalogue: ModelComponents,
    spend: SpendComponents,
    setups: Setups,
    calls: CallObserver,
) -> SideCalls:
    """Return what makes side calls."""
    ports = SideCallPorts(
        catalogue.model,
        setups,
        ConfiguredUtilityModels(catalogue.configuration, catalogue.book),
        spend.spending,
        spend.bills.add,
        calls,
    )
    return SideCalls(
        ports,
        clock=resources.process.clock,
        jitter=resources.process.random.random,
        retries=retry_policy(resources.settings),
    )


def _setups(
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    suspension: UserSuspension,
    instructions: Instructions,
) -> Setups:
    configured = ConfiguredSetups(
        catalogue.configuration, catalogue.book, workspaces.locator, instructions
    )
    return SuspensionCheckedSetups(configured, suspension)


def _local_tools(
    resources: Resources,
    chats: ChatComponents,
    catalogue: ModelComponents,
    spend: SpendComponents,
    workspaces: WorkspaceComponents,
    side_calls: SideCalls,
) -> tuple[NamedTools, ...]:
    """Return the tools that chatd executes itself."""
    skill_files = NodeSkillFiles(resources.toolrunners, workspaces.locator)
    return (
        workspaces.tools,
        _advisor(catalogue, spend, side_calls),
        _agents(resources, chats, catalogue, workspaces, skill_files),
        TodoTools(chats.stores.reading),
        _monitors(resources, workspaces),
        SkillTools(PostgresSkills(catalogue.changes), skill_files),
    )


def _processes(resources: Resources, workspaces: WorkspaceComponents) -> NodeProcesses:
    return NodeProcesses(resources.toolrunners, workspaces.locator, resources.process.clock)


def _monitors(resources: Resources, workspaces: WorkspaceComponents) -> NamedTools:
    processes, now = _processes(resources, workspaces), resources.process.clock.now
    return MonitorTools(PostgresMonitors(resources.pool), processes, now)


def _advisor(
    catalogue: ModelComponents, spend: SpendComponents, side_calls: SideCalls
) -> NamedTools:
    return AdvisorTools(
        side_calls,
        settings=catalogue.configuration.advisor,
        spending=spend.spending,
        bill=spend.bills.enter,
    )


def _agent_limits(settings: Settings) -> AgentLimits:
    return AgentLimits(
        settings.agents_depth_max,
        settings.agents_per_root_max,
        settings.agents_cost_micros_max,
        settings.agents_tokens_max,
        settings.agents_duration_s_max,
    )


def _spending(
    resources: Resources,
    chats: ChatComponents,
    catalogue: ModelComponents,
    spend: SpendComponents,
) -> Spending:
    """Return the check of spend limits before each step, and of the budgets of agents."""
    limits = _agent_limits(resources.settings)
    return TreeSpending(spend.spending, chats.stores.agents, catalogue.configuration, limits)


def _agents(
    resources: Resources,
    chats: ChatComponents,
    catalogue: ModelComponents,
    workspaces: WorkspaceComponents,
    files: NodeSkillFiles,
) -> NamedTools:
    return AgentTools(
        chats.stores.agents,
        chats.stores.keys,
        started=chats.chats.publish_state,
        grown=catalogue.chat_changed,
        limits=_agent_limits(resources.settings),
        forks=workspaces.forks,
        types=AgentTypes(
            files,
            ConfiguredDefaults(catalogue.configuration),
            ConfiguredAgentModels(catalogue.configuration, catalogue.book),
        ),
        processes=_processes(resources, workspaces),
    )


def _quarantine(resources: Resources, endings: WorkerEndings) -> Quarantine:
    process, instance_file = resources.process, resources.settings.instance_file
    directory = None if instance_file is None else instance_file.parent
    return Quarantine(process.environment, directory, end=endings.end, clock=process.clock)


def _worker(
    resources: Resources,
    faults: Faults,
    worker_id: WorkerId,
    chats: ChatComponents,
    workers: PostgresWorkers,
    turns: TurnRunner,
    quarantine: Quarantine,
    observer: TurnObserver,
) -> Worker:
    settings, process = resources.settings, resources.process

    return Worker(
        worker_id,
        address=str(settings.address),
        ports=WorkerPorts(
            leases=workers,
            claims=workers,
            apply=with_failures_told(chats.chats.apply, observer),
            run_chat=faults.runner(turns.run),
            state_changed=told_to(chats.chats.publish_state, observer.failed),
            request_sweep=chats.notifier.request_sweep,
            on_ended=process.stopping.set,
            request_quarantine=quarantine.request,
            clock=process.clock,
            rng=process.random,
            supervision=process.supervision,
        ),
        limits=WorkerLimits(
            slots_max=settings.running_chats_max,
            running_per_user_max=settings.running_chats_per_user_max,
            is_quarantine=settings.is_quarantine,
            acquire_batch_max=settings.acquire_batch_max,
        ),
        timing=LeaseTiming.of(settings.lease_s, settings.lease_renew_s),
    )
