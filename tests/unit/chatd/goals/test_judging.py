"""The prompt of a judge, its verdict, and what its failures become."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import Message
from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.chats.rpc.owner_calls import TIMEOUT_S
from chatd.content.domain.messages import CUT, ErrorKind, FinishReason, Role
from chatd.content.domain.parts import Text
from chatd.content.domain.prompts import PromptMessage
from chatd.goals.domain.goal import Goal, GoalState, RestingChat, Verdict
from chatd.goals.domain.judging import CONTRACT, VerdictUnreadable, judge_prompt, verdict_of
from chatd.goals.engine.judging import NO_JUDGE, TOTAL_S, UNREADABLE, ModelJudge
from chatd.goals.engine.pursuit import CLAIM_FOR
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.turns.engine.side_calls import Generated, SideCallRequest

CHAT = ChatId("c")
ANN = Owner(OwnerId("ann"), "member")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
GOAL = Goal(
    id="9a",
    chat_id=CHAT,
    owner=ANN,
    text="Mend the tests.",
    check_command="",
    turns_max=3,
    seconds_max=60,
    cost_max_micros=0,
    state=GoalState.ACTIVE,
    created_at=NOON,
    judge_model_id="m",
)
ENTRY = LedgerEntry(CHAT, 4, 1, Bill(CallPurpose.JUDGE, CallOutcome.DONE, ModelUse("m", 1)))


def said(text: str, role: Role = Role.USER) -> PromptMessage:
    return PromptMessage(role, (Text(text),))


def texts_of(prompt: Sequence[PromptMessage]) -> list[str]:
    return [part.text for each in prompt for part in each.content if isinstance(part, Text)]


def test_the_judge_sees_the_recent_conversation_and_the_goal_within_bounds() -> None:
    history = [said("system", Role.SYSTEM), *[said("x" * 3000)] * 50, said("Done.", Role.ASSISTANT)]
    contract, conversation, asked = texts_of(judge_prompt(GOAL, history))
    assert contract == CONTRACT
    assert conversation.endswith("[agent] Done.")
    assert len(conversation) < 13_000
    assert asked == "The goal:\n\nMend the tests.\n\nIs the goal reached?"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('{"done": true, "reason": "It shows."}', Verdict(is_done=True, reason="It shows.")),
        (
            'Here:\n```json\n{"done": false, "reason": " No tests. "}\n```',
            Verdict(is_done=False, reason="No tests."),
        ),
        ("It is done.", None),
        ('{"done": "true", "reason": "a"}', None),
        ('{"done": true}', None),
        ('{"done": true, "reason": " "}', None),
        ('{"done": true, "reason": "\\ud800\\u0000"}', None),
        ('{"done": true, "reason": "a\\ud800b\\u0000"}', Verdict(is_done=True, reason="ab")),
        pytest.param('{"done": ' + "[" * 100_000 + "}", None, id="nested deeply"),
        ('{"done": true, "reason"', None),
        ("[]", None),
        ("", None),
    ],
)
def test_only_a_verdict_is_read_as_one(answer: str, verdict: Verdict | None) -> None:
    if verdict is None:
        with pytest.raises(VerdictUnreadable):
            verdict_of(answer)
    else:
        assert verdict_of(answer) == verdict


@dataclass
class Model:
    """Answers as a test says."""

    answer: Generated | ModelError | None
    asked: list[SideCallRequest] = field(default_factory=list)

    async def ask(self, side_call: SideCallRequest) -> Generated | None:
        self.asked.append(side_call)
        if isinstance(self.answer, ModelError):
            raise self.answer
        return self.answer


async def judged(model: Model, billed: list[LedgerEntry]) -> Verdict:
    async def history(chat_id: ChatId) -> tuple[Message, ...]:
        assert chat_id == CHAT
        return (Message(MessageId(1), 1, Role.ASSISTANT, (Text("Done."),), "", NOON),)

    async def bill(entry: LedgerEntry, owner_id: OwnerId) -> None:
        billed.append(entry)

    judge = ModelJudge(model, history=history, bill=bill)
    return await judge.judge(GOAL, RestingChat(4))


async def test_a_verdict_is_billed_with_its_own_purpose_to_the_chat() -> None:
    billed: list[LedgerEntry] = []
    model = Model(Generated('{"done": true, "reason": "It shows."}', ENTRY))
    assert await judged(model, billed) == Verdict(is_done=True, reason="It shows.")
    assert billed == [ENTRY]
    (asked,) = model.asked
    assert (asked.purpose, asked.history_version) == (CallPurpose.JUDGE, 4)
    assert asked.choice is not None
    assert asked.choice.model_id == "m"


async def test_a_failure_of_the_judge_is_no_verdict() -> None:
    billed: list[LedgerEntry] = []
    with pytest.raises(CallRefused, match=UNREADABLE):
        await judged(Model(Generated("It is done.", ENTRY)), billed)
    assert billed == [ENTRY]
    with pytest.raises(CallRefused, match=NO_JUDGE):
        await judged(Model(None), billed)
    for is_retryable, expected in ((True, CallPostponed), (False, CallRefused)):
        error = ModelError(ErrorKind.OVERLOADED, "Busy.", is_retryable=is_retryable)
        with pytest.raises(expected, match="Busy"):
            await judged(Model(error), billed)
    assert len(billed) == 1


@pytest.mark.parametrize("reason", sorted(CUT))
async def test_a_verdict_that_was_cut_is_none_and_is_billed(reason: FinishReason) -> None:
    billed: list[LedgerEntry] = []
    answer = 'It is done: {"done": true, "reason": "It shows."} But'
    with pytest.raises(CallRefused, match=f"not complete .{reason}."):
        await judged(Model(Generated(answer, ENTRY, reason)), billed)
    assert billed == [ENTRY]


def test_a_claim_outlasts_a_check_and_a_judge() -> None:
    check_s, message_s = 2 * TIMEOUT_S, TIMEOUT_S
    assert CLAIM_FOR.total_seconds() > check_s + TOTAL_S + message_s
