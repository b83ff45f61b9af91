"""Calls of the advisor: advice with its bill, the limit of a turn, failures that do not count."""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import pytest

from chatd.content.domain.messages import CUT, ErrorKind, FinishReason, Role, TurnError
from chatd.content.domain.parts import CallProgress, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome, StillRunning
from chatd.content.domain.turn_context import CallProcess, TurnContext
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.models.domain.preferences import AdvisorSettings
from chatd.models.domain.price import ModelUse, Price
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.providers.scripted import ADVISES, Play, demo_with
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.tools.advisor.handoff import CONTRACT
from chatd.tools.advisor.tool import ATTEMPTS_PER_OWNER, SPEC, AdvisorTools
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.side_calls import SideCallPorts, SideCalls
from parley.clock import FakeClock
from support.chatd.turns.absent_ports import NoCallObserver, Unlimited
from support.chatd.turns.fixed_setups import FixedSetups, FixedUtilityModels
from support.chatd.turns.turn_stage import NotingModel

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
OWN = ModelProfile(
    "own", price=Price(Decimal(1), Decimal(1)), provider="acme", name="m1", reasoning_effort="high"
)
ENABLED = AdvisorSettings(is_enabled=True)
USE = ModelUse("own", 5, 2, cost_micros=7, provider="acme", model_name="m1", price=OWN.price)
BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
ADVICE = json.dumps({"ok": True, "type": "advice", "advice": "go left"})


def advise(_: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta("Go "), TextDelta("left. "), UsageReported(5, 2), Finished())


class Spent:
    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        return TurnError("Your limit is used up.", ErrorKind.USAGE_LIMIT)


class Shown:
    """Keeps the progress of calls."""

    def __init__(self) -> None:
        self.updates: list[str | CallProcess | CallProgress | None] = []

    def report(self, tool_call_id: str, update: str | CallProcess | CallProgress) -> None:
        self.updates.append(update)

    def reset(self, tool_call_id: str) -> None:
        self.updates.append(None)


