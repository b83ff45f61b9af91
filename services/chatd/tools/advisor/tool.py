"""The tool `advisor`: offered to turns that may ask, answered by a call of a model without tools.

How often it was asked is counted in the stored results of the turn, so that a new owner goes on
counting. A call that failed does not count. A call whose owner died is made again: advice changes
nothing, and both calls are in the ledger.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Protocol

import msgspec

from chatd.content.domain.messages import cut_field
from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    Execution,
    Executor,
    Found,
    Outcome,
    StillRunning,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.preferences import AdvisorSettings
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.ids import OwnerId
from chatd.spend.domain.ledger import CallPurpose, LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.tools.advisor.handoff import QUESTION_CHARACTERS_MAX, handoff
from chatd.tools.workspace.arguments import BadArguments, Input, read, schema_of
from chatd.tools.workspace.results import failed, misused, succeeded
from chatd.turns.domain.system_prompt import ADVISOR
from chatd.turns.engine.side_calls import AnswerListener, Generated, SideCallRequest

NAME: Final = "advisor"
CALL_S: Final = 300.0
TOTAL_S: Final = 600.0
#: Attempts of one owner of a chat; the next owner counts from there.
ATTEMPTS_PER_OWNER: Final = 1000
GO_ON: Final = "Go on without it, and decide yourself."


class AdvisorInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `advisor`."""

    question: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            description="One question, with what you have found out and the choices that you see; "
            f"at most {QUESTION_CHARACTERS_MAX} characters.",
        ),
    ]


SPEC: Final = ToolSpec(
    NAME,
    "Ask the advisor for a second opinion before a decision that is hard to take back, when you "
    "are stuck, or before you declare large work done. It sees the recent conversation, has no "
    "tools and changes nothing. Call it alone.",
    schema_of(AdvisorInput),
    Executor.CHATD,
    is_exclusive=True,
)


class SideModel(Protocol):
    """Answers prompts without tools."""

    async def ask(
        self, side_call: SideCallRequest, listener: AnswerListener | None = None
    ) -> Generated | None:
        """Return an answer; None if no model may answer.

        Raises:
            ModelError: the last attempt failed.
        """
        ...


class AdvisorTools:
    """Offers the advisor, and answers its calls.

    Args:
        model: Calls the model of the advisor.
        settings: Returns the current settings.
        spending: The limits of users.
        bill: Enters each answer into the ledger before it becomes the result of its call.
    """

    names = frozenset({NAME})

    def __init__(
        self,
        model: SideModel,
        *,
        settings: Callable[[], Awaitable[AdvisorSettings]],
        spending: Spending,
        bill: Callable[[LedgerEntry, OwnerId], Awaitable[None]],
    ) -> None:
        self._model = model
        self._settings = settings
        self._spending = spending
        self._bill = bill

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tool, if the turn may ask the advisor."""
        return (SPEC,) if context.has_advisor else ()

    async def execute(self, execution: Execution) -> Outcome:
        """Ask the advisor; every failure is the result of the call."""
        try:
            given = read(AdvisorInput, execution.dispatch.call.args_json)
            if not given.question.strip():
                raise BadArguments("question is empty", "ask one question")
        except BadArguments as error:
            return misused(error)
        settings = await self._settings()
        if not settings.is_enabled:
            return _error("The advisor was switched off.", "ADVISOR_DISABLED", 0)
        left = settings.uses_max - uses_in(execution.context.results())
        if left <= 0:
            return _limit_reached(settings.uses_max)
        refusal = await self._spending.refusal(execution.chat_id, execution.owner)
        if refusal is not None:
            return _error(refusal.message, "SPEND_LIMIT_REACHED", left)
        try:
            generated = await self._model.ask(
                _request(execution, given.question, settings), _Streamed(execution)
            )
        except ModelError as error:
            return _error(str(error), "ADVISOR_FAILED", left)
        if generated is None:
            return _error("No model can advise now.", "ADVISOR_UNAVAILABLE", left)
        await self._bill(generated.entry, execution.owner.id)
        advice = generated.text.strip()
        if not advice:
            return _error("The advisor answered nothing.", "ADVISOR_SILENT", left)
        return _advice(advice, generated, left - 1)

    async def find(self, execution: Execution) -> Found:
        """Return that the call may be running: asking again is harmless."""
        return StillRunning()

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: the call ends with the task that waits for it."""


class _Streamed:
    """Shows the advice while it is generated."""

    def __init__(self, execution: Execution) -> None:
        self._progress = execution.context.progress
        self._tool_call_id = execution.dispatch.call.tool_call_id

    def on_text(self, text: str) -> None:
        self._progress.report(self._tool_call_id, text)

    def on_retry(self) -> None:
        self._progress.reset(self._tool_call_id)


def uses_in(results: tuple[ToolResult, ...]) -> int:
    """Return how often the advisor gave advice among the results of a turn."""
    return sum(
        result.tool_name == NAME
        and result.outcome is ToolOutcome.DONE
        and json.loads(result.result_json).get("type") == "advice"
        for result in results
    )


def _request(execution: Execution, question: str, settings: AdvisorSettings) -> SideCallRequest:
    context = execution.context
    return SideCallRequest(
        context.chat_id,
        context.owner,
        context.history_version,
        CallPurpose.ADVISOR,
        handoff(context.prompt(), context.answer(), question, ADVISOR),
        tokens_max=settings.tokens_max,
        call_s=CALL_S,
        total_s=TOTAL_S,
        choice=ModelChoice(context.model_id),
        attempt_offset=execution.owner_epoch * ATTEMPTS_PER_OWNER,
        may_reason=True,
        may_be_demo=True,
    )


def _advice(advice: str, generated: Generated, left: int) -> Outcome:
    use = generated.entry.bill.use
    usage = {
        "input_tokens": use.input_tokens,
        "output_tokens": use.output_tokens,
        "cost_micros": use.cost_micros,
        "is_estimate": use.is_estimate,
    }
    model = f"{use.provider}/{use.model_name or use.model_id}"
    return succeeded(
        {
            "type": "advice",
            "advice": advice,
            **cut_field(generated.finish_reason),
            "advisor_model": model,
            "remaining_uses": left,
            "usage": usage,
        }
    )


def _limit_reached(uses_max: int) -> Outcome:
    often = "once" if uses_max == 1 else f"{uses_max} times"
    message = f"The advisor was asked {often} in this turn, which is the limit. {GO_ON}"
    return succeeded({"type": "limit_reached", "message": message, "remaining_uses": 0})


def _error(problem: str, reason: str, left: int) -> Outcome:
    return failed(problem, reason, GO_ON, fields={"type": "error", "remaining_uses": left})
