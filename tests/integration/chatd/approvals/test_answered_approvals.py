"""A call that waits for approval is answered over gRPC: it runs once, as asked, or never."""

import json
import uuid
from typing import Any

import pytest

from chatd.approvals.domain.judgement import Allow, arguments_digest
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule, Scope, ScopeKind
from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import AskedCall, CommitStep, EnterRequiresAction
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.codec import parts_to_json
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import (
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.tools import Executor, PendingKind, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner
from parley.api.chat.v1 import action_pb2, chat_service_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.rpc import Problem
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

ANN = Owner(ANN_ID, "member")
PUSH = ToolCall("call", "execute", '{"command": "git push"}')
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER, journal_generation="j1")


class Asking:
    """A chat that asks for an approval, and its owner."""

    def __init__(self, served: ServedChats) -> None:
        self.served = served
        self.judge = served.judge
        self.chat_id = ChatId("")
        self.action_id = ""

    async def begin(self) -> None:
        """Let a turn end in the question whether it may push."""
        chat = await self.served.ann.create()
        self.chat_id = ChatId(chat.id)
        self.action_id = str(uuid.uuid5(uuid.UUID(chat.id), "action"))
        chats = self.served.stores.chats
        pending = PendingCall(
            PUSH.tool_call_id,
            PUSH.tool_name,
            ExecutionId(self.action_id),
            kind=PendingKind.APPROVAL,
            reason="a rule asks",
        )
        answer = NewMessage(Role.ASSISTANT, (PUSH,))
        asked = AskedCall(pending, PUSH, ChatMode.ORDINARY)
        state = await self.served.state(chat.id)
        state = await chats.apply(
            self.chat_id, CommitStep(fence_of(state), (answer,), asked=(asked,))
        )
        state = await chats.apply(self.chat_id, EnterRequiresAction(fence_of(state)))
        assert state.status is Status.REQUIRES_ACTION

    async def answer(self, request_id: str = "r", **given: Any) -> Any:
        return (await self.served.ann.ask(self._answer(request_id, given))).action

    async def refusal(self, request_id: str = "r", **given: Any) -> Problem:
        return await self.served.ann.refusal(self._answer(request_id, given))

    def _answer(self, request_id: str, given: dict[str, Any]) -> api.AnswerActionRequest:
        fields: dict[str, Any] = {"decision": api.ACTION_DECISION_ACCEPT, **given}
        return api.AnswerActionRequest(
            request_id=request_id,
            chat_id=self.chat_id,
            action_id=self.action_id,
            **fields,
        )

    async def dispatched(self) -> list[str]:
        """Return the execution ids of the calls that are dispatched."""
        rows = await self.served.pool.fetch(
            "SELECT execution_id FROM chat.tool_calls WHERE chat_id = $1", self.chat_id
        )
        return [str(row["execution_id"]) for row in rows]

    async def results(self) -> list[dict[str, Any]]:
        history = await self.served.stores.chats.history(self.chat_id)
        return [
            json.loads(part.result_json)
            for message in history
            for part in message.content
            if isinstance(part, ToolResult)
        ]


@pytest.fixture
async def asking(served: ServedChats) -> Asking:
    chat = Asking(served)
    await chat.begin()
    return chat


async def test_an_approved_call_is_dispatched_under_the_id_of_its_action(asking: Asking) -> None:
    digest = arguments_digest(PUSH)
    action = await asking.answer(arguments_digest=digest)
    assert (action.state, action.arguments_digest) == (action_pb2.ACTION_STATE_ANSWERED, digest)
    assert await asking.dispatched() == [asking.action_id]
    state = await asking.served.state(asking.chat_id)
    assert state.status is Status.RUNNING
    assert await asking.answer(arguments_digest=digest) == action
    second = await asking.refusal(request_id="other")
    assert second.reason == "ACTION_ENDED"
    assert await asking.dispatched() == [asking.action_id]


