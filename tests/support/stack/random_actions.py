"""What users do at random with chats and workspaces, with the weight of each."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from support.stack.random_use import CHATS, WORKSPACES, Action, RandomUser

READ_EVENTS_MAX = 20
ACTIONS = "/api/v1/actions?limit=50"
CHANGES = ({"title": "another"}, {"pin_order": 1}, {"labels": {"a": "b"}})
#: A command that a rule of each user lets wait for approval.
ASKED_COMMAND = "echo asked"
ASKING_RULE = {"effect": "ask", "tool": "execute", "command": f"{ASKED_COMMAND}*"}
QUESTION = {"question": "Which one?", "options": [{"label": "this"}, {"label": "that"}]}


def content(user: RandomUser) -> dict[str, Any]:
    """Return something to say that takes long, uses tools, asks, or is answered at once."""
    create = called("create_workspace", template_id=user.template_id)
    slow_agent = called("spawn_agent", prompt=f"count to {user.rng.randrange(5, 60)}")
    fork_agent = called("spawn_agent", prompt="run: echo child > made", isolation="fork")
    text = user.rng.choice(
        (
            f"count to {user.rng.randrange(5, 200)}",
            f"count to {user.rng.randrange(5, 200)}",
            "repeat after me: yes",
            "say hello",
            "run: sleep 0.2; echo done",
            "run: echo one\nand run: sleep 5",
            f"{create}\nrun: echo there",
            f"{create}\n{called('stop_workspace')}",
            f"{called('list_templates')}\n{called('write_file', path='a', content='b')}",
            f"run: {ASKED_COMMAND}",
            f"run: echo first > a\nrun: {ASKED_COMMAND} > b",
            called("ask_user_question", questions=[QUESTION]),
            f"{slow_agent}\n{called('wait_agents')}",
            f"run: echo parent > made\n{fork_agent}",
        )
    )
    return {"content": [{"type": "text", "text": text}]}


def called(tool: str, **arguments: object) -> str:
    """Return the line of a script that calls a tool."""
    return f"call: {tool} {json.dumps(arguments)}"


async def create(user: RandomUser) -> None:
    body = content(user)
    if user.rng.random() < 0.15:
        body["mode"] = "plan"
    user.created(user.chats, await user.asked("create", "POST", CHATS, body))


async def delete(user: RandomUser) -> None:
    path = user.a_chat()
    if path is None or user.results.shared_chat_id in path:
        return
    await user.asked("delete", "DELETE", path)
    # Now and then it is used on by those who do not know yet.
    with suppress(ValueError):
        if user.rng.random() < 0.8:
            user.chats.remove(path.rpartition("/")[2])


async def messages(user: RandomUser, path: str) -> tuple[list[Any], list[Any]]:
    """Return messages of the user in a chat, and messages that wait."""
    found = await user.asked("messages", "GET", f"{path}/messages?limit=20") or {}
    said = [each for each in found.get("messages", ()) if each["role"] == "user"]
    return said, found.get("queued_messages") or []


async def edit(user: RandomUser) -> None:
    if path := user.a_chat():
        said, _ = await messages(user, path)
        if said:
            message = user.rng.choice(said)
            await user.asked("edit", "PATCH", f"{path}/messages/{message['id']}", content(user))


async def change_queue(user: RandomUser) -> None:
    if path := user.a_chat():
        _, queued = await messages(user, path)
        if not queued:
            return
        waiting = f"{path}/queue/{user.rng.choice(queued)['id']}"
        match user.rng.randrange(4):
            case 0:
                await user.asked("promote", "POST", f"{waiting}/promote", {})
            case 1:
                await user.asked("drop", "DELETE", waiting)
            case 2:
                await user.asked("edit queue", "PATCH", waiting, content(user))
            case _:
                await user.asked("order queue", "PATCH", waiting, {"place": 1})


async def fork(user: RandomUser) -> None:
    if path := user.a_chat():
        body: dict[str, Any] = {"workspace": user.rng.choice(("none", "same", "copy"))}
        if user.rng.random() < 0.5:
            said, _ = await messages(user, path)
            body |= {"message_id": user.rng.choice(said)["id"]} if said else {}
        user.created(user.chats, await user.asked("fork", "POST", f"{path}/fork", body))


async def revert(user: RandomUser) -> None:
    if path := user.a_chat():
        said, _ = await messages(user, path)
        if said:
            body = {
                "message_id": user.rng.choice(said)["id"],
                "restore_files": user.rng.random() < 0.5,
            }
            preview = user.rng.random() < 0.2
            name, suffix = ("preview", "/revert/preview") if preview else ("revert", "/revert")
            await user.asked(name, "POST", f"{path}{suffix}", body)


async def undo_revert(user: RandomUser) -> None:
    if path := user.a_chat():
        found = await user.asked("reverts", "GET", f"{path}/reverts") or {}
        if reverts := found.get("items"):
            await user.asked("undo", "POST", f"{path}/reverts/{reverts[0]['id']}/undo", {})


async def answer(user: RandomUser) -> None:
    """Answer something that a chat of the user waits for, or have another user try it."""
    found = await user.asked("actions", "GET", ACTIONS) or {}
    if not (waiting := found.get("items")):
        return
    action = user.rng.choice(waiting)
    path = f"{CHATS}/{action['chat_id']}/actions/{action['id']}/answer"
    user.results.owners.setdefault(action["chat_id"], user.user_id)
    if action["kind"] == "question":
        texts = ({"selected": ["this"]}, {"text": "neither"}, {"selected": ["unknown"]})
        body: dict[str, Any] = {"answers": [user.rng.choice(texts)]}
    else:
        body = {"decision": user.rng.choice(("accept", "refuse"))}
    if user.others and user.rng.random() < 0.3:
        await user.rng.choice(user.others).asked("answer for another", "POST", path, body)
    else:
        await user.asked("answer", "POST", path, body)


async def share(user: RandomUser) -> None:
    path = user.a_chat()
    if path is not None and user.results.shared_chat_id not in path:
        readers = user.others if user.rng.random() < 0.7 else []
        shares = [{"user_id": each.user_id} for each in readers]
        await user.asked("share", "PUT", f"{path}/shares", {"shares": shares})


async def move(user: RandomUser) -> None:
    """Have a chat work in some workspace, or in none that was chosen."""
    path, workspace = user.a_chat(), user.a_workspace()
    if path is not None:
        is_leaving = workspace is None or user.rng.random() < 0.3
        chosen = None if workspace is None or is_leaving else workspace.rpartition("/")[2]
        await user.asked("move", "PATCH", path, {"workspace_id": chosen})


async def follow(user: RandomUser) -> None:
    path = user.a_chat()
    if path is None:
        return
    results = user.results
    with suppress(OSError, EOFError, IndexError, ValueError):
        async with asyncio.timeout(None) as limit, user.client.stream(f"{path}/events") as events:
            results.answers["follow", events.reply.status] += 1
            if events.reply.status >= 500:
                results.failures.append(f"follow: GET {path}/events: {events.reply.status}")
            limit.reschedule(asyncio.get_running_loop().time() + user.rng.random())
            with suppress(TimeoutError):
                for _ in range(READ_EVENTS_MAX):
                    await events.frame()


async def hang_up(user: RandomUser) -> None:
    path = user.a_chat()
    if path is not None and user.results.shared_chat_id not in path:
        method = user.rng.choice(("GET", "GET", "DELETE"))
        with suppress(OSError):
            async with user.client.asking(method, path):
                user.results.answers["hang up", 0] += 1


async def make_workspace(user: RandomUser) -> None:
    body = {"template_id": user.template_id}
    user.created(user.workspaces, await user.asked("make workspace", "POST", WORKSPACES, body))


async def delete_workspace(user: RandomUser) -> None:
    if path := user.a_workspace():
        await user.asked("delete workspace", "DELETE", f"{path}?force=true")
        with suppress(ValueError):
            if user.rng.random() < 0.8:
                user.workspaces.remove(path.rpartition("/")[2])


def to_chat(
    name: str, method: str, suffix: str, body: Callable[[RandomUser], Any] = lambda _: {}
) -> Action:
    """Return an action that is one request about some chat."""

    async def act(user: RandomUser) -> None:
        if path := user.a_chat():
            await user.asked(name, method, f"{path}{suffix}", body(user))

    return act


def to_workspace(name: str, suffix: str) -> Action:
    """Return an action that is one request about some workspace."""

    async def act(user: RandomUser) -> None:
        if path := user.a_workspace():
            await user.asked(name, "POST", f"{path}{suffix}", {})

    return act


WEIGHTS: dict[Action, int] = {
    create: 20,
    to_chat("send", "POST", "/messages", content): 16,
    to_chat("interrupt", "POST", "/interrupt"): 12,
    edit: 6,
    change_queue: 7,
    to_chat("change", "PATCH", "", lambda user: user.rng.choice(CHANGES)): 3,
    to_chat("plan", "PATCH", "", lambda user: {"mode": user.rng.choice(("plan", None))}): 3,
    to_chat("archive", "POST", "/archive"): 4,
    to_chat("unarchive", "POST", "/unarchive"): 4,
    to_chat("compact", "POST", "/compact"): 1,
    to_chat("reconcile", "POST", "/reconcile"): 1,
    to_chat("read", "GET", "", lambda _: None): 4,
    to_chat("mark read", "PUT", "/read", lambda _: {"last_message_id": 1}): 1,
    delete: 14,
    fork: 5,
    revert: 5,
    undo_revert: 3,
    answer: 10,
    share: 3,
    move: 3,
    follow: 4,
    hang_up: 3,
    make_workspace: 3,
    to_workspace("stop workspace", "/stop"): 2,
    to_workspace("start workspace", "/start"): 2,
    to_workspace("fork workspace", "/fork"): 1,
    delete_workspace: 3,
}
