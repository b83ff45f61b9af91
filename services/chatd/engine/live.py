"""Live parts and wake-ups: what this process knows of its chats before and after each commit.

A chat's channel holds the parts of its open episode, so that a late watcher can catch up, and tells
every watcher when the chat moved. Watchers are bounded: one that falls behind is closed, and the
producer never waits for it.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chatd.domain.chat import ChatId, ChatState, Role
from chatd.domain.commands import Fence
from chatd.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult

SIGNALS_MAX = 4096
NEWEST = 2**63 - 1  # Whatever version a watcher has seen, it looks again.


@dataclass(frozen=True, slots=True)
class LivePart:
    """A piece of an answer that is being written."""

    history_version: int
    generation_attempt: int
    seq: int
    part_index: int
    role: Role
    part: Part

    @property
    def characters(self) -> int:
        """Return about how long it is."""
        match self.part:
            case Text(text) | Reasoning(text):
                return len(text)
            case ToolCall(args_json=text) | ToolResult(result_json=text):
                return len(text)
            case _:
                return 0


@dataclass(frozen=True, slots=True)
class Moved:
    """The chat was committed anew; read what changed."""

    snapshot_version: int


@dataclass(frozen=True, slots=True)
class FellBehind:
    """This watcher missed something and gets nothing more."""


@dataclass(frozen=True, slots=True)
class GoingAway:
    """This process stops; go on elsewhere."""


Signal = LivePart | Moved | FellBehind | GoingAway


class Watcher:
    """One reader's bounded line of signals."""

    def __init__(self) -> None:
        self._signals: asyncio.Queue[Signal] = asyncio.Queue(SIGNALS_MAX)

    async def next(self) -> Signal:
        """Wait for the next signal."""
        return await self._signals.get()

    def tell(self, signal: Signal) -> bool:
        """Put a signal in line; return False when the line is full and now closed."""
        if self._signals.qsize() < SIGNALS_MAX - 1:
            self._signals.put_nowait(signal)
            return True
        self._signals.put_nowait(FellBehind())
        return False


@dataclass(slots=True)
class Channel:
    """The open episode of one chat and those who watch it."""

    parts: list[LivePart] = field(default_factory=list)
    watchers: set[Watcher] = field(default_factory=set)


class Episode:
    """Numbers the live parts of one attempt."""

    def __init__(self, live: "LiveChats", chat_id: ChatId, fence: Fence) -> None:
        self._live = live
        self._chat_id = chat_id
        self._fence = fence
        self._seq = 0

    def add(self, role: Role, part_index: int, part: Part) -> None:
        """Show one more piece of the answer."""
        self._seq += 1
        live_part = LivePart(
            self._fence.history_version,
            self._fence.generation_attempt,
            self._seq,
            part_index,
            role,
            part,
        )
        self._live.show(self._chat_id, live_part)


class LiveChats:
    """The channels of all chats that run or are watched in this process."""

    def __init__(self, shown: Callable[[ChatId, LivePart], None] | None = None) -> None:
        self._channels: dict[ChatId, Channel] = {}
        self._shown = shown

    def open(self, chat_id: ChatId, fence: Fence) -> Episode:
        """Begin the episode of `fence`; parts of an older one are forgotten."""
        self._channels.setdefault(chat_id, Channel()).parts.clear()
        return Episode(self, chat_id, fence)

    def show(self, chat_id: ChatId, part: LivePart) -> None:
        """Keep a part and pass it on."""
        channel = self._channels.setdefault(chat_id, Channel())
        channel.parts.append(part)
        self._tell(chat_id, part)
        if self._shown is not None:
            self._shown(chat_id, part)

    def moved(self, state: ChatState) -> None:
        """Forget the episode that the commit closed and wake the watchers."""
        channel = self._channels.get(state.chat_id)
        if channel is None:
            return
        if channel.parts and not _is_of(channel.parts[0], state):
            channel.parts.clear()
        self._tell(state.chat_id, Moved(state.snapshot_version))
        self._drop_if_unused(state.chat_id)

    def heard(self, chat_id: ChatId, snapshot_version: int) -> None:
        """Wake the watchers of a chat that another process moved."""
        if chat_id in self._channels:
            self._tell(chat_id, Moved(snapshot_version))

    def heard_of_gap(self) -> None:
        """Wake every watcher, because news may have been lost."""
        for chat_id in self._channels:
            self._tell(chat_id, Moved(NEWEST))

    def close(self) -> None:
        """Send every watcher away, because this process stops."""
        for chat_id in self._channels:
            self._tell(chat_id, GoingAway())

    @contextmanager
    def watch(self, chat_id: ChatId) -> Iterator[Watcher]:
        """Watch a chat from now on; the parts of its open episode come first."""
        channel = self._channels.setdefault(chat_id, Channel())
        watcher = Watcher()
        for part in channel.parts:
            watcher.tell(part)
        channel.watchers.add(watcher)
        try:
            yield watcher
        finally:
            channel.watchers.discard(watcher)
            self._drop_if_unused(chat_id)

    def _drop_if_unused(self, chat_id: ChatId) -> None:
        channel = self._channels.get(chat_id)
        if channel is not None and not channel.parts and not channel.watchers:
            del self._channels[chat_id]

    def _tell(self, chat_id: ChatId, signal: Signal) -> None:
        channel = self._channels[chat_id]
        channel.watchers = {watcher for watcher in channel.watchers if watcher.tell(signal)}


def _is_of(part: LivePart, state: ChatState) -> bool:
    """Return whether a part is of the episode that a state leaves open."""
    return (part.history_version, part.generation_attempt) == (
        state.history_version,
        state.generation_attempt,
    )
