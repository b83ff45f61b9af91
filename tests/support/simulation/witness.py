"""What must hold at every commit, noted by somebody who sees them all."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from chatd.chats.domain.chat import ChatState
from chatd.primitives.domain.ids import ChatId, WorkerId
from parley.clock import Clock
from support.chatd.chats.in_memory_chats import StoredChat
from support.chatd.turns.in_memory_workers import WorkerRow
from support.simulation.rules import (
    Author,
    broken_between,
    broken_by,
    broken_claim,
    dropped_revert,
)


class Violation(AssertionError):
    """Something that must never be was."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The newest state of a chat, who wrote it and when, by the world's time."""

    state: ChatState
    author: Author | None  # None when a statement about workers made it, or nobody waits for it.
    at_s: float


@dataclass(slots=True)
class Witness:
    """Sees every state that is stored, in order, and every message that users get in.

    Attributes:
        watchers: Told of every change, for those who make trouble at the right moment.
        leaving: Told of every commit that is about to be followed by another.
        answering: Told of a worker that is about to answer for late clients.
    """

    clock: Clock
    rows: Mapping[WorkerId, WorkerRow]
    states: dict[ChatId, list[ChatState]] = field(default_factory=dict)
    newest: dict[ChatId, Commit] = field(default_factory=dict)
    taken: Counter[tuple[ChatId, str]] = field(default_factory=Counter)
    withdrawn: set[tuple[ChatId, str]] = field(default_factory=set)
    promoted: set[tuple[ChatId, str]] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    commits: int = 0
    latest: list[ChatState] = field(default_factory=list)
    watchers: list[Callable[[ChatState, ChatState], None]] = field(default_factory=list)
    leaving: list[Callable[[Commit], None]] = field(default_factory=list)
    answering: Callable[[WorkerId, ChatId], None] = lambda worker_id, chat_id: None

    def took(self, chat_id: ChatId, text: str) -> None:
        """Note that a message of a user got in."""
        self.taken[chat_id, text] += 1

    def withdrew(self, chat_id: ChatId, *texts: str) -> None:
        """Note that a user took messages back."""
        self.withdrawn |= {(chat_id, text) for text in texts}

    def brought_back(self, chat_id: ChatId, *texts: str) -> None:
        """Note that messages that were taken back are there again."""
        self.withdrawn -= {(chat_id, text) for text in texts}

    def saw(self, chat: StoredChat, author: Author | None = None) -> None:
        """Compare what is stored now with what was before."""
        state, now = chat.state, self.clock.now()
        states = self.states.setdefault(state.chat_id, [state])
        before = states[-1]
        if before is state:
            return
        self.commits += 1
        self.latest.append(state)
        states.append(state)
        if (commit := self.newest.get(state.chat_id)) is not None:
            for inspect in self.leaving:
                inspect(commit)
        self.newest[state.chat_id] = Commit(state, author, self.clock.monotonic())
        row = None if state.worker_id is None else self.rows.get(state.worker_id)
        problems = [*broken_between(before, state), *broken_claim(before, state, row, now)]
        problems += dropped_revert(before, state, author)
        if author is not None:
            problems += broken_by(author, before, now)
        for problem in problems:
            self.violations.append(f"{problem}: {state}")
        for watcher in self.watchers:
            watcher(before, state)

    def disown(self, chat_id: ChatId) -> None:
        """Note that whoever sent the newest write gave it up before it arrived."""
        commit = self.newest.get(chat_id)
        if commit is not None:
            self.newest[chat_id] = Commit(commit.state, None, commit.at_s)

    def require(self, is_true: bool, problem: str, about: object) -> None:
        """Note a problem unless something is true."""
        if not is_true:
            self.violations.append(f"{problem}: {about}")
