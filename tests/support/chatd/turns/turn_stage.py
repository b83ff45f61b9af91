"""A stage for turns: one chat in memory, a scripted model, a journaling executor, a fake clock."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from chatd.chats.domain.chat import ChatState, Claimed, Message, NewMessage, Status
from chatd.chats.domain.commands import (
    BusyBehavior,
    Command,
    Interrupt,
    SendMessage,
    SubmitToolResults,
    UserCommand,
)
from chatd.content.domain.messages import MessageOrigin, Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolResult
from chatd.content.domain.tool_servers import ToolServers
from chatd.content.domain.tools import Executor, StoredExecution, Tools, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    OnEvent,
    TextDelta,
    ToolCallRequested,
)
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, QueuedMessageId, WorkerId
from chatd.providers.scripted import Play, ScriptedModel
from chatd.spend.domain.ledger import LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.streams.engine.live import LiveChats, LivePart
from chatd.turns.domain.agent_reports import AgentReports
from chatd.turns.domain.ports import Approvals, FileRestores, Hooks, Partials, Setups
from chatd.turns.domain.turn import TurnEnded, TurnSetup
from chatd.turns.engine.chat_run import TurnRunner
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.metering import CallObserver
from parley.clock import FakeClock
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.turns.absent_ports import Unlimited, turn_ports
from support.chatd.turns.fixed_setups import FixedSetups
from support.chatd.turns.journaling_tools import Crash, JournalingTools

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
HEIR = WorkerId("00000000-0000-0000-0000-0000000000bb")
IDLE = ChatState(CHAT, Status.WAITING, 1, 0, 0, MessageId(1))
SETUP = TurnSetup(ModelProfile("demo"))


def tool(
    name: str, *, is_serial: bool = False, is_exclusive: bool = False, ends_turn: bool = False
) -> ToolSpec:
    """Return a tool of the journaling executor."""
    return ToolSpec(
        name,
        name,
        "{}",
        Executor.TOOLRUNNER,
        "j1",
        is_serial=is_serial,
        is_exclusive=is_exclusive,
        ends_turn=ends_turn,
    )


def client_tool(name: str) -> ToolSpec:
    """Return a tool that the client executes."""
    return ToolSpec(name, name, "{}", Executor.CLIENT)


def calling(*calls: ToolCall) -> Play:
    """Return a play that calls tools in answer to a user and then says that it is done."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if request.messages[-1].role is Role.USER:
            yield from map(ToolCallRequested, calls)
        else:
            yield TextDelta("done")
        yield Finished()

    return play


@dataclass(slots=True)
class Commits:
    """Records the runner's commands; dies before or after the nth of them.

    What stands in `after` happens right after the first command of that kind was committed.
    """

    store: InMemoryChats
    commands: list[Command] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    dies_before: int | None = None
    dies_after: int | None = None
    after: dict[type[Command], Callable[[], object]] = field(default_factory=dict)

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        if len(self.commands) == self.dies_before:
            raise Crash
        self.commands.append(command)
        written = await self.store.apply(chat_id, command)
        if len(self.commands) - 1 == self.dies_after:
            raise Crash
        self.after.pop(type(command), lambda: None)()
        return written

    async def state(self, chat_id: ChatId) -> ChatState:
        return await self.store.state(chat_id)

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        self.reads.append(after_revision)
        return await self.store.history(chat_id, after_revision)

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        return await self.store.executions(chat_id, message_id)


class NotingModel(ScriptedModel):
    """Notes what it is asked."""

    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        self.requests.append(request)
        await super().answer(request, on_event)


