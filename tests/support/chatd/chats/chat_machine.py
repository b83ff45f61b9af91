"""Random commands for one chat, and what must hold after each of them, over any store."""

import uuid
from datetime import UTC, datetime

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from chatd.chats.domain.action_answers import free_text_answer
from chatd.chats.domain.chat import (
    QUEUE_LENGTH_MAX,
    ChatState,
    NewMessage,
    Retry,
    RevertKind,
    Status,
)
from chatd.chats.domain.commands import (
    BusyBehavior,
    ChangeQueuedMessage,
    Command,
    CommitCompaction,
    DeleteQueuedMessage,
    EditMessage,
    FailTurn,
    FinishInterruption,
    FinishRevert,
    FinishTurn,
    Interrupt,
    PromoteQueuedMessage,
    Reconcile,
    RecordRetry,
    Release,
    RequestCompaction,
    RevertChat,
    SendMessage,
    SetArchived,
    UndoRevert,
)
from chatd.chats.domain.errors import QueueFull
from chatd.chats.domain.transitions import fence_of, impossibility
from chatd.content.domain.messages import (
    SENT_BY_CALLERS,
    ErrorKind,
    FinishReason,
    MessageOrigin,
    Role,
    TurnError,
)
from chatd.content.domain.parts import Text, ToolCall, ToolResult
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ReasoningEffort
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    MessageId,
    QueuedMessageId,
    RevertId,
    WorkerId,
)
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose
from support.chatd.chats.call_machine import CLAIMS, USE, CallMachine, uuid_of

