"""People who use a stack at random over HTTP, in each other's way, and what they are answered."""

import asyncio
import random  # noqa: TID251 (only the type; it is an argument)
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from support.net.http_client import HttpClient

CHATS = "/api/v1/chats"
WORKSPACES = "/api/v1/workspaces"
READ_EVENTS_MAX = 20
CHANGES = ({"title": "another"}, {"pin_order": 1}, {"labels": {"a": "b"}}, {"mode": "plan"})


@dataclass
class RandomUse:
    """Everything that is known of one run; all who act in it share the chats and workspaces.

    Attributes:
        client: Makes the requests.
        rng: Decides what is done next.
        template_id: What workspaces are made of.
        answers: How often each action was answered with each status.
        failures: Answers that say that something is wrong with the server.
    """

    client: HttpClient
    rng: random.Random
    template_id: str
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    chats: list[str] = field(default_factory=list)
    workspaces: list[str] = field(default_factory=list)

    async def run(self, actions: int, actors: int) -> None:
        """Do so many things, several of them at once."""
        left = iter(range(actions))

        async def act() -> None:
            for _ in left:
                action = self.rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
                await action(self)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(actors):
                tasks.create_task(act())

    async def asked(self, action: str, method: str, path: str, body: Any = None) -> Any:
        """Make a request and note how it was answered; return its document if it was taken."""
        try:
            reply = await self.client.request(method, path, body)
        except (OSError, EOFError, TimeoutError, IndexError) as error:
            self.failures.append(f"{action}: {method} {path}: {error!r}")
            return None
        self.answers[action, reply.status] += 1
        if reply.status >= 500:
            self.failures.append(f"{action}: {method} {path}: {reply.status} {reply.body!r}")
        return reply.json() if reply.status < 300 and reply.body else None

    def a_chat(self) -> str | None:
        """Return the path of some chat, which may be gone."""
        return f"{CHATS}/{self.rng.choice(self.chats)}" if self.chats else None

    def a_workspace(self) -> str | None:
        """Return the path of some workspace, which may be gone."""
        return f"{WORKSPACES}/{self.rng.choice(self.workspaces)}" if self.workspaces else None

    def content(self) -> dict[str, Any]:
        """Return something to say that takes long, uses tools, or is answered at once."""
        create = f'call: create_workspace {{"template_id": "{self.template_id}"}}'
        text = self.rng.choice(
            (
                f"count to {self.rng.randrange(5, 200)}",
                f"count to {self.rng.randrange(5, 200)}",
                "repeat after me: yes",
                "run: sleep 0.2; echo done",
                "run: echo one\nand run: sleep 5",
                f"{create}\nrun: echo there",
                f"{create}\ncall: stop_workspace {{}}",
                'call: list_templates {}\ncall: write_file {"path": "a", "content": "b"}',
            )
        )
        return {"content": [{"type": "text", "text": text}]}


async def create(use: RandomUse) -> None:
    made = await use.asked("create", "POST", CHATS, use.content())
    if made is not None:
        use.chats.append(made["id"])


async def delete(use: RandomUse) -> None:
    if path := use.a_chat():
        await use.asked("delete", "DELETE", path)
        # Now and then it is used on by those who do not know yet.
        with suppress(ValueError):
            if use.rng.random() < 0.8:
                use.chats.remove(path.rpartition("/")[2])


async def edit(use: RandomUse) -> None:
    if path := use.a_chat():
        found = await use.asked("messages", "GET", f"{path}/messages?limit=20")
        said = [each for each in (found or {}).get("messages", ()) if each["role"] == "user"]
        if said:
            message = use.rng.choice(said)
            await use.asked("edit", "PATCH", f"{path}/messages/{message['id']}", use.content())


async def take_from_queue(use: RandomUse) -> None:
    if path := use.a_chat():
        found = await use.asked("messages", "GET", f"{path}/messages?limit=20")
        if queued := (found or {}).get("queued_messages"):
            waiting = f"{path}/queue/{use.rng.choice(queued)['id']}"
            if use.rng.random() < 0.5:
                await use.asked("promote", "POST", f"{waiting}/promote", {})
            else:
                await use.asked("drop", "DELETE", waiting)


async def follow(use: RandomUse) -> None:
    path = use.a_chat()
    if path is None:
        return
    with suppress(OSError, EOFError, IndexError, ValueError):
        async with asyncio.timeout(None) as limit, use.client.stream(f"{path}/events") as events:
            use.answers["follow", events.reply.status] += 1
            if events.reply.status >= 500:
                use.failures.append(f"follow: GET {path}/events: {events.reply.status}")
            limit.reschedule(asyncio.get_running_loop().time() + use.rng.random())
            with suppress(TimeoutError):
                for _ in range(READ_EVENTS_MAX):
                    await events.frame()


async def hang_up(use: RandomUse) -> None:
    path = use.a_chat()
    if path is not None:
        method = use.rng.choice(("GET", "GET", "DELETE"))
        with suppress(OSError):
            async with use.client.asking(method, path):
                use.answers["hang up", 0] += 1


async def make_workspace(use: RandomUse) -> None:
    body = {"template_id": use.template_id}
    made = await use.asked("make workspace", "POST", WORKSPACES, body)
    if made is not None:
        use.workspaces.append(made["id"])


async def delete_workspace(use: RandomUse) -> None:
    if path := use.a_workspace():
        await use.asked("delete workspace", "DELETE", f"{path}?force=true")
        with suppress(ValueError):
            if use.rng.random() < 0.8:
                use.workspaces.remove(path.rpartition("/")[2])


def to_chat(
    name: str, method: str, suffix: str, body: Callable[[RandomUse], Any] = lambda _: {}
) -> Callable[[RandomUse], Awaitable[None]]:
    """Return an action that is one request about some chat."""

    async def act(use: RandomUse) -> None:
        if path := use.a_chat():
            await use.asked(name, method, f"{path}{suffix}", body(use))

    return act


def to_workspace(name: str, suffix: str) -> Callable[[RandomUse], Awaitable[None]]:
    """Return an action that is one request about some workspace."""

    async def act(use: RandomUse) -> None:
        if path := use.a_workspace():
            await use.asked(name, "POST", f"{path}{suffix}", {})

    return act


Action = Callable[[RandomUse], Coroutine[Any, Any, None] | Awaitable[None]]

WEIGHTS: dict[Action, int] = {
    create: 20,
    to_chat("send", "POST", "/messages", RandomUse.content): 16,
    to_chat("interrupt", "POST", "/interrupt"): 12,
    edit: 6,
    take_from_queue: 5,
    to_chat("change", "PATCH", "", lambda use: use.rng.choice(CHANGES)): 4,
    to_chat("archive", "POST", "/archive"): 4,
    to_chat("unarchive", "POST", "/unarchive"): 4,
    to_chat("compact", "POST", "/compact"): 1,
    to_chat("reconcile", "POST", "/reconcile"): 1,
    to_chat("read", "GET", "", lambda _: None): 4,
    delete: 16,
    follow: 4,
    hang_up: 3,
    make_workspace: 3,
    to_workspace("stop workspace", "/stop"): 2,
    to_workspace("start workspace", "/start"): 2,
    to_workspace("fork workspace", "/fork"): 1,
    delete_workspace: 3,
}
