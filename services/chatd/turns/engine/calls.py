"""Execution of one dispatched call: started at most once, recovered after an owner died."""

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never

from chatd.approvals.domain.judgement import arguments_digest
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.messages import ChatMode, strictest
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Dispatch,
    Ended,
    Execution,
    ExecutorUnreachable,
    Found,
    InputAction,
    InputAnswer,
    InputRequired,
    NeverSeen,
    Outcome,
    PendingKind,
    StillRunning,
    Tools,
    ToolSpec,
    Untraceable,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Fence
from chatd.turns.domain.asking import question_problem
from chatd.turns.domain.calls import crashed, error_result
from parley.clock import Clock
from parley.tasks import first_of

ALTERED: Final = "this did not run: its arguments are not those that were allowed to run"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long a call is waited for."""

    call_s: float = 7200.0  # Executors have their own deadlines; this is the last resort.
    unreachable_s: float = 60.0  # Until an unreachable executor's calls are unknown.
    lookup_first_s: float = 0.5
    lookup_max_s: float = 8.0
    cancel_s: float = 2.0
    unanswered_max: int = 10  # Questions of one call in a row that nobody can answer.


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A dispatched call without a result.

    Attributes:
        execution: The call.
        is_new: Whether this process has just dispatched it and no process can have started it.
        is_offered: Whether its tool is in the catalogue now, so that it could still be started.
        is_stored: Whether it is known which journal it was dispatched to.
        is_altered: Whether it was dispatched with other arguments, so that it may not be started.
        answer: The answer to the last question of the call, which its executor may have already.
    """

    execution: Execution
    is_new: bool
    is_offered: bool = True
    is_stored: bool = True
    is_altered: bool = False
    answer: InputAnswer | None = None

    @property
    def call(self) -> ToolCall:
        """The call that the model made."""
        return self.execution.dispatch.call


#: Returns whether a chat above this one is in a mode that changes nothing.
IsRestricted = Callable[[ChatId], Awaitable[bool]]


async def never_restricted(chat_id: ChatId) -> bool:
    """Restrict no chat."""
    return False


async def is_too_free(context: TurnContext, mode: ChatMode, is_restricted: IsRestricted) -> bool:
    """Return whether an agent may not do what a mode allows, since a chat above it plans now."""
    is_free = context.is_child and mode is ChatMode.ORDINARY
    return is_free and await is_restricted(context.chat_id)


class LeaseExpired(Exception):
    """The lease of this process is too old to start a call under it."""


