"""ChatService over a real socket and a real database, with a worker that only takes notes."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import grpc

from chatd.actions.engine.dispatching import CallDispatcher
from chatd.actions.rpc.servicer import ActionPorts, ActionServicer
from chatd.actions.store.actions import Actions
from chatd.approvals.engine.cached_rules import CachedRules, notice_key
from chatd.approvals.engine.judge import Judge
from chatd.approvals.engine.tree_taint import TreeTaint
from chatd.approvals.rpc.servicer import ApprovalServicer
from chatd.approvals.store.rules import PostgresRules
from chatd.approvals.store.trees import TreeVersions
from chatd.break_glass.rpc.servicer import BreakGlassServicer
from chatd.chats.domain.chat import ChatState, Claimed, NewMessage, Slot
from chatd.chats.domain.commands import CommitCompaction, FinishTurn, RequestCompaction
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.methods import shares_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.chats.rpc.references import References
from chatd.chats.rpc.servicer import ChatServicer
from chatd.chats.store.access.break_glass import BreakGlass
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.chats.store.stores import Stores
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolOutcome, ToolResult
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.errors import DOMAIN, ERRORS
from chatd.files.rpc.servicer import FileServicer
from chatd.files.store.files import StoredFiles
from chatd.goals.rpc.servicer import GoalPorts, GoalServicer
from chatd.goals.store.goals import PostgresGoals
from chatd.monitors.rpc.servicer import MonitorPorts, MonitorServicer
from chatd.monitors.store.monitors import PostgresMonitors
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.reverts.rpc.servicer import RevertServicer
from chatd.schedules.engine.running import ScheduleRuns
from chatd.schedules.rpc.sending import ChatSender
from chatd.schedules.rpc.servicer import SchedulePorts, ScheduleServicer
from chatd.schedules.store.due_runs import PostgresDueRuns
from chatd.schedules.store.schedules import PostgresSchedules
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.spend.rpc.servicer import UsagePorts, UsageServicer
from chatd.spend.store.limits import PostgresLimits
from chatd.spend.store.usage import PostgresUsage
from chatd.streams.engine.live import LiveChats
from chatd.streams.hub.hubs import Hubs
from chatd.streams.rpc.access import Access
from chatd.streams.rpc.feeds import Feeds
from chatd.streams.rpc.position import cursor_after
from chatd.streams.rpc.relay_source import RelaySource
from chatd.streams.rpc.replicas import ReplicaWatch
from chatd.streams.rpc.requests import Streams
from chatd.streams.rpc.servicer import StreamServicer
from chatd.streams.store.chat_reads import PostgresStreamReads
from chatd.streams.store.feeds import PostgresFeeds
from chatd.turns.store.workers import PostgresWorkers
from chatd.users.domain.grantees import Grantee, GranteeKind
from chatd.users.domain.status import UserSuspended
from chatd.workspace_servers.rpc.servicer import ServerPorts, WorkspaceServerServicer
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.rpc.access import WorkspaceAccess
from chatd.workspaces.rpc.access_servicer import WorkspaceAccessServicer
from chatd.workspaces.rpc.attach_tickets import AttachTickets
from parley.api.workspace.v1 import checkpoint_pb2
from parley.clock import FakeClock
from parley.identity import Guard, ServiceName, SigningKey, TicketIssuer
from parley.postgres import Pool, Session
from parley.rpc import (
    Address,
    Channels,
    Registration,
    TunnelledMethods,
    connect,
    serve,
)
from parley.tasks import BackgroundTasks, Starter
from parley.telemetry import InMemoryTelemetry
from support.chatd.approvals.in_memory_rules import Workspaces
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, EVES_GROUP, Person
from support.chatd.chats.known_servers import KnownServers
from support.chatd.chats.no_defaults import NoDefaults
from support.chatd.chats.served_context import context_servicer
from support.chatd.hooks.served_hooks import ServedHooks, served_hooks
from support.chatd.push.served_push import ServedPush, served_push
from support.chatd.streams.held_hubs import NoRelays
from support.chatd.turns.journaling_tools import JournalingTools
from support.chatd.users.fixed_users import KnownGrantees, KnownGroups
from support.chatd.workspaces.served_catalogue import Catalogue, Facts
from support.database.conflicts import RETRIES
from support.host.supervised import supervision
from support.rpc.echo_service import Identities, make_identities

#: The tool that calls in these chats may use.
SHELL = ToolSpec("execute", "execute", "{}", Executor.TOOLRUNNER, "j1")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
GRANTEES = (
    *(Grantee(GranteeKind.USER, each) for each in (ANN_ID, BOB_ID, EVE_ID)),
    Grantee(GranteeKind.GROUP, EVES_GROUP),
)
INSERT_WORKER = """
    INSERT INTO chat.workers VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())
