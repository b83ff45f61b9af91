"""A stage for faults of providers: the engine over the real adapters, against models of the mock.

Transport, wire formats, router, classifier and breakers are those of the product; chats are kept in
memory. Run tests on it in virtual time, and an outage of five minutes takes a second.
"""

import asyncio
import random  # noqa: TID251 (a seed of the stage's own)
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from chatd.chats.domain.chat import ChatState, Claimed, Message, NewMessage, Retry, Status
from chatd.chats.domain.commands import BusyBehavior, Command, RecordRetry, SendMessage, UserCommand
from chatd.content.domain.messages import Role, TurnError
from chatd.content.domain.parts import Text
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import Model
from chatd.models.domain.language_model import ModelEvent, ModelRequest, OnEvent, TextDelta
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import ChatId, MessageId, QueuedMessageId
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.breaker import Breakers
from chatd.providers.completions import CompletionsWire
from chatd.providers.guarded import GuardedModels
from chatd.providers.responses import ResponsesWire
from chatd.providers.router import Call, RoutedModel
from chatd.providers.scripted import ScriptedModel, demo_with
from chatd.providers.transport import HttpModels
from chatd.providers.wire_choice import WireName
from chatd.spend.domain.ledger import LedgerEntry
from chatd.streams.engine.live import LiveChats
from chatd.turns.engine.chat_run import TurnRunner
from chatd.turns.engine.dependencies import TurnLimits
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.setups import ConfiguredSetups
from parley.http import HttpOptions
from parley.testing.llm_mock import MockModels
from support.chatd.chats.in_memory_chats import InMemoryChats
from support.chatd.models.mock_catalogue import StagedConfiguration, Way, provider_at
from support.chatd.turns.absent_ports import turn_ports
from support.chatd.turns.journaling_tools import JournalingTools
from support.chatd.turns.turn_stage import ANN, WORKER, told
from support.host.virtual_time import LoopClock

REQUESTS_KEPT = 100_000
TURN_S_MAX = 24 * 3600.0
ADD = ToolSpec(
    "add",
    "Add a number.",
    '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}',
    Executor.TOOLRUNNER,
    "j1",
)


class NotingChats(InMemoryChats):
    """Chats in memory that note each retry with its moment."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self._clock = clock
        self.retries: list[tuple[float, ChatId, Retry]] = []

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Decide, keep and note."""
        state = await super().apply(chat_id, command)
        if isinstance(command, RecordRetry):
            self.retries.append((self._clock.monotonic(), chat_id, command.retry))
        return state


