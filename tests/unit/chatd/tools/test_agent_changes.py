"""Changes of agents in forks: applied by a turn of their parent, as long as its owner owns it."""

import json

import grpc
import pytest

from chatd.chats.domain.agents import Agent
from chatd.chats.domain.chat import Status
from chatd.chats.domain.errors import FenceLost
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Dispatch, Execution, Executor, Outcome, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.tools.agents.changes import apply_changes
from chatd.tools.agents.inputs import ApplyInput
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from parley.rpc import Problem, Refusal

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
AGENT = ChatId("00000000-0000-0000-0000-000000000002")
SPEC = ToolSpec("apply_child_changes", "", "{}", Executor.CHATD)


class MergingForks:
    """Forks that are merged, or refused by their node."""

    def __init__(self, refusal: str = "") -> None:
        self.requests: list[MergeRequest] = []
        self._refusal = refusal

    async def fork(self, chat_id: ChatId, agent_id: ChatId, owner: Owner) -> None:
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
        return MergeReport(is_applied=True, merged_paths=("a",))


async def applied(forks: MergingForks) -> Outcome:
    """Apply the changes of an agent in turn 7, as the third owner of the chat."""
    agent = Agent(AGENT, "it", False, Status.WAITING, True, "", None, 0, 1, is_forked=True)
    call = ToolCall("c", SPEC.name, json.dumps({"agent_id": AGENT}))
    dispatch = Dispatch(ExecutionId("e"), call, Executor.CHATD, "")
    context = TurnContext(CHAT, Owner(OwnerId("ann"), "member"), turn_id=7)
    execution = Execution(context, 3, dispatch, SPEC)
    return await apply_changes(forks, execution, agent, ApplyInput(agent_id=AGENT))


async def test_a_merge_names_the_turn_and_the_owner_that_ask_for_it() -> None:
    forks = MergingForks()

    ended = await applied(forks)

    (request,) = forks.requests
    assert (request.chat_id, request.turn_id, request.owner_epoch) == (CHAT, 7, 3)
    assert json.loads(ended.result_json)["applied"] is True


async def test_an_owner_that_was_replaced_leaves_the_call_to_the_next_one() -> None:
    with pytest.raises(FenceLost):
        await applied(MergingForks("STALE_OWNER"))
