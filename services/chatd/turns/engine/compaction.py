"""Makes a summary: publishes its start, calls the model, publishes its end, commits it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitCompaction
from chatd.chats.domain.pieces import interrupted_messages
from chatd.content.domain.messages import ErrorKind, FinishReason, Role
from chatd.content.domain.parts import HookAddition, Text, ToolCall
from chatd.content.domain.prompts import PromptMessage, hook_context_text
from chatd.content.domain.todos import newest_todos
from chatd.models.domain.language_model import LanguageModel, ModelError, ModelRequest
from chatd.models.domain.profile import ModelProfile
from chatd.spend.domain.ledger import CallOutcome, CallPurpose
from chatd.turns.domain.calls import error_result
from chatd.turns.domain.compaction import (
    SUMMARY_REQUEST,
    shortened,
    stored_summary,
    summary_call,
    summary_result,
)
from chatd.turns.domain.fallbacks import announced
from chatd.turns.domain.hook_additions import contexts_of, notice_messages
from chatd.turns.domain.prompt import without_foreign_parts
from chatd.turns.domain.steps import Compact
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.answer import Answer, Show, ignore_part
from chatd.turns.engine.calls import derived_id
from chatd.turns.engine.session import InterruptedContent, Session
from chatd.turns.engine.step import StepEnd, Stepped
from chatd.turns.engine.stream import Answered, Broken, ModelStream, StreamLimits
from parley.clock import Clock

SUMMARY_S = 180.0


@dataclass(frozen=True, slots=True)
class Summariser:
    """Makes the summaries of one turn."""

    model: LanguageModel
    setup: TurnSetup
    limits: StreamLimits
    clock: Clock

    async def run(
        self,
        session: Session,
        action: Compact,
        request: ModelRequest,
        show: Show,
        hints: Sequence[HookAddition] = (),
    ) -> StepEnd:
        """Summarise the messages of `request` and commit the summary; return how the call ended.

        Args:
            session: The claimed chat.
            action: What requested the summary.
            request: The request of the next step.
            show: Publishes parts.
            hints: What hooks add to the request for the summary, and their notices.

        Raises:
            OwnershipLost: This runner no longer owns the chat.
        """
        call = self._call(session, action)
        show(Role.ASSISTANT, 0, call)
        session.unfinished = InterruptedContent(
            session.fence, lambda at: interrupted_messages((call,), at, None)
        )
        answer = Answer(ignore_part, self.clock)
        profile = self.setup.summariser or self.setup.model
        asked = self._request(request, action.shortenings, hints)
        session.metered(CallPurpose.COMPACTION, profile, answer, asked)
        limits = replace(self.limits, total_s=SUMMARY_S)
        notices = notice_messages(hints)
        stream = ModelStream(self.model, limits, self.clock, profile.provider)
        end: StepEnd | Answered = await stream.read(asked, answer, session.superseded)
        if isinstance(end, Answered):
            end = await self._commit(session, action, call, answer, show, notices)
        if isinstance(end, Broken):
            show(Role.TOOL, 0, error_result(call, end.error.message))
        return end

    def _call(self, session: Session, action: Compact) -> ToolCall:
        summary_id = derived_id(session.chat_id, session.fence, "summary")
        call = summary_call(
            f"chat_summarized_{summary_id}", action.source, self.setup.threshold_percent
        )
        return msgspec.structs.replace(call, created_at=self.clock.now())

    def _request(
        self, request: ModelRequest, shortenings: int, hints: Sequence[HookAddition]
    ) -> ModelRequest:
        """Return the request of the next step, turned into one for a summary of it."""
        messages = shortened(request.messages, shortenings) if shortenings else request.messages
        profile = self.setup.summariser or self.setup.model
        if profile.id != self.setup.model.id and not _is_one_provider(profile, self.setup.model):
            messages = without_foreign_parts(messages)
        added = (Text(hook_context_text(each)) for each in contexts_of(hints))
        wish = PromptMessage(Role.USER, (Text(SUMMARY_REQUEST), *added))
        return replace(
            request,
            model=profile.id,
            messages=(*messages, wish),
            may_call_tools=False,
            output_tokens_max=profile.output_tokens_max,
            reasoning_effort=profile.reasoning_effort,
        )

    async def _commit(
        self,
        session: Session,
        action: Compact,
        call: ToolCall,
        answer: Answer,
        show: Show,
        notices: tuple[NewMessage, ...],
    ) -> Stepped | Broken:
        texts = (part.text for part in answer.content if isinstance(part, Text))
        summary = "\n\n".join(text.strip() for text in texts if text.strip())
        if answer.finished is not None and answer.finished.reason is FinishReason.CONTENT_FILTER:
            # The text of a refusal is no summary, and would replace the whole history.
            return Broken(_refused(answer.finished.detail))
        if not summary:
            return Broken(_nothing_said())
        result = summary_result(call, summary, action.use)
        show(Role.TOOL, 0, result)
        bill = session.billed(CallOutcome.DONE)
        assert bill is not None  # A call that was answered is always billed.
        reason = None if answer.finished is None else answer.finished.reason
        todos = newest_todos(message.content for message in session.history.messages)
        fallback = announced(session.state, self.setup.model)
        rows = stored_summary(call, result, summary, bill.use, reason, todos, fallback)
        rows = (*rows, *notices)
        await session.apply(CommitCompaction(session.fence, rows, bill), rows)
        return Stepped()


def _is_one_provider(summariser: ModelProfile, chat: ModelProfile) -> bool:
    """Return whether both models have the same provider, so that its own parts are understood."""
    return bool(summariser.provider_id) and summariser.provider_id == chat.provider_id


def _refused(detail: str) -> ModelError:
    message = "The conversation could not be summarised: the provider's content policy forbids it."
    return ModelError(ErrorKind.CONTENT_FILTER, message, is_retryable=False, detail=detail)


def _nothing_said() -> ModelError:
    message = "The conversation could not be summarised: the model answered nothing."
    return ModelError(ErrorKind.GENERIC, message, is_retryable=False)