class Stage:
    """One chat and everything a runner needs for it."""

    def __init__(
        self,
        play: Play,
        *specs: ToolSpec,
        held: Collection[str] = (),
        setup: TurnSetup = SETUP,
        limits: TurnLimits | None = None,
        partials: Partials | None = None,
        clock: FakeClock | None = None,
        spending: Spending | None = None,
        restores: FileRestores | None = None,
        approvals: Approvals | None = None,
        tool_servers: ToolServers | None = None,
        agents: AgentReports | None = None,
        hooks: Hooks | None = None,
        setups: Setups | None = None,
        other_tools: Tools | None = None,
        calls: CallObserver | None = None,
    ) -> None:
        self._calls = calls
        self._hooks = hooks
        self._setups = setups
        self._other_tools = other_tools
        self._agents = agents
        self._restores = restores
        self._tool_servers = tool_servers
        self.clock = clock or FakeClock()
        self.kept: list[LivePart] = []  # For the next owner.
        self.live = LiveChats(lambda _, part: self.kept.append(part))
        self.chats = InMemoryChats(IDLE)
        self.commits = Commits(self.chats)
        self.model = NotingModel(play)
        self.tools = JournalingTools(*specs, held=held)
        self.jitter = 0.0
        self.may_act = True
        self.is_restricted = False
        self.ended: list[TurnEnded] = []
        self.billed_late: list[tuple[LedgerEntry, OwnerId]] = []
        self.mailbox = Mailbox(IDLE)
        self._sent = 0
        self._limits = limits
        self.setups = FixedSetups(setup)
        self._partials = partials
        self._spending = spending or Unlimited()
        self._approvals = approvals
        self.runner = self._runner()

    @property
    def state(self) -> ChatState:
        return self.chats.chats[CHAT].state

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def messages(self) -> list[Message]:
        return self.chats.chats[CHAT].live()

    @property
    def said(self) -> list[tuple[Role, tuple[Part, ...]]]:
        return [(message.role, message.content) for message in self.messages]

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return role and text of each message; parts without text by their kind."""
        return [(message.role.value, told(message.content)) for message in self.messages]

    def send(self, text: str = "hello", busy: BusyBehavior = BusyBehavior.QUEUE) -> ChatState:
        """Let the user say something."""
        self._sent += 1
        queued_id = QueuedMessageId(str(uuid.uuid5(uuid.UUID(CHAT), f"queued {self._sent}")))
        message = NewMessage(Role.USER, (Text(text),), ANN.id, origin=MessageOrigin.PERSON)
        return self.do(SendMessage(message, queued_id, WORKER, busy))

    def do(self, command: UserCommand) -> ChatState:
        """Let the user do something; the runner hears of it."""
        state = self.chats.apply_now(CHAT, command)
        self.mailbox.put(state)
        return state

    def interrupt(self) -> None:
        self.do(Interrupt(MessageId(0), WORKER))

    def submit(self, *results: ToolResult) -> None:
        self.do(SubmitToolResults(results, ANN.id, WORKER))

    @contextmanager
    def watch(self) -> "Iterator[asyncio.Queue[LivePart]]":
        """Give a queue that gets every live part from now on."""
        shown: asyncio.Queue[LivePart] = asyncio.Queue()
        self.live.listen(lambda _, part: shown.put_nowait(part))
        yield shown

    async def run(self) -> None:
        """Run the chat as the worker that claimed it."""
        self.mailbox = Mailbox(self.state)
        async with asyncio.timeout(30):
            await self.runner.run(Claimed(self.state, ANN), self.mailbox)

    async def ask(self, text: str = "hello") -> None:
        """Send a message and run its turn."""
        self.send(text)
        await self.run()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the chat beside the body; leaving waits for its end."""
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(self.run())
            yield

    async def take_over(self) -> None:
        """Let another process claim what is left of a dead one, and run it."""
        left = self.state
        if left.worker_id is None:
            return
        self.chats.chats[CHAT].state = replace(
            left,
            snapshot_version=left.snapshot_version + 1,
            owner_epoch=left.owner_epoch + 1,
            worker_id=HEIR,
            takeovers=left.takeovers + 1,
            generation_attempt=left.generation_attempt + (left.status is Status.RUNNING),
        )
        self.commits = Commits(self.chats)
        self.runner = self._runner()
        await self.run()

    async def _restricted(self, chat_id: ChatId) -> bool:
        return self.is_restricted

    def _runner(self) -> TurnRunner:
        ports = turn_ports(
            self.commits,
            self.model,
            self._other_tools or self.tools,
            self._setups or self.setups,
            self.live,
            approvals=self._approvals,
            partials=self._partials,
            spending=self._spending,
            calls=self._calls,
            clock=self.clock,
            jitter=lambda: self.jitter,
            may_act=lambda: self.may_act,
            limits=self._limits,
            restores=self._restores,
            tool_servers=self._tool_servers,
            agents=self._agents,
            hooks=self._hooks,
            is_restricted=self._restricted,
            ended=self.ended.append,
            unbilled=lambda entry, owner_id: self.billed_late.append((entry, owner_id)),
        )
        return TurnRunner(ports)


def told(content: tuple[Part, ...]) -> str:
    return " ".join(
        part.text if isinstance(part, Text) else type(part).__name__ for part in content
    )


async def live_parts(watcher: "asyncio.Queue[LivePart]", count: int) -> list[LivePart]:
    """Return the next live parts of a chat."""
    async with asyncio.timeout(30):
        return [await watcher.get() for _ in range(count)]
