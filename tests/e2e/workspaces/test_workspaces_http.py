"""What runs in a chat's workspace, seen and steered over HTTP in a real stack."""

import asyncio
from time import monotonic
from typing import Any

import pytest

from chatd.workspaces.domain.templates import SCRATCH_ID
from support.net.http_client import HttpClient, Reply
from support.session.row_sizes import FULL_SIZE, RowSizes
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
REST_S_MAX = 120
#: What the deadline of a call has beyond its wait.
SPARE_S = 30


def client_of(stack: LocalStack, limit_s: float = 60) -> HttpClient:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"}, limit_s)


async def asked(
    client: HttpClient, status: int, method: str, path: str, body: Any = None, **headers: str
) -> Any:
    """Make a request that must be answered with `status`, and return its document."""
    reply: Reply = await client.request(method, path, body, headers)
    assert reply.status == status, (method, path, reply.body)
    return reply.json()


async def chat_that_ran(client: HttpClient, command: str) -> str:
    """Return the path of a chat whose turn ran a command, once it is over."""
    body = {"content": [{"type": "text", "text": f"run: {command}"}]}
    created = await asked(client, 201, "POST", CHATS, body)
    path = f"{CHATS}/{created['id']}"
    async with asyncio.timeout(REST_S_MAX):
        while (await asked(client, 200, "GET", path))["status"] not in ("waiting", "error"):
            pass
    return path


