"""Plans and questions of the demo model, answered at a terminal, by commands and over HTTP."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.host.conditions import until
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack
from support.stack.terminal_window import window

pytestmark = pytest.mark.slow

SEEN_S_MAX = 120.0
PLANNING_MESSAGE = "3"  # After the one that waits for the files, and its answer.


def client_of(stack: LocalStack) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    """Make a request that must be answered with `status`, and return its document."""
    reply = await client.request(method, path, body)
    assert reply.status == status, (method, path, reply.body)
    return reply.json() if reply.body else None


def kill_every_chatd(stack: LocalStack) -> None:
    """Kill what runs the turns, without a warning."""
    for process in stack.status()["processes"]:
        if process["service"] == "chatd":
            psutil.Process(process["pid"]).kill()


def changes(stack: LocalStack, chat_id: str) -> str:
    """Return how the files of a chat differ from those that it began with."""

    async def read() -> str:
        client, path = client_of(stack), f"/api/v1/chats/{chat_id}/diff"
        async with asyncio.timeout(SEEN_S_MAX):
            # A gateway whose chatd were all killed says so until it has reached one again.
            while (reply := await client.request("GET", path)).status == 503:
                pass
        assert reply.status == 200, reply.body
        return str(reply.json()["patch"])

    return asyncio.run(read())


def test_a_plan_is_asked_about_at_the_terminal_and_carried_out_only_when_it_is_accepted(
    stack: LocalStack, tmp_path: Path
) -> None:
    directory = tmp_path / "place"
    directory.mkdir()
    (directory / "a.txt").write_text("a\n")
    words = ("run", "--plan", "-C", str(directory), "--apply", "say hello")
    with window(stack, *words) as terminal:
        found = terminal.until(rb"workspace of chat (\S+)\.", within_s=SEEN_S_MAX)
        chat_id = found[1].decode()
        terminal.until(rb"Which file should I write\?", within_s=SEEN_S_MAX)
        terminal.until(rb"own words", within_s=SEEN_S_MAX)
        kill_every_chatd(stack)
        terminal.type("2\n")
        terminal.until(rb"The plan: Write hello\.txt", within_s=SEEN_S_MAX)
        terminal.until(rb"Accept it\?", within_s=SEEN_S_MAX)
        terminal.type("n\n")
        terminal.until(rb"What should change\?", within_s=SEEN_S_MAX)
        terminal.type("shorter\n")
        terminal.until(rb"As you remarked: shorter", within_s=SEEN_S_MAX)
        kill_every_chatd(stack)
        # Not the question about the first plan, which is still shown above.
        terminal.until(rb"As you remarked: shorter[\s\S]*Accept it\?", within_s=SEEN_S_MAX)
        stack.until_whole(without=0)
        assert changes(stack, chat_id) == ""
        terminal.type("y\n")
        terminal.until(rb"Applied to ", within_s=SEEN_S_MAX)
        assert terminal.ended() == 0
    assert (directory / "hello.txt").read_text().startswith("# Write hello.txt\n")
    assert "hello.txt" in changes(stack, chat_id)
    reverted = stack.parley("revert", chat_id, PLANNING_MESSAGE, "--files")
    assert reverted.returncode == 0, reverted.stderr
    assert changes(stack, chat_id) == ""


def test_a_run_without_a_terminal_waits_for_answers_of_other_commands(
    stack: LocalStack, tmp_path: Path
) -> None:
    earlier = {each["id"] for each in actions(stack)}
    with subprocess.Popen(
        stack.command("run", "--plan", "--no-directory", "say hello"),
        env=stack.variables(),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            question = until(
                lambda: waiting(stack, "question", earlier), "a question", within_s=SEEN_S_MAX
            )
            answered = stack.parley("answer", question["chat_id"], "--option", "NOTES.md")
            assert answered.returncode == 0, answered.stderr
            plan = until(lambda: waiting(stack, "plan", earlier), "a plan", within_s=SEEN_S_MAX)
            listed = stack.parley("actions")
            accepted = stack.parley("answer", plan["chat_id"], plan["id"], "--accept")
            assert accepted.returncode == 0, accepted.stderr
            out, told = running.communicate(timeout=SEEN_S_MAX)
        finally:
            running.kill()
    assert running.returncode == 0, told
    assert plan["chat_id"] in listed.stdout
    assert f"answer {question['chat_id']} {question['id']}" in told
    assert "`write_file` answered" in out


def waiting(stack: LocalStack, kind: str, earlier: set[str]) -> dict[str, Any]:
    """Return the action of a kind that waits and did not before, nothing if there is none."""
    new = [each for each in actions(stack) if each["id"] not in earlier]
    return next((each for each in new if each["kind"] == kind), {})


def actions(stack: LocalStack) -> list[dict[str, Any]]:
    """Return what chats of the owner wait for; tests before this one may have left some."""
    listed = stack.parley("actions", "--json")
    assert listed.returncode == 0, listed.stderr
    items: list[dict[str, Any]] = json.loads(listed.stdout)["items"]
    return items


async def test_an_action_is_listed_answered_once_and_its_plan_is_a_document_over_http(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    prompt = {"content": [{"type": "text", "text": "say hello"}], "mode": "plan"}
    created = await asked(client, 201, "POST", "/api/v1/chats", prompt)
    path = f"/api/v1/chats/{created['id']}"

    question = await required(client, path, "question")
    listed = await asked(client, 200, "GET", "/api/v1/actions?limit=200")
    answer = f"{path}/actions/{question['id']}/answer"
    first = {"answers": [{"selected": ["hello.txt"]}]}
    answered = await asked(client, 202, "POST", answer, first)
    again = await asked(client, 409, "POST", answer, {"answers": [{"text": "no, mine.txt"}]})
    proposed = await required(client, path, "plan")
    plan = await asked(client, 200, "GET", f"{path}/plan")
    decision = {"decision": "accept", "plan": "# shorter\n"}
    await asked(client, 202, "POST", f"{path}/actions/{proposed['id']}/answer", decision)
    chat = await seen(client, path, "waiting", "error")
    accepted = await asked(client, 200, "GET", f"{path}/plan")
    ended = await asked(client, 200, "GET", f"{path}/actions/{question['id']}")
    written = await client.request("GET", f"{path}/files/content?path=hello.txt")

    assert question["id"] in [each["id"] for each in listed["items"]]
    assert (answered["action"]["state"], again["code"]) == ("answered", "ACTION_ENDED")
    assert (plan["title"], plan["state"], plan["accepted"]) == ("Write hello.txt", "open", False)
    assert (chat["status"], chat["mode"]) == ("waiting", None)
    assert (accepted["text"], accepted["state"], accepted["accepted"]) == (
        "# shorter\n",
        "answered",
        True,
    )
    assert ended["answer"]["answers"][0]["selected"] == ["hello.txt"]
    assert (written.status, written.body) == (200, b"# shorter\n")


async def required(client: HttpClient, path: str, kind: str) -> dict[str, Any]:
    """Return the only action that a chat waits for, once it is of a kind."""
    async with asyncio.timeout(SEEN_S_MAX):
        while True:
            chat = await seen(client, path, "requires_action")
            (action,) = chat["required_action"]["actions"]
            if action["kind"] == kind:
                return dict(action)


async def seen(client: HttpClient, path: str, *statuses: str) -> dict[str, Any]:
    """Return a chat once it is in one of these statuses."""
    async with asyncio.timeout(SEEN_S_MAX):
        while True:
            chat: dict[str, Any] = await asked(client, 200, "GET", path)
            if chat["status"] in statuses:
                return chat
