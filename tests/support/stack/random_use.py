"""Users who use a stack at random over HTTP, in each other's way, and what they are answered."""

import asyncio
import random  # noqa: TID251 (only the type; it is an argument)
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.net.http_client import HttpClient

CHATS = "/api/v1/chats"
WORKSPACES = "/api/v1/workspaces"
#: How often an action is about a chat of another user, and about the one that is shared.
FOREIGN_SHARE = 0.1
SHARED_SHARE = 0.05
#: Actions that change nothing, though they are no GET.
READING = frozenset({"preview"})


@dataclass
class Results:
    """What is known of one run; all users share it.

    Attributes:
        answers: How often each action was answered with each status.
        failures: Answers that say that something is wrong with the server.
        owners: The user who created a chat or a workspace, by its id.
        shared_chat_id: The chat that its owner and its readers use all the time.
    """

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    shared_chat_id: str = ""


@dataclass
class RandomUser:
    """One user, and the chats and workspaces that the user knows of.

    Attributes:
        user_id: The user.
        client: Makes the requests of the user.
        rng: Decides what is done next.
        template_id: What workspaces are made of.
        results: What came of it.
        others: The other users.
    """

    user_id: str
    client: HttpClient
    rng: random.Random
    template_id: str
    results: Results
    others: list["RandomUser"] = field(default_factory=list)
    chats: list[str] = field(default_factory=list)
    workspaces: list[str] = field(default_factory=list)

    async def asked(self, action: str, method: str, path: str, body: Any = None) -> Any:
        """Make a request and note how it was answered; return its document if it was accepted."""
        try:
            reply = await self.client.request(method, path, body)
        except (OSError, EOFError, TimeoutError, IndexError) as error:
            self.results.failures.append(f"{action}: {method} {path}: {error!r}")
            return None
        self.results.answers[action, reply.status] += 1
        if reply.status >= 500:
            told = f"{action}: {method} {path}: {reply.status} {reply.body!r}"
            self.results.failures.append(told)
        if reply.status >= 300:
            return None
        if method != "GET" and action not in READING and not self.owns(path):
            told = f"{action}: {method} {path}: {reply.status} for another user's chat or workspace"
            self.results.failures.append(told)
        return reply.json() if reply.body else None

    def owns(self, path: str) -> bool:
        """Return whether a path is about nothing that another user created."""
        ids = path.partition("?")[0].split("/")
        return all(self.results.owners.get(each, self.user_id) == self.user_id for each in ids)

    def created(self, kept: list[str], document: Any) -> None:
        """Keep the id of a chat or workspace that was created."""
        if document is not None:
            kept.append(document["id"])
            self.results.owners[document["id"]] = self.user_id

    def a_chat(self) -> str | None:
        """Return the path of some chat, which may be gone, or another user's."""
        chance = self.rng.random()
        if chance < SHARED_SHARE and self.results.shared_chat_id:
            return f"{CHATS}/{self.results.shared_chat_id}"
        return self._one_of(CHATS, [each.chats for each in (self, *self.others)])

    def a_workspace(self) -> str | None:
        """Return the path of some workspace, which may be gone, or another user's."""
        return self._one_of(WORKSPACES, [each.workspaces for each in (self, *self.others)])

    def _one_of(self, path: str, known: list[list[str]]) -> str | None:
        own, *foreign = known
        is_foreign = self.rng.random() < FOREIGN_SHARE
        ids = [each for ids in foreign for each in ids] if is_foreign else own
        return f"{path}/{self.rng.choice(ids)}" if ids else None


Action = Callable[[RandomUser], Awaitable[None]]


async def use_at_random(
    users: Sequence[RandomUser], weights: Mapping[Action, int], actions: int, actors: int
) -> None:
    """Do so many things, several of them at once; actors take turns among the users."""
    left = iter(range(actions))

    async def act(user: RandomUser) -> None:
        for _ in left:
            action = user.rng.choices(tuple(weights), tuple(weights.values()))[0]
            await action(user)

    async with asyncio.TaskGroup() as tasks:
        for number in range(actors):
            tasks.create_task(act(users[number % len(users)]))


async def share_a_chat(owner: RandomUser) -> None:
    """Create the chat that all others may read."""
    content = [{"type": "text", "text": "repeat after me: shared"}]
    chat = await owner.asked("create", "POST", CHATS, {"content": content})
    owner.results.owners[chat["id"]] = owner.user_id
    owner.results.shared_chat_id = chat["id"]
    shares = [{"user_id": each.user_id} for each in owner.others]
    await owner.asked("share", "PUT", f"{CHATS}/{chat['id']}/shares", {"shares": shares})
