"""Fault injection for tests: the ports of chatd wrapped with named fault points.

Without a directory every port is returned unwrapped, so a process without fault points has no
overhead. Points are named for the operation that they surround: `SendMessage.before` and
`SendMessage.after` are before and after a commit, `model.asked` is before the first event of an
answer, `model.event` after each event, `tools.execute` and `tools.executed` before and after a tool
call, `restores.restore` and `restores.restored` before and after files are restored, `hooks.send`
and `hooks.sent` before an event is sent to a hook and after its answer.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from chatd.chats.domain.chat import ChatState, Claimed, Revert
from chatd.chats.domain.commands import Command
from chatd.chats.store.applying import Appended, Applied
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.tools import Execution, Found, InputRequired, Outcome, Tools, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.hooks.domain.hooks import Hook
from chatd.hooks.domain.ports import HookAnswer, HookSender
from chatd.models.domain.language_model import (
    LanguageModel,
    ModelEvent,
    ModelRequest,
    OnEvent,
    RequestSent,
)
from chatd.primitives.domain.ids import (
    ChatId,
    Owner,
    OwnerClaim,
    WorkerId,
)
from chatd.primitives.domain.requests import ClientKey
from chatd.turns.domain.ports import FileRestores
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.ports import Runner
from parley.postgres import Pool
from parley.process import Process
from parley.tasks import owned_tasks
from parley.testing.faultpoints import FaultpointDirectory, OffsetClock

Reached = Callable[[str, str], Awaitable[None]]


class Faults:
    """Wraps ports with fault points if a directory for them is configured."""

    def __init__(self, directory: Path | None, process: Process) -> None:
        self.process = process
        self._points: FaultpointDirectory | None = None
        if directory is not None:
            self._points = FaultpointDirectory(directory, process.clock)
            self.process = replace(process, clock=OffsetClock(process.clock, directory))
        self._running: ContextVar[str] = ContextVar("the chat that a task runs", default="")

    def chats(
        self,
        pool: Pool,
        state_changed: Callable[[ChatState], None],
        *,
        appended: Appended,
    ) -> PostgresChats:
        """Return a store with fault points around its commits."""
        chats: PostgresChats
        clock, jitter = self.process.clock, self.process.random.random
        if self._points is None:
            chats = PostgresChats(pool, state_changed, clock, appended=appended, jitter=jitter)
        else:
            chats = _FaultyChats(pool, state_changed, clock, appended=appended, jitter=jitter)
            chats.reached = self._points.reached
        return chats

    def model(self, model: LanguageModel) -> LanguageModel:
        """Return a model with fault points in its stream."""
        return model if self._points is None else _FaultyModel(model, self._here(self._points))

    def tools(self, tools: Tools) -> Tools:
        """Return tools with fault points around their calls."""
        return tools if self._points is None else _FaultyTools(tools, self._points.reached)

    def restores(self, restores: FileRestores) -> FileRestores:
        """Return restores with fault points around them."""
        return restores if self._points is None else _FaultyRestores(restores, self._points.reached)

    def hook_sender(self, sender: HookSender) -> HookSender:
        """Return a sender with fault points around each delivery to a hook."""
        return sender if self._points is None else _FaultyHookSender(sender, self._points.reached)

    def runner(self, run_chat: Runner) -> Runner:
        """Return a runner that sets the chat id for the fault points of its task."""
        if self._points is None:
            return run_chat

        async def run(claimed: Claimed, mailbox: Mailbox) -> None:
            self._running.set(claimed.state.chat_id)
            await run_chat(claimed, mailbox)

        return run

    def _here(self, points: FaultpointDirectory) -> Callable[[str], Awaitable[None]]:
        return lambda point: points.reached(point, self._running.get())


class _FaultyChats(PostgresChats):
    """A store of chats with fault points before and after each commit."""

    reached: Reached

    async def add(
        self, new: NewChat, *, claimed_by: WorkerId | None, client_key: ClientKey | None = None
    ) -> ChatState | None:
        await self.reached("CreateChat.before", new.id)
        state = await super().add(new, claimed_by=claimed_by, client_key=client_key)
        await self.reached("CreateChat.after", new.id)
        return state

    async def applied(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> Applied:
        name = type(command).__name__
        await self.reached(f"{name}.before", chat_id)
        applied = await super().applied(chat_id, command, client_key)
        await self.reached(f"{name}.after", chat_id)
        return applied


class _FaultyModel:
    """A model with fault points before and between its events."""

    def __init__(self, model: LanguageModel, reached: Callable[[str], Awaitable[None]]) -> None:
        self._model = model
        self._reached = reached

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        await self._reached("model.asked")
        events: asyncio.Queue[ModelEvent | None] = asyncio.Queue()

        async def asked() -> None:
            try:
                await self._model.answer(request, events.put_nowait)
            finally:
                events.put_nowait(None)

        async with owned_tasks() as start:
            asking = start(asked())
            while (event := await events.get()) is not None:
                on_event(event)
                if not isinstance(event, RequestSent):  # No part of the answer has arrived yet.
                    await self._reached("model.event")
            await asking


class _FaultyTools:
    """Tools with fault points right before and right after each call."""

    def __init__(self, tools: Tools, reached: Reached) -> None:
        self._tools = tools
        self._reached = reached

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return await self._tools.list_tools(context)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        await self._reached("tools.execute", execution.chat_id)
        outcome = await self._tools.execute(execution)
        await self._reached("tools.executed", execution.chat_id)
        return outcome

    async def find(self, execution: Execution) -> Found:
        return await self._tools.find(execution)

    async def cancel(self, execution: Execution) -> None:
        await self._tools.cancel(execution)


class _FaultyRestores:
    """Restores with fault points right before and right after each."""

    def __init__(self, restores: FileRestores, reached: Reached) -> None:
        self._restores = restores
        self._reached = reached

    async def restore(self, claim: OwnerClaim, owner: Owner, revert: Revert) -> bytes:
        await self._reached("restores.restore", claim.chat_id)
        report = await self._restores.restore(claim, owner, revert)
        await self._reached("restores.restored", claim.chat_id)
        return report


class _FaultyHookSender:
    """A sender of events with fault points before each delivery and after its answer."""

    def __init__(self, sender: HookSender, reached: Reached) -> None:
        self._sender = sender
        self._reached = reached

    async def send(self, hook: Hook, dispatch_id: str, body: bytes) -> HookAnswer:
        chat_id = json.loads(body)["chat_id"] or ""
        await self._reached("hooks.send", chat_id)
        answer = await self._sender.send(hook, dispatch_id, body)
        await self._reached("hooks.sent", chat_id)
        return answer
