"""The one database of a simulation: statements are serial, and every change is witnessed."""

import json
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar, cast

from chatd.chats.domain.agents import AgentWait
from chatd.chats.domain.chat import ChatState, Claimed, Facts, NewMessage, Status
from chatd.chats.domain.commands import Command, FinishRevert
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import decide
from chatd.chats.domain.writes import (
    AppendMessages,
    ClearQueue,
    DeleteMessagesFrom,
    DropQueued,
    EndActions,
    EnqueueMessage,
    MoveToHead,
    PromoteHead,
    RestoreMessages,
)
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, Owner, WorkerId
from chatd.workers.domain import DueAction, SweepLimits
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from support.chatd.chats.chat_machine import text_of
from support.chatd.chats.in_memory_chats import InMemoryChats, StoredChat, facts_for
from support.chatd.turns.in_memory_workers import InMemoryWorkers
from support.simulation.files import SimulatedFiles
from support.simulation.model import basis_of
from support.simulation.rules import Author
from support.simulation.witness import Witness

T = TypeVar("T")

LONG_OUTAGE_S = 7.5  # Longer than the silence after which a worker trusts its contact no more.
AT_REST = (Status.WAITING, Status.ERROR)


class KeyUsed(Exception):
    """The key of a request was stored before."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a locked transaction came to; `state` is None when nothing was to be done."""

    seen: ChatState
    decision: Decision
    state: ChatState | None


