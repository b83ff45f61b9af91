"""A call that a person allowed: judged anew, bound to its arguments, remembered if wanted."""

from dataclasses import replace

import pytest

from chatd.actions.domain.action import StoredAction
from chatd.actions.domain.answers import GivenAnswer, checked
from chatd.actions.engine.dispatching import CallDispatcher, NotPermitted, Permitted
from chatd.approvals.domain.judgement import arguments_digest
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule, Scope, ScopeKind
from chatd.approvals.engine.cached_rules import notice_key
from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import ChatMode, ErrorKind
from chatd.content.domain.tools import Dispatch, Executor, PendingKind, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import CheckUnavailable, InvalidRequest
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, Owner, OwnerId
from chatd.tools.workspace import offered
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.journaling_tools import JournalingTools

CHAT = ChatId("00000000-0000-0000-0000-0000000000a1")
ANN = Owner(OwnerId("ann"), "member")
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER, journal_generation="j")
ACTION = StoredAction(
    ExecutionId("action"),
    CHAT,
    MessageId(2),
    "call",
    "execute",
    "",
    PendingKind.APPROVAL,
    '{"command": "git push"}',
    "a rule asks",
    ChatMode.PLAN,
    None,
    None,
    None,
    None,
    "",
    "",
)
ACCEPT = GivenAnswer(is_accepted=True)


def dispatcher(
    rules: Rules,
    *specs: ToolSpec,
    tools: JournalingTools | None = None,
    mode: ChatMode = ChatMode.ORDINARY,
) -> CallDispatcher:
    async def facts(chat_id: ChatId) -> ChatFacts:
        return ChatFacts(ModelChoice(), mode)

    async def history(chat_id: ChatId) -> tuple[Message, ...]:
        return ()

    return CallDispatcher(tools or JournalingTools(*specs), facts, judge_of(rules), history)


def asking(effect: Effect = Effect.ASK, scope: Scope = INSTALLATION) -> Rule:
    return Rule("1", scope, effect, command="git push")


async def test_an_allowed_call_is_dispatched_as_it_was_asked_about() -> None:
    permitted = await dispatcher(Rules([asking()]), EXECUTE).dispatch(ACTION, ANN)
    assert isinstance(permitted, Permitted)
    call = ACTION.call
    digest = arguments_digest(call)
    assert permitted.dispatch == Dispatch(
        ExecutionId("action"), call, Executor.TOOLRUNNER, "j", ChatMode.PLAN, digest
    )


class FollowingTools(JournalingTools):
    """Offers the tools of a workspace that the mode allows."""

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        return offered(self.specs, context)


async def test_a_call_that_was_allowed_after_the_chat_began_to_plan_only_reads() -> None:
    asked = replace(ACTION, mode=ChatMode.ORDINARY)
    for mode in ChatMode:
        calls = dispatcher(Rules([asking()]), tools=FollowingTools(EXECUTE), mode=mode)
        permitted = await calls.dispatch(asked, ANN)
        assert isinstance(permitted, Permitted)
        assert permitted.dispatch.mode is mode


async def test_a_call_that_the_mode_of_the_chat_withholds_by_now_does_not_run() -> None:
    write = replace(EXECUTE, name="write_file")
    asked = replace(ACTION, mode=ChatMode.ORDINARY, tool_name="write_file")
    tools = FollowingTools(EXECUTE, write)
    assert isinstance(await dispatcher(Rules(), tools=tools).dispatch(asked, ANN), Permitted)
    assert await dispatcher(Rules(), tools=tools, mode=ChatMode.PLAN).dispatch(
        asked, ANN
    ) == NotPermitted(
        "this did not run: its tool is not offered any more in plan mode, in which nothing is "
        "changed"
    )
    away = dispatcher(Rules(), tools=FollowingTools(), mode=ChatMode.PLAN)
    with pytest.raises(CheckUnavailable, match="such a tool"):
        await away.dispatch(asked, ANN)


