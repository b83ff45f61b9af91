"""Calls of an answer are judged by the rules of their turn and the history of their chat."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.approvals.domain.judgement import Allow, Ask, Deny
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import Workspace
from chatd.approvals.engine.cached_rules import CachedRules, notice_key
from chatd.chats.domain.chat import Message, NewMessage
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import (
    Part,
    ServerTexts,
    Source,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from parley.clock import FakeClock
from support.chatd.approvals.in_memory_rules import (
    Rules,
    Tree,
    Workspaces,
    judge_of,
)

ROOT = ChatId("00000000-0000-0000-0000-0000000000a1")
CHILD = ChatId("00000000-0000-0000-0000-0000000000a2")
ANN = Owner(OwnerId("ann"), "member")
SPECS = {
    spec.name: spec
    for spec in (
        ToolSpec("execute", "", "{}", Executor.TOOLRUNNER),
        ToolSpec("read_file", "", "{}", Executor.TOOLRUNNER),
        ToolSpec("wiki__save", "", "{}", Executor.MCPGATEWAY, server_id="wiki-id"),
    )
}
CONTEXT = TurnContext(ROOT, ANN)
WEB: tuple[Part, ...] = (Source("1", "https://example.org"),)


def history(*parts: Part) -> list[Message]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [NewMessage(Role.ASSISTANT, parts).stored(MessageId(1), 1, at)]


def call(call_id: str, tool: str, **arguments: str) -> ToolCall:
    return ToolCall(call_id, tool, json.dumps(arguments))


async def test_every_call_of_an_answer_is_judged_by_itself() -> None:
    rules = Rules(
        [
            Rule("1", INSTALLATION, Effect.DENY, command="rm *"),
            Rule("2", Scope(ScopeKind.USER, "ann"), Effect.ASK, tool="wiki__*"),
            Rule("3", Scope(ScopeKind.USER, "bob"), Effect.DENY),
            Rule("4", Scope(ScopeKind.CHAT, ROOT), Effect.DENY, tool="read_*"),
        ]
    )
    calls = [
        call("a", "execute", command="rm x"),
        call("b", "execute", command="ls"),
        call("c", "wiki__save"),
        call("d", "read_file"),
        call("e", "unknown"),
    ]
    for context in (CONTEXT, TurnContext(CHILD, ANN, ancestor_ids=(ROOT,))):
        assert await judge_of(rules).judge(context, [], calls, SPECS) == {
            "a": Deny("a rule of the installation refuses rm x", "1"),
            "b": Allow(),
            "c": Ask("a rule of yours asks before wiki__save", "2"),
            "d": Deny("a rule of this chat refuses read_file", "4"),
        }


async def test_the_mode_of_the_turn_counts() -> None:
    modes = frozenset({ChatMode.PLAN})
    judge = judge_of(Rules([Rule("1", INSTALLATION, Effect.DENY, modes=modes)]))
    made = [call("a", "read_file")]
    assert await judge.judge(CONTEXT, [], made, SPECS) == {"a": Allow()}
    planning = TurnContext(ROOT, ANN, mode=ChatMode.PLAN)
    answer = await judge.judge(planning, [], made, SPECS)
    assert isinstance(answer["a"], Deny)


async def test_a_workspace_is_read_only_if_content_came_from_outside_and_could_be_sent_on() -> None:
    workspaces = Workspaces()
    judge = judge_of(Rules(), workspaces)
    run, read = call("a", "execute", command="ls"), call("b", "read_file")
    assert await judge.judge(CONTEXT, history(), [run, read], SPECS) == {"a": Allow(), "b": Allow()}
    assert await judge.judge(CONTEXT, history(*WEB), [read], SPECS) == {"b": Allow()}
    assert workspaces.reads == 0
    asked = await judge.judge(CONTEXT, history(*WEB), [run, read], SPECS)
    assert (type(asked["a"]), asked["b"], workspaces.reads) == (Ask, Allow(), 1)
    workspaces.workspace = Workspace()
    assert await judge.judge(CONTEXT, history(*WEB), [run], SPECS) == {"a": Allow()}


async def test_files_of_repositories_are_from_outside_where_the_installation_says_so() -> None:
    workspaces = Workspaces(Workspace(has_egress=True, has_outside_files=True))
    judge = judge_of(Rules(), workspaces)
    read = history(ToolResult("1", "read_file", "{}", ToolOutcome.DONE))
    run = [call("a", "execute", command="ls")]
    assert await judge.judge(CONTEXT, read, run, SPECS) == {"a": Allow()}
    workspaces.is_outside = True
    # What the files say may be in the prompt already, though nothing was read by a call.
    for known in (read, []):
        assert isinstance((await judge.judge(CONTEXT, known, run, SPECS))["a"], Ask)


async def test_a_remembered_call_is_not_asked_about_again_in_its_tree() -> None:
    rules = Rules([Rule("1", Scope(ScopeKind.USER, "ann"), Effect.ASK)])
    judge = judge_of(rules)
    push = call("a", "execute", command="git push")
    child = TurnContext(CHILD, ANN, ancestor_ids=(ROOT,))
    assert isinstance((await judge.judge(CONTEXT, [], [push], SPECS))["a"], Ask)
    rules.remember(await judge.remembered(child, [], push, SPECS["execute"]))
    judge.rules.on_notice(notice_key(rules.changed[-1]))
    assert await judge.judge(CONTEXT, [], [push], SPECS) == {"a": Allow()}
    tainted = await judge.judge(CONTEXT, history(*WEB), [push], SPECS)
    assert isinstance(tainted["a"], Ask)
    rules.remember(await judge.remembered(CONTEXT, history(*WEB), push, SPECS["execute"]))
    judge.rules.on_notice(notice_key(rules.changed[-1]))
    assert await judge.judge(CONTEXT, history(*WEB), [push], SPECS) == {"a": Allow()}
    assert len(rules.kept) == 2


async def test_a_chat_costs_no_query_while_no_chat_has_rules() -> None:
    rules = Rules([Rule("1", Scope(ScopeKind.USER, "bob"), Effect.DENY)])
    cached = CachedRules(rules, FakeClock())
    for number in range(3):
        assert await cached.of_turn(ANN.id, ChatId(str(number))) == ()
    assert rules.reads == [Scope(ScopeKind.USER, ANN.id)]
    rules.kept.append(Rule("2", Scope(ScopeKind.CHAT, ROOT), Effect.ALLOW, digest="d"))
    rules.changed.append(Scope(ScopeKind.CHAT, ROOT))
    cached.on_notice(notice_key(rules.changed[-1]))
    assert [rule.id for rule in await cached.of_turn(ANN.id, ROOT)] == ["2"]


@pytest.mark.parametrize("context", [CONTEXT, TurnContext(CHILD, ANN, ancestor_ids=(ROOT,))])
async def test_what_entered_one_chat_of_a_tree_counts_for_all_of_them(
    context: TurnContext,
) -> None:
    other = CHILD if context is CONTEXT else ROOT
    run = [call("a", "execute", command="ls")]
    tree = Tree({context.chat_id: (), other: ()})
    judge = judge_of(Rules(), tree=tree)
    assert await judge.judge(context, [], run, SPECS) == {"a": Allow()}
    tree.histories[other] = history(*WEB)
    assert isinstance((await judge.judge(context, [], run, SPECS))["a"], Ask)
    remembered = await judge.remembered(context, [], run[0], SPECS["execute"])
    assert remembered.is_for_tainted
    assert tree.reads == [other, other]


WROTE: tuple[Part, ...] = (call("1", "write_file", path="get.py", content="import httpx"),)
RAN: tuple[Part, ...] = (
    call("2", "execute", command="python get.py"),
    ToolResult("2", "execute", "{}", ToolOutcome.DONE),
)


@pytest.mark.parametrize("context", [CONTEXT, TurnContext(CHILD, ANN, ancestor_ids=(ROOT,))])
@pytest.mark.parametrize(("own", "others"), [(WROTE, RAN), (RAN, WROTE)])
async def test_a_file_that_one_chat_wrote_to_fetch_and_another_of_its_tree_ran_is_a_download(
    context: TurnContext, own: tuple[Part, ...], others: tuple[Part, ...]
) -> None:
    other = CHILD if context is CONTEXT else ROOT
    run = [call("a", "execute", command="ls")]
    tree = Tree({context.chat_id: history(*own), other: ()})
    judge = judge_of(Rules(), tree=tree)
    assert await judge.judge(context, history(*own), run, SPECS) == {"a": Allow()}
    tree.histories[other] = history(*others)
    for _ in range(2):
        assert isinstance((await judge.judge(context, history(*own), run, SPECS))["a"], Ask)
    assert tree.reads == [other, other]


async def test_a_file_to_fetch_that_a_chat_writes_later_counts_for_commands_before_it() -> None:
    third = ChatId("00000000-0000-0000-0000-0000000000a3")
    run = [call("a", "execute", command="ls")]
    tree = Tree({ROOT: (), CHILD: history(*RAN), third: ()})
    judge = judge_of(Rules(), tree=tree)
    assert await judge.judge(CONTEXT, [], run, SPECS) == {"a": Allow()}
    tree.histories[third] = history(*WROTE)
    assert isinstance((await judge.judge(CONTEXT, [], run, SPECS))["a"], Ask)
    assert tree.reads == [CHILD, third, third, CHILD]


async def test_a_chat_that_is_alone_reads_no_other() -> None:
    tree = Tree({CONTEXT.chat_id: history(*WEB)})
    run = [call("a", "execute", command="ls")]
    assert await judge_of(Rules(), tree=tree).judge(CONTEXT, [], run, SPECS) == {"a": Allow()}
    assert tree.reads == []


OFFERED = replace(CONTEXT, workspace_server_ids=("notes-id",))
WROTE_DOWN: tuple[Part, ...] = (ServerTexts(("notes-id",)),)


@pytest.mark.parametrize(
    ("context", "before"),
    [(OFFERED, ()), (CONTEXT, WROTE_DOWN)],
    ids=["in the prompt", "in an earlier prompt"],
)
async def test_words_of_a_server_of_the_workspace_ask_before_calls_to_another_destination(
    context: TurnContext, before: tuple[Part, ...]
) -> None:
    notes = ToolSpec("ws_notes__add", "", "{}", Executor.TOOLRUNNER, server_id="notes-id")
    specs = {**SPECS, notes.name: notes}
    calls = [
        call("a", "execute", command="ls"),
        call("b", "wiki__save"),
        call("c", "ws_notes__add"),
        call("d", "read_file"),
    ]
    judge = judge_of(Rules())
    judged = await judge.judge(context, history(*before), calls, specs)
    remembered = await judge.remembered(context, history(*before), calls[0], SPECS["execute"])
    assert {key: type(each) for key, each in judged.items()} == {
        "a": Ask,
        "b": Ask,
        "c": Allow,
        "d": Allow,
    }
    assert remembered.is_for_tainted


async def test_words_of_a_server_count_for_the_whole_tree_and_the_network_decides() -> None:
    run = [call("a", "execute", command="ls")]
    tree = Tree({ROOT: (), CHILD: history(*WROTE_DOWN)})
    asked = await judge_of(Rules(), tree=tree).judge(CONTEXT, [], run, SPECS)
    confined = await judge_of(Rules(), Workspaces(Workspace())).judge(OFFERED, [], run, SPECS)
    assert (type(asked["a"]), confined["a"]) == (Ask, Allow())
