"""One step of a model: its answer, and the commit of it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from chatd.approvals.domain.judgement import Ask, Deny, Judgement
from chatd.chats.domain.chat import Message, NewMessage, PendingCall
from chatd.chats.domain.commands import AskedCall, CommitStep
from chatd.chats.domain.pieces import completed, interrupted_messages
from chatd.content.domain.messages import ErrorKind, FinishReason, Role
from chatd.content.domain.parts import Fallback, Notice, Part, Reasoning, Text, ToolCall
from chatd.content.domain.tool_servers import unrecorded_texts
from chatd.content.domain.tools import Dispatch, PendingKind, ToolSpec
from chatd.hooks.domain.answers import Verdict as HookVerdict
from chatd.hooks.domain.hooks import HookEvent
from chatd.models.domain.language_model import LanguageModel, ModelError, ModelRequest
from chatd.primitives.domain.ids import ExecutionId, MessageId
from chatd.spend.domain.ledger import CallOutcome, CallPurpose
from chatd.turns.domain.asking import ActionDeadlines
from chatd.turns.domain.calls import (
    Asked,
    AskFirst,
    Judge,
    Refuse,
    Verdict,
    callable_calls,
    local_calls,
    plan_calls,
)
from chatd.turns.domain.fallbacks import announced
from chatd.turns.domain.hook_additions import additions_of_calls
from chatd.turns.domain.hooked_calls import hooked, refused_by_hooks, rewritten, rewritten_call
from chatd.turns.domain.loops import ASK_AFTER, repetitions
from chatd.turns.domain.ports import Approvals, Hooks, NoHooks
from chatd.turns.domain.report_checks import returned_report
from chatd.turns.domain.steps import CallModel, Finish, StepLimit, next_action, steps_of_turn
from chatd.turns.engine.answer import Answer, Show
from chatd.turns.engine.calls import derived_id, dispatches_for
from chatd.turns.engine.client_names import named_by_client, named_by_clients
from chatd.turns.engine.preparation import PreparedTurn
from chatd.turns.engine.session import InterruptedContent, Session
from chatd.turns.engine.stream import Answered, Broken, ModelStream, StreamLimits, Superseded
from parley.clock import Clock
from parley.tasks import Overtaken, run_unless

_log = logging.getLogger(__name__)

#: The index of what is kept with an answer and is no part of what the model says.
BEFORE_ANSWER: Final = -1
NOBODY_ANSWERS = "Nobody can be asked in this chat: go on without it, or say what is in the way."


NOT_ALLOWED = "Do not try it in another way; do without it, or say what is in the way."


@dataclass(frozen=True, slots=True)
class Done:
    """The answer ends the turn; these messages are not committed yet."""

    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class Stepped:
    """The answer is committed, unless the chat changed before; these calls may be sent now."""

    dispatches: tuple[Dispatch, ...] = ()


StepEnd = Stepped | Done | Broken | Superseded


@dataclass(frozen=True, slots=True)
class ModelStep:
    """Calls the model once and commits its answer, unless the answer ends the turn."""

    model: LanguageModel
    prepared: PreparedTurn
    limits: StreamLimits
    deadlines: ActionDeadlines
    approvals: Approvals
    clock: Clock
    hooks: Hooks = field(default_factory=NoHooks)

    async def run(self, session: Session, request: ModelRequest, show: Show) -> StepEnd:
        """Call the model; return how the step ended.

        Raises:
            OwnershipLost: This runner no longer owns the chat.
        """
        specs = self.prepared.specs
        answer = Answer(
            show,
            self.clock,
            {name: spec.server_id for name, spec in specs.items()},
            announced(session.state, self.prepared.setup.model),
        )
        call = session.metered(CallPurpose.TURN, self.prepared.setup.model, answer, request)
        # An answer that is interrupted follows what servers say as much as one that is complete.
        earlier = (part for each in session.history.messages for part in each.content)
        texts = unrecorded_texts(earlier, self.prepared.context.workspace_server_ids)
        for each in texts:
            # Another process may take over what there is of the answer.
            show(Role.ASSISTANT, BEFORE_ANSWER, each)
        session.unfinished = InterruptedContent(
            session.fence,
            lambda at: interrupted_messages(
                (*answer.content, *texts), at, call.use(CallOutcome.INTERRUPTED)
            ),
        )
        provider = self.prepared.setup.model.provider
        stream = ModelStream(self.model, self.limits, self.clock, provider)
        end = await stream.read(request, answer, session.superseded)
        if not isinstance(end, Answered):
            return end
        content = completed(answer.content)
        if _is_refusal(answer, content):
            return Broken(_refused(answer, provider))
        if all(isinstance(part, Fallback) for part in content):
            return Done(())
        if steps_of_turn(session.state, session.history.messages) == 0:
            content = (*content, *map(Notice, self.prepared.notices))
        content = (*content, *texts)
        use = call.use(CallOutcome.DONE)
        reason = None if answer.finished is None else answer.finished.reason
        session.unfinished = InterruptedContent(
            session.fence, lambda at: interrupted_messages(content, at, use, reason)
        )
        message = NewMessage(Role.ASSISTANT, content, use=use, finish_reason=reason)
        made = [call for call in local_calls(answer.content) if call.created_at is not None]
        if made:
            return await self._commit_calls(session, message, tuple(made), show)
        return await self._commit_final(session, message, is_paused=reason is FinishReason.PAUSED)

    async def _commit_calls(
        self, session: Session, message: NewMessage, calls: tuple[ToolCall, ...], show: Show
    ) -> StepEnd:
        """Commit an answer with its calls; refused calls get their result with it."""
        specs, fence = self.prepared.specs, session.fence
        calls = tuple(named_by_client(call, specs) for call in calls)
        message = replace(message, content=named_by_clients(message.content, specs))
        verdicts: Mapping[str, HookVerdict] = {}
        if not self.hooks.are_absent(HookEvent.PRE_TOOL_USE):
            judged = callable_calls(calls, specs, self.prepared.withheld)
            judging = self.hooks.judge(self.prepared.context, fence.history_version, judged)
            try:
                verdicts = await run_unless(judging, session.superseded())
            except Overtaken:
                return Superseded(await session.superseded())
        calls = tuple(rewritten_call(call, verdicts.get(call.tool_call_id)) for call in calls)
        added = additions_of_calls(calls, verdicts)
        message = replace(message, content=(*rewritten(message.content, verdicts), *added))
        judgements = await self.approvals.judge(
            self.prepared.context, session.history.messages, calls, specs
        )
        judge = self._judge(session, judgements, verdicts)
        by_hooks = refused_by_hooks(verdicts, calls, specs)
        plan = plan_calls(
            calls, specs, judge, self.prepared.withheld, by_hooks, self.prepared.missing
        )
        for call in plan.mended:
            _log.info("the arguments of a call of %s were mended", call.tool_name)
        dispatches = dispatches_for(self.prepared.context, fence, plan.dispatched, specs)
        count = len(plan.dispatched)
        asked = tuple(
            self._asked_call(session, count + place, each) for place, each in enumerate(plan.asked)
        )
        for place, result in enumerate(plan.refused):
            show(Role.TOOL, place, result)
        refusals = (NewMessage(Role.TOOL, (result,)) for result in plan.refused)
        messages = (message, *refusals)
        bill = session.billed(CallOutcome.DONE)
        command = CommitStep(fence, messages, dispatches, asked, bill)
        is_done = await session.apply(command, messages)
        return Stepped(dispatches if is_done else ())

    def _judge(
        self,
        session: Session,
        judgements: Mapping[str, Judgement],
        hook_verdicts: Mapping[str, HookVerdict],
    ) -> Judge:
        """Return the judge of the calls of this step."""
        is_attended = self.prepared.context.is_attended
        turn_id, history = session.state.turn_id, session.history.messages

        def judge(call: ToolCall, spec: ToolSpec) -> Verdict:
            by_rule = ruled(judgements.get(call.tool_call_id))
            refused = by_rule if isinstance(by_rule, Refuse) else None
            by_hook = hooked(hook_verdicts.get(call.tool_call_id))
            verdict = refused or by_hook or by_rule or looping(history, turn_id, call)
            if isinstance(verdict, AskFirst) and not is_attended:
                return Refuse(f"this did not run: {verdict.reason}", NOBODY_ANSWERS)
            return verdict

        return judge

    def _asked_call(self, session: Session, place: int, asked: Asked) -> AskedCall:
        """Return a call that waits, with an id derived like those of executions."""
        call, spec = asked.call, self.prepared.specs[asked.call.tool_name]
        pending = PendingCall(
            call.tool_call_id,
            call.tool_name,
            ExecutionId(derived_id(session.chat_id, session.fence, str(place))),
            spec.server_id,
            kind=asked.kind,
            deadline_s=self.deadlines.of(asked.kind),
            reason=asked.reason,
        )
        return AskedCall(pending, call, self.prepared.context.mode)

    async def _commit_final(
        self, session: Session, message: NewMessage, *, is_paused: bool
    ) -> StepEnd:
        """Leave a final answer to the end of the turn, unless another action comes before it.

        A report that does not match its schema is committed with what is wrong with it.

        An answer that would count as a pause is the last one if its provider says so.
        """
        state = session.state
        written = message.stored(state.next_message_id, state.snapshot_version, self.clock.now())
        history = [*session.history.messages, written]
        action = next_action(state, history, self.prepared.policy)
        is_last = isinstance(action, CallModel | StepLimit) and not is_paused
        returned = returned_report(state, history, self.prepared.context.orders)
        is_over = is_last or isinstance(action, Finish)
        if is_over and returned is None:
            return Done((message,))
        messages = (message,) if returned is None or not is_over else (message, returned)
        bill = session.billed(CallOutcome.DONE)
        await session.apply(CommitStep(session.fence, messages, bill=bill), messages)
        return Stepped()


def ruled(judgement: Judgement | None) -> Verdict:
    """Return the verdict of the approval rules; one that allows a call has none."""
    match judgement:
        case Ask(reason):
            return AskFirst(PendingKind.APPROVAL, reason)
        case Deny(reason):
            return Refuse(f"this did not run: {reason}", NOT_ALLOWED)
        case _:
            return None


def looping(history: Sequence[Message], turn_id: MessageId, call: ToolCall) -> Verdict:
    """Ask before a call that had the same result too often in this turn."""
    count, _ = repetitions(history, turn_id, call)
    if count < ASK_AFTER:
        return None
    return AskFirst(PendingKind.LOOP, f"the same call had the same result {count} times")


def _is_refusal(answer: Answer, content: tuple[Part, ...]) -> bool:
    """Return whether the provider blocked the answer; reasoning alone is no answer."""
    is_blank = all(
        isinstance(part, Reasoning | Fallback) or (isinstance(part, Text) and not part.text.strip())
        for part in content
    )
    finished = answer.finished
    return is_blank and finished is not None and finished.reason is FinishReason.CONTENT_FILTER


def _refused(answer: Answer, provider: str) -> ModelError:
    detail = "" if answer.finished is None else answer.finished.detail
    message = f"{provider or 'The AI provider'} blocked this answer under its content policy."
    return ModelError(
        ErrorKind.CONTENT_FILTER, message, is_retryable=False, provider=provider, detail=detail
    )
