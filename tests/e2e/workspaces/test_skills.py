"""Skills of the user and of a workspace: added, read by the model of a chat, and removed."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CONTENT = "---\nname: e2e-deploy\ndescription: How to deploy.\n---\nPush it.\n"
WRITE = {"path": ".agents/skills/e2e-test/SKILL.md", "content": CONTENT.replace("deploy", "test")}
FILE = {"path": ".agents/skills/e2e-test/steps/one.md", "content": "First.\n"}


def results_of(text: str) -> list[dict[str, Any]]:
    """Return the results of calls among events."""
    return [
        part["result"]
        for event in map(json.loads, text.splitlines())
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ]


def test_a_skill_is_added_read_by_a_model_and_removed(stack: LocalStack, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(CONTENT)
    added = stack.parley("skill", "add", str(tmp_path))
    assert added.returncode == 0, added.stderr
    assert added.stdout == "Stored e2e-deploy: How to deploy.\n"
    assert "Push it." in stack.parley("skill", "show", "e2e-deploy").stdout
    ran = stack.parley(
        "run",
        "--json",
        f"call: write_file {json.dumps(WRITE)}\ncall: write_file {json.dumps(FILE)}\n"
        'call: read_skill {"name": "e2e-deploy"}',
    )
    assert ran.returncode == 0, ran.stderr
    chat_id = next(
        event["message"]["chat_id"]
        for event in map(json.loads, ran.stdout.splitlines())
        if event["type"] == "message"
    )
    assert results_of(ran.stdout)[2] == {"ok": True, "name": "e2e-deploy", "body": "Push it."}
    context = json.loads(stack.parley("context", chat_id, "--refresh", "--json").stdout)
    assert [skill["name"] for skill in context["skills"]] == ["e2e-deploy", "e2e-test"]
    sent = stack.parley("send", chat_id, "--json", 'call: read_skill {"name": "e2e-test"}')
    assert sent.returncode == 0, sent.stderr
    assert results_of(sent.stdout)[-1]["files"] == ["steps/one.md"]
    removed = stack.parley("skill", "rm", "e2e-deploy")
    assert removed.returncode == 0, removed.stderr
    assert "e2e-deploy" not in stack.parley("skill", "ls").stdout