OOPS = TurnError("It broke.", ErrorKind.GENERIC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
CHOICES = st.builds(
    ModelChoice,
    st.sampled_from(["", "m1", "m2"]),
    st.sampled_from([ReasoningEffort.DEFAULT, ReasoningEffort.LOW, ReasoningEffort.HIGH]),
)


# Most messages are a person's; those of hooks and of the installation itself begin no turn.
SENDERS = (
    *4 * (MessageOrigin.PERSON,),
    *(each for each in MessageOrigin if each not in (MessageOrigin.HOOK, MessageOrigin.SYSTEM)),
)


class ChatMachine(CallMachine):
    """Throws all commands at one chat and watches what must never change."""

    def user_message(
        self, choice: ModelChoice, origin: MessageOrigin = MessageOrigin.PERSON
    ) -> NewMessage:
        self.sent += 1
        said = (Text(f"message {self.sent}"),)
        return NewMessage(Role.USER, said, "ann", choice=choice, origin=origin)

    @rule(
        claimed_by=CLAIMS,
        busy=st.sampled_from(BusyBehavior),
        choice=CHOICES,
        origin=st.sampled_from(SENDERS),
    )
    def send(
        self,
        claimed_by: WorkerId | None,
        busy: BusyBehavior,
        choice: ModelChoice,
        origin: MessageOrigin,
    ) -> None:
        message = self.user_message(choice, origin)
        is_full = self.chat.state.queue_length >= QUEUE_LENGTH_MAX
        command = SendMessage(message, queued_id(self.sent), claimed_by, busy)
        before = self.chat.state
        is_asking = before.status is Status.REQUIRES_ACTION
        is_answer = is_asking and origin in SENT_BY_CALLERS and busy is BusyBehavior.QUEUE
        answers = is_answer and free_text_answer(before, message.content) is not None
        if self.apply(command) is not None:
            if not answers:
                self.accepted.add(f"message {self.sent}")
            assert not is_full or answers or self.chat.state.status is Status.RUNNING
        elif not self.chat.state.archived:
            assert is_full
            assert isinstance(QueueFull(QUEUE_LENGTH_MAX), ChatError)

    @rule(claimed_by=CLAIMS, place=st.integers(0, 30), restores_files=st.booleans())
    def revert(self, claimed_by: WorkerId | None, place: int, restores_files: bool) -> None:
        live = self.chat.live()
        if live:
            target = live[place % len(live)]
            revert_id = self.next_revert_id()
            self.going_back(RevertChat(revert_id, target.id, restores_files, claimed_by))

    @rule(claimed_by=CLAIMS, place=st.sampled_from((1, 1, 1, 2, 3)))
    def undo_revert(self, claimed_by: WorkerId | None, place: int) -> None:
        """Undo the newest revert, an older one, an undo or one that was refused."""
        done = [*self.reverts[-1:], *self.chat.reverts]
        if done:
            undone_id = done[-min(place, len(done))]
            self.going_back(UndoRevert(self.next_revert_id(), undone_id, claimed_by))

    @rule()
    def finish_revert(self) -> None:
        if self.chat.state.revert is not None:
            self.going_back(FinishRevert(fence_of(self.chat.state), b"report"))

    @rule(claimed_by=CLAIMS, place=st.integers(0, 30))
    def send_while_files_are_restored(self, claimed_by: WorkerId | None, place: int) -> None:
        """Deliver a message with the end of a revert, whose undo would bring others before it."""
        self.revert(claimed_by, place, restores_files=True)
        if self.chat.state.revert is not None:
            self.send(claimed_by, BusyBehavior.QUEUE, NO_CHOICE, MessageOrigin.GOAL)
            self.finish_revert()
            self.apply(FailTurn(fence_of(self.chat.state), OOPS))
            self.undo_revert(claimed_by, 1)
            self.finish_revert()

    def next_revert_id(self) -> RevertId:
        self.reverts.append(RevertId(uuid_of(self.salt, f"revert {len(self.reverts)}")))
        return self.reverts[-1]

    def going_back(self, command: Command) -> None:
        """Apply a command that may delete messages or bring them back."""
        before = self.kept_texts()
        self.apply(command)
        after = self.kept_texts()
        self.withdrawn |= before - after
        self.withdrawn -= after - before

    def apply(self, command: Command) -> ChatState | None:
        """Apply a command; an undo must leave the messages of before the revert, and new ones."""
        live, next_id = self.live_ids(), self.chat.state.next_message_id
        after = super().apply(command)
        if isinstance(command, EditMessage) and after is not None and command.revert_id is not None:
            self.before_reverts[command.revert_id] = live
        for revert_id, done in list(self.chat.reverts.items())[self.reverts_seen :]:
            if done.revert.kind is RevertKind.HISTORY:
                self.before_reverts[revert_id] = live
            elif done.revert.undone_id is not None:
                kept = [message_id for message_id in self.live_ids() if message_id < next_id]
                assert kept == self.before_reverts[done.revert.undone_id]
        self.reverts_seen = len(self.chat.reverts)
        return after

    def live_ids(self) -> list[MessageId]:
        return [message.id for message in self.chat.live()]

    def kept_texts(self) -> set[str]:
        live = {text_of(m.content) for m in self.chat.live() if m.role is Role.USER}
        return live | {text_of(entry.content) for entry in self.chat.queue}

    @rule(claimed_by=CLAIMS, place=st.integers(0, 30), choice=CHOICES, restores=st.booleans())
    def edit(
        self, claimed_by: WorkerId | None, place: int, choice: ModelChoice, restores: bool
    ) -> None:
        live = self.chat.live()
        if not live:
            return
        target = live[place % len(live)]
        message = self.user_message(choice)
        queued = {text_of(entry.content) for entry in self.chat.queue}
        gone = {text_of(m.content) for m in live if m.id >= target.id and m.role is Role.USER}
        revert_id = self.next_revert_id()
        if self.apply(EditMessage(target.id, message, claimed_by, revert_id, restores)) is not None:
            self.accepted.add(f"message {self.sent}")
            self.withdrawn |= gone | queued

    @rule(place=st.integers(0, 30))
    def drop_queued(self, place: int) -> None:
        queue = self.chat.queue
        wanted = queue[place % len(queue)] if queue else None
        wanted_id = wanted.id if wanted else queued_id(0)
        if self.apply(DeleteQueuedMessage(wanted_id)) is not None and wanted:
            self.withdrawn.add(text_of(wanted.content))

    @rule(
        place=st.integers(0, 30),
        to=st.sampled_from((None, 1, 2, 3, 30)),
        is_reworded=st.booleans(),
        choice=st.one_of(st.none(), CHOICES),
    )
    def change_queued(
        self, place: int, to: int | None, is_reworded: bool, choice: ModelChoice | None
    ) -> None:
        queue = self.chat.queue
        wanted = queue[place % len(queue)] if queue else None
        content = self.user_message(NO_CHOICE).content if is_reworded else None
        wanted_id = wanted.id if wanted else queued_id(0)
        origin = MessageOrigin.PERSON if is_reworded else None
        changed = self.apply(ChangeQueuedMessage(wanted_id, content, choice, to, origin))
        if changed is not None and wanted and is_reworded:
            self.accepted.add(f"message {self.sent}")
            self.withdrawn.add(text_of(wanted.content))

    @rule(claimed_by=CLAIMS, place=st.integers(0, 30))
    def promote(self, claimed_by: WorkerId | None, place: int) -> None:
        queue = self.chat.queue
        wanted = queue[place % len(queue)].id if queue else queued_id(0)
        self.apply(PromoteQueuedMessage(wanted, claimed_by))

    @rule(claimed_by=CLAIMS, is_stale=st.booleans(), drops_queue=st.booleans())
    def interrupt(self, claimed_by: WorkerId | None, is_stale: bool, drops_queue: bool) -> None:
        before = self.chat.state
        turn_id = MessageId(before.turn_id + 1000) if is_stale else before.turn_id
        self.going_back(Interrupt(turn_id, claimed_by, drops_queue))
        if is_stale and not before.archived:
            assert self.chat.state is before

    @rule()
    def reconcile(self) -> None:
        """Repair a chat that needs no repair."""
        assert self.apply(Reconcile()) is None

    @rule(archived=st.booleans())
    def archive(self, archived: bool) -> None:
        self.apply(SetArchived(archived))

    @rule(claimed_by=CLAIMS)
    def compact(self, claimed_by: WorkerId | None) -> None:
        self.apply(RequestCompaction(claimed_by))

    @rule(kind=st.sampled_from(["retry", "fail", "release", "compaction"]))
    def run_into_something(self, kind: str) -> None:
        fence = fence_of(self.chat.state)
        summary = NewMessage(Role.USER, (Text("summary"),), is_compressed=True)
        made = NewMessage(Role.ASSISTANT, (Text("summed up"),), is_compressed=True, use=USE)
        failed = Bill(CallPurpose.TURN, CallOutcome.FAILED, USE)
        summed_up = Bill(CallPurpose.COMPACTION, CallOutcome.DONE, USE)
        commands: dict[str, Command] = {
            "retry": RecordRetry(fence, Retry(1, 1000, LATER, OOPS), failed),
            "fail": FailTurn(fence, OOPS),
            "release": Release(fence),
            "compaction": CommitCompaction(fence, (summary, made), summed_up),
        }
        self.apply(commands[kind])

    @rule(has_text=st.booleans())
    def finish(self, has_text: bool) -> None:
        state = self.chat.state
        messages = (
            (NewMessage(Role.ASSISTANT, (Text("done"),), use=USE, finish_reason=FinishReason.STOP),)
            if has_text
            else ()
        )
        bill = Bill(CallPurpose.TURN, CallOutcome.DONE, USE) if has_text else None
        self.apply(FinishTurn(fence_of(state), messages, bill))
        self.apply(FinishInterruption(fence_of(self.chat.state), messages, bill))

    @invariant()
    def the_state_is_possible(self) -> None:
        assert impossibility(self.chat.state) is None

    @invariant()
    def no_accepted_message_is_lost_or_doubled(self) -> None:
        live = [text_of(m.content) for m in self.chat.live() if m.role is Role.USER]
        live = [text for text in live if text != "summary"]
        queued = [text_of(entry.content) for entry in self.chat.queue]
        assert sorted(live + queued) == sorted(self.accepted - self.withdrawn)

    @invariant()
    def every_call_has_at_most_one_result_and_is_open_or_answered(self) -> None:
        called: list[str] = []
        answered: list[str] = []
        for message in self.chat.live():
            called += [p.tool_call_id for p in message.content if isinstance(p, ToolCall)]
            answered += [p.tool_call_id for p in message.content if isinstance(p, ToolResult)]
        open_calls = [call.tool_call_id for call in self.chat.state.pending]
        assert sorted(called) == sorted(answered + open_calls)

    @invariant()
    def exactly_the_asked_calls_have_an_open_action(self) -> None:
        asked = {call.action_id for call in self.chat.state.pending if call.is_asked}
        opened = {key for key, action in self.chat.actions.items() if action.outcome is None}
        assert opened == asked

    @invariant()
    def a_call_that_waits_is_pending_or_cancelled_or_over(self) -> None:
        suspended = {call.execution_id for call in self.chat.state.pending if call.is_suspended}
        assert not suspended & self.chat.cancelled
        assert not suspended & self.chat.results.keys()

    @invariant()
    def versions_only_grow_and_name_snapshots(self) -> None:
        state, seen = self.chat.state, self.seen
        assert state.snapshot_version >= seen.snapshot_version
        assert state.history_version >= seen.history_version
        assert state.owner_epoch >= seen.owner_epoch
        assert max(state.history_version, state.queue_version) <= state.snapshot_version
        if (state.history_version, state.owner_epoch) == (seen.history_version, seen.owner_epoch):
            is_at_rest = state.status not in (Status.RUNNING, Status.INTERRUPTING)
            assert is_at_rest or state.generation_attempt >= seen.generation_attempt
        self.seen = state

    @invariant()
    def every_answer_is_in_the_ledger_once(self) -> None:
        answers = [m.id for m in self.chat.messages if m.use is not None]
        billed = [entry.message_id for entry in self.chat.ledger.values()]
        assert sorted(number for number in billed if number is not None) == answers

    @invariant()
    def numbers_are_consecutive(self) -> None:
        ids = [message.id for message in self.chat.messages]
        assert ids == list(range(1, self.chat.state.next_message_id))


def text_of(content: tuple[object, ...]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def queued_id(number: int) -> QueuedMessageId:
    return QueuedMessageId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"queued {number}")))
