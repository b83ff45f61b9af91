"""One claimed chat, run step after step and turn after turn.

Each round reads the state and the history, decides purely on the next action, executes it and
commits. The commit opens the next episode. A change of the chat by another writer ends the work
under way, and the next round continues from the stored state: an interruption is finished with the
partial answer, a chat that another process owns is left alone.
"""

import logging
from collections.abc import Callable
from typing import assert_never

from chatd.chats.domain.chat import ChatState, Claimed, NewMessage, Revert, Status
from chatd.chats.domain.commands import (
    CommitStep,
    EnterRequiresAction,
    FailTurn,
    FinishInterruption,
    FinishRevert,
    FinishTurn,
)
from chatd.chats.domain.errors import FenceLost, HookFailed
from chatd.chats.domain.pieces import interrupted_messages, joined
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.parts import Text
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.primitives.domain.ids import OwnerClaim
from chatd.spend.domain.ledger import CallOutcome, OpenCall
from chatd.turns.domain.agent_reports import has_agents, unread_reports
from chatd.turns.domain.hooked_calls import hook_error
from chatd.turns.domain.ports import RestoreFailed
from chatd.turns.domain.retries import GiveUp, spent
from chatd.turns.domain.steps import (
    CallModel,
    Compact,
    EnterAction,
    Fail,
    Finish,
    RunTools,
    StepLimit,
    next_action,
)
from chatd.turns.domain.turn import Ending, TurnEnded
from chatd.turns.engine.calls import ToolCaller, is_too_free
from chatd.turns.engine.compaction import Summariser
from chatd.turns.engine.dependencies import TurnPorts
from chatd.turns.engine.failed_steps import FailedSteps, FallbackCandidate, GoOn
from chatd.turns.engine.history import Histories, History
from chatd.turns.engine.hook_events import EventSuperseded, HookEvents
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.metering import inherited_bill, use_of_answer
from chatd.turns.engine.preparation import KnownTurnTools, PreparedTurn, prepare
from chatd.turns.engine.progress import LiveProgress
from chatd.turns.engine.session import OwnershipLost, Session
from chatd.turns.engine.step import Done, ModelStep, StepEnd, Stepped
from chatd.turns.engine.stream import Broken, Superseded
from chatd.turns.engine.tools import Dispatched, ToolBatch

logger = logging.getLogger(__name__)


