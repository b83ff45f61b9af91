"""Going back in a chat of a real stack: messages and files, there and back again."""

import asyncio
from typing import Any

import pytest

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
REST_S_MAX = 120
FIRST = "printf '\\000one' > binary; mkdir d; echo 1 > d/kept; ln -s d/kept link; echo 1 > gone"
SECOND = "printf '\\000two' > binary; rm -r d gone; ln -sfn binary link; echo 2 > new"
SHOWN = "cat binary | od -c | head -1; ls -d * ; readlink link"


async def asked(client: HttpClient, status: int, method: str, path: str, body: Any = None) -> Any:
    reply = await client.request(method, path, body, {})
    assert reply.status == status, (method, path, reply.body)
    return reply.json()


async def at_rest(client: HttpClient, path: str) -> dict[str, Any]:
    async with asyncio.timeout(REST_S_MAX):
        while True:
            chat: dict[str, Any] = await asked(client, 200, "GET", path)
            if chat["status"] in ("waiting", "error"):
                return chat


async def ran(client: HttpClient, path: str, command: str) -> int:
    """Let the model run a command; return the message that asked for it."""
    body = {"content": [{"type": "text", "text": f"run: {command}"}]}
    sent = await asked(client, 202, "POST", f"{path}/messages", body)
    await at_rest(client, path)
    message_id: int = sent["message"]["id"]
    return message_id


async def shown(client: HttpClient, path: str) -> str:
    """Return what is in the workspace, as a person sees it."""
    processes = f"{path}/processes"
    started = await asked(client, 201, "POST", processes, {"command": SHOWN})
    output = await asked(client, 200, "GET", f"{processes}/{started['id']}/output?wait=10")
    return str(output["text"])


async def message_ids(client: HttpClient, path: str) -> list[int]:
    page = await asked(client, 200, "GET", f"{path}/messages?limit=100")
    return sorted(message["id"] for message in page["messages"])


async def test_a_chat_is_reverted_with_its_files_and_that_is_undone(stack: LocalStack) -> None:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    client = HttpClient(port, {"Authorization": f"Bearer {key}"}, 60)
    body = {"content": [{"type": "text", "text": f"run: {FIRST}"}]}
    created = await asked(client, 201, "POST", CHATS, body)
    path = f"{CHATS}/{created['id']}"
    await at_rest(client, path)
    before, ids_before = await shown(client, path), await message_ids(client, path)
    second = await ran(client, path, SECOND)
    after, ids_after = await shown(client, path), await message_ids(client, path)
    assert before != after

    wanted = {"message_id": second, "restore_files": True}
    preview = await asked(client, 200, "POST", f"{path}/revert/preview", wanted)

    assert preview["deleted_messages"] == len(ids_after) - len(ids_before)
    assert {each["path"]: each["action"] for each in preview["files"]["paths"]} == {
        "binary": "change",
        "d": "create",
        "d/kept": "create",
        "gone": "create",
        "link": "change",
        "new": "delete",
    }
    assert await shown(client, path) == after

    done = await asyncio.to_thread(stack.parley, "revert", created["id"], str(second), "--files")
    assert done.returncode == 0, done.stderr
    assert await shown(client, path) == before
    assert await message_ids(client, path) == ids_before

    revert_id = done.stdout.partition("--undo ")[2].split()[0]
    undone = await asyncio.to_thread(stack.parley, "revert", created["id"], "--undo", revert_id)
    assert undone.returncode == 0, undone.stderr
    assert await shown(client, path) == after
    assert await message_ids(client, path) == ids_after


async def test_an_edit_with_files_is_undone_with_what_its_turn_changed(stack: LocalStack) -> None:
    key = stack.home.api_key_file.read_text().strip()
    port = int(stack.http.rpartition(":")[2])
    client = HttpClient(port, {"Authorization": f"Bearer {key}"}, 60)
    body = {"content": [{"type": "text", "text": f"run: {FIRST}"}]}
    created = await asked(client, 201, "POST", CHATS, body)
    path = f"{CHATS}/{created['id']}"
    await at_rest(client, path)
    second = await ran(client, path, SECOND)
    before, ids_before = await shown(client, path), await message_ids(client, path)

    third = "printf '\\000three' > binary; echo 3 > third; rm gone"
    edit = {"content": [{"type": "text", "text": f"run: {third}"}], "restore_files": True}
    edited = await asked(client, 202, "PATCH", f"{path}/messages/{second}", edit)
    await at_rest(client, path)
    after = await shown(client, path)
    assert "third" in after
    assert after != before

    undo = ("revert", created["id"], "--undo", edited["revert_id"])
    undone = await asyncio.to_thread(stack.parley, *undo)
    assert undone.returncode == 0, undone.stderr
    assert await shown(client, path) == before
    assert await message_ids(client, path) == ids_before
