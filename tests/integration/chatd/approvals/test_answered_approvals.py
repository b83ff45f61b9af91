"""A call that waits for approval is answered over gRPC: it runs once, as asked, or never."""

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest

from chatd.actions.engine.dispatching import CallDispatcher
from chatd.actions.rpc.servicer import ActionPorts, ActionServicer
from chatd.actions.store.actions import Actions
from chatd.approvals.domain.judgement import Allow, arguments_digest
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import Workspace
from chatd.approvals.engine.judge import Judge
from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import AskedCall, CommitStep, EnterRequiresAction
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.content.domain.tools import Executor, PendingKind, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.errors import DOMAIN, ERRORS
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner
from parley.api.chat.v1 import action_pb2, chat_service_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1.action_service_pb2_grpc import ActionServiceStub
from parley.identity import Role as UserRole
from parley.identity import ServiceName, User, UserId
from parley.rpc import Address, Problem, Registration, acting_for, connect, problem_of, serve
from parley.tasks import BackgroundTasks
from parley.telemetry import InMemoryTelemetry
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.turns.journaling_tools import JournalingTools
from support.host.supervised import supervision
from support.rpc.echo_service import make_identities

ANN = Owner(ANN_ID, "member")
PUSH = ToolCall("call", "execute", '{"command": "git push"}')
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER, journal_generation="j1")


class ConfinedWorkspaces:
    """Workspaces without network."""

    async def are_repositories_outside(self) -> bool:
        return False

    async def of_chat(self, chat_id: ChatId) -> Workspace:
        return Workspace()


class Asking:
    """A chat that asks for an approval, and its owner."""

    def __init__(self, served: ServedChats, judge: Judge, stub: Any) -> None:
        self.served = served
        self.judge = judge
        self.chat_id = ChatId("")
        self.action_id = ""
        self._stub = stub

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
        accept = api.ACTION_DECISION_ACCEPT
        request = api.AnswerActionRequest(
            request_id=request_id,
            chat_id=self.chat_id,
            action_id=self.action_id,
            **{"decision": accept, **given},
        )
        with acting_for(User(UserId(ANN_ID), UserRole.MEMBER)):
            return (await self._stub.AnswerAction(request)).action

    async def refusal(self, **given: Any) -> Problem:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.answer(**given)
        return problem_of(refused.value)

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
async def asking(served: ServedChats, tmp_path: Path) -> AsyncIterator[Asking]:
    judge = Judge(served.rules, served.stored_rules, ConfinedWorkspaces())

    async def facts(chat_id: ChatId) -> ChatFacts:
        return ChatFacts(ModelChoice(), ChatMode.ORDINARY)

    directory = tmp_path / "actions"
    directory.mkdir(mode=0o700)
    identities, telemetry = make_identities(directory), InMemoryTelemetry("chatd").telemetry
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(BackgroundTasks(supervision()))
        dispatcher = CallDispatcher(
            JournalingTools(EXECUTE), facts, judge, served.stores.chats.history
        )
        ports = ActionPorts(
            Actions(served.pool),
            served.stores,
            dispatcher,
            served.claims,
            served.groups,
            tasks,
            lambda chat_id: None,
        )
        server = await stack.enter_async_context(
            serve(
                Address.parse(f"unix:{directory}/actions.sock"),
                [Registration.of(ActionServicer(ports))],
                guard=identities.guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=telemetry,
            )
        )
        channel = connect(
            server.address,
            audience=ServiceName.CHATD,
            signer=identities.signer,
            telemetry=telemetry,
        )
        stack.push_async_callback(channel.close)
        chat = Asking(served, judge, ActionServiceStub(channel))
        await chat.begin()
        yield chat


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
    elsewhere = TurnContext(ChatId(str(uuid.UUID(int=2))), ANN)
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