class ToolCaller:
    """Executes calls."""

    def __init__(
        self,
        tools: Tools,
        *,
        may_act: Callable[[], bool],
        clock: Clock,
        limits: CallLimits,
        is_restricted: IsRestricted = never_restricted,
    ) -> None:
        self._tools = tools
        self._may_act = may_act
        self._clock = clock
        self._limits = limits
        self._is_restricted = is_restricted

    async def run(self, open_call: OpenCall) -> Outcome | InputRequired:
        """Complete a call, or return what it asks.

        If the outcome cannot be determined it is unknown, a crash is a failure.

        Raises:
            LeaseExpired: The call would have to be started, and may not be.
            FenceLost: Another process owns the chat, or the chat was deleted.
        """
        return await first_of(self._run(open_call), self._too_late)

    async def find(self, open_call: OpenCall) -> Found:
        """Query once for the outcome of a call, with a short timeout."""

        async def ask() -> Found:
            try:
                return await self._tools.find(open_call.execution)
            except ExecutorUnreachable:
                return Untraceable()

        async def give_up() -> Found:
            await self._clock.sleep(self._limits.cancel_s)
            return Untraceable()

        return await first_of(ask(), give_up)

    async def cancel(self, open_call: OpenCall) -> None:
        """Cancel a call, if its executor can be reached in time."""

        async def ask() -> None:
            try:
                await self._tools.cancel(open_call.execution)
            except ExecutorUnreachable:
                return

        async def give_up() -> None:
            await self._clock.sleep(self._limits.cancel_s)

        await first_of(ask(), give_up)

    async def _run(self, open_call: OpenCall) -> Outcome | InputRequired:
        try:
            if not open_call.is_stored:
                return UNKNOWN_OUTCOME
            if open_call.is_altered:
                return await self._ended_otherwise(open_call)
            return await self._answered(open_call, await self._completed(open_call))
        except (LeaseExpired, FenceLost):
            raise
        except Exception as error:
            execution_id = open_call.execution.dispatch.execution_id
            logger.exception(
                "a tool crashed",
                extra={"execution_id": execution_id, "tool": open_call.call.tool_name},
            )
            return crashed(error, execution_id)

    async def _ended_otherwise(self, open_call: OpenCall) -> Outcome:
        """Return what became of a call that was dispatched with other arguments; start nothing."""
        execution_id = open_call.execution.dispatch.execution_id
        logger.error(
            "a call has other arguments than it was dispatched with",
            extra={"execution_id": execution_id, "tool": open_call.call.tool_name},
        )
        match await self.find(open_call):
            case Ended(outcome):
                return outcome
            case NeverSeen():
                result = error_result(open_call.call, ALTERED, "Call this again.")
                return Outcome(result.outcome, result.result_json)
            case _:
                return UNKNOWN_OUTCOME

    async def _completed(self, open_call: OpenCall) -> Outcome | InputRequired:
        if open_call.is_new:
            try:
                return await self._start(open_call)
            except ExecutorUnreachable:
                pass
        return await self._recover(open_call)

    async def _answered(
        self, open_call: OpenCall, outcome: Outcome | InputRequired
    ) -> Outcome | InputRequired:
        """Cancel questions that no user can answer; after too many, end the call."""
        for _ in range(self._limits.unanswered_max):
            if isinstance(outcome, Outcome):
                return outcome
            problem = question_problem(outcome)
            is_for_nobody = outcome.kind is PendingKind.AGENTS
            if problem is None and (is_for_nobody or open_call.execution.context.is_attended):
                return outcome
            cancelled = InputAnswer(outcome.request_id, InputAction.CANCEL)
            outcome = await self._recover(replace(open_call, is_new=False, answer=cancelled))
        await self.cancel(open_call)
        told = error_result(open_call.call, "this asked for answers again and again; nobody can")
        return Outcome(told.outcome, told.result_json)

    async def _recover(self, open_call: OpenCall) -> Outcome | InputRequired:
        """Find a call that may have been started, and continue from its state."""
        gone_since_s: float | None = None
        pause_s = self._limits.lookup_first_s
        while True:
            try:
                found = await self._tools.find(open_call.execution)
                gone_since_s = None
                return await self._after(found, open_call)
            except ExecutorUnreachable:
                now_s = self._clock.monotonic()
                gone_since_s = now_s if gone_since_s is None else gone_since_s
                if now_s - gone_since_s >= self._limits.unreachable_s:
                    return UNKNOWN_OUTCOME
                await self._clock.sleep(pause_s)
                pause_s = min(pause_s * 2, self._limits.lookup_max_s)

    async def _after(self, found: Found, open_call: OpenCall) -> Outcome | InputRequired:
        answer = open_call.answer
        match found:
            case Ended(outcome):
                return outcome
            case InputRequired(request_id) if answer and answer.request_id == request_id:
                return await self._tools.execute(replace(open_call.execution, answer=answer))
            case InputRequired():
                return found
            case Untraceable():
                return UNKNOWN_OUTCOME
            case NeverSeen() if answer is not None:
                return UNKNOWN_OUTCOME  # It ran, and asked: the journal has lost it.
            case StillRunning():
                return await self._tools.execute(open_call.execution)
            case NeverSeen() if not open_call.is_offered:
                problem = "this did not run: the tool is not offered any more"
                result = error_result(open_call.call, problem, "Go on with those that are.")
                return Outcome(result.outcome, result.result_json)
            case NeverSeen():
                return await self._start(open_call)
            case _:
                assert_never(found)

    async def _start(self, open_call: OpenCall) -> Outcome | InputRequired:
        """Start a call that no process has started, unless its mode is too free by now."""
        execution = open_call.execution
        context, mode = execution.context, execution.dispatch.mode
        problem = ""
        if strictest(mode, context.mode) is not mode:
            problem = f"this did not run: the chat is in {context.mode} mode now"
        elif await is_too_free(context, mode, self._is_restricted):
            problem = "this did not run: the chat that started this agent plans now"
        if problem:
            result = error_result(open_call.call, problem, "Only read from now on.")
            return Outcome(result.outcome, result.result_json)
        self._require_lease()
        return await self._tools.execute(execution)

    async def _too_late(self) -> Outcome | InputRequired:
        await self._clock.sleep(self._limits.call_s)
        return UNKNOWN_OUTCOME

    def _require_lease(self) -> None:
        if not self._may_act():
            raise LeaseExpired


def dispatches_for(
    context: TurnContext, fence: Fence, calls: tuple[ToolCall, ...], specs: Mapping[str, ToolSpec]
) -> tuple[Dispatch, ...]:
    """Assign every call an execution id, derived so that it is unique."""
    return tuple(
        Dispatch(
            ExecutionId(derived_id(context.chat_id, fence, str(index))),
            call,
            specs[call.tool_name].executor,
            specs[call.tool_name].journal_generation,
            context.mode,
            arguments_digest(call),
        )
        for index, call in enumerate(calls)
    )


def derived_id(chat_id: ChatId, fence: Fence, name: str) -> str:
    """Return an id that only this step of the chat can have."""
    return str(uuid.uuid5(uuid.UUID(chat_id), f"{fence.history_version}.{name}"))


def placeholder_spec(dispatch: Dispatch) -> ToolSpec:
    """Return a spec for a tool that is no longer in the catalogue, enough to query its calls."""
    call = dispatch.call
    spec = ToolSpec(call.tool_name, "", "{}", dispatch.executor, dispatch.journal_generation)
    return replace(spec, server_id=call.mcp_server_id)
