"""A person takes everything along and is deleted, in a real stack: nothing of them is left."""

import asyncio
import io
import json
import os
import zipfile
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from parley.clock import SystemClock
from parley.identity import ApiKey
from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

SOON_S = 150
CANARY = "canary-91c4e7"
#: A claim of a dead process ends by itself after a minute.
END_CLAIMS = "UPDATE identity.account_exports SET claimed_until = now() WHERE claimed_until > now()"
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at)
    VALUES ($1, $2, $3, false, now())
"""


class Person:
    """A client of the API with a key."""

    def __init__(self, stack: LocalStack, key: str) -> None:
        port = int(stack.http.rpartition(":")[2])
        self._client = HttpClient(port, {"Authorization": f"Bearer {key}"})

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        reply = await self._client.request(method, f"/api/v1{path}", body, headers)
        assert reply.status < 300, reply.body
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        return reply.json() if is_json else reply.body


async def until(question: Callable[[], Awaitable[object]], answer: object) -> None:
    last: object = None
    try:
        async with asyncio.timeout(SOON_S):
            while (last := await question()) != answer:
                await SystemClock().sleep(0.5)
    except TimeoutError:
        assert last == answer


async def tables_with(database: asyncpg.Connection, text: str) -> list[str]:
    """Return every table of the services of which a row has the text in any column."""
    tables = await database.fetch(
        "SELECT schemaname || '.' || tablename AS name FROM pg_tables"
        " WHERE schemaname IN ('chat', 'identity', 'mcp')"
    )
    return [
        row["name"]
        for row in tables
        if await database.fetchval(
            f"SELECT EXISTS (SELECT 1 FROM {row['name']} AS each"
            " WHERE strpos(each::text, $1) > 0 OR strpos(each::text, $2) > 0)",
            text,
            text.encode().hex(),
        )
    ]


def files_with(home: Path, text: str) -> list[str]:
    """Return every file of the services with the text; the database's own files are its matter."""
    found = []
    # `rglob` fails where a folder is deleted meanwhile; `walk` leaves it out.
    paths = (Path(folder, name) for folder, _, names in os.walk(home) for name in names)
    for path in paths:
        if "postgres" not in path.parts and path.is_file() and not path.is_symlink():
            try:
                content = path.read_bytes()
            except OSError:
                continue
            lines = [each for each in content.splitlines() if text.encode() in each]
            found += [f"{path.relative_to(home)}: {each[:300]!r}" for each in lines[:1]]
    return found


async def leave_traces(ada: Person) -> str:
    """Use everything that stores something of a user; return a chat."""
    await ada.ask("PATCH", "/me/settings", {"custom_prompt": f"I like {CANARY}"})
    await ada.ask("POST", "/files?name=notes.txt", CANARY.encode(), {"Content-Type": "text/plain"})
    await ada.ask("POST", "/me/approval-rules", {"effect": "ask", "tool": f"x_{CANARY}"})
    await ada.ask("POST", "/schedules", {"text": CANARY, "cron": "0 0 1 1 *"})
    skill = f"---\nname: tides\ndescription: About tides.\n---\n\nSay {CANARY}."
    await ada.ask("PUT", "/me/skills/tides", {"content": skill})
    text = f"run: echo {CANARY} > note.txt && cat note.txt"
    chat = await ada.ask("POST", "/chats", {"content": [{"type": "text", "text": text}]})
    path = f"/chats/{chat['id']}"

    async def status() -> object:
        return (await ada.ask("GET", path))["status"]

    await until(status, "waiting")
    await watch_and_pursue(ada, path)
    return str(chat["id"])


