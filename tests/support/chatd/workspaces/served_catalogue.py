"""The control plane of workspaces over a real database, with nodes that are a dictionary."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from chatd.chats.store.access.ownership import Ownership
from chatd.models.store.catalogue import ChatFacts, StoredCatalogue
from chatd.primitives.domain.ids import ChatId, WorkerId
from chatd.users.domain.grantees import Grantees
from chatd.users.domain.groups import Groups
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.engine.control import Control
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.fork_merges import ForkMerges
from chatd.workspaces.engine.locator import ChatWorkspaceLocator
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.registry import Registry
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
from parley.clock import SystemClock
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox
from support.chatd.workspaces.in_memory_host import InMemoryHost

DRIVER = WorkerId("00000000-0000-0000-0000-0000000000dd")
ADDRESS = "unix:/run/static.sock"
NOTHING: Any = None  # Stands for what these tests never open.


@dataclass(slots=True)
class Ttl:
    """The lifetime that administrators set."""

    ttl_ms: int = 0

    async def workspace_ttl_ms(self) -> int:
        return self.ttl_ms


@dataclass(slots=True)
class Catalogue:
    """Everything that a chatd has for workspaces; tests drive it themselves."""

    store: PostgresWorkspaces
    nodes: PostgresNodes
    known: NodeList
    control: Control
    driver: Driver
    locator: ChatWorkspaceLocator
    host: InMemoryHost
    ttl: Ttl
    servicers: tuple[WorkspaceServicer, NodeServicer, SecretServicer]
    secrets: PostgresSecrets
    granted: list[Workspace]
    bound: list[ChatId] = field(default_factory=list)
    moved: list[Workspace] = field(default_factory=list)

    @classmethod
    def over(
        cls,
        pool: Pool,
        groups: Groups,
        stopping: asyncio.Event,
        tickets: AttachTickets,
        access: WorkspaceAccess,
        grantees: Grantees,
    ) -> "Catalogue":
        clock, host, ttl = SystemClock(), InMemoryHost(), Ttl()
        changes = Changes(clock)
        bound: list[ChatId] = []
        moved: list[Workspace] = []

        def tell(workspace: Workspace) -> None:
            moved.append(workspace)
            changes.on_notice(workspace.id)
            driver.poke(workspace)

        store = PostgresWorkspaces(pool, tell)
        nodes = PostgresNodes(pool)
        known = NodeList(nodes, [ADDRESS])
        driver = Driver(DRIVER, store, known, host, clock)
        control = Control(
            store,
            PostgresTemplates(pool),
            groups=groups,
            ttl=ttl,
            limits=QuotaLimits(live_workspaces=2, created_per_minute=10),
            nodes=known,
            changes=changes,
            bound=bound.append,
            clock=clock,
        )
        facts = Facts(pool)
        locator = ChatWorkspaceLocator(
            store, facts, known, driver, changes, clock, made=bound.append, waiting_s=20.0
        )
        secrets = PostgresSecrets(pool, SecretBox(Keyring.generate()))
        granted: list[Workspace] = []

        async def note_grant(workspace: Workspace) -> None:
            granted.append(workspace)

        watch = WorkspaceWatch(store, changes, clock, stopping)
        servicers = (
            WorkspaceServicer(
                control,
                ForkMerges(control.workspaces, known, NOTHING),
                access,
                watch,
                tickets,
                note_grant,
                WorkspaceReferences(Ownership(pool), secrets, grantees),
            ),
            NodeServicer(Registry(store, nodes), nodes, secrets, clock),
            SecretServicer(secrets, store, note_grant),
        )
        return cls(
            store,
            nodes,
            known,
            control,
            driver,
            locator,
            host,
            ttl,
            servicers,
            secrets,
            granted,
            bound,
            moved,
        )

    async def drive(self) -> None:
        """Do all that waits to be done."""
        for each in await self.store.claim(DRIVER, 15.0, 100):
            await self.driver.drive(each)


class Facts:
    """Reads what is known of chats, every time."""

    def __init__(self, pool: Pool) -> None:
        self._stored = StoredCatalogue(pool, NOTHING)
        self.asked = 0

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        self.asked += 1
        return await self._stored.chat(chat_id)
