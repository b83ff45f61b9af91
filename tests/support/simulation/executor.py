"""The one executor of a simulation: it journals, takes its time, and can lose everything."""

import asyncio
import json
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from chatd.chats.domain.chat import Revert
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Ended,
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    InputRequired,
    Outcome,
    PendingKind,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, OwnerClaim
from support.chatd.turns.journaling_tools import Entry, JournalingTools, StaleOwner, ran
from support.simulation.database import SimulatedDatabase
from support.simulation.files import Change, UnknownRestore
from support.simulation.loop import Host
from support.simulation.model import ASKING, GUARDED, WAITING
from support.simulation.network import ERROR_S, NOWHERE, Network, fail_reply, settle_reply

WORKSPACE_TOOLS = tuple(
    ToolSpec(name, name, "{}", Executor.TOOLRUNNER, is_serial=name == "alone")
    for name in ("quick", "slow", "alone", ASKING, GUARDED)
)
WAIT = ToolSpec(WAITING, WAITING, "{}", Executor.TOOLRUNNER)
QUESTIONS = tuple(
    InputRequired(name, PendingKind.ELICITATION, f"Which {name}?") for name in ("one", "other")
)
CANCELLED = Outcome(ToolOutcome.CANCELLED, "{}")
STALE = Outcome(ToolOutcome.FAILED, json.dumps({"error": "another owner runs this chat"}))
CALL_MAX_S = 6.0
UNREACHABLE = ExecutorUnreachable(Executor.TOOLRUNNER)

T = TypeVar("T")


class SimulatedExecutor(JournalingTools):
    """Executes calls as the real executors promise to."""

    def __init__(
        self,
        network: Network,
        rng: random.Random,
        database: SimulatedDatabase,
        *,
        has_waits: bool = False,
    ) -> None:
        specs = (*WORKSPACE_TOOLS, WAIT) if has_waits else WORKSPACE_TOOLS
        names = [spec.name for spec in specs]
        super().__init__(*specs, held=names, generation="journal 1")
        self.questions = {ASKING: QUESTIONS}
        self._network = network
        self._rng = rng
        self._database = database
        self._never: set[ExecutionId] = set()  # Cancelled before they arrived.
        self._losses = 1

    @property
    def generation(self) -> str:
        """The present journal."""
        return self._generation

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Offer the tools with the present journal."""
        if not self.is_reachable:
            raise ExecutorUnreachable(Executor.TOOLRUNNER)
        return tuple(replace(spec, journal_generation=self._generation) for spec in self.specs)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Start a call or attach to it, unless it may not run any more."""
        if self.is_reachable and execution.dispatch.journal_generation != self._generation:
            return UNKNOWN_OUTCOME
        if self.is_reachable and execution.dispatch.execution_id in self._never:
            return CANCELLED
        try:
            return await super().execute(execution)
        except StaleOwner:
            return STALE

    async def find(self, execution: Execution) -> Found:
        """Look into the journal."""
        try:
            found = await super().find(execution)
        except StaleOwner:
            return Ended(STALE)
        is_never = execution.dispatch.execution_id in self._never
        return Ended(CANCELLED) if is_never else found

    async def cancel(self, execution: Execution) -> None:
        """Stop a call for good, also one that is still on its way."""
        try:
            await super().cancel(execution)
        except StaleOwner:
            return
        if execution.dispatch.execution_id not in self._journal:
            self._never.add(execution.dispatch.execution_id)

    async def restore(self, claim: OwnerClaim, revert: Revert) -> bytes | None:
        """Restore files by the id of a revert; None if the owner was replaced.

        Raises:
            ExecutorUnreachable: It cannot be reached, or its answer was lost.
            UnknownRestore: What is to be undone is not known.
        """
        if not self.is_reachable:
            raise UNREACHABLE
        highest = max(self._epochs.get(claim.chat_id, 0), claim.owner_epoch)
        self._epochs[claim.chat_id] = highest
        if claim.owner_epoch < highest:
            return None
        report = self._database.files.restore(claim.chat_id, revert)
        if self.loses_answers:
            raise UNREACHABLE
        return report

    def would_start(self, execution: Execution) -> bool:
        """Return whether a call that arrives now begins, rather than being attached to."""
        dispatch = execution.dispatch
        is_traceable = dispatch.journal_generation == self._generation
        is_over = dispatch.execution_id in self._journal or dispatch.execution_id in self._never
        return is_traceable and not is_over and execution.answer is None

    def forget_journal(self) -> None:
        """Lose everything and begin a new journal; those who wait are cut off."""
        for entry in self._journal.values():
            if not entry.outcome.done():
                entry.outcome.set_exception(ExecutorUnreachable(Executor.TOOLRUNNER))
                entry.outcome.exception()  # Nobody may be waiting.
        self._never.clear()
        super().forget_journal()
        self._database.files.forget()
        self._losses += 1
        self._generation = f"journal {self._losses}"

    def _start(self, execution: Execution) -> Entry:
        chat = self._database.chat(execution.chat_id)
        stored, called = chat.dispatches, execution.dispatch.call
        found = (each.id for each in chat.messages if called in each.content)
        message_id = next(found, chat.state.next_message_id)
        change = Change(execution.dispatch.execution_id, message_id)
        self._database.files.change(execution.chat_id, change)
        is_dispatched = execution.dispatch.execution_id in stored
        self._database.witness.require(is_dispatched, "it began before it was stored", execution)
        self.questions[WAITING] = (self._wait_of(execution.chat_id),)
        return super()._start(execution)

    def _wait_of(self, chat_id: ChatId) -> InputRequired:
        """Return what a chat waits for: the first one, and the first one for nobody."""
        first = min(self._database.chats.chats)
        agents = () if chat_id == first else (first,)
        return InputRequired("wait", PendingKind.AGENTS, "Waits.", agent_ids=agents)

    def _go_on(self, entry: Entry) -> None:
        super()._go_on(entry)
        name = entry.execution.spec.name
        takes_s = self._rng.uniform(0, CALL_MAX_S) if name == "slow" else 0.01

        def end() -> None:
            if not entry.outcome.done():
                entry.outcome.set_result(ran(name))

        self._network.later(takes_s, end)


