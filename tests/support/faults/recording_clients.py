"""Clients of a stack under faults that write down what they read, and the check of all of it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager

from parley.client import ChatEvent, Parley
from support.faults.client_documents import document_of
from support.faults.history import Known
from support.faults.lab import FaultLab
from support.faults.stream_history import (
    Ended,
    Fold,
    Followed,
    Listing,
    Opening,
    Seen,
    Stored,
    check_listings,
    place_of,
    text_of,
)
from support.faults.trials import Fault
from support.net.http_client import HttpClient

AGAIN_S = 0.2
LIST_EVERY_S = 0.1
CAUGHT_UP_S_MAX = 60.0
#: How a connection to a gateway that dies, or is not there, ends.
BROKEN = (OSError, EOFError, IndexError, ValueError)

ENDED = """
    SELECT e.status, e.snapshot_version, m.id, m.revision, m.role, m.content::text, m.is_deleted
    FROM chat.chat_exec e JOIN chat.chat_messages m ON m.chat_id = e.chat_id
    WHERE e.chat_id = $1 AND m.visibility <> 'model' ORDER BY m.id
"""


class Records:
    """What all clients of one fault read; open it as a context that runs them."""

    def __init__(self, fault: Fault, tasks: asyncio.TaskGroup) -> None:
        self._fault = fault
        self._lab = fault.lab
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.listings: list[Listing] = []
        self.followed: list[Followed] = []

    @property
    def http(self) -> HttpClient:
        """A client of the gateway, as the owner."""
        return http_client(self._lab)

    def follow(self, chat_id: str, *, reader: str = "sse", cursor: str = "") -> Followed:
        """Follow a chat over HTTP from now on, whatever happens to the connection."""
        followed = self._begin(chat_id, reader)
        self.come_back(followed, cursor)
        return followed

    def leave(self, followed: Followed) -> None:
        """Let a reader over HTTP go; it may come back."""
        self._readers.pop(followed.reader).cancel()

    def come_back(self, followed: Followed, cursor: str = "") -> None:
        """Let a reader go on where it stands."""
        self._readers[followed.reader] = self._run(self._follow(followed, cursor))

    def follow_at(self, client: Parley, chat_id: str, *, reader: str = "grpc") -> Followed:
        """Follow a chat without the gateway from now on."""
        followed = self._begin(chat_id, reader)
        self._run(self._follow_at(client, followed))
        return followed

    def keep_listing(self, chat_ids: Sequence[str], *, session: str) -> None:
        """Ask for the messages of chats again and again."""
        self._run(self._keep_listing(chat_ids, session))

    def stop(self) -> None:
        """Let all clients leave."""
        for task in self._running:
            task.cancel()

    async def check(self) -> None:
        """Wait until every reader has all there is, and compare everything with what is stored."""
        await self._fault.at_rest()
        ends = {chat_id: await self._ended(chat_id) for chat_id in self._fault.chat_ids}
        for followed in self.followed:
            version = ends[followed.chat_id][0]

            async def has_all(followed: Followed = followed, version: int = version) -> bool:
                if not followed.cursor:
                    return False
                target, is_settled, *_ = place_of(followed.cursor)
                return bool(is_settled) and target >= version

            try:
                await self._lab.until(has_all, "the end of a stream", CAUGHT_UP_S_MAX)
            except AssertionError:
                row = self._lab.row
                row.problems.append(f"{followed.chat_id}: {followed.reader} never came to its end")
        self.stop()
        for chat_id, (_, ended) in ends.items():
            check_listings(self._fault.history, chat_id, self.listings, ended, self._lab.row)
        for followed in self.followed:
            Fold(followed, ends[followed.chat_id][1], self._lab.row).check()

    def _begin(self, chat_id: str, reader: str) -> Followed:
        self.followed.append(Followed(f"{reader} {len(self.followed)}", chat_id))
        return self.followed[-1]

    def _run(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        self._running.append(self._tasks.create_task(work))
        return self._running[-1]

    async def _ended(self, chat_id: str) -> tuple[int, Ended]:
        rows = await self._lab.query(ENDED, chat_id)
        stored = tuple(
            Stored(
                row["id"],
                row["revision"],
                row["role"],
                text_of({"content": json.loads(row["content"])}),
                row["is_deleted"],
            )
            for row in rows
        )
        return rows[0]["snapshot_version"], Ended(rows[0]["status"], stored)

    async def _follow(self, followed: Followed, cursor: str) -> None:
        path = f"/api/v1/chats/{followed.chat_id}/events"
        while True:
            begun_s, number = time.monotonic(), len(followed.openings)
            cursor = followed.cursor or cursor
            try:
                headers = {"Last-Event-ID": cursor} if cursor else {}
                async with self.http.stream(path, headers) as stream:
                    if stream.reply.status != 200:
                        followed.openings.append(Opening(cursor, begun_s, Known.FAILED))
                    else:
                        followed.openings.append(Opening(cursor, begun_s, Known.OK))
                        while (event := await stream.event()) is not None:
                            seen = Seen(event.id or "", event.event, event.data, _now(), number)
                            if event.event != "bye":
                                followed.events.append(seen)
            except BROKEN:
                if len(followed.openings) == number:
                    followed.openings.append(Opening(cursor, begun_s, Known.OPEN))
            await self._lab.sleep(AGAIN_S)

    async def _follow_at(self, client: Parley, followed: Followed) -> None:
        followed.openings.append(Opening("", _now(), Known.OK))
        async with aclosing(client.follow(followed.chat_id)) as events:
            async for event in events:
                followed.events.append(seen_of(event))

    async def _keep_listing(self, chat_ids: Sequence[str], session: str) -> None:
        while True:
            for chat_id in chat_ids:
                self.listings.append(await self._list(chat_id, session))
            await self._lab.sleep(LIST_EVERY_S)

    async def _list(self, chat_id: str, session: str) -> Listing:
        invoked_s = _now()
        try:
            reply = await self.http.request("GET", f"/api/v1/chats/{chat_id}/messages?limit=200")
        except BROKEN:
            return Listing(session, chat_id, invoked_s, _now(), Known.OPEN)
        if reply.status != 200:
            return Listing(session, chat_id, invoked_s, _now(), Known.FAILED)
        page = reply.json()
        return Listing(
            session,
            chat_id,
            invoked_s,
            _now(),
            Known.OK,
            tuple((each["id"], text_of(each)) for each in reversed(page["messages"])),
            tuple(text_of(each) for each in page["queued_messages"]),
        )


def http_client(lab: FaultLab) -> HttpClient:
    """Return a client of the gateway, as the owner."""
    key = lab.stack.home.api_key_file.read_text().strip()
    port = int(lab.stack.http.rpartition(":")[2])
    return HttpClient(port, {"Authorization": f"Bearer {key}"})


def seen_of(event: ChatEvent) -> Seen:
    """Return an event of the client as the gateway would have told it."""
    kind, document = document_of(event)
    return Seen(event.cursor, kind, document, _now())


@asynccontextmanager
async def recording(fault: Fault) -> AsyncIterator[Records]:
    """Give clients that read until the context ends, and check what they read then."""
    async with asyncio.TaskGroup() as tasks:
        records = Records(fault, tasks)
        try:
            yield records
            await records.check()
        finally:
            records.stop()


_now: Callable[[], float] = time.monotonic
