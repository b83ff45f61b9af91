"""Rules about commands hold for what a model types into a running program."""

import json
from typing import Any

import pytest

from chatd.approvals.domain.judgement import Allow, Ask, Deny, Judgement, judge
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Executor, ToolSpec

WRITE = ToolSpec("process_write", "", "{}", Executor.TOOLRUNNER)
NO_PUSH = Rule("no-push", INSTALLATION, Effect.DENY, command="git push*")
ASKED = Rule("asked", INSTALLATION, Effect.ASK, tool="execute", command="rm *")
ALLOWED = Rule("allowed", INSTALLATION, Effect.ALLOW, command="git *")


def judged(*rules: Rule, mode: ChatMode = ChatMode.ORDINARY, **given: object) -> Judgement:
    made = ToolCall("call", WRITE.name, json.dumps({"process_id": "p", **given}))
    return judge(made, WRITE, mode, rules)


@pytest.mark.parametrize("rule", [NO_PUSH, ASKED])
@pytest.mark.parametrize(
    "given",
    [
        {"text": "git push\n"},
        {"text": "import os; os.system('git push')\n"},
        # The rest may have been typed before, or follow.
        {"text": "git pu"},
        {"text": "sh", "keys": ["enter"]},
        {"keys": ["up", "enter"]},
        {"text": "g", "keys": ["ctrl-c"]},
        {"keys": ["ctrl-c", "ctrl-r"]},
        {"keys": [{}]},
        {"keys": "ctrl-c"},
    ],
)
def test_input_of_a_program_is_asked_about_where_a_command_is_asked_about_or_denied(
    rule: Rule, given: dict[str, Any]
) -> None:
    judgement = judged(rule, **given)

    assert isinstance(judgement, Ask)
    assert judgement.rule_id == rule.id
    assert "text that may run anything" in judgement.reason


@pytest.mark.parametrize(
    "given", [{"keys": ["ctrl-c"]}, {"keys": ["ctrl-c", "ctrl-d"]}, {"end_of_input": True}]
)
def test_input_that_only_ends_a_program_is_not_asked_about(given: dict[str, Any]) -> None:
    assert judged(NO_PUSH, **given) == Allow()


@pytest.mark.parametrize("rules", [(), (ALLOWED,)])
def test_without_a_rule_that_asks_or_denies_nothing_is_asked(rules: tuple[Rule, ...]) -> None:
    assert judged(*rules, text="git push\n") == Allow()


def test_a_rule_of_another_mode_or_another_tool_does_not_hold() -> None:
    planning = Rule("r", INSTALLATION, Effect.ASK, command="rm *", modes=frozenset({ChatMode.PLAN}))
    other = Rule("r", INSTALLATION, Effect.DENY, tool="write_file")

    assert judged(planning, text="rm a\n") == Allow()
    assert judged(other, text="rm a\n") == Allow()


@pytest.mark.parametrize("tool", ["execute", "exec*"])
@pytest.mark.parametrize("others", [(), (ASKED,), (ALLOWED,)])
@pytest.mark.parametrize(("effect", "judgement"), [(Effect.ASK, Ask), (Effect.DENY, Deny)])
def test_a_rule_about_every_command_holds_for_input_of_a_program(
    tool: str, others: tuple[Rule, ...], effect: Effect, judgement: type[Judgement]
) -> None:
    every = Rule("every", INSTALLATION, effect, tool=tool)

    assert isinstance(judged(every, *others, text="rm a\n"), judgement)
    assert isinstance(judged(every, *others, keys=["up", "enter"]), judgement)
    assert judged(every, *others, keys=["ctrl-c"]) == Allow()
    assert judged(every, *others, end_of_input=True) == Allow()


def test_a_rule_about_every_command_yields_to_one_that_allows_the_tool_itself() -> None:
    every = Rule("every", INSTALLATION, Effect.ASK, tool="execute")
    typing = Rule("typing", INSTALLATION, Effect.ALLOW, tool="process_write")

    assert judged(every, typing, text="rm a\n") == Allow()


def test_a_rule_that_allows_every_command_says_nothing_about_input() -> None:
    asking = Rule("asking", INSTALLATION, Effect.ASK, tool="process_*")
    every = Rule("every", INSTALLATION, Effect.ALLOW, tool="execute")

    assert isinstance(judged(asking, every, text="rm a\n"), Ask)


def test_a_rule_for_the_tool_itself_decides_alone() -> None:
    never = Rule("never", INSTALLATION, Effect.DENY, tool="process_write")

    assert isinstance(judged(never, keys=["ctrl-c"]), Deny)
