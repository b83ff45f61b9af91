"""An executor without processes that journals what it starts, as the real ones must."""

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import CallProgress, ToolOutcome
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Ended,
    Execution,
    ExecutorUnreachable,
    Found,
    InputAnswer,
    InputRequired,
    NeverSeen,
    Outcome,
    StillRunning,
    ToolSpec,
    Untraceable,
)
from chatd.content.domain.turn_context import CallProcess, TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId


class Crash(BaseException):
    """The process dies here."""


class StaleOwner(Exception):
    """A call came from an owner that was replaced."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A call in the journal."""

    execution: Execution
    outcome: asyncio.Future[Outcome]
    questions: list[InputRequired] = field(default_factory=list)  # Those without an answer.


def ran(name: str) -> Outcome:
    """Return what a tool answers that does nothing special."""
    return Outcome(ToolOutcome.DONE, json.dumps({"output": f"{name} ran"}))


class JournalingTools:
    """Starts each execution once and remembers it; tools named in `held` end when they are told.

    Attributes:
        reports: What a tool tells of its progress whenever somebody starts it or attaches to it.
        starts: How often each execution was started.
        offers: How often somebody asked what there is.
        order: Names of the tools in the order in which they were started.
        modes: Modes of the calls in that order.
        stopped: Executions that somebody had stopped.
        questions: What each tool asks, one after the other, before it does anything else.
        told: The answers that calls got, in order.
        is_reachable: Whether anybody can talk to it.
        crash_after_start: Whether the caller dies as soon as a call is journaled.
    """

    def __init__(
        self, *specs: ToolSpec, held: Collection[str] = (), generation: str = "j1"
    ) -> None:
        self.specs = specs
        self._held = held
        self._generation = generation
        self._journal: dict[ExecutionId, Entry] = {}
        self._epochs: dict[ChatId, int] = {}
        self._changed = asyncio.Condition()
        self.answers: dict[str, Outcome | Exception] = {}
        self.reports: dict[str, tuple[str | CallProcess | CallProgress, ...]] = {}
        self.starts: Counter[ExecutionId] = Counter()
        self.offers = 0
        self.order: list[str] = []
        self.modes: list[ChatMode] = []
        self.stopped: list[str] = []
        self.questions: dict[str, tuple[InputRequired, ...]] = {}
        self.told: list[InputAnswer] = []
        self.is_reachable = True
        self.loses_answers = False
        self.crash_after_start = False

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Offer what it was made with."""
        self.offers += 1
        return self.specs

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Start a call or attach to it, and wait for its end or for what it asks."""
        self._admit(execution)
        known = self._journal.get(execution.dispatch.execution_id)
        if known is None and execution.answer is not None:
            return UNKNOWN_OUTCOME
        entry = known or self._start(execution)
        self._answer(entry, execution.answer)
        for update in self.reports.get(execution.spec.name, ()):
            execution.context.progress.report(execution.dispatch.call.tool_call_id, update)
        async with self._changed:
            self._changed.notify_all()
        if self.crash_after_start:
            self.crash_after_start = False
            raise Crash
        if self.loses_answers:
            raise ExecutorUnreachable(execution.dispatch.executor)
        if entry.questions and not entry.outcome.done():
            return entry.questions[0]
        # The call is the executor's: it goes on when nobody waits any more.
        return await asyncio.shield(entry.outcome)

    async def find(self, execution: Execution) -> Found:
        """Look into the journal."""
        self._admit(execution)
        entry = self._journal.get(execution.dispatch.execution_id)
        if execution.dispatch.journal_generation != self._generation:
            return Untraceable()
        if entry is None:
            return NeverSeen()
        if not entry.outcome.done():
            return entry.questions[0] if entry.questions else StillRunning()
        return Ended(entry.outcome.result())

    async def cancel(self, execution: Execution) -> None:
        """Stop a call."""
        self._admit(execution)
        self.stopped.append(execution.spec.name)
        entry = self._journal.get(execution.dispatch.execution_id)
        if entry is not None and not entry.outcome.done():
            entry.outcome.set_result(Outcome(ToolOutcome.CANCELLED, "{}"))

    def end(self, name: str, outcome: Outcome | None = None) -> None:
        """Let the running calls of a tool end."""
        for entry in self._journal.values():
            if entry.execution.spec.name == name and not entry.outcome.done():
                entry.outcome.set_result(outcome or ran(name))

    def waiting(self) -> set[ExecutionId]:
        """Return the calls that wait for an answer."""
        return {
            execution_id
            for execution_id, entry in self._journal.items()
            if entry.questions and not entry.outcome.done()
        }

    def lose_sessions(self) -> None:
        """End the calls that wait for answers, as an executor does that was restarted."""
        for entry in self._journal.values():
            if entry.questions and not entry.outcome.done():
                entry.outcome.set_result(UNKNOWN_OUTCOME)

    async def until_started(self, calls: int) -> None:
        """Wait until that many calls were started."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.order) >= calls)

    def forget_journal(self) -> None:
        """Lose everything, as a node does whose disk is gone."""
        self._journal.clear()
        self._generation = "made anew"

    def restore_generation(self, generation: str) -> None:
        """Call the journal as it was called before, though it lacks something."""
        self._generation = generation

    def _admit(self, execution: Execution) -> None:
        if not self.is_reachable:
            raise ExecutorUnreachable(execution.dispatch.executor)
        highest = max(self._epochs.get(execution.chat_id, 0), execution.owner_epoch)
        self._epochs[execution.chat_id] = highest
        if execution.owner_epoch < highest:
            raise StaleOwner

    def _start(self, execution: Execution) -> Entry:
        name = execution.spec.name
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        entry = Entry(execution, outcome, list(self.questions.get(name, ())))
        self._journal[execution.dispatch.execution_id] = entry
        self.starts[execution.dispatch.execution_id] += 1
        self.order.append(name)
        self.modes.append(execution.dispatch.mode)
        if not entry.questions:
            self._go_on(entry)
        return entry

    def _answer(self, entry: Entry, answer: InputAnswer | None) -> None:
        """Take an answer to what a call asks; any other is ignored."""
        is_open = bool(entry.questions) and not entry.outcome.done()
        if answer is None or not is_open or entry.questions[0].request_id != answer.request_id:
            return
        self.told.append(answer)
        del entry.questions[0]
        if not entry.questions:
            self._go_on(entry)

    def _go_on(self, entry: Entry) -> None:
        """Let a call do its work, as it was started or as everything was answered."""
        name = entry.execution.spec.name
        answer = self.answers.get(name, ran(name))
        if isinstance(answer, Exception):
            raise answer
        if name not in self._held:
            entry.outcome.set_result(answer)
