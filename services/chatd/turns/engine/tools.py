"""The calls of one step: run concurrently, each result stored when it arrives, then committed."""

import asyncio
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as replaced

from chatd.approvals.domain.judgement import arguments_digest
from chatd.chats.domain.chat import ChatState, Message, NewMessage, PendingCall, Status
from chatd.chats.domain.commands import AskedCall, CommitResults, RecordResult, SuspendCall
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.tool_results import asking_call
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.content.domain.tools import (
    Dispatch,
    Ended,
    Execution,
    Executor,
    InputRequired,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ExecutionId
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.calls import executed_result, is_workspace_away, local_calls
from chatd.turns.domain.loops import with_loop_hint
from chatd.turns.domain.ports import Chats
from chatd.turns.engine.answer import Show
from chatd.turns.engine.calls import LeaseExpired, OpenCall, ToolCaller, placeholder_spec
from chatd.turns.engine.session import Session
from parley.clock import Clock
from parley.tasks import Start, owned_tasks


@dataclass(frozen=True, slots=True)
class _Done:
    """A call has its outcome."""

    open_call: OpenCall
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Asks:
    """A call waits for an answer."""

    open_call: OpenCall
    question: InputRequired


@dataclass(frozen=True, slots=True)
class _FenceLost:
    """A call may not be started under the lease of this process."""


_Event = _Done | _Asks | _FenceLost | ChatState


class ToolBatch:
    """Runs the pending calls of a chat."""

    def __init__(
        self,
        session: Session,
        open_calls: tuple[OpenCall, ...],
        *,
        caller: ToolCaller,
        clock: Clock,
        deadlines: ActionDeadlines,
        budget_bytes: int,
    ) -> None:
        self._session = session
        self._deadlines = deadlines
        self._open_calls = tuple(_within(each, budget_bytes) for each in open_calls)
        self._caller = caller
        self._clock = clock
        self._budget_bytes = budget_bytes
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._results: dict[str, ToolResult] = {}

    async def run(self, show: Show) -> None:
        """Complete every call, or let it ask, and add the results to the history.

        Returns early when the chat is interrupted; the results until then are stored.

        Raises:
            OwnershipLost: This runner no longer owns the chat.
            FenceLost: No call may be started under the lease of this process, or a tool of
                chatd met another owner in its transaction.
        """
        places = {
            call.tool_call_id: place for place, call in enumerate(self._session.state.pending)
        }
        async with owned_tasks() as start:
            self._start_all(start)
            missing = len(self._open_calls)
            while missing and self._session.is_running:
                match await self._events.get():
                    case _Done(open_call, outcome):
                        result = self._result(open_call, outcome)
                        show(Role.TOOL, places[result.tool_call_id], result)
                        missing -= 1
                        if not missing and await self._commit(result):
                            return
                        await self._record(result)
                    case _Asks(open_call, question):
                        missing -= 1
                        await self._suspend(open_call, question)
                    case _FenceLost():
                        raise FenceLost(self._session.chat_id)
                    case ChatState() as newest:
                        self._session.follow(newest)
        if not self._session.is_running:
            await self._record_leftovers()
        elif any(call.is_recorded for call in self._session.state.pending):
            await self._commit()

    def _start_all(self, start: Start[None]) -> None:
        start(self._watch())
        serial = [each for each in self._open_calls if each.execution.spec.is_serial]
        side_by_side = [start(self._call(each)) for each in self._open_calls if each not in serial]
        if serial:
            start(self._call_in_turn(serial, side_by_side))

    async def _watch(self) -> None:
        self._events.put_nowait(await self._session.superseded())

    async def _call_in_turn(self, serial: list[OpenCall], before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        for each in serial:
            await self._call(each)

    async def _call(self, open_call: OpenCall) -> None:
        try:
            outcome = await self._caller.run(open_call)
        except (LeaseExpired, FenceLost):
            self._events.put_nowait(_FenceLost())
        else:
            match outcome:
                case InputRequired():
                    self._events.put_nowait(_Asks(open_call, outcome))
                case Outcome():
                    self._events.put_nowait(_Done(open_call, outcome))

    def _result(self, open_call: OpenCall, outcome: Outcome) -> ToolResult:
        result = executed_result(
            open_call.call, outcome, budget_bytes=self._budget_bytes, at=self._clock.now()
        )
        history, turn_id = self._session.history.messages, self._session.state.turn_id
        told = with_loop_hint(
            history,
            turn_id,
            open_call.call,
            result.result_json,
            has_advisor=open_call.execution.context.has_advisor,
        )
        return result if told == result.result_json else replaced(result, result_json=told)

    async def _suspend(self, open_call: OpenCall, question: InputRequired) -> None:
        """Store what a call asks; the chat waits for the answer once no other call runs."""
        session, call = self._session, open_call.call
        dispatch = open_call.execution.dispatch
        pending = PendingCall(
            call.tool_call_id,
            call.tool_name,
            dispatch.execution_id,
            call.mcp_server_id,
            kind=question.kind,
            deadline_s=self._deadlines.of_question(question),
            question=question,
            question_id=ExecutionId(
                str(uuid.uuid5(uuid.UUID(dispatch.execution_id), question.request_id))
            ),
        )
        asked = AskedCall(pending, asking_call(pending, call), dispatch.mode)
        message_id = answer_with(session.history.messages, (call.tool_call_id,)).id
        await session.apply(SuspendCall(session.fence, message_id, asked))

    async def _record(self, result: ToolResult) -> None:
        if await self._session.apply(RecordResult(self._session.fence, result)):
            self._results[result.tool_call_id] = result

    async def _record_leftovers(self) -> None:
        """Store the results that arrived at the moment of the interruption."""
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, _Done):
                await self._record(self._result(event.open_call, event.outcome))

    async def _commit(self, *last: ToolResult) -> bool:
        """Add all results to the history, the last one in the same write that stores it.

        Returns False when the chat changed before, or when another process has one of the others.
        """
        known = self._results | {result.tool_call_id: result for result in last}
        called = [call.tool_call_id for call in self._session.state.pending if not call.is_asked]
        # Results that an earlier owner recorded, and answers of people, are only in the store.
        is_all = known.keys() >= set(called)
        if not is_all and last:
            return False
        results = tuple(known[each] for each in called) if is_all else ()
        messages = tuple(NewMessage(Role.TOOL, (result,)) for result in results)
        return await self._session.apply(CommitResults(self._session.fence, results), messages)

    async def settle(self) -> None:
        """Store the results of an interrupted step's completed calls, and cancel the others."""
        asked = [each for each in self._open_calls if not each.is_new]
        async with owned_tasks() as start:
            looking = [start(self._ended_or_stopped(each)) for each in asked]
            if looking:
                await asyncio.wait(looking)
        for task in looking:
            done = task.result()
            if done is not None and self._session.is_owned:
                await self._record(self._result(done.open_call, done.outcome))

    async def _ended_or_stopped(self, open_call: OpenCall) -> _Done | None:
        found = await self._caller.find(open_call)
        if isinstance(found, Ended):
            return _Done(open_call, found.outcome)
        await self._caller.cancel(open_call)
        return None


class Dispatched:
    """The dispatched calls of a chat's current step: from memory, or else from the store."""

    def __init__(self, chats: Chats) -> None:
        self._chats = chats
        self._new: dict[ExecutionId, Dispatch] = {}

    def just_committed(self, dispatches: tuple[Dispatch, ...]) -> None:
        """Remember calls that are committed but not sent yet."""
        self._new = {dispatch.execution_id: dispatch for dispatch in dispatches}

    def being_sent(self) -> None:
        """Forget that calls are new: from now on their executor has to be queried."""
        self._new = {}

    async def open_calls(
        self, session: Session, context: TurnContext, specs: Mapping[str, ToolSpec]
    ) -> tuple[OpenCall, ...]:
        """Return the pending calls without a result, ready to be executed, or to be cancelled."""
        missing = [call for call in session.state.pending if not call.is_recorded]
        is_over = session.state.status is Status.INTERRUPTING
        local = [call for call in missing if call.is_dispatched or (is_over and call.is_suspended)]
        if all(call.execution_id in self._new for call in local):
            known = self._new
        else:
            known = await self._read(session)
        epoch = session.state.owner_epoch
        return tuple(self._open_call(context, epoch, call, known, specs) for call in local)

    async def _read(self, session: Session) -> dict[ExecutionId, Dispatch]:
        called = {call.tool_call_id for call in session.state.pending}
        answer = answer_with(session.history.messages, called)
        calls = {call.tool_call_id: call for call in local_calls(answer.content)}
        stored = await self._chats.executions(session.chat_id, answer.id)
        return {
            each.execution_id: Dispatch(
                each.execution_id,
                calls[each.tool_call_id],
                each.executor,
                each.journal_generation,
                each.mode,
                each.arguments_digest,
            )
            for each in stored
        }

    def _open_call(
        self,
        context: TurnContext,
        owner_epoch: int,
        pending: PendingCall,
        known: Mapping[ExecutionId, Dispatch],
        specs: Mapping[str, ToolSpec],
    ) -> OpenCall:
        execution_id = pending.execution_id or ExecutionId("")
        dispatch = known.get(execution_id) or _untraceable(pending, execution_id)
        spec = specs.get(pending.tool_name)
        # A workspace that is away offers nothing, and may be back when the call is looked up.
        is_away = dispatch.mode is context.mode and is_workspace_away(pending.tool_name, specs)
        execution = Execution(context, owner_epoch, dispatch, spec or placeholder_spec(dispatch))
        return OpenCall(
            execution,
            is_new=execution_id in self._new,
            is_offered=spec is not None or is_away,
            is_stored=execution_id in known,
            is_altered=execution_id not in self._new and is_altered(dispatch),
            answer=pending.answer,
        )


def is_altered(dispatch: Dispatch) -> bool:
    """Return whether a call was dispatched with other arguments than it has."""
    return dispatch.arguments_digest not in ("", arguments_digest(dispatch.call))


def answer_with(history: Sequence[Message], called: Collection[str]) -> Message:
    """Return the newest message of the model that makes one of the calls."""
    return next(
        message
        for message in reversed(history)
        if any(call.tool_call_id in called for call in local_calls(message.content))
    )


def _within(open_call: OpenCall, budget_bytes: int) -> OpenCall:
    """Return the call with the size limit of its result."""
    return replace(open_call, execution=replace(open_call.execution, budget_bytes=budget_bytes))


def _untraceable(pending: PendingCall, execution_id: ExecutionId) -> Dispatch:
    call = ToolCall(pending.tool_call_id, pending.tool_name, "{}", pending.mcp_server_id)
    return Dispatch(execution_id, call, Executor.TOOLRUNNER, "")
