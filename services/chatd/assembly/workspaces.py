"""The control plane of workspaces, put together over one database and the channels to nodes."""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.assembly.doors import Doors
from chatd.assembly.ground import Ground
from chatd.assembly.models import Catalogue
from chatd.clients.grantees import GatewayGrantees
from chatd.clients.hosts import GrpcHost
from chatd.clients.lifecycle import LifecycleTools
from chatd.domain.chat import ChatId, WorkerId
from chatd.domain.workspaces.quota import QuotaLimits
from chatd.domain.workspaces.secrets import Secret
from chatd.domain.workspaces.workspace import Workspace
from chatd.engine.configuration import CHAT_PREFIX, ConfigurationCache
from chatd.engine.workspaces.control import Control
from chatd.engine.workspaces.driver import Driver
from chatd.engine.workspaces.keeper import Keeper
from chatd.engine.workspaces.node_list import NodeList
from chatd.engine.workspaces.policies import Policies
from chatd.engine.workspaces.registry import Registry
from chatd.engine.workspaces.sites import ChatSites
from chatd.engine.workspaces.watching import Changes
from chatd.news import WORKSPACES_TOPIC
from chatd.rpc.catalogue_servicer import WorkspaceServicer
from chatd.rpc.node_servicer import NodeServicer
from chatd.rpc.references import WorkspaceReferences
from chatd.rpc.secret_servicer import SecretServicer
from chatd.rpc.workspace_watch import WorkspaceWatch
from chatd.settings import Settings
from chatd.store.nodes import PostgresNodes
from chatd.store.secrets import PostgresSecrets
from chatd.store.templates import PostgresTemplates
from chatd.store.workspaces import PostgresWorkspaces
from parley.bus import Notice
from parley.rpc import Address


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
