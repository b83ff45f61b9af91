"""Two people, one invitation, one shared chat, one break-glass, and the log that proves it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import asyncpg

from support.stack.local_stack import LocalStack

PASSWORD = "nine green ladders lean"
REASON = "She cannot reach her account and asked for her notes"
TAMPERED = """
    ALTER TABLE identity.audit_entries DISABLE TRIGGER audit_entries_are_kept;
    UPDATE identity.audit_entries SET details = details || '{"reason": "Routine"}'
    WHERE action = 'break_glass.opened' AND object_id = '{ACCESS}';
"""
LOOKS_MAX = 60


def said(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Ada:
    """Calls `parley` on a machine of her own, where no stack runs."""

    def __init__(self, stack: LocalStack, home: Path) -> None:
        self._program = stack.command()[0]
        self._environment = {"PATH": stack.variables()["PATH"], "HOME": str(home)}

    def parley(self, *arguments: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self._program, *arguments],
            env=self._environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def logged(stack: LocalStack, action: str, object_id: str, count: int) -> list[Any]:
    """Return the entries about an object, once there are so many; chatd delivers them soon."""
    found: list[Any] = []
    for _ in range(LOOKS_MAX):
        printed = said(
            stack.parley("audit", "log", "--action", action, "--object", object_id, "--json")
        )
        found = json.loads(printed)["items"]
        if len(found) == count:
            return found
    raise AssertionError(found)


async def test_two_people_share_one_chat_and_break_glass_for_another(
    stack: LocalStack, tmp_path: Path
) -> None:
    ada = Ada(stack, tmp_path)
    link = said(stack.parley("users", "invite", "ada")).splitlines()[0]
    signed_in = ada.parley("login", link, "--password-stdin", typed=f"{PASSWORD}\n")
    said(signed_in)
    said(ada.parley("run", "hello from ada"))
    said(ada.parley("run", "a private note"))
    chats = json.loads(said(ada.parley("ls", "--json")))["items"]
    private, shared = (chat["id"] for chat in chats)
    assert said(ada.parley("share", shared, "owner")).splitlines() == [
        "The chat is shared with owner.",
        "Besides its owner it can be read by owner.",
    ]
    assert said(ada.parley("share", shared)) == "owner\n"

    listed = json.loads(said(stack.parley("ls", "--shared", "--json")))["items"]
    assert [chat["id"] for chat in listed] == [shared]
    assert "hello from ada" in said(stack.parley("show", shared))
    assert "hello from ada" in said(stack.parley("show", shared[:13]))
    assert stack.parley("show", private).returncode == 1
    assert "break-glass" in stack.parley("ls", "--owner", "ada").stderr

    access = said(stack.parley("break-glass", "open", "ada", "--reason", REASON)).strip()
    opened = json.loads(said(stack.parley("ls", "--owner", "ada", "--json")))["items"]
    assert {chat["id"] for chat in opened} == {private, shared}
    assert "a private note" in said(stack.parley("show", private))
    assert stack.parley("send", private, "hello").returncode == 1
    said(stack.parley("break-glass", "end", access))
    assert stack.parley("show", private).returncode == 1
    seen = json.loads(said(ada.parley("break-glass", "ls", "--all", "--json")))["items"]
    assert [(each["id"], each["reason"], each["is_open"]) for each in seen] == [
        (access, REASON, False)
    ]

    entries = logged(stack, "break_glass", access, 3)
    assert [(each["action"], each["address"]) for each in reversed(entries)] == [
        ("break_glass.opened", "127.0.0.1"),
        ("break_glass.read", "127.0.0.1"),
        ("break_glass.ended", "127.0.0.1"),
    ]
    logged(stack, "chat.shared", shared, 1)
    assert said(stack.parley("audit", "log", "--verify")).startswith("The audit log is intact")
    await tamper(stack, access)
    found = stack.parley("audit", "log", "--verify")
    line = entries[-1]["seq"]
    assert (found.returncode, found.stdout) == (
        1,
        f"line {line}: changed: its content does not match its hash\n",
    )


async def tamper(stack: LocalStack, access: str) -> None:
    """Change one line, as somebody who has the password of the database could."""
    url = stack.home.database_url_file("gateway").read_text().strip()
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(TAMPERED.replace("{ACCESS}", access))
    finally:
        await connection.close()


def test_the_document_names_the_commands() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/two-people.md").read_text()
    commands = (
        "users invite ada",
        "login",
        "run",
        "share CHAT_ID owner",
        "ls --shared",
        "ls --owner ada",
        "break-glass open ada",
        "break-glass end ACCESS_ID",
        "break-glass ls --all",
        "audit log --verify",
    )

    assert [each for each in commands if f"parley {each}" not in text] == []