@dataclass(slots=True)
class StagedChat:
    """One chat."""

    id: ChatId
    stage: "ProviderStage"
    sent: int = 0

    @property
    def state(self) -> ChatState:
        """Return where it stands."""
        return self.stage.chats.chats[self.id].state

    @property
    def messages(self) -> list[Message]:
        """Return its live messages."""
        return self.stage.chats.chats[self.id].live()

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return role and text of each message; parts without text by their kind."""
        return [(message.role.value, told(message.content)) for message in self.messages]

    @property
    def said(self) -> str:
        """Return the text of the newest message."""
        parts = self.messages[-1].content
        return "".join(part.text for part in parts if isinstance(part, Text))

    @property
    def error(self) -> TurnError:
        """Return why its turn failed, which it must have."""
        error = self.state.last_error
        assert self.state.status is Status.ERROR
        assert error is not None
        return error

    @property
    def retries(self) -> list[Retry]:
        """Return all that was told of failed attempts."""
        return [retry for _, chat_id, retry in self.stage.chats.retries if chat_id == self.id]

    @property
    def ledger(self) -> list[LedgerEntry]:
        """Return its bills."""
        return list(self.stage.chats.chats[self.id].ledger.values())

    async def ask(self, model: str, text: str = "hello") -> None:
        """Say something and run the turn to its end."""
        self.sent += 1
        queued_id = QueuedMessageId(str(uuid.uuid5(uuid.UUID(self.id), f"queued {self.sent}")))
        message = NewMessage(Role.USER, (Text(text),), ANN.id, choice=ModelChoice(model))
        await self.do(SendMessage(message, queued_id, WORKER, BusyBehavior.QUEUE))

    async def do(self, command: UserCommand) -> None:
        """Let the user do something, and run what follows from it."""
        state = self.stage.chats.apply_now(self.id, command)
        async with asyncio.timeout(TURN_S_MAX):
            await self.stage.runner.run(Claimed(state, ANN), Mailbox(state))


@dataclass(slots=True)
class Heard:
    """How much the models said in all."""

    characters: int = 0


@dataclass(slots=True)
class ProviderStage:
    """Everything that turns need, and the mock that they talk to."""

    clock: LoopClock
    mock: MockModels
    configuration: StagedConfiguration
    chats: NotingChats
    tools: JournalingTools
    live: LiveChats
    breakers: Breakers
    runner: TurnRunner
    heard: Heard
    _made: int = field(default=0)

    def model(self, way: Way, words: str = "", **more: Any) -> str:
        """Return the id of a model of the mock that behaves as the words say."""
        name = f"mock:{words}"
        return self.configuration.add(Model(f"{way} {name}", way, name, name, **more))

    def chat(self) -> StagedChat:
        """Return a new chat."""
        self._made += 1
        chat_id = ChatId(str(uuid.UUID(int=self._made)))
        state = ChatState(chat_id, Status.WAITING, 1, 0, 0, MessageId(1))
        self.chats.chats |= InMemoryChats(state).chats
        return StagedChat(chat_id, self)

    async def ask_all(self, chats: list[StagedChat], model: str) -> None:
        """Let many chats ask at the same moment, and run them all to their ends."""
        async with asyncio.TaskGroup() as tasks:
            for chat in chats:
                tasks.create_task(chat.ask(model))

    def asked_at_s(self) -> list[float]:
        """Return the moments at which the mock was asked."""
        return [served.at_s for served in self.mock.requests(REQUESTS_KEPT)]


@asynccontextmanager
async def provider_stage(
    *tools: ToolSpec,
    limits: TurnLimits | None = None,
    jitter: Callable[[], float] | None = None,
    url: str = "",
    options: HttpOptions | None = None,
) -> AsyncIterator[ProviderStage]:
    """Give a stage; `url` leads to a server other than the mock."""
    clock, breakers, heard = LoopClock(), Breakers(), Heard()
    luck = jitter or random.Random(7).random
    async with (
        MockModels.serving(clock=clock, requests_kept=REQUESTS_KEPT) as mock,
        HttpModels(clock, options) as http,
    ):
        configuration = StagedConfiguration({way: provider_at(url or mock.url, way) for way in Way})
        guarded = GuardedModels(http, breakers=breakers, clock=clock, jitter=luck)

        async def make(call: Call, request: ModelRequest, on_event: OnEvent) -> None:
            def took(event: ModelEvent) -> None:
                if isinstance(event, TextDelta):
                    heard.characters += len(event.text)
                on_event(event)

            await guarded.of(call.wire, call.target, call.credential_id).answer(request, took)

        model = RoutedModel(
            configuration,
            make=make,
            wires={
                WireName.ANTHROPIC: AnthropicWire(),
                WireName.RESPONSES: ResponsesWire(),
                WireName.COMPLETIONS: CompletionsWire(),
            },
            demo=ScriptedModel(demo_with(clock)),
            clock=clock,
        )
        chats, live, executor = NotingChats(clock), LiveChats(), JournalingTools(*tools)
        setups = ConfiguredSetups(configuration, PriceBook(date(2026, 1, 1), ()))
        runner = TurnRunner(
            turn_ports(
                chats, model, executor, setups, live, clock=clock, jitter=luck, limits=limits
            )
        )
        yield ProviderStage(
            clock, mock, configuration, chats, executor, live, breakers, runner, heard
        )
