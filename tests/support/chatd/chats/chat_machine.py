"""Random commands for one chat, and what must hold after each of them, over any store."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chatd.chats.domain.action_answers import free_text_answer
from chatd.chats.domain.chat import (
    QUEUE_LENGTH_MAX,
    ChatState,
    NewMessage,
    PendingCall,
    Retry,
    Status,
)
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    AskedCall,
    BusyBehavior,
    ChangeQueuedMessage,
    Command,
    CommitCompaction,
    CommitResults,
    CommitStep,
    DeleteQueuedMessage,
    EditMessage,
    EnterRequiresAction,
    ExpireAction,
    FailTurn,
    FinishInterruption,
    FinishRevert,
    FinishTurn,
    Interrupt,
    PromoteQueuedMessage,
    RecordResult,
    RecordRetry,
    Release,
    RequestCompaction,
    Resolved,
    RevertChat,
    SendMessage,
    SetArchived,
    SubmitToolResults,
    Supplied,
    SuspendCall,
    UndoRevert,
)
from chatd.chats.domain.errors import QueueFull
from chatd.chats.domain.transitions import fence_of, impossibility
from chatd.content.domain.messages import ChatMode, ErrorKind, FinishReason, Role, TurnError
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    SUSPENDED,
    Dispatch,
    Executor,
    InputAction,
    InputRequired,
    PendingKind,
)
from chatd.models.domain.price import ModelUse, Price
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ReasoningEffort
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    QueuedMessageId,
    RevertId,
    WorkerId,
)
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose
from support.chatd.chats.in_memory_chats import InMemoryChats, StoredChat

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
OOPS = TurnError("It broke.", ErrorKind.GENERIC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
CLAIMS = st.sampled_from([WORKER, None])
USE = ModelUse(
    "m", 10, 20, 5, 30, 40, cost_micros=81, provider="p", price=Price(Decimal("0.1"), Decimal(4))
)
CHOICES = st.builds(
    ModelChoice,
    st.sampled_from(["", "m1", "m2"]),
    st.sampled_from([ReasoningEffort.DEFAULT, ReasoningEffort.LOW, ReasoningEffort.HIGH]),
)


class ChatMachine(RuleBasedStateMachine):
    """Throws commands at one chat and watches what must never change."""

    salt = ""  # Makes execution ids of several runs in one database different.

    @initialize()
    def create(self) -> None:
        fresh = ChatState(CHAT, Status.WAITING, 1, 0, 0, MessageId(1))
        self.chats = InMemoryChats(fresh)
        self.sent = 0
        self.accepted: set[str] = set()
        self.withdrawn: set[str] = set()
        self.calls = 0
        self.reverts: list[RevertId] = []
        self.seen = fresh

    @property
    def chat(self) -> StoredChat:
        return self.chats.chats[CHAT]

    def apply(self, command: Command) -> ChatState | None:
        """Apply a command; a refusal must leave everything as it was."""
        before = (self.chat.state, list(self.chat.messages), list(self.chat.queue))
        refusal: ChatError | None = None
        after: ChatState | None = None
        try:
            after = self.chats.apply_now(CHAT, command)
        except ChatError as error:
            assert (self.chat.state, self.chat.messages, self.chat.queue) == before
            refusal = error
        self.applied(command, refusal)
        return after

    def applied(self, command: Command, refusal: ChatError | None) -> None:
        """Look at what a command did; another store is compared here."""

    def user_message(self, choice: ModelChoice) -> NewMessage:
        self.sent += 1
        return NewMessage(Role.USER, (Text(f"message {self.sent}"),), "ann", choice=choice)

    @rule(claimed_by=CLAIMS, busy=st.sampled_from(BusyBehavior), choice=CHOICES)
    def send(self, claimed_by: WorkerId | None, busy: BusyBehavior, choice: ModelChoice) -> None:
        message = self.user_message(choice)
        is_full = self.chat.state.queue_length >= QUEUE_LENGTH_MAX
        command = SendMessage(message, queued_id(self.sent), claimed_by, busy)
        before = self.chat.state
        is_answer = before.status is Status.REQUIRES_ACTION and busy is BusyBehavior.QUEUE
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

    @rule(claimed_by=CLAIMS)
    def undo_revert(self, claimed_by: WorkerId | None) -> None:
        if self.reverts:
            undone_id = self.reverts[-1]
            self.going_back(UndoRevert(self.next_revert_id(), undone_id, claimed_by))

    @rule()
    def finish_revert(self) -> None:
        if self.chat.state.revert is not None:
            self.going_back(FinishRevert(fence_of(self.chat.state), b"report"))

    def next_revert_id(self) -> RevertId:
        number = f"{self.salt}revert {len(self.reverts)}"
        self.reverts.append(RevertId(str(uuid.uuid5(uuid.NAMESPACE_OID, number))))
        return self.reverts[-1]

    def going_back(self, command: Command) -> None:
        """Apply a command that may delete messages or bring them back."""
        before = self.kept_texts()
        self.apply(command)
        after = self.kept_texts()
        self.withdrawn |= before - after
        self.withdrawn -= after - before

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
        changed = self.apply(ChangeQueuedMessage(wanted_id, content, choice, to))
        if changed is not None and wanted and is_reworded:
            self.accepted.add(f"message {self.sent}")
            self.withdrawn.add(text_of(wanted.content))

    @rule(claimed_by=CLAIMS, place=st.integers(0, 30))
    def promote(self, claimed_by: WorkerId | None, place: int) -> None:
        queue = self.chat.queue
        wanted = queue[place % len(queue)].id if queue else queued_id(0)
        self.apply(PromoteQueuedMessage(wanted, claimed_by))

    @rule(claimed_by=CLAIMS, is_stale=st.booleans())
    def interrupt(self, claimed_by: WorkerId | None, is_stale: bool) -> None:
        before = self.chat.state
        turn_id = MessageId(before.turn_id + 1000) if is_stale else before.turn_id
        after = self.apply(Interrupt(turn_id, claimed_by))
        if is_stale and not before.archived:
            assert after is before

    @rule(archived=st.booleans())
    def archive(self, archived: bool) -> None:
        self.apply(SetArchived(archived))

    @rule(claimed_by=CLAIMS)
    def compact(self, claimed_by: WorkerId | None) -> None:
        self.apply(RequestCompaction(claimed_by))

    @rule(claimed_by=CLAIMS)
    def answer_as_client(self, claimed_by: WorkerId | None) -> None:
        results = tuple(
            ToolResult(call.tool_call_id, call.tool_name, "{}", ToolOutcome.DONE)
            for call in self.chat.state.pending
            if call.is_asked and call.kind is PendingKind.CLIENT
        )
        self.apply(SubmitToolResults(results, "ann", claimed_by))

    @rule(
        claimed_by=CLAIMS, place=st.integers(0, 3), is_stale=st.sampled_from((False, False, True))
    )
    def expire(self, claimed_by: WorkerId | None, place: int, is_stale: bool) -> None:
        self.apply(ExpireAction(self.some_action(place, is_stale=is_stale), claimed_by))

    @rule(
        claimed_by=CLAIMS,
        place=st.integers(0, 3),
        is_stale=st.sampled_from((False, False, True)),
        is_approved=st.booleans(),
        mode=st.sampled_from((None, ChatMode.ORDINARY, ChatMode.PLAN)),
    )
    def answer_as_person(
        self,
        claimed_by: WorkerId | None,
        place: int,
        is_stale: bool,
        is_approved: bool,
        mode: ChatMode | None,
    ) -> None:
        action_id = self.some_action(place, is_stale=is_stale)
        stored = self.chat.actions.get(action_id)
        call = ToolCall("stale", "tool", "{}") if stored is None else stored.asked.call
        answer: Approved | Resolved | Supplied
        if stored is not None and stored.asked.pending.question is not None:
            answer = Supplied(InputAction.ACCEPT if is_approved else InputAction.DECLINE, "{}")
        elif is_approved:
            message_id = next((m.id for m in self.chat.messages if call in m.content), MessageId(1))
            answer = Approved(message_id, Dispatch(action_id, call, Executor.TOOLRUNNER, "j1"))
        else:
            answer = Resolved(ToolResult(call.tool_call_id, "tool", "{}", ToolOutcome.DONE), mode)
        self.apply(AnswerAction(action_id, answer, '{"ok": 1}', "ann", claimed_by))

    def some_action(self, place: int, *, is_stale: bool) -> ExecutionId:
        """Return an action that is open, or one that never was."""
        asked = [call.action_id for call in self.chat.state.pending if call.is_asked]
        known = [action_id for action_id in asked if action_id is not None]
        if is_stale or not known:
            return execution_id(self.salt, f"stale {place}")
        return known[place % len(known)]

    @rule(
        local=st.integers(0, 3),
        kinds=st.lists(
            st.tuples(
                st.sampled_from(sorted(set(PendingKind) - SUSPENDED - {PendingKind.DISPATCHED})),
                st.sampled_from((None, 60.0, 300.0)),
            ),
            max_size=3,
        ),
    )
    def step(self, local: int, kinds: list[tuple[PendingKind, float | None]]) -> None:
        state = self.chat.state
        names = [f"call_{self.calls + place}" for place in range(local + len(kinds))]
        self.calls += len(names)
        calls = [ToolCall(name, "tool", "{}") for name in names]
        dispatches = tuple(
            Dispatch(execution_id(self.salt, call.tool_call_id), call, Executor.TOOLRUNNER, "j1")
            for call in calls[:local]
        )
        asked = tuple(
            AskedCall(
                PendingCall(
                    call.tool_call_id,
                    "tool",
                    execution_id(self.salt, call.tool_call_id),
                    kind=kind,
                    deadline_s=deadline_s,
                ),
                call,
            )
            for call, (kind, deadline_s) in zip(calls[local:], kinds, strict=True)
        )
        message = NewMessage(Role.ASSISTANT, (Text("thinking"), *calls), use=USE)
        bill = Bill(CallPurpose.TURN, CallOutcome.DONE, USE)
        command = CommitStep(fence_of(state), (message,), dispatches, asked, bill)
        if self.apply(command) is not None:
            assert not state.pending

    @rule(place=st.integers(0, 5))
    def record(self, place: int) -> None:
        state = self.chat.state
        local = [call for call in state.pending if call.is_dispatched]
        if local:
            call = local[place % len(local)]
            result = ToolResult(call.tool_call_id, "tool", "{}", ToolOutcome.DONE)
            self.apply(RecordResult(fence_of(state), result))

    @rule(place=st.integers(0, 5), kind=st.sampled_from(sorted(SUSPENDED)))
    def suspend(self, place: int, kind: PendingKind) -> None:
        state = self.chat.state
        local = [call for call in state.pending if call.is_dispatched]
        if local:
            self.calls += 1
            call = local[place % len(local)]
            pending = PendingCall(
                call.tool_call_id,
                call.tool_name,
                call.execution_id,
                kind=kind,
                deadline_s=60.0,
                question=InputRequired(f"r{self.calls}", kind, "Which\0?", url="https://x"),
                question_id=execution_id(self.salt, f"question {self.calls}"),
            )
            called = ToolCall(call.tool_call_id, call.tool_name, '{"message": "Which?"}')
            asked = AskedCall(pending, called)
            message_id = next(
                (m.id for m in self.chat.live() if call.tool_call_id in calls_of(m.content)),
                MessageId(1),
            )
            self.apply(SuspendCall(fence_of(state), message_id, asked))

    @rule()
    def commit_results(self) -> None:
        state = self.chat.state
        if any(call.is_recorded for call in state.pending):
            self.apply(CommitResults(fence_of(state)))

    @rule()
    def commit_with_the_last_result(self) -> None:
        state = self.chat.state
        local = [call for call in state.pending if not call.is_asked]
        if (
            local
            and all(call.is_dispatched for call in local)
            and sum(not call.is_recorded for call in local) <= 1
        ):
            results = tuple(
                ToolResult(call.tool_call_id, "tool", "{}", ToolOutcome.DONE) for call in local
            )
            self.apply(CommitResults(fence_of(state), results))

    @rule()
    def wait_for_client(self) -> None:
        state = self.chat.state
        if all(call.is_asked for call in state.pending):
            self.apply(EnterRequiresAction(fence_of(state)))

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


def calls_of(content: tuple[object, ...]) -> list[str]:
    return [part.tool_call_id for part in content if isinstance(part, ToolCall)]


def queued_id(number: int) -> QueuedMessageId:
    return QueuedMessageId(str(uuid.uuid5(uuid.NAMESPACE_OID, f"queued {number}")))


def execution_id(salt: str, tool_call_id: str) -> ExecutionId:
    return ExecutionId(str(uuid.uuid5(uuid.NAMESPACE_OID, salt + tool_call_id)))
