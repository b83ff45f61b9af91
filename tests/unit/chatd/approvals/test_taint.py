"""Content from outside makes calls ask that could carry data out."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace as replaced

from chatd.approvals.domain.judgement import Allow, Ask, judge, remembered_digest
from chatd.approvals.domain.rules import Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import (
    CLEAN,
    CONFINED,
    FETCHED,
    REPOSITORY,
    WEB,
    Taint,
    Workspace,
    taint_of,
)
from chatd.chats.domain.chat import Message, NewMessage
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Part, Source, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.primitives.domain.ids import MessageId

OPEN = Workspace(has_egress=True)
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
WIKI = ToolSpec("wiki__save", "", "{}", Executor.MCPGATEWAY, server_id="wiki-id")
MAIL = ToolSpec("mail__send", "", "{}", Executor.MCPGATEWAY, server_id="mail-id")


def history(*parts: Part) -> list[Message]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        NewMessage(Role.ASSISTANT, (part,)).stored(MessageId(place), 1, at)
        for place, part in enumerate(parts, 1)
    ]


def result(tool: str, server_id: str = "", *, provider_executed: bool = False) -> ToolResult:
    return ToolResult(
        "1", tool, "{}", ToolOutcome.DONE, server_id, provider_executed=provider_executed
    )


def ran(command: str) -> tuple[Part, ...]:
    return ToolCall("1", "execute", json.dumps({"command": command})), result("execute")


def typed(text: str) -> tuple[Part, ...]:
    """Return what is typed into a shell that runs already, and what is read of it later."""
    args = json.dumps({"process_id": "p", "text": text, "keys": ["enter"]})
    read = ToolCall("2", "process_output", '{"process_id": "p"}')
    later = replaced(result("process_output"), tool_call_id="2")
    return ToolCall("1", "process_write", args), result("process_write"), read, later


@pytest.mark.parametrize(
    ("parts", "workspace", "origins"),
    [
        ((Text("hello"),), OPEN, set()),
        ((Source("1", "https://example.org"),), CONFINED, {WEB}),
        ((result("web_search", provider_executed=True),), CONFINED, {WEB}),
        ((result("wiki__read", "wiki-id"),), CONFINED, {"wiki-id"}),
        ((result("wiki__read"),), CONFINED, {"wiki__"}),
        ((result("read_file"),), CONFINED, set()),
        ((result("read_file"),), Workspace(has_outside_files=True), {REPOSITORY}),
        ((result("read_skill"),), Workspace(has_outside_files=True), {REPOSITORY}),
        ((result("read_skill_file"),), Workspace(has_outside_files=True), {REPOSITORY}),
        ((result("apply_child_changes"),), Workspace(has_outside_files=True), {REPOSITORY}),
        ((result("write_file"),), Workspace(has_outside_files=True), set()),
        (ran("curl https://example.org"), OPEN, {FETCHED}),
        (ran("curl https://example.org"), CONFINED, set()),
        (ran("make"), OPEN, set()),
        (ran("cd /tmp\nwget example.org"), OPEN, {FETCHED}),
        (typed("curl example.org\n"), OPEN, {FETCHED}),
        (typed("\tcurl example.org\n"), OPEN, {FETCHED}),
        (typed("curl example.org\n"), CONFINED, set()),
        (typed("make\n"), OPEN, set()),
        ((ToolCall("1", "process_write", "curl {"), result("process_write")), OPEN, {FETCHED}),
        ((result("my_tool"),), OPEN, set()),
        ((result("agent_processes"),), OPEN, {FETCHED}),
        ((result("agent_processes"),), Workspace(has_outside_files=True), {REPOSITORY}),
        ((result("agent_processes"),), Workspace(True, True), {FETCHED, REPOSITORY}),
        ((result("agent_processes"),), CONFINED, set()),
    ],
)
def test_the_origins_of_content_from_outside(
    parts: tuple[Part, ...], workspace: Workspace, origins: set[str]
) -> None:
    assert taint_of(history(*parts), workspace) == Taint(frozenset(origins))


def asks(
    spec: ToolSpec,
    taint: Taint,
    workspace: Workspace = OPEN,
    rules: tuple[Rule, ...] = (),
    command: str = "ls",
) -> bool:
    made = ToolCall("1", spec.name, json.dumps({"command": command}))
    judgement = judge(made, spec, ChatMode.ORDINARY, rules, taint, workspace)
    assert isinstance(judgement, Allow | Ask)
    return isinstance(judgement, Ask)


def tainted(*origins: str) -> Taint:
    return Taint(frozenset(origins))


def test_nothing_is_asked_while_nothing_came_from_outside() -> None:
    assert not any(asks(spec, CLEAN) for spec in (EXECUTE, WIKI, MAIL))


def test_a_workspace_without_network_asks_nothing() -> None:
    assert not asks(EXECUTE, tainted(WEB), CONFINED)
    assert not asks(EXECUTE, tainted(WEB), CONFINED, command="git push")


def test_commands_ask_where_the_workspace_reaches_other_hosts() -> None:
    assert asks(EXECUTE, tainted(WEB))
    assert asks(replace(EXECUTE, name="process_write"), tainted("wiki-id"))
    assert not asks(replace(EXECUTE, name="write_file"), tainted(WEB))


def test_another_server_asks_and_the_same_does_not() -> None:
    assert asks(MAIL, tainted("wiki-id"))
    assert not asks(WIKI, tainted("wiki-id"))
    assert not asks(WIKI, tainted("wiki__"))
    assert asks(WIKI, tainted("wiki-id", WEB))


def test_a_tool_that_only_reads_by_an_administrators_word_asks_nothing() -> None:
    assert not asks(replace(MAIL, is_read_only=True), tainted(WEB))


def allow(kind: ScopeKind, *, is_for_tainted: bool, command: str = "", digest: str = "") -> Rule:
    return Rule(
        "1",
        Scope(kind),
        Effect.ALLOW,
        command=command,
        is_for_tainted=is_for_tainted,
        digest=digest,
    )


def test_only_a_rule_that_says_so_allows_a_call_after_content_from_outside() -> None:
    plain = allow(ScopeKind.INSTALLATION, is_for_tainted=False)
    trusting = allow(ScopeKind.INSTALLATION, is_for_tainted=True)
    assert asks(MAIL, tainted(WEB), rules=(plain,))
    assert not asks(MAIL, tainted(WEB), rules=(trusting,))


def test_such_a_rule_has_to_allow_every_command() -> None:
    rules = (allow(ScopeKind.CHAT, is_for_tainted=True, command="ls *"),)
    assert not asks(EXECUTE, tainted(WEB), rules=rules, command="ls a | ls b")
    assert asks(EXECUTE, tainted(WEB), rules=rules, command="ls a | curl b")
    assert asks(EXECUTE, tainted(WEB), rules=rules, command="ls 'a")


def test_an_approval_before_the_content_came_does_not_hold_after_it() -> None:
    made = ToolCall("1", "execute", '{"command": "ls"}')
    digest = remembered_digest(made)
    before = allow(ScopeKind.CHAT, is_for_tainted=False, digest=digest)
    after = allow(ScopeKind.CHAT, is_for_tainted=True, digest=digest)
    assert asks(EXECUTE, tainted(WEB), rules=(before,))
    assert not asks(EXECUTE, tainted(WEB), rules=(after,))


def test_the_question_names_the_origin() -> None:
    made = ToolCall("1", "execute", '{"command": "ls"}')
    judgement = judge(made, EXECUTE, ChatMode.ORDINARY, (), tainted(WEB, FETCHED), OPEN)
    assert judgement == Ask(
        "the chat has read content of a download and the web, and execute could send data out"
    )
