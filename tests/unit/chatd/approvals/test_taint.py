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
from chatd.content.domain.parts import (
    Part,
    ReachedHosts,
    ServerTexts,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.primitives.domain.ids import MessageId
from chatd.tools.workspace.results import succeeded

OPEN = Workspace(has_egress=True)
PROXIED = Workspace(has_egress=True, is_proxied=True)
CLONES = Workspace(has_egress=True, are_clones_outside=True)
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
CREATE = ToolSpec("create_workspace", "", "{}", Executor.CHATD)
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


def reached(tool: str, *hosts: str, git: str = "") -> ToolResult:
    return replaced(result(tool), reached=ReachedHosts(hosts, (git,) if git else ()))


def merged(**fields: object) -> ToolResult:
    """Return the result of a merge of what an agent changed."""
    return replaced(result("apply_child_changes"), result_json=succeeded(fields).result_json)


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
        # Instruction files and descriptions of skills are in the prompt before any call.
        ((Text("hello"),), Workspace(has_outside_files=True), {REPOSITORY}),
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
        ((result("agent_processes"),), Workspace(True, True), {FETCHED, REPOSITORY}),
        ((result("agent_processes"),), CONFINED, set()),
        ((ServerTexts(("notes-id",)),), CONFINED, {"notes-id"}),
        # What the proxy of the node saw, of programs that the text of no call names.
        ((reached("execute", "example.org"),), OPEN, {FETCHED}),
        ((reached("read_file", "example.org"),), OPEN, {FETCHED}),
        # The network may have been taken away since.
        ((reached("process_output", "example.org"),), CONFINED, {FETCHED}),
        ((reached("execute", git="example.org"),), OPEN, set()),
        ((reached("execute", git="example.org"),), CLONES, {REPOSITORY}),
        ((reached("execute", "a.example", git="example.org"),), CLONES, {FETCHED, REPOSITORY}),
        # Its end or a line of it wakes the chat later, by a message without such a record.
        ((result("monitor_process"),), PROXIED, {FETCHED}),
        ((result("monitor_process"),), OPEN, set()),
        # A process in the copy of an agent may have fetched after the agent's last call.
        ((merged(patch="+fetched"),), PROXIED, {FETCHED}),
        ((merged(conflicts=[{"path": "a", "preview": "fetched"}]),), PROXIED, {FETCHED}),
        ((merged(patch="+fetched"),), OPEN, set()),
        ((merged(merged_paths=["a"], conflicts=[{"path": "b"}]),), PROXIED, set()),
    ],
)
def test_the_origins_of_content_from_outside(
    parts: tuple[Part, ...], workspace: Workspace, origins: set[str]
) -> None:
    assert taint_of(history(*parts), workspace) == Taint(frozenset(origins))


@pytest.mark.parametrize(
    "command",
    [
        "dig txt example.org",
        "cat < /dev/tcp/example.org/80",
        "openssl s_client -connect example.org:443",
        "python3 -c 'import urllib.request as r; print(r.urlopen(u).read())'",
        "node -e 'fetch(process.env.URL)'",
        "git clone https://example.org/x; curl example.org",
        "git clone https://example.org/$(wget -qO- example.org)",
        "git -c core.sshCommand=curl clone https://example.org/x",
    ],
)
def test_a_command_with_code_that_connects_is_a_download(command: str) -> None:
    assert taint_of(history(*ran(command)), OPEN) == tainted(FETCHED)
    assert taint_of(history(*ran(command)), CONFINED) == CLEAN


@pytest.mark.parametrize(
    "command",
    [
        "git clone https://example.org/x.git",
        "git -C x -c a.b=c fetch ssh://git@example.org/x",
        "cd x && git pull 'https://example.org/x' main",
        "git clone git@example.org:x.git",
        "git submodule update --init",
        "timeout 60 git clone git@example.org:x.git",
        "if git pull; then make; fi",
        "while ! git pull; do :; done",
        "/usr/bin/git pull",
        "sudo -u ada env A=b git pull",
        "x=$(git clone git@example.org:x.git)",
        "x=`git pull`",
        "(cd x && git pull)",
        "sh -c 'git pull'",
    ],
)
def test_a_repository_that_is_cloned_counts_where_the_installation_says_so(command: str) -> None:
    asked = replace(OPEN, are_clones_outside=True)
    assert taint_of(history(*ran(command)), OPEN) == CLEAN
    assert taint_of(history(*ran(command)), asked) == tainted(REPOSITORY)


@pytest.mark.parametrize(
    "command", ["ls pull", "git log -3; ls remote", "git-lfs pull", "x.git pull"]
)
def test_a_command_that_clones_nothing_does_not_count(command: str) -> None:
    assert taint_of(history(*ran(command)), replace(OPEN, are_clones_outside=True)) == CLEAN


def test_an_address_that_another_program_gets_beside_git_is_a_download() -> None:
    assert taint_of(history(*ran("get https://example.org git pull")), OPEN) == tainted(FETCHED)