async def test_a_call_that_was_denied_meanwhile_does_not_run() -> None:
    refused = await dispatcher(Rules([asking(Effect.DENY)]), EXECUTE).dispatch(ACTION, ANN)
    assert refused == NotPermitted("this did not run: a rule of the installation refuses git push")


async def test_a_call_whose_tool_is_gone_does_not_run() -> None:
    action = replace(ACTION, tool_name="wiki__write")
    assert await dispatcher(Rules()).dispatch(action, ANN) == NotPermitted(
        "this did not run: its tool is not offered any more"
    )


async def test_an_approval_is_not_spent_while_the_workspace_is_away() -> None:
    with pytest.raises(CheckUnavailable, match="such a tool"):
        await dispatcher(Rules()).dispatch(ACTION, ANN)


class Unanswered(JournalingTools):
    """Cannot say which tools there are, as when no mcpgateway answers."""

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        raise ModelError(ErrorKind.GENERIC, "nobody answers", is_retryable=True)


async def test_an_approval_is_not_spent_while_nobody_says_which_tools_there_are() -> None:
    calls = dispatcher(Rules(), tools=Unanswered())
    with pytest.raises(CheckUnavailable, match="such a tool"):
        await calls.dispatch(replace(ACTION, tool_name="wiki__write"), ANN)


async def test_an_approval_is_remembered_for_the_chat() -> None:
    rules = Rules([asking(scope=Scope(ScopeKind.USER, "ann"))])
    calls = dispatcher(rules, EXECUTE)
    permitted = await calls.dispatch(ACTION, ANN, is_remembered=True)
    assert isinstance(permitted, Permitted)
    assert permitted.remembered is not None
    rules.remember(permitted.remembered)
    (kept,) = [rule for rule in rules.kept if rule.digest]
    assert (kept.scope, kept.effect, kept.tool, kept.is_for_tainted) == (
        Scope(ScopeKind.CHAT, CHAT),
        Effect.ALLOW,
        "execute",
        False,
    )
    assert notice_key(kept.scope) == f"chat {CHAT}"


async def test_what_a_rule_asks_each_time_cannot_be_remembered() -> None:
    with pytest.raises(InvalidRequest, match="remember: is not possible"):
        await dispatcher(Rules([asking()]), EXECUTE).dispatch(ACTION, ANN, is_remembered=True)


def test_an_answer_is_for_the_arguments_that_the_person_saw() -> None:
    digest = arguments_digest(ACTION.call)
    assert checked(ACTION, replace(ACCEPT, arguments_digest=digest)) == {"accepted": True}
    other = replace(ACTION, args_json='{"command": "git push -f"}')
    with pytest.raises(InvalidRequest, match="arguments_digest: is not of this call"):
        checked(other, replace(ACCEPT, arguments_digest=digest))


def test_only_an_accepted_call_is_remembered() -> None:
    assert checked(ACTION, replace(ACCEPT, is_remembered=True)) == {
        "accepted": True,
        "remember": True,
    }
    loop, plan = (replace(ACTION, kind=kind) for kind in (PendingKind.LOOP, PendingKind.PLAN))
    refusing = replace(ACCEPT, is_accepted=False)
    for action, given in ((ACTION, refusing), (loop, ACCEPT), (plan, ACCEPT)):
        with pytest.raises(InvalidRequest, match="remember: is only for a call"):
            checked(action, replace(given, is_remembered=True))


def test_a_plan_that_was_emptied_is_not_accepted() -> None:
    plan = replace(ACTION, kind=PendingKind.PLAN, args_json='{"plan": "# first this"}')
    assert checked(plan, replace(ACCEPT, plan="# mine")) == {"accepted": True, "plan": "# mine"}
    with pytest.raises(InvalidRequest, match="plan: is blank; leave it out to accept"):
        checked(plan, replace(ACCEPT, plan=" \n\t"))
