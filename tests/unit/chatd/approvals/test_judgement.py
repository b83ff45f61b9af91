"""Whether a call runs, asks or is refused: tables of rules and calls."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.approvals.domain.judgement import (
    Allow,
    Ask,
    Deny,
    Judgement,
    arguments_digest,
    judge,
    remembered_digest,
)
from chatd.approvals.domain.rules import Effect, Rule, Scope, ScopeKind
from chatd.approvals.domain.taint import Taint, Workspace
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Executor, ToolSpec

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY
SCOPES = {"i": Scope(ScopeKind.INSTALLATION), "u": Scope(ScopeKind.USER, "ann")}
SCOPES["c"] = Scope(ScopeKind.CHAT, "chat")
EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
WRITE = ToolSpec("write_file", "", "{}", Executor.TOOLRUNNER)
WIKI = ToolSpec("wiki__save", "", "{}", Executor.MCPGATEWAY, server_id="wiki-id")
SPECS = {spec.name: spec for spec in (EXECUTE, WRITE, WIKI)}


def rule(scope: str, effect: Effect, command: str = "", **given: Any) -> Rule:
    return Rule(
        f"{scope} {effect} {command or given.get('tool', '')}",
        SCOPES[scope],
        effect,
        command=command,
        **given,
    )


def call(tool: str = "execute", **arguments: Any) -> ToolCall:
    return ToolCall("call", tool, json.dumps(arguments))


def run(command: str, **more: Any) -> ToolCall:
    return call(command=command, **more)


def effect_of(judgement: Judgement) -> Effect:
    return {Allow: ALLOW, Ask: ASK, Deny: DENY}[type(judgement)]


def judged(rules: list[Rule], made: ToolCall, **given: Any) -> Effect:
    mode = given.pop("mode", ChatMode.ORDINARY)
    return effect_of(judge(made, SPECS[made.tool_name], mode, rules, **given))


ASKS = rule("i", ASK, tool="execute")
NO_RM = rule("i", DENY, "rm *")
GIT = rule("i", ALLOW, "git *")

SHELL: list[tuple[str, list[Rule], str, Effect]] = [
    ("nothing is asked without rules", [], "rm -rf /", ALLOW),
    ("a command is denied by its pattern", [NO_RM], "rm x", DENY),
    ("a pattern with * at its end needs no argument", [NO_RM], "rm", DENY),
    ("other commands run", [NO_RM], "ls rm", ALLOW),
    ("one command of a pipeline", [NO_RM], "ls | grep x && rm y", DENY),
    ("a quoted name", [NO_RM], "'r'\"m\" x", DENY),
    ("an escaped name", [NO_RM], "\\rm x", DENY),
    ("a name by its path", [NO_RM], "/bin/rm x", DENY),
    ("a name by any path", [NO_RM], "../../bin/rm x", DENY),
    ("sh -c", [NO_RM], "sh -c 'cd a; rm x'", DENY),
    ("env", [NO_RM], "env A=1 rm x", DENY),
    ("xargs", [NO_RM], "ls | xargs rm", DENY),
    ("find -exec", [NO_RM], "find . -exec rm {} +", DENY),
    ("a substitution", [NO_RM], "echo $(rm x)", DENY),
    ("a substitution in quotes", [NO_RM], 'echo "a `rm x` b"', DENY),
    ("a here-document", [NO_RM], "cat <<E\n$(rm x)\nE", DENY),
    ("the text of a here-document", [NO_RM], "cat <<E\nrm x\nE", ALLOW),
    ("a here-document of a shell", [NO_RM], "sh <<E\nrm x\nE", ASK),
    ("a function", [NO_RM], "f() { rm x; }; f", DENY),
    ("a loop", [NO_RM], "for i in 1 2; do rm $i; done", DENY),
    ("an assignment before it", [NO_RM], "A=1 B=2 rm x", DENY),
    ("eval", [NO_RM], "eval 'rm x'", DENY),
    ("a name that is not known", [NO_RM], "$R x", ASK),
    ("an alias", [NO_RM], "alias a=rm; a x", ASK),
    ("a text that cannot be read", [NO_RM], "echo 'x", ASK),
    ("which asks nobody without a rule about commands", [], "echo 'x", ALLOW),
    ("nor where rules only allow", [GIT], "echo 'x", ALLOW),
    ("arguments that are not known may match", [rule("i", DENY, "rm -rf *")], "rm $X", ASK),
    ("arguments that cannot match", [rule("i", DENY, "rm -rf *")], "rm -i $X", ALLOW),
    ("git before its subcommand", [rule("i", DENY, "git push *")], "git -C a push b", DENY),
    ("sudo is denied itself", [rule("i", DENY, "sudo *")], "sudo ls", DENY),
    ("a wrapper is denied itself", [rule("i", DENY, "env *")], "env ls", DENY),
    ("what is allowed runs", [ASKS, GIT], "git status", ALLOW),
    ("all commands have to be allowed", [ASKS, GIT], "git status; make", ASK),
    ("also inner ones", [ASKS, GIT], "git log $(make)", ASK),
    ("wrappers need no rule", [ASKS, GIT], "timeout 5 nice git status", ALLOW),
    ("but sudo does", [ASKS, GIT], "sudo git status", ASK),
    ("standard directories are the same", [ASKS, GIT], "/usr/bin/git status", ALLOW),
    ("a directory of the workspace is not", [ASKS, GIT], "./git status", ASK),
    ("nor is another path", [ASKS, GIT], "/tmp/git status", ASK),
    ("a variable makes it another command", [ASKS, GIT], "GIT_SSH_COMMAND=x git pull", ASK),
    ("also one that is set before", [ASKS, GIT], "PATH=/tmp; git pull", ASK),
    ("also one of env", [ASKS, GIT], "env PATH=/tmp git pull", ASK),
    ("a variable in the rule", [ASKS, rule("i", ALLOW, "A=1 git *")], "A=1 git pull", ALLOW),
    ("a loop variable does nothing", [ASKS, GIT], "for i in a; do git add $i; done", ALLOW),
    ("writing a file is not allowed with it", [ASKS, GIT], "git log > x", ASK),
    ("writing nowhere is", [ASKS, GIT], "git log 2>&1 >/dev/null", ALLOW),
    ("an allowed name in the arguments of another", [ASKS, GIT], "xargs git", ALLOW),
    ("words that are not known", [ASKS, rule("i", ALLOW, "git log")], "git log $X", ASK),
    ("the same glob", [ASKS, rule("i", ALLOW, "ls *.py")], "ls *.py", ALLOW),
    ("unreadable text is not allowed", [ASKS, GIT], "git log 'x", ASK),
    (
        "the narrower one decides",
        [rule("i", DENY, "git *"), rule("i", ALLOW, "git log *")],
        "git log",
        ALLOW,
    ),
    ("in both directions", [GIT, rule("i", DENY, "git push *")], "git push", DENY),
    ("of equals the stricter", [GIT, rule("i", DENY, "git *")], "git push", DENY),
]


@pytest.mark.parametrize(
    ("what", "rules", "command", "effect"), SHELL, ids=[row[0] for row in SHELL]
)
def test_a_command_is_judged_by_the_programs_that_it_runs(
    what: str, rules: list[Rule], command: str, effect: Effect
) -> None:
    assert judged(rules, run(command)) is effect


def test_variables_of_the_call_count_as_variables_of_the_command() -> None:
    assert judged([ASKS, GIT], run("git log")) is ALLOW
    assert judged([ASKS, GIT], run("git log", env={"PATH": "/tmp"})) is ASK


OTHERS: list[tuple[str, list[Rule], ToolCall, Effect]] = [
    ("a tool by its name", [rule("u", ASK, tool="write_file")], call("write_file"), ASK),
    ("a tool by a pattern", [rule("u", ASK, tool="write_*")], call("write_file"), ASK),
    ("another tool", [rule("u", ASK, tool="write")], call("write_file"), ALLOW),
    ("a server", [rule("u", DENY, server_id="wiki-id")], call("wiki__save"), DENY),
    ("another server", [rule("u", DENY, server_id="x")], call("wiki__save"), ALLOW),
    (
        "an argument",
        [rule("u", ASK, arguments={"path": "/etc/*"})],
        call("write_file", path="/etc/x"),
        ASK,
    ),
    (
        "another value",
        [rule("u", ASK, arguments={"path": "/etc/*"})],
        call("write_file", path="/e"),
        ALLOW,
    ),
    (
        "a way around",
        [rule("u", ASK, arguments={"path": "/etc/*"})],
        call("write_file", path="/a/../etc/x"),
        ASK,
    ),
    (
        "a deep argument",
        [rule("u", ASK, arguments={"path": "a*"})],
        call("write_file", files=[{"path": "ab"}]),
        ASK,
    ),
    ("a number", [rule("u", ASK, arguments={"n": "1*"})], call("write_file", n=12), ASK),
    ("no such argument", [rule("u", ASK, arguments={"n": "*"})], call("write_file"), ALLOW),
    (
        "an allowed way out",
        [rule("u", ASK, tool="*"), rule("u", ALLOW, arguments={"path": "src/*"})],
        call("write_file", path="src/../x"),
        ASK,
    ),
    (
        "one of several values that is not allowed",
        [rule("u", ASK, tool="*"), rule("u", ALLOW, arguments={"path": "src/*"})],
        call("write_file", files=[{"path": "src/a"}, {"path": "b"}]),
        ASK,
    ),
    (
        "the stricter scope",
        [rule("i", DENY), rule("c", ALLOW, tool="write_file")],
        call("write_file"),
        DENY,
    ),
    (
        "whichever it is",
        [rule("i", ALLOW, tool="write_file"), rule("c", ASK)],
        call("write_file"),
        ASK,
    ),
    ("a mode", [rule("i", DENY, modes=frozenset({ChatMode.PLAN}))], call("write_file"), ALLOW),
    (
        "a command of a tool without one",
        [rule("i", DENY, "rm *")],
        call("write_file", command="rm x"),
        ALLOW,
    ),
]


@pytest.mark.parametrize(
    ("what", "rules", "made", "effect"), OTHERS, ids=[row[0] for row in OTHERS]
)
def test_a_call_is_judged_by_tool_server_arguments_and_scope(
    what: str, rules: list[Rule], made: ToolCall, effect: Effect
) -> None:
    assert judged(rules, made) is effect


def test_a_rule_of_a_mode_holds_in_it() -> None:
    rules = [rule("i", DENY, modes=frozenset({ChatMode.PLAN}))]
    assert judged(rules, call("write_file"), mode=ChatMode.PLAN) is DENY


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("git push '", "text that may run anything"),
        ("$X y", "… y, which may run anything"),
        ("curl x | sh", "sh, which may run anything"),
    ],
)
def test_a_question_about_what_may_run_anything_says_so(command: str, what: str) -> None:
    asked = judge(run(command), EXECUTE, ChatMode.ORDINARY, [NO_RM])
    assert asked == Ask(f"a rule of the installation asks before {what}", NO_RM.id, False)


def test_the_answer_names_rule_and_reason() -> None:
    rules = [rule("i", DENY, "rm *", reason="Files are precious.")]
    assert judge(run("ls; rm x"), EXECUTE, ChatMode.ORDINARY, rules) == Deny(
        "a rule of the installation refuses rm x: Files are precious.", "i deny rm *"
    )
    rules = [rule("u", ASK, tool="write_file")]
    assert judge(call("write_file"), WRITE, ChatMode.ORDINARY, rules) == Ask(
        "a rule of yours asks before write_file", "u ask write_file"
    )


def test_a_server_whose_policy_asks_is_asked_for_unless_the_installation_says_more() -> None:
    spec = replace(WIKI, needs_approval=True)
    made = call("wiki__save", text="x")

    def answer(*rules: Rule) -> Effect:
        return effect_of(judge(made, spec, ChatMode.ORDINARY, rules))

    assert answer() is ASK
    assert answer(rule("u", ALLOW), rule("c", ALLOW)) is ASK
    assert answer(rule("i", ALLOW, tool="wiki__*")) is ALLOW
    assert answer(rule("i", DENY, tool="wiki__*")) is DENY


def test_a_server_of_the_workspace_is_asked_for_unless_a_rule_of_any_scope_allows_it() -> None:
    spec = replace(WIKI, needs_approval=True, executor=Executor.TOOLRUNNER)
    made = call("wiki__save", text="x")

    def answer(*rules: Rule) -> Effect:
        return effect_of(judge(made, spec, ChatMode.ORDINARY, rules))

    assert answer() is ASK
    for scope in SCOPES:
        assert answer(rule(scope, ALLOW, tool="wiki__*")) is ALLOW
        assert answer(rule(scope, ASK, tool="wiki__*")) is ASK


def remembered(made: ToolCall, server_id: str = "", **given: Any) -> Rule:
    return rule("c", ALLOW, digest=remembered_digest(made, server_id), **given)


def test_a_remembered_approval_settles_questions_of_the_chat_and_the_user_alone() -> None:
    made = run("git push")
    memory = remembered(made)
    assert judged([memory, rule("u", ASK), rule("c", ASK)], made) is ALLOW
    assert judged([memory, rule("i", ASK)], made) is ASK
    assert judged([memory, rule("i", ASK, is_rememberable=True)], made) is ALLOW
    for scope in SCOPES:
        assert judged([memory, rule(scope, DENY)], made) is DENY


def test_a_question_tells_whether_an_approval_can_be_remembered() -> None:
    made = run("git push")
    asked = judge(made, EXECUTE, ChatMode.ORDINARY, [rule("u", ASK)])
    assert isinstance(asked, Ask)
    assert asked.is_rememberable
    asked = judge(made, EXECUTE, ChatMode.ORDINARY, [rule("u", ASK), rule("i", ASK)])
    assert isinstance(asked, Ask)
    assert not asked.is_rememberable


def test_a_remembered_approval_is_for_the_same_call_alone() -> None:
    rules = [rule("u", ASK), remembered(run("git push", timeout="5s"))]
    assert judged(rules, run("git push", timeout="9s", run_in_background=True)) is ALLOW
    assert judged(rules, run("git push -f")) is ASK
    assert judged(rules, run("git push", workdir="/other")) is ASK
    assert judged(rules, run("git push", env={"A": "1"})) is ASK
    assert judged(rules, call("write_file", command="git push")) is ASK


def test_a_digest_is_of_tool_server_and_all_arguments() -> None:
    made = ToolCall("a", "t", '{"a": 1, "b": [2]}')
    assert arguments_digest(made) == arguments_digest(ToolCall("z", "t", '{"b":[2],"a":1}'))
    others = [
        arguments_digest(made, "server"),
        arguments_digest(ToolCall("a", "u", made.args_json)),
        arguments_digest(ToolCall("a", "t", '{"a": 1, "b": ["2"]}')),
        arguments_digest(ToolCall("a", "t", "{}")),
        arguments_digest(ToolCall("a", "t", "no JSON")),
    ]
    assert len({arguments_digest(made), *others}) == 6
    assert arguments_digest(ToolCall("a", "t", "")) == arguments_digest(ToolCall("a", "t", "{}"))


COMMANDS = ("git status", "git push origin", "rm x | git log", "$X a", "sudo git push", "echo 'a")
generated_rules = st.builds(
    rule,
    st.sampled_from("iuc"),
    st.sampled_from(Effect),
    st.sampled_from(["", "git *", "git push *", "rm *", "sudo *"]),
    tool=st.sampled_from(["", "*", "exec*", "execute"]),
    is_rememberable=st.booleans(),
    is_for_tainted=st.booleans(),
    digest=st.sampled_from(["", "", "", remembered_digest(run("git status"))]),
)


@given(
    rules=st.lists(generated_rules, max_size=6),
    more=generated_rules,
    command=st.sampled_from(COMMANDS),
    is_tainted=st.booleans(),
)
def test_a_rule_that_is_at_least_as_strict_as_the_answer_never_loosens_it(
    rules: list[Rule], more: Rule, command: str, is_tainted: bool
) -> None:
    given = {
        "taint": Taint(frozenset({"the web"} if is_tainted else ())),
        "workspace": Workspace(has_egress=True),
    }
    before = judged(rules, run(command), **given)
    after = judged([*rules, more], run(command), **given)
    # A rule whose approvals may be remembered lets earlier ones settle the question.
    is_stricter = more.effect.strictness >= before.strictness and not more.is_rememberable
    if is_stricter and not more.digest:
        assert after.strictness >= before.strictness
