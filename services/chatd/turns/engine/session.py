"""A claimed chat while this process runs it: the state it may act on, and its history.

The state is always one that a claim or a commit returned. A refused write means that the chat
changed: the run continues from the stored state, and nothing that may have been committed is
repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from chatd.chats.domain.chat import ChatState, Claimed, NewMessage, Status
from chatd.chats.domain.commands import FinishRevert, WorkerCommand
from chatd.chats.domain.errors import FenceLost, TransitionNotAllowed
from chatd.chats.domain.transitions import OWNED, fence_of
from chatd.models.domain.language_model import ModelRequest
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, Fence, Owner
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.turns.domain.ports import Chats
from chatd.turns.engine.answer import Answer
from chatd.turns.engine.history import History
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.engine.metering import CallObserver, MeteredCall
from parley.clock import Clock


class OwnershipLost(Exception):
    """This runner no longer owns the chat."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} is run elsewhere or not at all")
        self.chat_id = chat_id


@dataclass(frozen=True, slots=True)
class InterruptedContent:
    """The messages that would be stored of an episode if it were interrupted at a given time."""

    fence: Fence
    messages_at: Callable[[datetime], tuple[NewMessage, ...]]


class Session:
    """One claim of one chat."""

    def __init__(
        self,
        claimed: Claimed,
        mailbox: Mailbox,
        history: History,
        *,
        chats: Chats,
        clock: Clock,
        calls: CallObserver,
    ) -> None:
        self.owner: Owner = claimed.owner
        self.state = claimed.state
        self.history = history
        self.unfinished: InterruptedContent | None = None
        self._call: MeteredCall | None = None  # Until a commit carries its bill.
        self.billed_until_s = clock.monotonic()
        self._epoch = claimed.state.owner_epoch
        self._mailbox = mailbox
        self._chats = chats
        self._clock = clock
        self._calls = calls

    @property
    def chat_id(self) -> ChatId:
        """The chat."""
        return self.state.chat_id

    @property
    def fence(self) -> Fence:
        """The fence that the next write must match."""
        return fence_of(self.state)

    @property
    def is_running(self) -> bool:
        """Whether this runner owns the chat and it was not asked to stop."""
        return self.is_owned and self.state.status is Status.RUNNING

    @property
    def is_owned(self) -> bool:
        """Whether this runner still owns the chat."""
        return _is_owned(self.state, self._epoch)

    async def apply(self, command: WorkerCommand, messages: tuple[NewMessage, ...] = ()) -> bool:
        """Write a command; return True if it was written, False when the chat changed before.

        `messages` are those that the command adds to the history, when they are known.

        Raises:
            OwnershipLost: Another process owns the chat now.
        """
        before = self.state
        try:
            written = await self._chats.apply(self.chat_id, command)
        except (FenceLost, TransitionNotAllowed):
            present = await self._chats.state(self.chat_id)
            if present == before:
                raise
            self.follow(present)
            return False
        self._settled()
        if not isinstance(command, FinishRevert):
            # That one changes messages that are in the history already.
            self.history.wrote(before, written, messages, self._clock.now())
        self.state = written
        self._mailbox.put(written)
        return True

    def follow(self, newest: ChatState) -> None:
        """Continue from a state that another writer committed.

        Raises:
            OwnershipLost: Another process owns the chat now, or it rests.
        """
        self._mailbox.put(newest)
        if not _is_owned(newest, self._epoch):
            raise OwnershipLost(self.chat_id)
        self.state = newest

    def look(self) -> None:
        """Apply a pending stop request or loss of ownership before continuing.

        Raises:
            OwnershipLost: Another process owns the chat now, or it rests.
        """
        newest = self._mailbox.newest
        is_newer = newest.snapshot_version > self.state.snapshot_version
        if is_newer and (fence_of(newest) == self.fence or not _is_owned(newest, self._epoch)):
            self.follow(newest)

    async def superseded(self) -> ChatState:
        """Wait until work under the current fence must stop."""
        return await self._mailbox.until_superseded(self.fence)

    async def catch_up(self) -> None:
        """Read the history up to the state."""
        await self.history.catch_up(self._chats, self.state)

    def metered(
        self, purpose: CallPurpose, profile: ModelProfile, answer: Answer, request: ModelRequest
    ) -> MeteredCall:
        """Return the call that begins now; the commit that ends its episode carries its bill."""
        call = MeteredCall(self.fence, purpose, profile, answer, request, alive_ms=self.alive_ms)
        self._call = call
        self._calls.opened(call, self.chat_id, self.owner.id)
        return call

    def billed(self, outcome: CallOutcome) -> Bill | None:
        """Return the bill of the current episode's call, if there was one to charge."""
        if self._call is None or self._call.fence != self.fence:
            return None
        return self._call.bill(outcome)

    def unbilled(self) -> LedgerEntry | None:
        """Return the ledger entry of a call that no commit will carry any more, once."""
        call = self._settled()
        return None if call is None else call.entry(self.chat_id, CallOutcome.ABORTED)

    def _settled(self) -> MeteredCall | None:
        """Return the call whose bill was open, once."""
        call, self._call = self._call, None
        if call is not None:
            self._calls.closed(call)
        return call

    def alive_ms(self) -> int:
        """Return the time since the last call of this method; each interval is counted once."""
        now_s = self._clock.monotonic()
        alive_ms = round((now_s - self.billed_until_s) * 1000)
        self.billed_until_s = now_s
        return alive_ms


def _is_owned(state: ChatState, epoch: int) -> bool:
    return state.owner_epoch == epoch and state.worker_id is not None and state.status in OWNED