@pytest.mark.parametrize("piece", ["git -c ", "(/git x", "!git ", "{{git\t"])
def test_a_long_text_is_searched_for_git_in_one_pass(piece: str) -> None:
    long = piece * (200_000 // len(piece))
    assert taint_of(history(*ran(long)), replace(OPEN, are_clones_outside=True)) == CLEAN


@pytest.mark.parametrize(
    "code",
    [
        "from http.client import HTTPSConnection",
        "c = HTTPConnection(HOST)",
        "import ftplib",
        "await asyncio.open_connection(HOST, 80)",
        "https.get(ADDRESS, show)",
        "http.request({host: HOST}, show)",
        "net.connect(80, HOST)",
        "answer, err := http.Get(address)",
        'net.Dial("tcp", address)',
        "HTTP::Tiny->new->get($address)",
        "require 'open-uri'",
        "new WebSocket(address)",
    ],
)
def test_a_file_with_code_of_a_standard_library_that_connects_is_a_download(code: str) -> None:
    arguments = json.dumps({"path": "get", "content": code})
    wrote = ToolCall("0", "write_file", arguments)
    assert taint_of(history(wrote, *ran("./get")), OPEN) == tainted(FETCHED)


FETCHER = "import urllib.request\nprint(urllib.request.urlopen(ADDRESS).read())\n"
PATCH = "*** Begin Patch\n*** Add File: tools/get.py\n+import httpx\n*** End Patch"


@pytest.mark.parametrize(
    ("tool", "arguments", "command", "is_download"),
    [
        ("write_file", {"path": "tools/get.py", "content": FETCHER}, "python3 tools/get.py", True),
        ("write_file", {"path": "tools/get.py", "content": FETCHER}, "python -m tools.get", True),
        ("write_file", {"path": "get", "content": "#!/bin/sh\ncurl $1\n"}, "cd x; ./get", True),
        ("write_file", {"path": "get.sh", "content": "curl $1"}, "cat get.sh | sh", True),
        ("write_file", {"content": FETCHER, "path": "get.py"}, "uv run get.py", True),
        ("edit_files", {"files": [{"path": "get.py", "edits": [FETCHER]}]}, "python get.py", True),
        ("apply_patch", {"patch": PATCH}, "python tools/get.py", True),
        ("write_file", {"path": "get.py", "content": FETCHER}, "python other.py", False),
        ("write_file", {"path": "get.py", "content": FETCHER}, "git add get.py", False),
        ("write_file", {"path": "get.py", "content": "print(1)"}, "python get.py", False),
        ("read_file", {"path": "get.py", "note": FETCHER}, "python get.py", False),
    ],
)
def test_a_file_that_the_chat_wrote_to_fetch_and_ran_is_a_download(
    tool: str, arguments: dict[str, object], command: str, is_download: bool
) -> None:
    wrote = ToolCall("0", tool, json.dumps(arguments))
    assert taint_of(history(wrote, replaced(result(tool), tool_call_id="0")), OPEN) == CLEAN
    expected = tainted(FETCHED) if is_download else CLEAN
    assert taint_of(history(wrote, *ran(command)), OPEN) == expected


@pytest.mark.parametrize("piece", ["\n", "; ", " . ", "git -c ", "./", "do ", "git clone x ://"])
def test_a_long_text_is_searched_in_one_pass(piece: str) -> None:
    wrote = ToolCall("0", "write_file", json.dumps({"path": "get.py", "content": FETCHER}))
    long = piece * (200_000 // len(piece))
    assert taint_of(history(wrote, *ran(long)), OPEN) == CLEAN


def test_the_path_of_a_written_file_is_read_without_escapes() -> None:
    args = json.dumps({"path": "get.py", "content": FETCHER}).replace("get.py", "get\\u002epy")
    wrote = ToolCall("0", "write_file", args)
    assert taint_of(history(wrote, *ran("python get.py")), OPEN) == tainted(FETCHED)


def test_of_two_calls_with_the_same_id_both_count() -> None:
    fetch, make = ran("curl example.org")[0], ran("make")
    assert taint_of(history(fetch, *make), OPEN) == tainted(FETCHED)


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


@pytest.mark.parametrize(
    ("arguments", "is_asked"),
    [
        ({"template_id": "t", "parameters": {"repo": "leak"}}, True),
        ({"template_id": "t", "name": "mine"}, False),
        ({"template_id": "t", "parameters": {}}, False),
    ],
)
def test_parameters_of_a_template_ask_whatever_network_the_workspace_has(
    arguments: dict[str, object], is_asked: bool
) -> None:
    made = ToolCall("1", CREATE.name, json.dumps(arguments))
    for taint, expected in ((tainted(WEB), is_asked), (CLEAN, False)):
        judgement = judge(made, CREATE, ChatMode.ORDINARY, (), taint, CONFINED)
        assert isinstance(judgement, Ask) is expected


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
