"""The control plane of workspaces, put together over one database and the channels to nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.bus_handlers import WORKSPACES_TOPIC
from chatd.chats.store.ownership import Ownership
from chatd.chats.store.reading import Reading
from chatd.models.engine.configuration import CHAT_PREFIX, ConfigurationCache
from chatd.models.wiring import Catalogue
from chatd.offboarding.engine.suspended_users import Barring
from chatd.primitives.domain.ids import ChatId, WorkerId
from chatd.resources import Ground
from chatd.settings import Settings
from chatd.tools.lifecycle import LifecycleTools
from chatd.users.clients.existence import GatewayGrantees
from chatd.users.domain.groups import Groups
from chatd.workspaces.clients.hosts import GrpcHost
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.secrets import Secret
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.engine.control import Control
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.locator import ChatSites
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.policies import Policies
from chatd.workspaces.engine.registry import Registry
from chatd.workspaces.engine.timers import Keeper
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.rpc.access import Door, Sites
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
class Doors:
    """Who may look into workspaces, and the nodes that these are on."""

    ground: Ground
    reading: Reading
    owners: Ownership
    groups: Groups
    barring: Barring
    nodes: Nodes

    def to(self, sites: Sites) -> Door:
        """Return the door to workspaces that are at `sites`."""
        return Door(
            self.reading,
            self.groups,
            self.barring.check,
            sites=sites,
            placed=self.nodes.placed,
        )

    def tickets(self, sites: Sites) -> AttachTickets:
        """Return what issues tickets for terminals behind that door."""
        return AttachTickets(self.to(sites), self.nodes, self.ground.neighbours.ticket_office)


@dataclass(frozen=True, slots=True)
class WorkspaceRooms:
    """What a process does about workspaces.

    Attributes:
        control: What people and models ask.
        sites: Where chats work.
        tools: The tools by which models ask.
        driver: Does what states ask for.
        keeper: Does what time asks for.
        changes: Wakes those who wait.
        servicers: What is served of it.
    """

    control: Control
    sites: ChatSites
    tools: LifecycleTools
    driver: Driver
    keeper: Keeper
    changes: Changes
    servicers: tuple[WorkspaceServicer, NodeServicer, SecretServicer]


def open_workspaces(
    ground: Ground,
    catalogue: Catalogue,
    doors: Doors,
    worker_id: WorkerId,
    noted: Callable[[ChatId], None],
) -> WorkspaceRooms:
    """Return the control plane of this process; `noted` is told of chats that look different."""
    process, configuration = ground.process, catalogue.configuration
    changes = Changes(process.clock)

    def moved(workspace: Workspace) -> None:
        changes.heard(workspace.id)
        driver.poke(workspace)
        ground.bus.publish(Notice(WORKSPACES_TOPIC, workspace.id, workspace.version))

    def bound(chat_id: ChatId) -> None:
        catalogue.changed(f"{CHAT_PREFIX}{chat_id}", 0)
        noted(chat_id)

    workspaces, nodes = PostgresWorkspaces(ground.pool, moved), PostgresNodes(ground.pool)
    known = NodeList(nodes, map(str, ground.settings.toolrunner))
    secrets = PostgresSecrets(ground.pool, catalogue.box)
    host = _host(ground, secrets)
    driver = Driver(worker_id, workspaces, known, host, process.clock)
    policies = Policies(workspaces, known, host)
    control = Control(
        workspaces,
        PostgresTemplates(ground.pool),
        groups=doors.groups,
        ttl=_InstallationTtl(configuration),
        limits=_quota(ground.settings),
        nodes=known,
        changes=changes,
        bound=bound,
        clock=process.clock,
    )
    sites = ChatSites(workspaces, configuration, known, driver, changes, process.clock, made=bound)
    keeper = Keeper(
        worker_id,
        workspaces,
        nodes,
        process.clock,
        known=known,
        policies=policies,
        chance=process.random.random,
    )
    return WorkspaceRooms(
        control=control,
        sites=sites,
        tools=LifecycleTools(control, configuration.chat),
        driver=driver,
        keeper=keeper,
        changes=changes,
        servicers=(
            WorkspaceServicer(
                control,
                known,
                host,
                WorkspaceWatch(workspaces, changes, process.clock, process.stopping),
                doors.tickets(sites),
                policies.tell,
                WorkspaceReferences(doors.owners, secrets, GatewayGrantees(ground.gateways)),
            ),
            NodeServicer(Registry(workspaces, nodes), nodes, secrets, process.clock),
            SecretServicer(secrets, workspaces, policies.tell),
        ),
    )


def _host(ground: Ground, secrets: PostgresSecrets) -> GrpcHost:
    """Return nodes as hosts, each told the secrets that a workspace was granted."""

    async def granted(workspace: Workspace) -> tuple[Secret, ...]:
        return await secrets.named(workspace.owner_id, workspace.recipe.secret_names)

    return GrpcHost(lambda address: ground.toolrunners.also(Address.parse(address)), granted)


def _quota(settings: Settings) -> QuotaLimits:
    return QuotaLimits(
        live_workspaces=settings.live_workspaces_per_user_max,
        workspaces=settings.workspaces_per_user_max,
        disk_bytes=settings.workspace_disk_bytes_per_user_max,
    )


class _InstallationTtl:
    """The lifetime that administrators gave workspaces, as this process knows it."""

    def __init__(self, configuration: ConfigurationCache) -> None:
        self._configuration = configuration

    async def workspace_ttl_ms(self) -> int:
        """Return it; 0 leaves it to templates."""
        snapshot = await self._configuration.current()
        return snapshot.catalogue.settings.workspace_ttl_ms
