"""Wiring of the control plane of workspaces over one database and the channels to nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.bus_handlers import WORKSPACES_TOPIC
from chatd.chats.store.stores import Stores
from chatd.models.engine.configuration import ConfigurationCache
from chatd.models.wiring import ModelComponents
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.primitives.domain.ids import ChatId, WorkerId
from chatd.resources import Resources
from chatd.settings import Settings
from chatd.tools.lifecycle import LifecycleTools
from chatd.users.clients.existence import GatewayGrantees
from chatd.users.domain.groups import Groups
from chatd.workspaces.clients.hosts import GrpcHost
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.secrets import Secret
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.engine.agent_forks import AgentForks
from chatd.workspaces.engine.control import Control
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.fork_merges import ForkMerges
from chatd.workspaces.engine.locator import ChatWorkspaceLocator
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.policies import Policies
from chatd.workspaces.engine.registry import Registry
from chatd.workspaces.engine.timers import WorkspaceTimers
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.rpc.access import WorkspaceAccess
from chatd.workspaces.rpc.attach_tickets import AttachTickets
from chatd.workspaces.rpc.node_servicer import NodeServicer
from chatd.workspaces.rpc.references import WorkspaceReferences
from chatd.workspaces.rpc.secret_servicer import SecretServicer
from chatd.workspaces.rpc.servicer import WorkspaceServicer
from chatd.workspaces.rpc.watch import WorkspaceWatch
from chatd.workspaces.store.nodes import PostgresNodes
from chatd.workspaces.store.secrets import PostgresSecrets
from chatd.workspaces.store.templates import PostgresTemplates
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.bus import Notice
from parley.rpc import Address


@dataclass(frozen=True, slots=True)
class WorkspaceComponents:
    """The components of the slice `workspaces`.

    Attributes:
        control: Handles requests of users and models.
        locator: Finds the workspaces of chats.
        tools: The tools with which models manage workspaces.
        driver: Performs the actions that states require.
        workspace_timers: Performs the actions that are due by time.
        changes: Wakes requests that wait for changes.
        access: Checks who may access a workspace.
        nodes: The nodes of workspaces.
        known_nodes: The cached list of nodes.
        forks: The forks in which agents work.
        servicers: The gRPC servicers.
    """

    control: Control
    locator: ChatWorkspaceLocator
    tools: LifecycleTools
    driver: Driver
    workspace_timers: WorkspaceTimers
    changes: Changes
    access: WorkspaceAccess
    nodes: Nodes
    known_nodes: NodeList
    forks: AgentForks
    servicers: tuple[WorkspaceServicer, NodeServicer, SecretServicer]


def open_workspaces(
    resources: Resources,
    worker_id: WorkerId,
    *,
    catalogue: ModelComponents,
    stores: Stores,
    groups: Groups,
    suspension: UserSuspension,
    metadata_changed: Callable[[ChatId], None],
) -> WorkspaceComponents:
    """Return the components; `metadata_changed` is called with changed chats."""
    process, configuration = resources.process, catalogue.configuration
    changes, placed = Changes(process.clock), Nodes(resources.toolrunners)

    def workspace_changed(workspace: Workspace) -> None:
        changes.on_notice(workspace.id)
        driver.poke(workspace)
        resources.bus.publish(Notice(WORKSPACES_TOPIC, workspace.id, workspace.version))

    def bound(chat_id: ChatId) -> None:
        catalogue.chat_changed(chat_id)
        metadata_changed(chat_id)

    workspaces = PostgresWorkspaces(resources.pool, workspace_changed)
    nodes = PostgresNodes(resources.pool)
    known = NodeList(nodes, map(str, resources.settings.toolrunner))
    secrets = PostgresSecrets(resources.pool, catalogue.box)
    host = _host(resources, secrets)
    driver = Driver(worker_id, workspaces, known, host, process.clock)
    policies, merges = Policies(workspaces, known, host), ForkMerges(workspaces, known, host)
    ttl = _InstallationTtl(configuration)
    control = _control(resources, workspaces, groups, ttl, known, changes, bound)
    locator = ChatWorkspaceLocator(
        workspaces, configuration, known, driver, changes, process.clock, made=bound
    )
    access = WorkspaceAccess(
        stores.reading, groups, suspension.check, locator=locator, placed=placed.placed
    )
    jitter = process.random.random
    workspace_timers = WorkspaceTimers(
        worker_id, workspaces, nodes, process.clock, known=known, policies=policies, jitter=jitter
    )
    forks = AgentForks(workspaces, locator, driver, control, merges, _quota(resources.settings))
    servicers = (
        WorkspaceServicer(
            control,
            merges,
            access,
            WorkspaceWatch(workspaces, changes, process.clock, process.stopping),
            AttachTickets(access, placed, resources.neighbours.ticket_office),
            policies.publish,
            WorkspaceReferences(stores.ownership, secrets, GatewayGrantees(resources.gateways)),
        ),
        NodeServicer(Registry(workspaces, nodes), nodes, secrets, process.clock),
        SecretServicer(secrets, workspaces, policies.publish),
    )
    return WorkspaceComponents(
        control,
        locator,
        LifecycleTools(control),
        driver,
        workspace_timers,
        changes,
        access,
        placed,
        known,
        forks,
        servicers,
    )


def _control(
    resources: Resources,
    workspaces: PostgresWorkspaces,
    groups: Groups,
    ttl: "_InstallationTtl",
    nodes: NodeList,
    changes: Changes,
    bound: Callable[[ChatId], None],
) -> Control:
    return Control(
        workspaces,
        PostgresTemplates(resources.pool),
        groups=groups,
        ttl=ttl,
        limits=_quota(resources.settings),
        nodes=nodes,
        changes=changes,
        bound=bound,
        clock=resources.process.clock,
    )


def _host(resources: Resources, secrets: PostgresSecrets) -> GrpcHost:
    """Return the host client; each node receives the grants of a workspace's secrets."""

    async def granted(workspace: Workspace) -> tuple[Secret, ...]:
        return await secrets.named(workspace.owner_id, workspace.spec.secret_names)

    return GrpcHost(lambda address: resources.toolrunners.also(Address.parse(address)), granted)


def _quota(settings: Settings) -> QuotaLimits:
    return QuotaLimits(
        live_workspaces=settings.live_workspaces_per_user_max,
        workspaces=settings.workspaces_per_user_max,
        disk_bytes=settings.workspace_disk_bytes_per_user_max,
        created_per_minute=settings.new_workspaces_per_user_max,
    )


class _InstallationTtl:
    """The lifetime of workspaces in the installation's settings, from the cached configuration."""

    def __init__(self, configuration: ConfigurationCache) -> None:
        self._configuration = configuration

    async def workspace_ttl_ms(self) -> int:
        """Return the lifetime; 0 leaves it to templates."""
        snapshot = await self._configuration.current()
        return snapshot.catalogue.settings.workspace_ttl_ms
