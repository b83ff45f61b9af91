"""Asks a model without tools whether a goal is reached.

A call whose process died is made again: a verdict changes nothing by itself, and both calls are in
the ledger of the chat, and so in the cost of the goal.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from chatd.chats.domain.chat import Message
from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.content.domain.messages import CUT
from chatd.content.domain.prompts import PromptMessage
from chatd.goals.domain.goal import Goal, RestingChat, Verdict
from chatd.goals.domain.judging import VerdictUnreadable, judge_prompt, verdict_of
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from chatd.turns.engine.side_calls import Generated, SideCallRequest

#: All attempts, together with the wait for a check before them, take less than the claim of a goal.
CALL_S: Final = 45.0
TOTAL_S: Final = 60.0
TOKENS_MAX: Final = 800
UNREADABLE: Final = "The judge gave no verdict that can be read; resume the goal to ask it again."
CUT_VERDICT: Final = (
    "The answer of the judge is not complete ({cut}), so it is no verdict; resume the goal to ask "
    "it again."
)
NO_JUDGE: Final = "No model can judge the goal now: it needs one, and money of its owner for it."


class SideModel(Protocol):
    """Answers prompts without tools."""

    async def ask(self, side_call: SideCallRequest) -> Generated | None:
        """Return an answer; None if no model may answer.

        Raises:
            ModelError: The last attempt failed.
        """
        ...


class ModelJudge:
    """Judges goals by the models that they name.

    Args:
        model: Calls models.
        history: Returns the live messages of a chat.
        bill: Enters each answer into the ledger before it becomes a verdict.
    """

    def __init__(
        self,
        model: SideModel,
        *,
        history: Callable[[ChatId], Awaitable[tuple[Message, ...]]],
        bill: Callable[[LedgerEntry, OwnerId], Awaitable[None]],
    ) -> None:
        self._model = model
        self._history = history
        self._bill = bill

    async def judge(self, goal: Goal, chat: RestingChat) -> Verdict:
        """Return whether a goal is reached; a failure is no verdict.

        Raises:
            CallRefused: There is no verdict, and asking again by itself would not help.
            CallPostponed: The provider is away.
        """
        history = await self._history(goal.chat_id)
        request = SideCallRequest(
            goal.chat_id,
            goal.owner,
            chat.history_version,
            CallPurpose.JUDGE,
            judge_prompt(goal, [PromptMessage(each.role, each.content) for each in history]),
            tokens_max=TOKENS_MAX,
            call_s=CALL_S,
            total_s=TOTAL_S,
            choice=ModelChoice(goal.judge_model_id),
            is_repeated=True,
            may_reason=True,
            may_be_demo=True,
            has_fallback=False,  # Its owner named who judges.
        )
        try:
            generated = await self._model.ask(request)
        except ModelError as error:
            if error.is_retryable:
                raise CallPostponed(f"The judge failed: {error.message}") from error
            raise CallRefused(f"The judge failed: {error.message}") from error
        if generated is None:
            raise CallRefused(NO_JUDGE)
        await self._bill(generated.entry, goal.owner.id)
        if generated.finish_reason in CUT:
            raise CallRefused(CUT_VERDICT.format(cut=generated.finish_reason))
        try:
            return verdict_of(generated.text)
        except VerdictUnreadable:
            raise CallRefused(UNREADABLE) from None