async def test_the_commit_that_approves_records_the_digest_of_the_arguments(
    asking: Asking,
) -> None:
    await asking.answer()
    history = await asking.served.stores.chats.history(asking.chat_id)
    (message_id,) = [each.id for each in history if PUSH in each.content]
    (stored,) = await asking.served.stores.chats.executions(asking.chat_id, message_id)
    assert (stored.execution_id, stored.mode) == (asking.action_id, ChatMode.ORDINARY)
    assert stored.arguments_digest == arguments_digest(PUSH)


async def test_an_answer_to_other_arguments_runs_nothing(asking: Asking) -> None:
    other = ToolCall("call", "execute", '{"command": "git push -f"}')
    problem = await asking.refusal(arguments_digest=arguments_digest(other))
    assert problem.metadata == {"field": "arguments_digest"}
    assert await asking.dispatched() == []
    state = await asking.served.state(asking.chat_id)
    assert state.status is Status.REQUIRES_ACTION


async def test_a_call_that_a_rule_denies_meanwhile_never_runs(asking: Asking) -> None:
    rule = Rule(str(uuid.UUID(int=1)), INSTALLATION, Effect.DENY, command="git push *")
    await asking.served.stored_rules.create(rule, b"")
    await asking.answer()
    assert await asking.dispatched() == []
    (told,) = await asking.results()
    assert told["error"] == "this did not run: a rule of the installation refuses git push"


async def test_a_refused_call_never_runs(asking: Asking) -> None:
    await asking.answer(decision=api.ACTION_DECISION_REFUSE, remark="Not today.")
    assert await asking.dispatched() == []
    (told,) = await asking.results()
    assert (told["reason"], told["hint"]) == ("REFUSED", "Not today.")


async def test_an_approval_for_the_chat_lets_the_same_call_run_again(asking: Asking) -> None:
    rule = Rule(str(uuid.UUID(int=1)), Scope(ScopeKind.USER, ANN_ID), Effect.ASK)
    await asking.served.stored_rules.create(rule, b"")
    await asking.answer(remember=True)
    assert await asking.dispatched() == [asking.action_id]
    context = TurnContext(asking.chat_id, ANN)
    specs = {"execute": EXECUTE}
    assert await asking.judge.judge(context, (), [PUSH], specs) == {"call": Allow()}
    elsewhere = TurnContext(ChatId((await asking.served.ann.create(request_id="b")).id), ANN)
    asked = await asking.judge.judge(elsewhere, (), [PUSH], specs)
    assert asked["call"] != Allow()
    await asking.served.ann.ask(
        chat_service_pb2.InterruptRequest(request_id="i", chat_id=asking.chat_id)
    )


async def test_what_the_installation_asks_each_time_is_not_remembered(asking: Asking) -> None:
    rule = Rule(str(uuid.UUID(int=1)), INSTALLATION, Effect.ASK)
    await asking.served.stored_rules.create(rule, b"")
    problem = await asking.refusal(remember=True)
    assert problem.metadata == {"field": "remember"}
    assert await asking.dispatched() == []
    await asking.answer()
    assert await asking.dispatched() == [asking.action_id]


async def test_content_from_outside_in_a_child_makes_its_root_ask_and_the_other_way_round(
    served: ServedChats,
) -> None:
    root = ChatId((await served.ann.create()).id)
    child = ChatId(await served.add_child(root))
    specs, calls = {"execute": EXECUTE}, [PUSH]
    contexts = (TurnContext(root, ANN), TurnContext(child, ANN, ancestor_ids=(root,)))
    for context in contexts:
        assert await served.judge.judge(context, (), calls, specs) == {"call": Allow()}
    for chat_id, other in ((child, contexts[0]), (root, contexts[1])):
        await served.pool.execute("DELETE FROM chat.chat_messages")
        await served.pool.execute(
            "INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,"
            " content_version, is_compressed, is_deleted, created_by, created_at)"
            " VALUES ($1, 9, 9, 'tool', 'both', $2::text::json, 1, false, false, '', now())",
            chat_id,
            parts_to_json((ToolResult("c", "wiki__get", "{}", ToolOutcome.DONE),)),
        )
        await served.pool.execute(
            "UPDATE chat.chat_exec SET history_version = history_version + 1,"
            " snapshot_version = snapshot_version + 1"
        )
        asked = await served.judge.judge(other, (), calls, specs)
        assert asked["call"] != Allow()