class ChatRun:
    """One claim of one chat."""

    def __init__(
        self,
        ports: TurnPorts,
        claimed: Claimed,
        mailbox: Mailbox,
        history: History,
        known_tools: KnownTurnTools,
        *,
        chats_running: Callable[[], int],
    ) -> None:
        """Prepare to run a chat.

        Args:
            ports: The dependencies of its turns.
            claimed: The chat.
            mailbox: Receives its newer states.
            history: Its messages, as far as they are known.
            known_tools: Keeps the tools of turns.
            chats_running: Returns how many chats this process runs, which may all use one provider.
        """
        self._ports = ports
        self._clock = ports.clock
        self._claimed = claimed
        self._session = Session(
            claimed, mailbox, history, chats=ports.chats, clock=ports.clock, calls=ports.calls
        )
        self._caller = ToolCaller(
            ports.tools,
            may_act=ports.may_act,
            clock=ports.clock,
            limits=ports.limits.calls,
            is_restricted=ports.is_restricted,
        )
        self._dispatched = Dispatched(self._ports.chats)
        self._failed_steps = FailedSteps(
            self._session,
            clock=ports.clock,
            policy=ports.limits.retries,
            jitter=ports.jitter,
            chats_running=chats_running,
        )
        self._events = HookEvents(ports.hooks, self._session)
        self._known_tools = known_tools
        self._prepared: PreparedTurn | None = None
        self._inherited: OpenCall | None = None  # The call that a dead owner left.

    async def run(self) -> None:
        """Run until the chat rests.

        Raises:
            OwnershipLost: Another process owns the chat.
            FenceLost: This process may not continue it, although it may still own it.
        """
        try:
            while self._session.is_owned:
                self._session.look()
                if self._session.state.status is Status.INTERRUPTING:
                    await self._finish_interruption()
                else:
                    await self._advance_unless_refused()
        finally:
            self._bill_late()

    async def _advance_unless_refused(self) -> None:
        """Execute the next action; a hook that fails closed ends the turn."""
        try:
            await self._advance()
        except EventSuperseded as superseded:
            self._session.follow(superseded.newest)
        except HookFailed as failure:
            await self._fail(hook_error(failure))

    async def _advance(self) -> None:
        """Execute the next action of the current turn."""
        session = self._session
        session.unfinished = None
        self._bill_late()
        if not await self._failed_steps.wait_until_due():
            return
        if session.state.revert is not None:
            await self._revert(session.state.revert)
            return
        await session.catch_up()
        try:
            prepared = await self._prepare()
        except ModelError as unusable:
            await self._broken(unusable)
            return
        if not session.state.pending:  # A hook that fails must not end a turn with open calls.
            await self._events.results(prepared)
        action = next_action(session.state, session.history.messages, prepared.policy)
        match action:
            case RunTools():
                await self._run_tools(prepared)
            case EnterAction():
                if await session.apply(EnterRequiresAction(session.fence)):
                    self._tell(Ending.ASKED_CLIENT)
            case CallModel() if session.state.retry is None and await self._add_reports(prepared):
                pass  # They are in the history, and the next round calls the model.
            case Compact() | CallModel():
                await self._ask_model(prepared, action)
            case Finish():
                await self._finish(())
            case StepLimit(notice):
                await self._finish((notice,))
            case Fail(error):
                await self._fail(error)
            case _:
                assert_never(action)

    async def _add_reports(self, prepared: PreparedTurn) -> bool:
        """Add reports of agents that the model has not read; return whether there were any.

        That begins a new episode, so it waits while a retry is due, which may be of a fallback.
        """
        session = self._session
        history = session.history.messages
        if not has_agents(history):
            return False
        context = prepared.context
        agents = await self._ports.agents.children(context.root_chat_id, context.chat_id)
        message = unread_reports(history, agents)
        if message is None:
            return False
        await session.apply(CommitStep(session.fence, (message,)), (message,))
        return True

    async def _revert(self, revert: Revert) -> None:
        """Restore the files of a revert, then commit its history."""
        session = self._session
        if not self._ports.may_act():
            raise FenceLost(session.chat_id)
        try:
            state = session.state
            claim = OwnerClaim(session.chat_id, state.owner_epoch, state.turn_id)
            report = await self._ports.restores.restore(claim, session.owner, revert)
        except RestoreFailed as failure:
            await self._fail(TurnError(str(failure), ErrorKind.GENERIC))
            return
        await session.apply(FinishRevert(session.fence, report))
        self._ports.reverted(session.chat_id)

    async def _prepare(self) -> PreparedTurn:
        """Prepare once per turn, and again if a chat above this one has begun to plan."""
        turn_id, prepared, ports = self._session.state.turn_id, self._prepared, self._ports
        if prepared is not None and await is_too_free(
            prepared.context, prepared.context.mode, ports.is_restricted
        ):
            prepared = None
        if prepared is None or prepared.turn_id != turn_id:
            prepared = self._prepared = await prepare(
                self._session,
                ports.setups,
                ports.tools,
                ports.tool_servers,
                self._known_tools,
                ports.limits.steps_max,
            )
        return prepared

    async def _run_tools(self, prepared: PreparedTurn) -> None:
        session = self._session
        show = self._ports.live.open(session.chat_id, session.fence).add
        context = prepared.step_context(session, LiveProgress(session.state.pending, show))
        open_calls = await self._dispatched.open_calls(session, context, prepared.specs)
        self._dispatched.being_sent()
        batch = ToolBatch(
            session,
            open_calls,
            caller=self._caller,
            clock=self._clock,
            deadlines=self._ports.limits.deadlines,
            budget_bytes=prepared.result_budget_bytes,
        )
        await batch.run(show)
        if any(each.execution.spec.moves_tools for each in open_calls):
            self._prepared = None

    async def _ask_model(self, prepared: PreparedTurn, action: Compact | CallModel) -> None:
        session = self._session
        error = spent(session.state, self._ports.limits.retries)
        if error is not None:
            await self._fail(error)
            return
        error = await self._ports.spending.refusal(session.chat_id, session.owner)
        if error is not None:
            await self._fail(error)
            return
        hints = await self._events.before(prepared, action)
        request = await prepared.request(session, self._ports.files)
        if not self._ports.may_act():
            raise FenceLost(session.chat_id)
        show = self._ports.live.open(session.chat_id, session.fence).add
        limits = self._ports.limits.stream
        end: StepEnd
        if isinstance(action, Compact):
            summariser = Summariser(self._ports.model, prepared.setup, limits, self._clock)
            end = await summariser.run(session, action, request, show, hints)
        else:
            step = ModelStep(
                self._ports.model,
                prepared,
                limits,
                self._ports.limits.deadlines,
                self._ports.approvals,
                self._clock,
                self._ports.hooks,
            )
            end = await step.run(session, request, show)
        match end:
            case Superseded(newest):
                session.follow(newest)
            case Broken(error=broken):
                setup = prepared.setup
                is_own_model = isinstance(action, CallModel) or setup.summariser is None
                candidate = FallbackCandidate(setup.model, setup.fallback, request)
                await self._broken(broken, candidate if is_own_model else None)
            case Done(messages):
                await self._finish(messages, may_go_on=bool(messages))
            case Stepped(dispatches):
                self._dispatched.just_committed(dispatches)
                if isinstance(action, Compact):
                    await self._events.compacted(prepared, action)
            case _:
                assert_never(end)

    async def _finish(self, messages: tuple[NewMessage, ...], *, may_go_on: bool = False) -> None:
        session = self._session
        try:
            stopping = await self._events.stopping(self._prepared)
        except HookFailed as failure:
            await self._fail_answered(messages, failure)
            return
        bill = session.billed(CallOutcome.DONE)
        messages = (*messages, *stopping.notices)
        if may_go_on and stopping.going_on is not None:
            messages = (*messages, stopping.going_on)
            await session.apply(CommitStep(session.fence, messages, bill=bill), messages)
            return
        if await session.apply(FinishTurn(session.fence, messages, bill), messages):
            self._tell(Ending.FINISHED, messages)

    async def _fail_answered(self, messages: tuple[NewMessage, ...], failure: HookFailed) -> None:
        """End a turn with an error, and keep what was answered."""
        session = self._session
        bill = session.billed(CallOutcome.DONE)
        if not messages or await session.apply(
            CommitStep(session.fence, messages, bill=bill), messages
        ):
            await self._fail(hook_error(failure))

    async def _fail(self, error: TurnError) -> None:
        bill = self._session.billed(CallOutcome.FAILED)
        if await self._session.apply(FailTurn(self._session.fence, error, bill)):
            self._tell(Ending.FAILED)

    async def _broken(self, error: ModelError, candidate: FallbackCandidate | None = None) -> None:
        """Go on with another attempt after a failed step, or end the turn."""
        match await self._failed_steps.record(error, candidate):
            case GoOn(is_model_changed):
                if is_model_changed:
                    self._prepared = None
            case GiveUp(final):
                await self._fail(final)

    async def _finish_interruption(self) -> None:
        session = self._session
        missing = [call for call in session.state.pending if not call.is_recorded]
        if any(call.is_dispatched or call.is_suspended for call in missing):
            await self._settle_calls()
        messages = await self._kept_messages()
        bill = session.billed(CallOutcome.INTERRUPTED) or inherited_bill(self._inherited)
        if await session.apply(FinishInterruption(session.fence, messages, bill), messages):
            self._tell(Ending.INTERRUPTED)

    async def _settle_calls(self) -> None:
        session, prepared = self._session, self._prepared
        await session.catch_up()
        open_calls = await self._dispatched.open_calls(
            session,
            TurnContext(session.chat_id, session.owner) if prepared is None else prepared.context,
            {} if prepared is None else prepared.specs,
        )
        batch = ToolBatch(
            session,
            open_calls,
            caller=self._caller,
            clock=self._clock,
            deadlines=self._ports.limits.deadlines,
            budget_bytes=PreparedTurn.budget_bytes(prepared),
        )
        await batch.settle()

    async def _kept_messages(self) -> tuple[NewMessage, ...]:
        """Return the partial answer of the interrupted episode: from memory, or from the store."""
        state, fence = self._session.state, self._session.fence
        unfinished = self._session.unfinished
        now = self._clock.now()
        if unfinished is not None and unfinished.fence == fence:
            return unfinished.messages_at(now)
        is_inherited = (
            self._claimed.state.status is Status.INTERRUPTING
            and fence_of(self._claimed.state) == fence
        )
        if not is_inherited or state.pending:
            return ()
        pieces = await self._ports.partials.load(
            state.chat_id, fence.history_version, fence.generation_attempt
        )
        self._inherited = await self._ports.inherited.find(state.chat_id, fence)
        return interrupted_messages(joined(pieces), now, use_of_answer(self._inherited))

    def _tell(self, ending: Ending, messages: tuple[NewMessage, ...] = ()) -> None:
        texts = [
            part.text for message in messages for part in message.content if isinstance(part, Text)
        ]
        session, prepared = self._session, self._prepared
        asked = "" if prepared is None else session.history.text_of(prepared.turn_id)
        model = None if prepared is None else prepared.setup.model
        self._ports.ended(
            TurnEnded(ending, session.owner, session.state, "".join(texts), asked, model)
        )

    def _bill_late(self) -> None:
        """Pass on the bill of a call that ended without a commit of this process."""
        entry = self._session.unbilled()
        if entry is not None:
            self._ports.unbilled(entry, self._session.owner.id)


class TurnRunner:
    """Runs claimed chats and caches their histories."""

    def __init__(self, ports: TurnPorts) -> None:
        self._ports = ports
        self._histories = Histories()
        self._known_tools = KnownTurnTools()
        self._running = 0

    def appended(
        self, before: ChatState, after: ChatState, messages: tuple[NewMessage, ...]
    ) -> None:
        """Apply a write of this process, so that a cached history is not read again."""
        self._histories.wrote(before, after, messages, self._ports.clock.now())

    async def run(self, claimed: Claimed, mailbox: Mailbox) -> None:
        """Run a chat that was just claimed until it rests or another process owns it.

        Raises:
            FenceLost: The lease of this process is too old to continue.
            ChatNotFound: The chat was deleted meanwhile.
        """
        chat_id = claimed.state.chat_id
        history = self._histories.take(chat_id)
        self._running += 1
        try:
            await ChatRun(
                self._ports,
                claimed,
                mailbox,
                history,
                self._known_tools,
                chats_running=lambda: self._running,
            ).run()
        except OwnershipLost:
            logger.info("a chat is run elsewhere now", extra={"chat_id": chat_id})
        else:
            self._histories.keep(chat_id, history)
        finally:
            self._running -= 1
