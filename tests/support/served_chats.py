"""ChatService over a real socket and a real database, with a worker that only takes notes."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from chatd.clients.nodes import Nodes
from chatd.domain.chat import (
    ChatId,
    ChatState,
    NewMessage,
    OwnerId,
    Role,
    WorkerId,
)
from chatd.domain.commands import FinishTurn
from chatd.domain.errors import UserBarred
from chatd.domain.groups import KnownGroups
from chatd.domain.parts import Text
from chatd.domain.transitions import fence_of
from chatd.domain.workers import Claimed
from chatd.engine.live import LiveChats
from chatd.engine.slots import Slot
from chatd.engine.spending import LimitedSpending
from chatd.rpc.attach_tickets import AttachTickets
from chatd.rpc.chat_servicer import ChatServicer
from chatd.rpc.errors import DOMAIN, ERRORS
from chatd.rpc.file_servicer import FileServicer
from chatd.rpc.stream_servicer import StreamServicer
from chatd.rpc.streams.access import Access
from chatd.rpc.streams.feeds import Feeds
from chatd.rpc.streams.hubs import Hubs, NoRelays
from chatd.rpc.streams.relay_source import RelaySource
from chatd.rpc.streams.replicas import ReplicaWatch
from chatd.rpc.streams.serving import Streams
from chatd.rpc.usage_servicer import UsagePorts, UsageServicer
from chatd.rpc.workspace_door import Door
from chatd.rpc.workspace_servicer import WorkspaceAccessServicer
from chatd.store.chats import PostgresChats
from chatd.store.creation import NewChat
from chatd.store.feeds import PostgresFeeds
from chatd.store.following import Followings
from chatd.store.held_files import HeldFiles
from chatd.store.limits import PostgresLimits
from chatd.store.stores import Stores
from chatd.store.usage import PostgresUsage
from chatd.store.workers import PostgresWorkers
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceStub
from parley.api.chat.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.api.chat.v1.usage_service_pb2_grpc import UsageServiceStub
from parley.api.workspace.v1.node_service_pb2_grpc import NodeServiceStub
from parley.api.workspace.v1.secret_service_pb2_grpc import SecretServiceStub
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceStub
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceStub
from parley.clock import FakeClock
from parley.identity import Role as UserRole
from parley.identity import ServiceName, SigningKey, TicketOffice, User, UserId
from parley.postgres import Pool, Session
from parley.rpc import (
    Address,
    Channels,
    Problem,
    Registration,
    acting_for,
    connect,
    problem_of,
    serve,
)
from parley.telemetry import InMemoryTelemetry
from support.echo_service import make_identities
from support.served_catalogue import Catalogue

WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
ANN_ID = OwnerId("00000000-0000-0000-0000-00000000000a")
BOB_ID = OwnerId("00000000-0000-0000-0000-00000000000b")
EVE_ID = OwnerId("00000000-0000-0000-0000-00000000000e")
EVES_GROUP = "00000000-0000-0000-0000-0000000000ee"

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


@dataclass(slots=True)
class Person:
    """A user who calls through the gateway."""

    id: OwnerId
    stub: Any
    streams: Any
    numbers: list[int] = field(default_factory=lambda: [0])
    usage: Any = None
    files: Any = None
    role: UserRole = UserRole.MEMBER
    workspaces: Any = None
    catalogue: Any = None
    nodes: Any = None
    secrets: Any = None

    async def ask(self, request: Any) -> Any:
        """Call the method whose request this is."""
        method = request.DESCRIPTOR.name.removesuffix("Request")
        stubs = (self.usage, self.workspaces, self.catalogue, self.nodes, self.secrets)
        offering = (each for each in stubs if hasattr(each, method))
        stub = next(offering, self.stub)
        with acting_for(User(UserId(self.id), self.role)):
            return await getattr(stub, method)(request)

    async def refusal(self, request: Any) -> Problem:
        """Call a method that must refuse, and return why it did."""
        try:
            if isinstance(request, api.ExportChatRequest):
                answer: Any = await self.export(request.chat_id)
            else:
                answer = await self.ask(request)
        except grpc.aio.AioRpcError as error:
            return problem_of(error)
        raise AssertionError(f"was not refused but answered {answer}")

    async def export(self, chat_id: str) -> list[Any]:
        """Read a whole chat."""
        with acting_for(User(UserId(self.id), UserRole.MEMBER)):
            call = self.stub.ExportChat(api.ExportChatRequest(chat_id=chat_id))
        return [piece async for piece in call]

    def fresh(self) -> str:
        """Return a request id that was not used before."""
        self.numbers[0] += 1
        return f"request-{self.numbers[0]}"

    async def create(self, said: str = "hello", **more: Any) -> chat_pb2.Chat:
        """Create a chat."""
        more.setdefault("request_id", self.fresh())
        created = await self.ask(api.CreateChatRequest(content=[text(said)], **more))
        chat: chat_pb2.Chat = created.chat
        return chat

    async def send(self, chat_id: str, said: str = "more", **more: Any) -> api.SendMessageResponse:
        """Send a message."""
        more.setdefault("request_id", self.fresh())
        request = api.SendMessageRequest(chat_id=chat_id, content=[text(said)], **more)
        answer: api.SendMessageResponse = await self.ask(request)
        return answer

    async def get(self, chat_id: str) -> chat_pb2.Chat:
        """Read a chat."""
        got = await self.ask(api.GetChatRequest(chat_id=chat_id))
        chat: chat_pb2.Chat = got.chat
        return chat

    async def texts(self, chat_id: str) -> list[str]:
        """Read the first texts of a history, in order."""
        page = await self.ask(api.ListMessagesRequest(chat_id=chat_id, limit=200))
        return [message.content[0].text.text for message in reversed(page.messages)]


@dataclass(frozen=True, slots=True)
class ServedChats:
    """A running chatd without an engine."""

    pool: Pool
    stores: Stores
    claims: NotedClaims
    ann: Person
    bob: Person
    eve: Person
    moved: list[ChatState]
    live: LiveChats
    hubs: Hubs
    clock: FakeClock
    created: list[NewChat] = field(default_factory=list)
    groups: KnownGroups = field(default_factory=KnownGroups)
    barred: set[OwnerId] = field(default_factory=set)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    catalogue: Any = None

    async def state(self, chat_id: str) -> ChatState:
        """Read the execution of a chat."""
        return await self.stores.chats.state(ChatId(chat_id))

    async def finish(self, chat_id: str, *said: str) -> ChatState:
        """End the turn of a chat as its worker would."""
        state = await self.state(chat_id)
        messages = tuple(NewMessage(Role.ASSISTANT, (Text(each),)) for each in said or ("fine",))
        return await self.stores.chats.apply(ChatId(chat_id), FinishTurn(fence_of(state), messages))

    async def add_child(self, chat_id: str, status: str = "waiting") -> str:
        """Put a child below a root."""
        child_id = str(uuid.uuid5(uuid.UUID(chat_id), f"child {len(self.moved)} {status}"))
        await self.pool.execute(INSERT_CHILD, child_id, chat_id, status)
        return child_id


def no_channel(address: Address) -> grpc.aio.Channel:
    """Refuse: no node is known."""
    raise AssertionError(address)


def text(said: str) -> message_pb2.Part:
    return message_pb2.Part(text=message_pb2.TextPart(text=said))


@asynccontextmanager
async def served_chats(
    pool: Pool,
    directory: Path,
    *,
    slots: int = 1000,
    toolrunners: Channels | None = None,
) -> AsyncIterator[ServedChats]:
    """Serve chats out of a migrated database until the block ends."""
    await pool.execute(INSERT_WORKER, WORKER)
    identities = make_identities(directory)
    telemetry = InMemoryTelemetry("chatd").telemetry
    live, moved, claims = LiveChats(), list[ChatState](), NotedClaims(slots)
    created: list[NewChat] = []
    barred, stopping = set[OwnerId](), asyncio.Event()
    groups = KnownGroups({EVE_ID: (EVES_GROUP,)})
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())

        def bar(user_id: OwnerId) -> None:
            if user_id in barred:
                raise UserBarred(user_id)

        def tell(state: ChatState) -> None:
            moved.append(state)
            live.moved(state)
            hubs.moved(state)

        clock = FakeClock()
        feeds = Feeds(PostgresFeeds(pool), clock)
        hubs = Hubs(
            Followings(pool),
            live,
            relays=NoRelays(),
            tasks=tasks,
            clock=clock,
            news=feeds.poke,
        )
        access = Access(hubs, Followings(pool), groups, clock)
        replicas = ReplicaWatch(PostgresWorkers(pool, Session("", "unused")), clock)
        chats = await stack.enter_async_context(
            PostgresChats(pool, tell, clock, appended=hubs.appended)
        )
        stack.callback(hubs.close)
        running = [
            tasks.create_task(work)
            for work in (hubs.run(), access.run(), replicas.run(), feeds.run())
        ]
        stack.callback(lambda: [task.cancel() for task in running])
        guard = identities.guard
        streams_served = Streams(
            hubs,
            RelaySource(live),
            access,
            lambda method, authorization: guard.admit(method, authorization, None),
            feeds,
            replicas,
            clock,
        )
        stores = Stores.over(pool, chats)
        door = Door(stores.reading, groups, bar)
        nodes = Nodes(toolrunners or Channels((), no_channel))
        limits = PostgresLimits(pool)
        spending = LimitedSpending(limits, groups, FakeClock())
        usage = UsagePorts(
            PostgresUsage(pool), limits, spending, groups, spending.forget, FakeClock()
        )
        tickets = AttachTickets(door, nodes, TicketOffice(SigningKey.generate(), clock))
        catalogue = Catalogue.over(pool, groups, stopping, tickets)
        server = await stack.enter_async_context(
            serve(
                Address.parse(f"unix:{directory}/chatd.sock"),
                [
                    Registration.of(
                        ChatServicer(
                            stores,
                            claims=claims,
                            groups=groups,
                            tasks=tasks,
                            spending=spending,
                            created=created.append,
                        )
                    ),
                    Registration.of(UsageServicer(usage)),
                    Registration.of(FileServicer(HeldFiles(pool), groups)),
                    Registration.of(StreamServicer(streams_served)),
                    Registration.of(WorkspaceAccessServicer(door, nodes, stopping)),
                    *map(Registration.of, catalogue.servicers),
                ],
                guard=identities.guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=telemetry,
            )
        )
        channel = connect(
            server.address,
            audience=ServiceName.CHATD,
            signer=identities.signer,
            telemetry=telemetry,
        )
        stack.push_async_callback(channel.close)
        stub = ChatServiceStub(channel)
        streams = StreamServiceStub(channel)
        sums = UsageServiceStub(channel)
        workspaces = WorkspaceAccessServiceStub(channel)
        files = FileServiceStub(channel)
        ann, bob, eve = (
            Person(
                each,
                stub,
                streams,
                usage=sums,
                files=files,
                workspaces=workspaces,
                catalogue=WorkspaceServiceStub(channel),
                nodes=NodeServiceStub(channel),
                secrets=SecretServiceStub(channel),
            )
            for each in (ANN_ID, BOB_ID, EVE_ID)
        )
        yield ServedChats(
            pool,
            stores,
            claims,
            ann,
            bob,
            eve,
            moved,
            live,
            hubs,
            clock,
            created,
            groups,
            barred,
            stopping,
            catalogue,
        )
