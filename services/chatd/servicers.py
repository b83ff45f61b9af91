"""The gRPC servicers of chatd over its opened components."""

from collections.abc import Awaitable, Callable
from functools import partial

from chatd.actions.engine.dispatching import CallDispatcher
from chatd.actions.rpc.servicer import ActionPorts, ActionServicer
from chatd.actions.store.actions import Actions
from chatd.approvals.rpc.servicer import ApprovalServicer
from chatd.break_glass.rpc.servicer import BreakGlassServicer
from chatd.chats.rpc.admission import SuspensionCheckedSpending
from chatd.chats.rpc.defaults import ConfiguredDefaults
from chatd.chats.rpc.methods import shares_of
from chatd.chats.rpc.references import References
from chatd.chats.rpc.servicer import ChatServicer
from chatd.components import Components
from chatd.files.rpc.servicer import FileServicer
from chatd.files.store.files import StoredFiles
from chatd.instructions.rpc.servicer import ContextPorts, ContextServicer
from chatd.instructions.store.skills import PostgresSkills
from chatd.models.rpc.servicer import ModelServicer
from chatd.models.rpc.settings_servicer import SettingsServicer
from chatd.models.store.preferences import Preferences
from chatd.primitives.domain.ids import ChatId
from chatd.races.rpc.servicer import RaceServicer
from chatd.races.wiring import open_races
from chatd.reverts.clients.restores import NodeRestores
from chatd.reverts.rpc.servicer import RevertServicer
from chatd.schedules.wiring import ScheduleComponents, open_schedules
from chatd.spend.rpc.servicer import UsagePorts, UsageServicer
from chatd.spend.store.usage import PostgresUsage
from chatd.streams.rpc.position import cursor_after
from chatd.users.clients.existence import GatewayGrantees
from chatd.workers.rpc.servicer import WorkerServicer
from chatd.workspace_servers.rpc.servicer import ServerPorts, WorkspaceServerServicer
from chatd.workspaces.rpc.access_servicer import WorkspaceAccessServicer


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


def _is_shared(components: Components) -> Callable[[ChatId], Awaitable[bool]]:
    """Return the function that tells whether a chat of another owner is shared with the caller."""
    return partial(shares_of, components.chats.stores, components.spend.groups)


def _context_ports(components: Components) -> ContextPorts:
    """Return the dependencies of ContextService."""
    return ContextPorts(
        components.chats.stores.ownership.require,
        _is_shared(components),
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
        _is_shared(components),
        components.workspaces.locator,
        components.worker.offered.workspace_servers,
        components.catalogue.configuration.chat,
    )


def race_servicer(components: Components) -> RaceServicer:
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
        hooks=components.hooks.chats,
    )


def chat_servicer_of(components: Components) -> ChatServicer:
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


def access_servicer_of(components: Components) -> WorkspaceAccessServicer:
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


def schedules_of(components: Components, chat_servicer: ChatServicer) -> ScheduleComponents:
    """Return the components of schedules, whose runs call ChatService as their owners."""
    return open_schedules(
        components.resources,
        components.chats,
        chat_servicer,
        references=_references(components),
        defaults=ConfiguredDefaults(components.catalogue.configuration),
        groups=components.spend.groups,
    )


def servicers(components: Components, chat_servicer: ChatServicer) -> tuple[object, ...]:
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
        catalogue.configuration.names_of,
    )
    stores, clock = components.chats.stores, resources.process.clock
    restores = NodeRestores(resources.toolrunners, clock, workspaces.locator, stores.agents)
    return (
        chat_servicer,
        RevertServicer(
            stores,
            claims=worker.worker,
            groups=spend.groups,
            tasks=components.tasks,
            previews=restores,
            changed=catalogue.chat_changed,
        ),
        UsageServicer(usage),
        FileServicer(StoredFiles(resources.pool), spend.groups, clock),
        WorkerServicer(worker.endings),
        ApprovalServicer(components.approvals.rules, worker.servers, _is_shared(components)),
        components.hooks.servicer,
        components.push.servicer,
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
