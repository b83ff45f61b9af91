"""One injected fault: the chats that it hits, what their clients were told, and the check of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence

from parley.client import (
    CallFailed,
    ChatOptions,
    Invalid,
    Message,
    NotFound,
    Parley,
)
from support.faults.history import Expected, History, Known, check_chat
from support.faults.lab import ChatdProcess, FaultLab, State

REST_S_MAX = 90.0
PAGE_LENGTH = 200
RETRYABLE = (409, 429, 503, 504)
FAULTS_PER_TRIAL_MAX = 2


class Fault:
    """One injected fault: the chats that it hits and what their clients were told."""

    def __init__(self, lab: FaultLab, size: int, number: int) -> None:
        self.lab = lab
        self.row = lab.row
        self.size = size
        self.number = number
        self.history = History()
        self.chat_ids: list[str] = []

    def texts(self, pattern: str, count: int | None = None) -> list[str]:
        """Return messages; `@` in the pattern is a word that is nowhere else."""
        return [pattern.replace("@", self.lab.unique()) for _ in range(count or self.size)]

    def trial(self, count: int = 1) -> None:
        """Count what was in the row's phase when the fault hit."""
        self.row.trials += count

    async def create(
        self, client: Parley, text: str, *, key: str = "", options: ChatOptions | None = None
    ) -> str | None:
        """Create a chat; return its id if the client was told one."""
        key = key or self.lab.unique()
        operation = self.history.invoke("", key, text)
        try:
            chat = await client.create_chat(text, options=options, request_id=key)
        except CallFailed as error:
            self._failed(operation.key, error)
            return None
        operation.chat_id = chat.id
        self.history.end(operation, Known.OK)
        if chat.id not in self.chat_ids:
            self.chat_ids.append(chat.id)
        return chat.id

    async def create_by_http(self, text: str, *, key: str = "") -> str | None:
        """Create a chat through the gateway; return its id if the client was told one."""
        key = key or self.lab.unique()
        operation = self.history.invoke("", key, text)
        body = {"content": [{"type": "text", "text": text}]}
        status, _, document = await self.lab.http("POST", "/chats", body, key)
        self.row.counts[f"http_{status}"] += 1
        if status not in (200, 201, 202):
            self.history.end(operation, Known.OPEN)
            return None
        operation.chat_id = chat_id = str(document["id"])
        self.history.end(operation, Known.OK)
        if chat_id not in self.chat_ids:
            self.chat_ids.append(chat_id)
        return chat_id

    async def create_all(
        self, client: Parley, texts: Sequence[str], options: ChatOptions | None = None
    ) -> list[str]:
        """Create chats side by side; all must be accepted."""
        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(self.create(client, text, options=options)) for text in texts]
        return [chat_id for task in made if (chat_id := task.result()) is not None]

    async def send(self, client: Parley, chat_id: str, text: str, *, key: str = "") -> bool:
        """Send a message; return whether the client was told that it is stored."""
        key = key or self.lab.unique()
        operation = self.history.invoke(chat_id, key, text)
        try:
            sent = await client.send_message(chat_id, text, request_id=key)
        except CallFailed as error:
            self._failed(key, error)
            return False
        operation.replays += sent.is_replay
        self.history.end(operation, Known.OK, None if sent.message is None else sent.message.id)
        return True

    async def send_by_http(self, chat_id: str, text: str, key: str) -> int:
        """Send once through the gateway; a refusal that cannot be repeated is a problem."""
        operation = self.history.invoke(chat_id, key, text)
        body = {"content": [{"type": "text", "text": text}]}
        began_s = time.monotonic()
        path = f"/chats/{chat_id}/messages"
        status, headers, document = await self.lab.http("POST", path, body, key)
        self.row.figures["answered_s"].append(time.monotonic() - began_s)
        self.row.counts[f"http_{status}"] += 1
        if 200 <= status < 300:
            self.history.end(operation, Known.OK)
        elif status not in RETRYABLE:
            self.row.problems.append(f"{chat_id}: the answer was {status} {document}")
        elif status == 503 and "Retry-After" not in headers:
            self.row.problems.append(f"{chat_id}: 503 without Retry-After")
        return status

    def _failed(self, key: str, error: CallFailed) -> None:
        operation = self.history.operations[key]
        is_certain = isinstance(error, Invalid | NotFound)
        self.history.end(operation, Known.FAILED if is_certain else Known.OPEN)
        self.row.counts[f"client_{type(error).__name__}"] += 1
        self.row.counts[error.reason] += 1

    async def load(self, client: Parley, count: int | None = None) -> list[str]:
        """Create chats that stream, that run a tool, and that have a message in their queue."""
        patterns = ("count to 40, @", "run: echo @ >> runs; sleep 3; seq 1 9", "count to 30, @")
        made = []
        for place in range(count or self.size):
            chat_id = await self.create(client, *self.texts(patterns[place % 3], 1))
            if chat_id is not None:
                made.append(chat_id)
                if place % 3 == 2:
                    await self.send(client, chat_id, *self.texts("repeat after me: @", 1))
        return made

    async def until_held(self, point: str, chat_ids: Iterable[str], within_s: float = 30) -> None:
        """Wait until chats stand at a point."""
        wanted = set(chat_ids)

        async def all_there() -> bool:
            return self.lab.points.at(point) >= wanted

        await self.lab.until(all_there, f"{len(wanted)} chats at {point}", within_s)

    async def kill_held(self, victim: ChatdProcess, point: str, chat_ids: Collection[str]) -> None:
        """Kill a process once all these chats are held at a point; each of them is a trial."""
        await self.until_held(point, chat_ids)
        victim.kill()
        self.trial(len(chat_ids))
        self.lab.points.disarm()

    async def until_many_held(self, point: str, count: int, within_s: float = 30) -> None:
        """Wait until so many chats stand at a point, whichever they are."""

        async def enough() -> bool:
            return len(self.lab.points.at(point)) >= count

        await self.lab.until(enough, f"{count} chats at {point}", within_s)

    async def until_all(
        self,
        holds: Callable[[State], bool],
        what: str,
        within_s: float = REST_S_MAX,
        chat_ids: Sequence[str] = (),
    ) -> dict[str, State]:
        """Wait until something holds of all chats."""
        wanted = chat_ids or self.chat_ids
        seen: dict[str, State] = {}

        async def all_hold() -> bool:
            seen.update(await self.lab.states(wanted))
            return all(holds(seen[chat_id]) for chat_id in wanted)

        try:
            await self.lab.until(all_hold, what, within_s)
        except AssertionError:
            late = {key: state for key, state in seen.items() if not holds(state)}
            raise AssertionError(f"{what} did not happen in {within_s} s: {late}") from None
        return seen

    async def at_rest(self, within_s: float = REST_S_MAX) -> dict[str, State]:
        """Wait until no chat runs."""
        return await self.until_all(lambda state: state.is_at_rest, "rest", within_s)

    async def measure_takeover(
        self, before: dict[str, State], since_s: float, name: str = "takeover_s"
    ) -> None:
        """Note for every chat when another owner had it."""
        missing = set(before)

        async def all_taken() -> bool:
            for chat_id, state in (await self.lab.states(missing)).items():
                is_new = state.owner_epoch > before[chat_id].owner_epoch
                is_taken = is_new and state.address is not None
                if is_taken or state.is_at_rest:
                    missing.discard(chat_id)
                    self.row.figures[name].append(time.monotonic() - since_s)
            return not missing

        await self.lab.until(all_taken, f"takeover of {before.keys()}")

    def expect(self, chat_id: str) -> Expected:
        """Return what may become of a chat, to be changed."""
        return self.history.expect(chat_id)

    async def messages(self, chat_id: str) -> list[Message]:
        """Return the history of a chat, oldest first, as a client pages through it."""
        client = await self.lab.client()
        found: list[Message] = []
        while True:
            before_id = found[-1].id if found else 0
            page = await client.list_messages(chat_id, before_id=before_id, limit=PAGE_LENGTH)
            found += page.messages
            if not page.has_more:
                return found[::-1]

    async def check(self) -> None:
        """Require that every chat rests and holds what its clients were told."""
        states = await self.at_rest()
        for chat_id in self.chat_ids:
            if states[chat_id].status == "error" and not self.expect(chat_id).may_fail:
                self.row.problems.append(f"{chat_id}: its turn failed: {states[chat_id]}")
            messages = await self.messages(chat_id)
            check_chat(self.history, chat_id, messages, self.lab.workspace(chat_id), self.row)
        await self.lab.audit()


async def faults(lab: FaultLab, *, chats: int | None = None) -> AsyncIterator[Fault]:
    """Give faults until there were enough trials; each is checked when the next begins."""
    size = min(chats or lab.chats_per_fault, lab.trials_wanted)
    wanted = size if lab.is_short else lab.trials_wanted
    for number in range(FAULTS_PER_TRIAL_MAX * wanted):
        if lab.row.trials >= wanted:
            break
        await lab.until_whole()
        lab.points.disarm()
        lab.points.forget()
        fault = Fault(lab, size, number)
        lab.row.faults += 1
        yield fault
        lab.points.disarm()
        await fault.check()
    lab.row.require_clean()