"""
INSERT_CHILD = """
    WITH child AS (
        INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, parent_chat_id,
            root_chat_id, model_id, reasoning_effort, mode, mcp_server_ids, labels, pin_order,
            summary, last_turn_summary, client_tools, last_read_message_id, created_at)
        SELECT $1, owner_id, owner_role, 'child', true, id, id, '', '', '', '{}', '{}', 0, '', '',
            '[]', 0, clock_timestamp() FROM chat.chats WHERE id = $2)
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, takeovers, pending, compactions, is_compaction_requested, changed_at,
        changed_xid)
    VALUES ($1, $3, false, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, '[]', 0, false, clock_timestamp(),
        pg_current_xact_id())
"""


class NotedClaims:
    """A worker with a number of slots that notes what it is asked to run."""

    worker_id = WORKER

    def __init__(self, slots: int = 1000) -> None:
        self.free = slots
        self.started: list[Claimed] = []

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        if self.free == 0:
            return None
        self.free -= 1
        return Slot()

    def start(self, claimed: Claimed, slot: Slot) -> None:
        self.started.append(claimed)

    def release_slot(self, slot: Slot) -> None:
        self.free += 1


@dataclass(frozen=True, slots=True)
class ServedChats:
    """A running chatd without an engine."""

    pool: Pool
    stores: Stores
    claims: NotedClaims
    ann: Person
    bob: Person
    eve: Person
    state_changed: list[ChatState]
    live: LiveChats
    hubs: Hubs
    feeds: Feeds
    clock: FakeClock
    created: list[NewChat]
    groups: KnownGroups
    suspended: set[OwnerId]
    stopping: asyncio.Event
    catalogue: Catalogue
    servers: KnownServers
    grantees: KnownGrantees
    tools: JournalingTools
    changed: list[ChatId]
    stored_rules: PostgresRules
    rules: CachedRules
    judge: Judge
    hooks: ServedHooks
    push: ServedPush
    chat_servicer: ChatServicer

    async def state(self, chat_id: str) -> ChatState:
        """Read the execution of a chat."""
        return await self.stores.chats.state(ChatId(chat_id))

    async def finish(self, chat_id: str, *said: str) -> ChatState:
        """End the turn of a chat as its worker would."""
        state = await self.state(chat_id)
        messages = tuple(NewMessage(Role.ASSISTANT, (Text(each),)) for each in said or ("fine",))
        return await self.stores.chats.apply(ChatId(chat_id), FinishTurn(fence_of(state), messages))

    async def compact(self, chat_id: str) -> None:
        """Sum up a chat at rest as its worker would."""
        chats = self.stores.chats
        state = await chats.apply(ChatId(chat_id), RequestCompaction(WORKER))
        result = ToolResult("c", "compact", "{}", ToolOutcome.DONE)
        summary = (
            NewMessage(Role.USER, (Text("so far"),), is_compressed=True),
            NewMessage(Role.TOOL, (result,), is_compressed=True),
        )
        state = await chats.apply(ChatId(chat_id), CommitCompaction(fence_of(state), summary))
        await chats.apply(ChatId(chat_id), FinishTurn(fence_of(state), ()))

    async def add_child(self, chat_id: str, status: str = "waiting") -> str:
        """Put a child below a root."""
        child_id = str(uuid.uuid5(uuid.UUID(chat_id), f"child {len(self.state_changed)} {status}"))
        await self.pool.execute(INSERT_CHILD, child_id, chat_id, status)
        return child_id


class FixedPreviews:
    """Tells of one file that would come back."""

    async def preview(
        self, chat_id: ChatId, owner: Owner, message_id: MessageId
    ) -> checkpoint_pb2.RestoreReport:
        return checkpoint_pb2.RestoreReport(restored=1)


async def propose_title(chat_id: ChatId, owner: Owner) -> str:
    """Return the same title for every chat."""
    return "A better title"


def no_channel(address: Address) -> grpc.aio.Channel:
    """Refuse: no node is known."""
    raise AssertionError(address)


@dataclass(frozen=True, slots=True)
class _Telling:
    """What readers are told by, and the tasks in which that goes on."""

    live: LiveChats
    hubs: Hubs
    feeds: Feeds
    access: Access
    replicas: ReplicaWatch
    clock: FakeClock

    @classmethod
    def over(cls, pool: Pool, groups: KnownGroups, tasks: Starter) -> "_Telling":
        clock, live, followings = FakeClock(), LiveChats(), PostgresStreamReads(pool)
        feeds = Feeds(PostgresFeeds(pool), groups, clock)
        hubs = Hubs(
            followings, live, relays=NoRelays(), tasks=tasks, clock=clock, on_activity=feeds.poke
        )
        replicas = ReplicaWatch(PostgresWorkers(pool, Session("", "unused"), RETRIES), clock)
        return cls(
            live,
            hubs,
            feeds,
            Access(hubs, PostgresStreamReads(pool), groups, clock, BreakGlass(pool).record_read),
            replicas,
            clock,
        )

    def begin(self, tasks: BackgroundTasks) -> None:
        tasks.keep("hubs", self.hubs.run)
        tasks.keep("access", self.access.run)
        tasks.keep("replicas", self.replicas.run)
        tasks.keep("feeds", self.feeds.run)

    def servicer(self, guard: Guard, tunnelled: TunnelledMethods) -> StreamServicer:
        return StreamServicer(
            Streams(
                self.hubs,
                RelaySource(self.live),
                self.access,
                lambda method, authorization: guard.admit(method, authorization, None),
                self.feeds,
                self.replicas,
                self.clock,
            ),
            tunnelled,
        )


async def known_names(model_id: str) -> tuple[str, str] | None:
    """Return the names of the one model that is in a catalogue."""
    return ("Large", "Acme") if model_id == "m1" else None


@asynccontextmanager
async def served_chats(
    pool: Pool,
    directory: Path,
    *,
    slots: int = 1000,
    toolrunners: Channels | None = None,
    defaults: Defaults | None = None,
    push_services: str = "127.0.0.0/8",
) -> AsyncIterator[ServedChats]:
    """Serve chats out of a migrated database until the block ends."""
    await pool.execute(INSERT_WORKER, WORKER)
    identities = make_identities(directory)
    state_changed, created, suspended = list[ChatState](), list[NewChat](), set[OwnerId]()
    claims, stopping = NotedClaims(slots), asyncio.Event()
    groups = KnownGroups({EVE_ID: (EVES_GROUP,)})
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(BackgroundTasks(supervision()))
        telling = _Telling.over(pool, groups, tasks)

        def check_suspended(user_id: OwnerId) -> None:
            if user_id in suspended:
                raise UserSuspended(user_id)

        def tell(state: ChatState) -> None:
            state_changed.append(state)
            telling.live.state_changed(state)
            telling.hubs.state_changed(state)

        chats = await stack.enter_async_context(
            PostgresChats(pool, tell, telling.clock, appended=telling.hubs.appended)
        )
        stack.callback(telling.hubs.close)
        telling.begin(tasks)
        stores = Stores.over(pool, chats, telling.feeds.metadata_changed)
        is_shared = partial(shares_of, stores, groups)
        workspace_access = WorkspaceAccess(stores.reading, groups, check_suspended)
        nodes = Nodes(toolrunners or Channels((), no_channel))
        limits = PostgresLimits(pool)
        servers, grantees = KnownServers(), KnownGrantees(GRANTEES)
        spending = LimitedSpending(limits, groups, telling.clock)
        usage = UsagePorts(
            PostgresUsage(pool),
            limits,
            spending,
            groups,
            grantees,
            spending.forget,
            telling.clock,
            known_names,
        )
        tickets = AttachTickets(
            workspace_access, nodes, TicketIssuer(SigningKey.generate(), telling.clock)
        )
        catalogue = Catalogue.over(pool, groups, stopping, tickets, workspace_access, grantees)
        tunnelled = TunnelledMethods()
        tools, changed = JournalingTools(SHELL), list[ChatId]()
        stored_rules = PostgresRules(pool, lambda scope: rules.on_notice(notice_key(scope)))
        rules = CachedRules(stored_rules, telling.clock)
        tree = TreeTaint(Facts(pool).chat, TreeVersions(pool).of_tree, chats.history)
        judge = Judge(rules, Workspaces(), tree)
        hooks = await stack.enter_async_context(served_hooks(pool))
        push = await stack.enter_async_context(served_push(pool, allowed=push_services))
        references = References(catalogue.store, servers, grantees)
        known_models = defaults or NoDefaults()
        chat_servicer = ChatServicer(
            stores,
            claims=claims,
            groups=groups,
            tasks=tasks,
            defaults=known_models,
            references=references,
            spending=spending,
            cursor_after=cursor_after,
            propose_title=propose_title,
            fork_workspace=catalogue.control.fork_of_chat,
            created=created.append,
            hooks=hooks.chats,
        )
        schedule_runs = ScheduleRuns(
            PostgresDueRuns(pool), ChatSender(chat_servicer, OwnerCalls(ERRORS)), telling.clock
        )
        schedule_servicer = ScheduleServicer(
            SchedulePorts(
                PostgresSchedules(pool),
                stores.ownership.require,
                is_shared,
                references,
                known_models,
                telling.clock.now,
                schedule_runs.poke,
            )
        )
        servicers = (
            ApprovalServicer(stored_rules, servers, is_shared),
            hooks.servicer,
            push.servicer,
            BreakGlassServicer(stores.break_glass, grantees, telling.feeds.metadata_changed),
            chat_servicer,
            schedule_servicer,
            GoalServicer(
                GoalPorts(
                    PostgresGoals(pool),
                    stores.ownership.require,
                    is_shared,
                    known_models,
                    telling.clock.now,
                    lambda: None,
                )
            ),
            MonitorServicer(
                MonitorPorts(PostgresMonitors(pool), stores.ownership.require, is_shared)
            ),
            # Only what it refuses is asked for here.
            WorkspaceServerServicer(
                ServerPorts(
                    stores.ownership.require,
                    is_shared,
                    cast(Any, None),
                    cast(Any, None),
                    cast(Any, None),
                )
            ),
            RevertServicer(
                stores,
                claims=claims,
                groups=groups,
                tasks=tasks,
                previews=FixedPreviews(),
                changed=changed.append,
            ),
            context_servicer(pool, stores, groups, tools),
            ActionServicer(
                ActionPorts(
                    Actions(pool),
                    stores,
                    CallDispatcher(tools, Facts(pool).chat, judge, chats.history),
                    claims,
                    groups,
                    tasks,
                    changed=changed.append,
                    remembered=stored_rules.changed,
                )
            ),
            UsageServicer(usage),
            FileServicer(StoredFiles(pool), groups, telling.clock),
            telling.servicer(identities.guard, tunnelled),
            WorkspaceAccessServicer(workspace_access, nodes, stopping),
            *catalogue.servicers,
        )
        address = Address.parse(f"unix:{directory}/chatd.sock")
        channel = await _served(address, servicers, identities, stack, tunnelled)
        yield ServedChats(
            pool=pool,
            stores=stores,
            claims=claims,
            ann=Person.through(channel, ANN_ID),
            bob=Person.through(channel, BOB_ID),
            eve=Person.through(channel, EVE_ID),
            state_changed=state_changed,
            live=telling.live,
            hubs=telling.hubs,
            feeds=telling.feeds,
            clock=telling.clock,
            created=created,
            groups=groups,
            suspended=suspended,
            stopping=stopping,
            catalogue=catalogue,
            servers=servers,
            grantees=grantees,
            tools=tools,
            changed=changed,
            stored_rules=stored_rules,
            rules=rules,
            judge=judge,
            hooks=hooks,
            push=push,
            chat_servicer=chat_servicer,
        )


async def _served(
    address: Address,
    servicers: Iterable[object],
    identities: Identities,
    stack: AsyncExitStack,
    tunnelled: TunnelledMethods,
) -> grpc.aio.Channel:
    """Serve until the stack ends, and return a channel there."""
    telemetry = InMemoryTelemetry("chatd").telemetry
    server = await stack.enter_async_context(
        serve(
            address,
            [Registration.of(servicer) for servicer in servicers],
            guard=identities.guard,
            errors=ERRORS,
            domain=DOMAIN,
            telemetry=telemetry,
            tunnelled=tunnelled,
        )
    )
    channel = connect(
        server.address,
        audience=ServiceName.CHATD,
        signer=identities.signer,
        telemetry=telemetry,
    )
    stack.push_async_callback(channel.close)
    return channel