class ConnectedTools:
    """The executor as one process reaches it."""

    def __init__(
        self,
        executor: SimulatedExecutor,
        network: Network,
        host: Host,
        world: asyncio.TaskGroup,
        require_lease: Callable[[object], None],
    ) -> None:
        self._require_lease = require_lease
        self._executor = executor
        self._network = network
        self._host = host
        self._world = world

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools, none if nobody answers."""
        try:
            return await self.ask(lambda: self._executor.list_tools(context))
        except ExecutorUnreachable:
            return ()

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Have a call executed; what was sent arrives even if nobody waits any more."""
        if self._executor.would_start(execution):
            self._require_lease(execution)
        return await self.ask(lambda: self._executor.execute(execution))

    async def find(self, execution: Execution) -> Found:
        """Ask for a call."""
        return await self.ask(lambda: self._executor.find(execution))

    async def cancel(self, execution: Execution) -> None:
        """Have a call stopped."""
        await self.ask(lambda: self._executor.cancel(execution))

    async def ask(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have the executor do something.

        Raises:
            ExecutorUnreachable: It did not answer; it may have done it.
        """
        self._host.require_life()
        network = self._network
        reply: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def carried() -> None:
            try:
                answer = await work()
            except (ExecutorUnreachable, UnknownRestore) as error:
                refusal = error
                network.later(network.delay_s(), lambda: fail_reply(reply, refusal))
                return
            if network.is_lost():
                network.later(ERROR_S, lambda: fail_reply(reply, UNREACHABLE))
            else:
                network.later(network.delay_s(), lambda: settle_reply(reply, answer))

        def arrive() -> None:
            self._world.create_task(carried(), context=NOWHERE)

        network.send(arrive, lambda: fail_reply(reply, UNREACHABLE))
        return await reply