async def watch_and_pursue(ada: Person, path: str) -> None:
    """Let a chat have a running process, a monitor and a goal that was reached."""
    await ada.ask("POST", f"{path}/processes", {"command": f"sleep 900 # {CANARY}"})
    # It ends when the monitor is there.
    command = f"until [ -e watched ]; do sleep 0.1; done # {CANARY}"
    started = await ada.ask("POST", f"{path}/processes", {"command": command})
    watched = json.dumps({"process_id": started["id"], "pattern": CANARY})
    text = f"call: monitor_process {watched}\n{CANARY}"
    goal = {"text": text, "check_command": f"true {CANARY}"}
    await ada.ask("PUT", f"{path}/goal", goal)

    async def monitors() -> object:
        return len((await ada.ask("GET", f"{path}/monitors"))["items"])

    # A goal waits for the monitors of its chat.
    await until(monitors, 1)
    await ada.ask("POST", f"{path}/processes", {"command": "touch watched"})

    async def state() -> object:
        return (await ada.ask("GET", f"{path}/goal"))["state"]

    await until(state, "reached")


async def test_a_person_takes_everything_along_and_leaves_nothing(stack: LocalStack) -> None:
    owner = Person(stack, stack.home.api_key_file.read_text().strip())
    user = await owner.ask(
        "POST",
        "/users",
        {"login": "leaver", "role": "member", "display_name": CANARY, "email": f"{CANARY}@x.org"},
    )
    database = await asyncpg.connect(stack.endpoints()["database"])
    try:
        key = ApiKey.generate()
        await database.execute(INSERT_KEY, key.id, user["id"], key.digest())
        ada = Person(stack, key.reveal())
        chat_id = await leave_traces(ada)
        begun = await ada.ask("POST", "/me/exports")
        (gateway,) = [each for each in stack.status()["processes"] if each["service"] == "gateway"]
        killed = psutil.Process(gateway["pid"])
        killed.kill()
        psutil.wait_procs([killed], timeout=30)
        await database.execute(END_CLAIMS)
        stack.until_whole(without=gateway["pid"])

        async def state() -> object:
            (export,) = (await ada.ask("GET", "/me/exports"))["items"]
            return export["state"]

        await until(state, "complete")
        check_archive(await ada.ask("GET", f"/me/exports/{begun['id']}/archive"), chat_id)
        assert {"chat.chat_messages", "chat.files", "identity.users"} <= set(
            await tables_with(database, CANARY)
        )
        deleted = stack.parley("users", "delete", "leaver", "--yes")
        assert deleted.returncode == 0, deleted.stderr

        async def left() -> object:
            found: list[str] = await tables_with(database, CANARY)
            return found + files_with(stack.home.root, CANARY)

        await until(left, [])
        spent = await database.fetchval(
            "SELECT count(*) FROM chat.usage WHERE owner_id = $1", user["id"]
        )
        assert spent > 0
    finally:
        await database.close()
    assert stack.parley("audit").returncode == 0


def check_archive(data: bytes, chat_id: str) -> None:
    """Check that an archive is whole and has what the person left."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["format"] == "parley-account-export/1"
        contents = {each["name"]: archive.read(each["name"]) for each in manifest["entries"]}
    assert {name: sha256(content).hexdigest() for name, content in contents.items()} == {
        each["name"]: each["sha256"] for each in manifest["entries"]
    }
    with_canary = {name for name, content in contents.items() if CANARY.encode() in content}
    assert {
        "profile.json",
        "settings.json",
        "approval-rules.json",
        "schedules.json",
        "skills.json",
        f"chats/{chat_id}/messages-00001.jsonl",
        f"chats/{chat_id}/chat.json",
        f"workspaces/{chat_id}/files/note.txt",
    } <= with_canary
    assert any(name.startswith("files/") for name in with_canary)
    chat = json.loads(contents[f"chats/{chat_id}/chat.json"])
    assert (chat["goal"]["state"], len(chat["monitors"])) == ("reached", 1)
    assert json.loads(contents["problems.json"]) == []
    assert {"api-keys.json", "usage.json", "sessions.json", "secrets.json"} <= contents.keys()
    assert json.loads(contents["push-subscriptions.json"]) == {"push_subscriptions": []}
    own_models = json.loads(contents["model-overrides.json"])["items"]
    assert [each["purpose"] for each in own_models] == ["root", "general", "explore"]
