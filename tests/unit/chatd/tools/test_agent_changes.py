"""Changes of agents in forks: applied by a turn of their parent, as long as its owner owns it."""

import json
from datetime import UTC, datetime

import grpc
import pytest

from chatd.chats.domain.agents import Agent, AgentsRefused
from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerClaim,
    OwnerId,
)
from chatd.tools.agents.changes import apply_changes
from chatd.tools.agents.inputs import ApplyInput
from chatd.workspaces.domain.merges import AppliedMerge, MergeReport, MergeRequest
from parley.rpc import Problem, Refusal

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
AGENT = ChatId("00000000-0000-0000-0000-000000000002")
SPEC = ToolSpec("apply_child_changes", "", "{}", Executor.CHATD)


class Turns:
    """A chat in its turn, or after it: a claim of turn 7 holds, or is refused."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self._refusal = refusal

    async def require_running(self, claim: OwnerClaim) -> None:
        assert claim == OwnerClaim(CHAT, 3, MessageId(7))
        if self._refusal is not None:
            raise self._refusal


class MergingForks:
    """Forks that are merged, or refused by their node."""

    def __init__(self, refusal: str = "") -> None:
        self.requests: list[MergeRequest] = []
        self._refusal = refusal

    async def fork(
        self, chat_id: ChatId, agent_id: ChatId, owner: Owner, claim: OwnerClaim | None = None
    ) -> None:
        raise AssertionError(agent_id)

    async def discard(self, agent_id: ChatId) -> None:
        raise AssertionError(agent_id)

    async def merge(
        self, agent_id: ChatId, owner_id: OwnerId, request: MergeRequest
    ) -> MergeReport:
        self.requests.append(request)
        if self._refusal:
            raise Refusal(
                Problem(grpc.StatusCode.FAILED_PRECONDITION, self._refusal, "it is refused")
            )
        if request.is_dry:
            before = AppliedMerge(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), ("a", "b"), 1)
            return MergeReport(is_applied=False, applied_merges=(before,))
        return MergeReport(is_applied=True, merged_paths=("a",))


async def applied(
    forks: MergingForks, turns: Turns | None = None, *, dry_run: bool = False
) -> Outcome:
    """Apply the changes of an agent in turn 7, as the third owner of the chat."""
    agent = Agent(AGENT, "it", False, Status.WAITING, True, "", None, 0, 1, is_forked=True)
    call = ToolCall("c", SPEC.name, json.dumps({"agent_id": AGENT}))
    dispatch = Dispatch(ExecutionId("e"), call, Executor.CHATD, "")
    context = TurnContext(CHAT, Owner(OwnerId("ann"), "member"), turn_id=7)
    execution = Execution(context, 3, dispatch, SPEC)
    given = ApplyInput(agent_id=AGENT, dry_run=dry_run)
    return await apply_changes(turns or Turns(), forks, execution, agent, given)


async def test_a_merge_names_the_turn_and_the_owner_that_ask_for_it() -> None:
    forks = MergingForks()

    ended = await applied(forks)

    (request,) = forks.requests
    assert (request.chat_id, request.turn_id, request.owner_epoch) == (CHAT, 7, 3)
    assert json.loads(ended.result_json)["applied"] is True


async def test_an_owner_that_was_replaced_leaves_the_call_to_the_next_one() -> None:
    with pytest.raises(FenceLost):
        await applied(MergingForks("STALE_OWNER"))


async def test_the_late_call_of_a_turn_that_is_over_applies_nothing() -> None:
    forks = MergingForks()

    with pytest.raises(FenceLost):
        await applied(forks, Turns(FenceLost(CHAT)))

    assert forks.requests == []


async def test_a_chat_that_is_interrupted_applies_nothing_and_says_so() -> None:
    forks = MergingForks()
    turns = Turns(AgentsRefused("this chat was interrupted", "AGENTS_INTERRUPTED"))

    told = json.loads((await applied(forks, turns)).result_json)

    assert forks.requests == []
    assert (told["ok"], told["reason"]) == (False, "AGENTS_INTERRUPTED")


async def test_a_dry_run_says_what_was_applied_before() -> None:
    told = json.loads((await applied(MergingForks(), dry_run=True)).result_json)

    assert told["applied_before"] == [{"applied_at": "2026-01-02T03:04:05+00:00", "files": 3}]