@dataclass(slots=True)
class SimulatedDatabase:
    """Everything that is stored. `is_down` refuses every statement.

    Attributes:
        up_since_s: When it was last down.
        long_outage_ended_s: When it was last down for so long that every worker lost contact.
        is_whole: Whether nothing is lost or broken any more, and nothing under way from before.
        files: The files of the chats, which no database has: commits of reverts are held against
            them.
    """

    clock: Clock
    is_down: bool = False
    up_since_s: float = 0.0
    long_outage_ended_s: float = -1000.0
    down_since_s: float = 0.0
    is_whole: bool = False
    witness: Witness = field(init=False)
    chats: InMemoryChats = field(default_factory=InMemoryChats)
    workers: InMemoryWorkers = field(init=False)
    keys: set[tuple[ChatId, str]] = field(default_factory=set)
    files: SimulatedFiles = field(default_factory=SimulatedFiles)
    partials: dict[tuple[ChatId, int, int], dict[int, tuple[Piece, ...]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self.workers = self.new_workers()
        self.witness = Witness(self.clock, self.workers.rows)

    def new_workers(self) -> InMemoryWorkers:
        """Return the leases and claims over these chats."""
        return InMemoryWorkers(self.chats, self.clock)

    def add(self, state: ChatState, owner: Owner) -> None:
        """Store a new chat."""
        self.workers.add(state, owner, self.clock.now())
        self.witness.saw(self.chat(state.chat_id))

    def go_down(self) -> None:
        """Refuse everything from now on."""
        if not self.is_down:
            self.is_down = True
            self.down_since_s = self.clock.monotonic()

    def come_up(self) -> None:
        """Answer again."""
        if self.is_down:
            self.is_down = False
            self.up_since_s = self.clock.monotonic()
            if self.up_since_s - self.down_since_s > LONG_OUTAGE_S:
                self.long_outage_ended_s = self.up_since_s

    def chat(self, chat_id: ChatId) -> StoredChat:
        """Return what is stored of a chat."""
        return self.chats.chats[chat_id]

    def read(self, statement: Coroutine[Any, Any, T]) -> T:
        """Execute a statement of the fakes at once, and witness what it changed.

        Raises:
            DatabaseUnavailable: the database is down.
        """
        if self.is_down:
            statement.close()
        self._require_connection()
        answer = at_once(statement)
        if isinstance(answer, tuple):
            for each in answer:
                self._saw(each)
        else:
            self._saw(answer)
        return answer

    def facts(self, chat_id: ChatId, command: Command) -> Facts:
        """Return what a command depends on beside the state."""
        self._require_connection()
        return facts_for(self.chat(chat_id), command)

    def is_used(self, chat_id: ChatId, key: str) -> bool:
        """Return whether a key was stored."""
        self._require_connection()
        return (chat_id, key) in self.keys

    def write(
        self, seen: ChatState, decision: Decision, key: str | None, author: Author
    ) -> ChatState | None:
        """Execute a decision if the chat is as it was seen and its claim is allowed, or None.

        Raises:
            KeyUsed: the key exists already; nothing is written.
        """
        self._require_connection()
        chat = self.chat(seen.chat_id)
        if chat.state.snapshot_version != seen.snapshot_version:
            return None
        self.witness.require(chat.state == seen, "a version names two states", chat.state)
        is_claimed_anew = decision.state.owner_epoch != seen.owner_epoch
        claimant = decision.state.worker_id
        is_claim = is_claimed_anew and claimant is not None
        if is_claim and claimant is not None and not self.workers.may_claim(claimant):
            return None
        if key is not None:
            if (seen.chat_id, key) in self.keys:
                raise KeyUsed
            self.keys.add((seen.chat_id, key))
        if decision.deadline_s is not None:
            deadline = self.clock.now() + timedelta(seconds=decision.deadline_s)
            decision = replace(decision, state=replace(decision.state, deadline_at=deadline))
        self._account(chat, decision)
        if isinstance(author.command, FinishRevert) and seen.revert is not None:
            problem = self.files.problem_of(seen.chat_id, seen.revert)
            self.witness.require(problem is None, str(problem), seen)
        try:
            written = self.chats.keep(seen.chat_id, decision)
        except AssertionError as impossible:
            self.witness.require(False, str(impossible), decision)
            raise
        self.witness.saw(chat, author)
        return written

    def write_locked(self, chat_id: ChatId, key: str | None, author: Author) -> Written:
        """Decide and write in one transaction."""
        self._require_connection()
        chat = self.chat(chat_id)
        seen = chat.state
        for wish in (author.command, unclaimed(author.command)):
            decision = decide(seen, wish, facts_for(chat, wish))
            if decision.state is seen:
                return Written(seen, decision, None)
            state = self.write(seen, decision, key, author)
            if state is not None:
                return Written(seen, decision, state)
        raise AssertionError("locked, and nothing is claimed")

    def keep_partials(self, chunks: tuple[Chunk, ...]) -> None:
        """Keep chunks."""
        self._require_connection()
        for chunk in chunks:
            episode = (chunk.chat_id, chunk.history_version, chunk.generation_attempt)
            self.partials.setdefault(episode, {}).setdefault(chunk.first_seq, chunk.pieces)

    def load_partials(self, episode: tuple[ChatId, int, int]) -> tuple[Piece, ...]:
        """Return the pieces of one episode in order."""
        self._require_connection()
        chunks = self.partials.get(episode, {})
        return tuple(piece for _, pieces in sorted(chunks.items()) for piece in pieces)

    def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim what has no live owner; every claim must be from nobody or from the dead."""
        before = {chat_id: chat.state for chat_id, chat in self.chats.chats.items()}
        taken = self.read(self.workers.sweep(worker_id, limits))
        for claimed in taken:
            former = before[claimed.state.chat_id].worker_id
            row = None if former is None else self.workers.rows.get(former)
            is_free = row is None or row.lease_until <= self.clock.now()
            self.witness.require(is_free, "a chat was taken from the living", claimed.state)
        return taken

    def end(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker; in a whole world it has handed everything over before."""
        left = [state for state in self.read(self.workers.owned(worker_id)) if self.is_whole]
        self.witness.require(not left, f"{worker_id} ended and left chats behind", left)
        return self.prove_dead(worker_id)

    def prove_dead(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker whose process is dead."""
        return self.read(self.workers.end(worker_id))

    def due_actions(self, worker_id: WorkerId, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats whose client is late, for a worker that goes to answer for it."""
        due = self.read(self.workers.due_actions(chats_max))
        for each in due:
            self.witness.answering(worker_id, each.chat_id)
        return due

    def agent_waits(self, waits_max: int) -> tuple[AgentWait, ...]:
        """Return calls that wait for other chats, those that are over first."""
        self._require_connection()
        found = [
            AgentWait(
                chat.state.chat_id,
                self.workers.owner_of(chat.state.chat_id),
                call.action_id,
                is_over=all(
                    self.chat(ChatId(each)).state.status in AT_REST
                    for each in call.question.agent_ids
                ),
            )
            for chat in self.chats.chats.values()
            if chat.state.status is Status.REQUIRES_ACTION
            for call in chat.state.pending
            if call.kind is PendingKind.AGENTS and call.question and call.action_id
        ]
        return tuple(sorted(found, key=lambda wait: not wait.is_over)[:waits_max])

    def _account(self, chat: StoredChat, decision: Decision) -> None:
        """Note which messages of users a decision takes in and which it withdraws."""
        chat_id = chat.state.chat_id
        for write in decision.writes:
            match write:
                case AppendMessages(messages):
                    for message in messages:
                        if message.role is Role.USER and not message.is_compressed:
                            self.witness.took(chat_id, text_of(message.content))
                        self._check_basis(chat, message)
                case EndActions(answers):
                    for answer in answers:
                        self._account_answer(chat_id, answer.answer_json)
                case EnqueueMessage(_, message):
                    self.witness.took(chat_id, text_of(message.content))
                case DropQueued(queued_id):
                    dropped = [each for each in chat.queue if each.id == queued_id]
                    self.witness.withdrew(chat_id, *(text_of(each.content) for each in dropped))
                case MoveToHead(queued_id) | PromoteHead(str() as queued_id):
                    first = [each for each in chat.queue if each.id == queued_id]
                    self.witness.promoted |= {(chat_id, text_of(m.content)) for m in first}
                case ClearQueue():
                    self.witness.withdrew(chat_id, *(text_of(each.content) for each in chat.queue))
                case DeleteMessagesFrom(message_id):
                    gone = [m for m in chat.live() if m.id >= message_id and m.role is Role.USER]
                    self.witness.withdrew(chat_id, *(text_of(each.content) for each in gone))
                case RestoreMessages(version):
                    back = [m for m in chat.messages if m.is_deleted and m.revision == version]
                    said = [m for m in back if m.role is Role.USER and not m.is_compressed]
                    self.witness.brought_back(chat_id, *(text_of(m.content) for m in said))
                case _:
                    pass

    def _account_answer(self, chat_id: ChatId, answer_json: str) -> None:
        """Note a message that was taken as an answer: it is in no message of a user."""
        said = json.loads(answer_json)
        text = said.get("text") or said.get("remark") if isinstance(said, dict) else None
        if text is not None:
            self.witness.took(chat_id, text)
            self.witness.withdrew(chat_id, text)

    def _check_basis(self, chat: StoredChat, message: NewMessage) -> None:
        """Check that an answer is one to the history that it is put into."""
        said = text_of(message.content)
        if message.role is Role.ASSISTANT and said.startswith("["):
            said_so_far = [each for each in chat.live() if each.visibility is not Visibility.USER]
            is_based = said.startswith(basis_of(said_so_far))
            self.witness.require(is_based, f"{said} answers another history", chat.state)

    def _saw(self, answer: Any) -> None:
        match answer:
            case Claimed(state) | (ChatState() as state):
                self.witness.saw(self.chat(state.chat_id))
            case _:
                pass

    def _require_connection(self) -> None:
        if self.is_down:
            raise DatabaseUnavailable("the simulation has it down")


def at_once(statement: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        statement.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
    raise AssertionError("a statement of a fake waits for nobody")


def unclaimed(command: Command) -> Command:
    """Return the command for when its worker may not claim."""
    if getattr(command, "claimed_by", None) is None:
        return command
    waiting: Command = replace(cast(Any, command), claimed_by=None)
    return waiting
