"""The example of the README with an advisor, a plan, a question and two agents in forks."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "agents" / "invoice"
PROMPT = "write what is missing in invoice.py"
ANSWERS = ("--answer", "5000", "--answer", "accept")
BOTH = ("+    return amount * TAX_PERCENT // 100", "+    return 0 if amount >= 5000 else 490")
CALLED = [
    "advisor",
    "ask_user_question",
    "propose_plan",
    "spawn_agent",
    "spawn_agent",
    "wait_agents",
    "apply_child_changes",
    "apply_child_changes",
    "execute",
]


@pytest.fixture
def advised(stack: LocalStack) -> Iterator[LocalStack]:
    """A stack whose agents may ask the advisor."""
    enabled = stack.parley("advisor", "enable")
    assert enabled.returncode == 0, enabled.stderr
    yield stack
    stack.parley("advisor", "disable")


@pytest.fixture
def invoice(tmp_path: Path) -> Path:
    copied = tmp_path / "invoice"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def run(stack: LocalStack, directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return stack.parley("run", "--plan", *ANSWERS, *options, PROMPT, cwd=directory)


def results_of(printed: str) -> list[dict[str, Any]]:
    """Return the results of calls in the events that a run printed before its diff."""
    events = [json.loads(line) for line in printed.splitlines() if line.startswith('{"type"')]
    return [
        part
        for event in events
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ]


def without_the_merge(directory: Path, agent: str) -> None:
    """Take out of the script the step that merges the work of an agent."""
    script = directory / "agents.script"
    steps = script.read_text().splitlines(keepends=True)
    left = [
        each
        for each in steps
        if not each.startswith(f'call: apply_child_changes {{"agent_id": "{agent}"')
    ]
    assert len(left) == len(steps) - 1
    script.write_text("".join(left))


def without_the_edit(directory: Path, function: str) -> None:
    """Take what an agent writes out of its task, so that it has nothing to merge."""
    script = directory / "agents.script"
    text = script.read_text()
    begun = text.index("call: edit_files", text.index(f'"name": "{function}"'))
    script.write_text(text[:begun] + text[text.index("run: ", begun) :])


def test_a_chat_is_advised_asks_plans_and_merges_the_work_of_two_agents(
    advised: LocalStack, invoice: Path
) -> None:
    ran = run(advised, invoice, "--json", "--apply")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = results_of(ran.stdout)
    assert [each["tool_name"] for each in results] == CALLED
    assert {each["outcome"] for each in results} == {"done"}
    told = {each["tool_name"]: each["result"] for each in results}
    assert told["advisor"]["type"] == "advice"
    assert told["propose_plan"]["accepted"] is True
    assert [(each["name"], each["isolation"]) for each in told["wait_agents"]["agents"]] == [
        ("Tax", "fork"),
        ("Shipping", "fork"),
    ]
    merged = [each["result"] for each in results if each["tool_name"] == "apply_child_changes"]
    assert [each["merged_paths"] for each in merged] == [["invoice.py"], ["invoice.py"]]
    assert {*BOTH} <= {*ran.stdout.splitlines()}
    assert "OK" in ran.stderr
    assert "amount >= 5000" in (invoice / "invoice.py").read_text()


@pytest.mark.parametrize(
    ("take_away", "named"),
    [
        (without_the_merge, "$agent_2"),
        (without_the_edit, "Tax"),
    ],
)
def test_without_the_work_of_one_agent_the_check_fails(
    advised: LocalStack, invoice: Path, take_away: Callable[[Path, str], None], named: str
) -> None:
    take_away(invoice, named)
    before = (invoice / "invoice.py").read_text()
    ran = run(advised, invoice, "--apply")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert ran.stderr.splitlines()[-1].startswith("parley: the check failed (exit code 1)")
    assert len({*BOTH} & {*ran.stdout.splitlines()}) == 1
    assert (invoice / "invoice.py").read_text() == before