async def test_processes_of_a_chat_are_listed_started_awaited_and_signalled(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    path = await chat_that_ran(client, "echo from the model")
    processes = f"{path}/processes"
    (ran,) = (await asked(client, 200, "GET", processes))["items"]
    assert (ran["command"], ran["state"], ran["exit"]["exit_code"], ran["chat_id"]) == (
        "echo from the model",
        "exited",
        0,
        path.rpartition("/")[2],
    )
    printed = await asked(client, 200, "GET", f"{processes}/{ran['id']}/output?wait=5")
    assert (printed["text"], printed["reason"]) == ("from the model\n", "exited")

    key = {"Idempotency-Key": "start-once"}
    body = {"command": "sleep 0.5; echo ready; exec sleep 60", "background": True}
    started = await asked(client, 201, "POST", processes, body, **key)
    again = await asked(client, 201, "POST", processes, body, **key)
    assert (again["id"], again["pid"]) == (started["id"], started["pid"])
    other = await asked(client, 422, "POST", processes, {"command": "true"}, **key)
    assert other["code"] == "REQUEST_ID_REUSED"
    process = f"{processes}/{started['id']}"
    waited = await asked(client, 200, "GET", f"{process}/output?wait=8&until=output")
    assert (waited["text"], waited["reason"], waited["process"]["state"]) == (
        "ready\n",
        "output",
        "running",
    )
    cursor = waited["next_cursor"]
    in_vain = await asked(client, 200, "GET", f"{process}/output?wait=1&cursor={cursor}")
    assert (in_vain["text"], in_vain["reason"]) == ("", "timeout")

    listed = await asked(client, 200, "GET", f"{processes}?state=running")
    assert [each["id"] for each in listed["items"]] == [started["id"]]
    signal = {"signal": "terminate", "escalate_after_ms": 5000}
    await asked(client, 200, "POST", f"{process}/signal", signal)
    ended = await asked(client, 200, "GET", f"{process}/output?wait=8&cursor={cursor}")
    assert (ended["process"]["exit"]["signal"], ended["reason"]) == ("SIGTERM", "exited")
    late = await asked(client, 409, "POST", f"{process}/signal", {"signal": "kill"})
    assert late["code"] == "PROCESS_NOT_RUNNING"


async def test_a_wait_goes_through_every_layer_to_its_end_or_its_time(
    stack: LocalStack, request: pytest.FixtureRequest
) -> None:
    wait_s = (FULL_SIZE if request.config.getoption("--full-size") else RowSizes()).wait_s
    client = client_of(stack, wait_s + SPARE_S)
    processes = f"{await chat_that_ran(client, 'true')}/processes"
    waits = []
    began_s = monotonic()
    async with asyncio.TaskGroup() as tasks:
        for lasts_s in (wait_s - 1, wait_s + 10 * SPARE_S):
            body = {"command": f"sleep {lasts_s}; echo awake", "background": True}
            process = (await asked(client, 201, "POST", processes, body))["id"]
            path = f"{processes}/{process}/output?wait={wait_s}"
            waits.append(tasks.create_task(asked(client, 200, "GET", path)))
    answers = [(wait.result()["reason"], wait.result()["text"]) for wait in waits]
    assert answers == [("exited", "awake\n"), ("timeout", "")]
    assert wait_s <= monotonic() - began_s < wait_s + SPARE_S


async def test_what_is_not_there_is_a_typed_problem(stack: LocalStack) -> None:
    client = client_of(stack)
    path = await chat_that_ran(client, "true")
    nobodys = "00000000-0000-0000-0000-000000000001"
    for wrong, code in (
        (f"{CHATS}/{nobodys}/processes", "CHAT_NOT_FOUND"),
        (f"{CHATS}/{nobodys}/files", "CHAT_NOT_FOUND"),
        (f"{path}/processes/{nobodys}", "PROCESS_NOT_FOUND"),
    ):
        assert (await asked(client, 404, "GET", wrong))["code"] == code
    assert (await asked(client, 200, "GET", f"{path}/git"))["repositories"] == []
    refused = await asked(client, 409, "GET", f"{path}/diff")
    assert refused["code"] == "NOT_A_REPOSITORY"


async def test_files_and_repositories_of_a_chat_are_read(stack: LocalStack) -> None:
    client = client_of(stack)
    command = "git init -qb main && echo one > a.txt && git add a.txt && echo two >> a.txt"
    path = await chat_that_ran(client, command)

    listed = await asked(client, 200, "GET", f"{path}/files")
    assert [entry["path"] for entry in listed["items"]] == ["a.txt"]
    content = await client.request("GET", f"{path}/files/content?path=a.txt")
    assert (content.status, content.body) == (200, b"one\ntwo\n")
    (repository,) = (await asked(client, 200, "GET", f"{path}/git"))["repositories"]
    assert (repository["branch"], repository["added_lines"]) == ("main", 2)
    assert [(file["path"], file["state"]) for file in repository["files"]] == [("a.txt", "added")]
    diff = await asked(client, 200, "GET", f"{path}/diff")
    assert diff["patch"].endswith("@@ -0,0 +1,2 @@\n+one\n+two\n")


async def test_the_list_of_chats_tells_how_a_workspace_differs(stack: LocalStack) -> None:
    client = client_of(stack)
    async with asyncio.timeout(REST_S_MAX), client.stream("/api/v1/events") as feed:
        path = await chat_that_ran(client, "git init -qb main && echo one > a.txt")
        status = None
        while status is None:
            event = await feed.event()
            assert event is not None
            chat = event.data.get("chat") or {}
            if path.endswith(chat.get("id", "?")):
                status = chat["diff_status"]
    assert (await asked(client, 200, "GET", path))["diff_status"] == status
    del status["refreshed_at"]
    assert status == {
        "branch": "main",
        "origin_url": None,
        "repositories": 1,
        "changed_files": 1,
        "added_lines": 1,
        "deleted_lines": 0,
    }


async def test_repositories_of_a_chat_are_followed(stack: LocalStack) -> None:
    client = client_of(stack)
    path = await chat_that_ran(client, "git init -qb main && echo one > a.txt")
    async with asyncio.timeout(REST_S_MAX), client.stream(f"{path}/git/events") as stream:
        first = await stream.event()
        assert first is not None
        (repository,) = first.data["git_snapshot"]["repositories"]
        assert (first.event, repository["branch"]) == ("git_snapshot", "main")
        assert [file["path"] for file in repository["files"]] == ["a.txt"]
        changing = {"command": "echo two > b.txt"}
        await asked(client, 201, "POST", f"{path}/processes", changing)
        changed = await stream.event()
    assert changed is not None
    assert changed.event == "git_changed"
    files = [file["path"] for file in changed.data["git_changed"]["files"]]
    assert files == ["a.txt", "b.txt"]


async def test_a_checkpoint_is_made_and_restored(stack: LocalStack) -> None:
    client = client_of(stack)
    path = await chat_that_ran(client, "git init -qb main && echo one > a.txt")
    checkpoints, key = f"{path}/checkpoints", {"Idempotency-Key": "keep-once"}
    kept = await asked(client, 201, "POST", checkpoints, {"label": "first"}, **key)
    assert [file["path"] for file in kept.pop("files")] == ["a.txt"]
    assert (await asked(client, 201, "POST", checkpoints, {"label": "first"}, **key))["commit"]
    command = {"command": "echo two > a.txt; echo later > b.txt"}
    started = await asked(client, 201, "POST", f"{path}/processes", command)
    await asked(client, 200, "GET", f"{path}/processes/{started['id']}/output?wait=8")

    body = {"ref": kept["ref"], "remove_later_files": True}
    restored = await asked(client, 200, "POST", f"{checkpoints}/restore", body)

    changed = [(file["path"], file["state"]) for file in restored["files"]]
    assert changed == [("a.txt", "modified"), ("b.txt", "deleted")]
    content = await client.request("GET", f"{path}/files/content?path=a.txt")
    assert content.body == b"one\n"
    listed = (await asked(client, 200, "GET", checkpoints))["items"]
    assert {each["ref"] for each in listed} == {kept["ref"], restored["previous"]["ref"]}
    diff = await asked(client, 200, "GET", f"{path}/diff?base={restored['previous']['ref']}")
    assert "-two\n+one\n" in diff["patch"]


async def rested(client: HttpClient, path: str) -> None:
    """Wait until no turn of a chat runs."""
    async with asyncio.timeout(REST_S_MAX):
        while (await asked(client, 200, "GET", path))["status"] not in ("waiting", "error"):
            pass


async def test_a_chat_whose_workspace_was_deleted_works_in_its_scratch_workspace(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    made = await asked(client, 202, "POST", "/api/v1/workspaces", {"template_id": SCRATCH_ID})
    workspace = f"/api/v1/workspaces/{made['id']}"
    body = {"content": [{"type": "text", "text": "hello"}], "workspace_id": made["id"]}
    path = f"{CHATS}/{(await asked(client, 201, 'POST', CHATS, body))['id']}"
    await rested(client, path)
    processes = f"{path}/processes"
    sleeps = {"content": [{"type": "text", "text": "run: echo begun > here; sleep 600"}]}
    await asked(client, 202, "POST", f"{path}/messages", sleeps)
    async with asyncio.timeout(REST_S_MAX):
        while not (ran := await asked(client, 200, "GET", f"{processes}?state=running"))["items"]:
            pass
    process = f"{processes}/{ran['items'][0]['id']}"
    await client.request("DELETE", workspace, None, {})
    # What ran there ends, and is not run again elsewhere.
    await rested(client, path)
    messages = (await asked(client, 200, "GET", f"{path}/messages"))["messages"]
    parts = [part for message in messages for part in message["content"]]
    ended, *_ = [part["result"] for part in parts if part["type"] == "tool-result"]
    assert (ended["ok"], ended["reason"]) == (False, "SIGNALLED")
    async with asyncio.timeout(REST_S_MAX):
        while (await asked(client, 200, "GET", workspace))["state"] != "deleted":
            pass
    assert (await asked(client, 200, "GET", f"{path}/files"))["items"] == []
    assert (await asked(client, 200, "GET", processes))["items"] == []
    assert (await asked(client, 200, "GET", f"{path}/git"))["repositories"] == []
    assert (await asked(client, 200, "GET", f"{path}/checkpoints"))["items"] == []
    gone = await asked(client, 404, "GET", f"{process}/output")
    assert gone["code"] == "PROCESS_NOT_FOUND"
    for read in (f"{path}/diff", f"{path}/files/content?path=a"):
        assert (await asked(client, 409, "GET", read))["code"] == "WORKSPACE_NOT_READY"
    renamed = await asked(client, 200, "PATCH", path, {"title": "still"})
    assert renamed["workspace_id"] == made["id"]

    runs = {"content": [{"type": "text", "text": "run: echo again > scratch.txt"}]}
    await asked(client, 202, "POST", f"{path}/messages", runs)
    await rested(client, path)
    listed = await asked(client, 200, "GET", f"{path}/files")
    assert [entry["path"] for entry in listed["items"]] == ["scratch.txt"]
    started = await asked(client, 201, "POST", processes, {"command": "cat *"})
    printed = await asked(client, 200, "GET", f"{processes}/{started['id']}/output?wait=8")
    assert (printed["text"], printed["reason"]) == ("again\n", "exited")


async def test_the_running_call_of_a_deleted_chat_ends_in_its_kept_workspace(
    stack: LocalStack,
) -> None:
    client = client_of(stack)
    made = await asked(client, 202, "POST", "/api/v1/workspaces", {"template_id": SCRATCH_ID})

    async def create(text: str) -> str:
        body = {"content": [{"type": "text", "text": text}], "workspace_id": made["id"]}
        return f"{CHATS}/{(await asked(client, 201, 'POST', CHATS, body))['id']}"

    other, deleted = await create("hello"), await create("run: exec sleep 600")
    running = f"{other}/processes?state=running"
    async with asyncio.timeout(REST_S_MAX):
        while not (await asked(client, 200, "GET", running))["items"]:
            pass
    reply = await client.request("DELETE", deleted, None, {})
    assert reply.status == 204, reply.body
    async with asyncio.timeout(REST_S_MAX):
        while (await asked(client, 200, "GET", running))["items"]:
            pass
    workspace = f"/api/v1/workspaces/{made['id']}"
    async with asyncio.timeout(REST_S_MAX):
        # Busy until the next report of its node.
        while (state := (await asked(client, 200, "GET", workspace))["state"]) == "busy":
            pass
    assert state == "ready"