class Asking:
    """An advisor over a scripted model."""

    def __init__(
        self,
        play: Play = advise,
        *,
        settings: AdvisorSettings = ENABLED,
        spending: Spending | None = None,
        own: ModelProfile = OWN,
        override: ModelProfile | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.model = NotingModel(play)
        self.billed: list[LedgerEntry] = []
        self.is_billing, self.is_reachable = asyncio.Event(), asyncio.Event()
        self.is_reachable.set()
        self.shown = Shown()
        side_calls = SideCalls(
            SideCallPorts(
                self.model,
                FixedSetups(TurnSetup(own)),
                FixedUtilityModels(override),
                spending or Unlimited(),
                lambda entry, _: self.billed.append(entry),
                NoCallObserver(),
            ),
            clock=self.clock,
            jitter=lambda: 0.0,
        )

        async def current() -> AdvisorSettings:
            return settings

        async def bill(entry: LedgerEntry, owner_id: OwnerId) -> None:
            self.is_billing.set()
            await self.is_reachable.wait()
            self.billed.append(entry)

        self.tools = AdvisorTools(
            side_calls,
            settings=current,
            spending=spending or Unlimited(),
            bill=bill,
        )

    async def ask(self, args_json: str = '{"question": "left or right?"}', *before: str) -> Outcome:
        return await self.tools.execute(self.execution(args_json, *before))

    def execution(self, args_json: str = '{"question": "?"}', *before: str) -> Execution:
        results = tuple(
            ToolResult(f"old_{place}", "advisor", each, ToolOutcome.DONE)
            for place, each in enumerate(before)
        )
        context = TurnContext(
            CHAT,
            ANN,
            model_id="own",
            has_advisor=True,
            history_version=9,
            prompt=lambda: (PromptMessage(Role.USER, (Text("build it"),)),),
            answer=lambda: (Text("I am not sure."),),
            results=lambda: results,
            progress=self.shown,
        )
        call = ToolCall("call_1", "advisor", args_json)
        return Execution(context, 2, Dispatch(ExecutionId("e"), call, Executor.CHATD, ""), SPEC)


def told(outcome: Outcome) -> dict[str, object]:
    answer: dict[str, object] = json.loads(outcome.result_json)
    return answer


async def test_advice_comes_with_its_model_its_cost_and_the_uses_that_are_left() -> None:
    asking = Asking()
    assert told(await asking.ask()) == {
        "ok": True,
        "type": "advice",
        "advice": "Go left.",
        "advisor_model": "acme/m1",
        "remaining_uses": 2,
        "usage": {"input_tokens": 5, "output_tokens": 2, "cost_micros": 7, "is_estimate": False},
    }
    assert asking.shown.updates == ["Go ", "left. "]
    assert asking.billed == [
        LedgerEntry(
            CHAT,
            9,
            2 * ATTEMPTS_PER_OWNER + 1,
            Bill(CallPurpose.ADVISOR, CallOutcome.DONE, USE),
        )
    ]


@pytest.mark.parametrize("reason", sorted(CUT))
async def test_advice_that_was_cut_says_so(reason: FinishReason) -> None:
    def stopping(_: ModelRequest) -> Iterable[ModelEvent]:
        return (TextDelta("Go left, but"), UsageReported(5, 2), Finished(reason))

    answer = told(await Asking(stopping).ask())
    assert (answer["type"], answer["advice"], answer["cut"]) == ("advice", "Go left, but", reason)


async def test_advice_is_in_the_ledger_before_it_is_a_result() -> None:
    asking = Asking()
    asking.is_reachable.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(asking.ask())
        await asking.is_billing.wait()
        assert (asked.done(), asking.billed) == (False, [])
        asking.is_reachable.set()
    assert told(asked.result())["type"] == "advice"
    assert len(asking.billed) == 1


async def test_the_call_has_no_tools_and_the_effort_and_size_that_are_set() -> None:
    asking = Asking(settings=replace(ENABLED, output_tokens_max=500))
    await asking.ask()
    (request,) = asking.model.requests
    assert (request.tools, request.may_call_tools) == ((), False)
    assert (request.reasoning_effort, request.output_tokens_max) == ("high", 500 + 1024)
    assert request.messages[0] == PromptMessage(Role.SYSTEM, (Text(CONTRACT),))


async def test_the_model_that_is_set_for_it_advises() -> None:
    asking = Asking(override=ModelProfile("strong", provider="acme", name="m9"))
    assert told(await asking.ask())["advisor_model"] == "acme/m9"


async def test_the_limit_counts_the_stored_advice_of_a_turn_and_no_failures() -> None:
    asking = Asking()
    error = json.dumps({"ok": False, "type": "error"})
    assert told(await asking.ask('{"question": "?"}', ADVICE, error, ADVICE))["remaining_uses"] == 0
    asking = Asking()
    refused = await asking.ask('{"question": "?"}', ADVICE, ADVICE, ADVICE)
    answer = told(refused)
    assert (answer["type"], answer["remaining_uses"]) == ("limit_reached", 0)
    assert refused.outcome is ToolOutcome.DONE
    assert (asking.model.requests, asking.billed) == ([], [])


async def test_a_limit_of_its_own_is_followed() -> None:
    asking = Asking(settings=replace(ENABLED, uses_per_turn_max=1))
    assert told(await asking.ask('{"question": "?"}', ADVICE))["type"] == "limit_reached"


async def test_a_model_that_fails_is_told_as_an_error_and_costs_no_use() -> None:
    def broken(_: ModelRequest) -> Iterable[ModelEvent]:
        raise ModelError(ErrorKind.AUTH, "the key is wrong", is_retryable=False)

    asking = Asking(broken)
    outcome = await asking.ask()
    assert outcome.outcome is ToolOutcome.FAILED
    answer = told(outcome)
    assert (answer["type"], answer["error"]) == ("error", "the key is wrong")
    assert answer["remaining_uses"] == 3


async def test_a_retry_discards_what_was_shown() -> None:
    attempts = iter((True, False))

    def busy_once(request: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("Go ")
        if next(attempts):
            raise BUSY
        yield from (TextDelta("right."), UsageReported(5, 2), Finished())

    asking = Asking(busy_once)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(asking.ask())
        asking.clock.advance(await asking.clock.until_sleeping())
    assert told(asked.result())["advice"] == "Go right."
    assert asking.shown.updates == ["Go ", None, "Go ", "right."]


async def test_an_answer_without_text_is_an_error_that_is_paid_for() -> None:
    def silent(_: ModelRequest) -> Iterable[ModelEvent]:
        return (UsageReported(5, 2), Finished())

    asking = Asking(silent)
    answer = told(await asking.ask())
    assert (answer["type"], answer["reason"], answer["remaining_uses"]) == (
        "error",
        "ADVISOR_SILENT",
        3,
    )
    assert [entry.bill.purpose for entry in asking.billed] == [CallPurpose.ADVISOR]


async def test_users_whose_money_is_spent_and_questions_without_text_are_refused() -> None:
    spent = Asking(spending=Spent())
    assert told(await spent.ask())["error"] == "Your limit is used up."
    assert spent.model.requests == []
    empty = Asking()
    assert told(await empty.ask('{"question": "  "}'))["reason"] == "INVALID_ARGUMENTS"
    assert told(await empty.ask("{}"))["reason"] == "INVALID_ARGUMENTS"
    assert empty.model.requests == []


async def test_an_advisor_that_was_switched_off_in_the_turn_is_an_error() -> None:
    asking = Asking(settings=AdvisorSettings())
    assert told(await asking.ask())["reason"] == "ADVISOR_DISABLED"


async def test_only_turns_that_may_ask_are_offered_it_and_it_must_be_called_alone() -> None:
    tools = Asking().tools
    assert await tools.list_tools(TurnContext(CHAT, ANN)) == ()
    assert await tools.list_tools(TurnContext(CHAT, ANN, has_advisor=True)) == (SPEC,)
    assert SPEC.is_exclusive


async def test_a_call_whose_owner_died_is_made_again() -> None:
    assert await Asking().tools.find(Asking().execution()) == StillRunning()


async def test_the_demo_advises() -> None:
    assert ADVISES.search(CONTRACT)
    asking = Asking(demo_with(FakeClock()), own=ModelProfile("scripted", provider="demo"))
    assert str(told(await asking.ask())["advice"]).startswith("Take the smallest step")
