"""Random commands about the calls of one chat: steps, results, questions, answers, deadlines."""

import uuid
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from chatd.chats.domain.chat import ChatState, NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    AskedCall,
    Command,
    CommitResults,
    CommitStep,
    EnterRequiresAction,
    ExpireAction,
    RecordResult,
    RememberedCall,
    Resolved,
    SubmitToolResults,
    Supplied,
    SuspendCall,
)
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ChatMode, Role
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
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    RevertId,
    WorkerId,
)
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose
from support.chatd.chats.in_memory_chats import InMemoryChats, StoredChat

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
CLAIMS = st.sampled_from([WORKER, None])
PEOPLE = st.sampled_from(("ann", "bob"))
REMEMBERED_MAX = 2
USE = ModelUse(
    "m", 10, 20, 5, 30, 40, cost_micros=81, provider="p", price=Price(Decimal("0.1"), Decimal(4))
)
#: Mostly an action that is open; else one that is over, or that never was.
WHICH = st.sampled_from(("open", "open", "open", "over", "unknown"))
SAID = st.sampled_from(('{"accepted": true}', '{"accepted": false}', '{"text": "a\\u0000b"}'))
ASKING_KINDS = sorted(set(PendingKind) - SUSPENDED - {PendingKind.DISPATCHED})


class CallMachine(RuleBasedStateMachine):
    """Throws commands about calls at one chat."""

    salt = ""  # Makes ids of several runs in one database different.
    root_id = CHAT

    @initialize()
    def create(self) -> None:
        fresh = ChatState(CHAT, Status.WAITING, 1, 0, 0, MessageId(1))
        self.chats = InMemoryChats(fresh)
        self.chat.mode = ChatMode.PLAN
        self.sent = 0
        self.accepted: set[str] = set()
        self.withdrawn: set[str] = set()
        self.calls = 0
        self.reverts: list[RevertId] = []
        self.before_reverts: dict[RevertId, list[MessageId]] = {}
        self.reverts_seen = 0
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

    @rule(claimed_by=CLAIMS, person=PEOPLE)
    def answer_as_client(self, claimed_by: WorkerId | None, person: str) -> None:
        results = tuple(
            ToolResult(call.tool_call_id, call.tool_name, "{}", ToolOutcome.DONE)
            for call in self.chat.state.pending
            if call.is_asked and call.kind is PendingKind.CLIENT
        )
        self.apply(SubmitToolResults(results, person, claimed_by))

    @rule(claimed_by=CLAIMS, place=st.integers(0, 3), which=WHICH)
    def expire(self, claimed_by: WorkerId | None, place: int, which: str) -> None:
        self.apply(ExpireAction(self.some_action(place, which), claimed_by))

    @rule(
        claimed_by=CLAIMS,
        place=st.integers(0, 3),
        which=WHICH,
        is_approved=st.booleans(),
        remembered=st.sampled_from(("", "", "one", "two", "three")),
        mode=st.sampled_from((None, ChatMode.ORDINARY, ChatMode.PLAN)),
        said=SAID,
        person=PEOPLE,
    )
    def answer_as_person(
        self,
        claimed_by: WorkerId | None,
        place: int,
        which: str,
        is_approved: bool,
        remembered: str,
        mode: ChatMode | None,
        said: str,
        person: str,
    ) -> None:
        action_id = self.some_action(place, which)
        stored = self.chat.actions.get(action_id)
        call = ToolCall("stale", "tool", "{}") if stored is None else stored.asked.call
        answer: Approved | Resolved | Supplied
        if stored is not None and stored.asked.pending.question is not None:
            answer = Supplied(InputAction.ACCEPT if is_approved else InputAction.DECLINE, "{}")
        elif is_approved:
            message_id = next((m.id for m in self.chat.messages if call in m.content), MessageId(1))
            asked_in = ChatMode.ORDINARY if stored is None else stored.asked.mode
            dispatch = Dispatch(action_id, call, Executor.TOOLRUNNER, "j1", asked_in)
            answer = Approved(message_id, dispatch, self.remembered_call(remembered, person))
        else:
            answer = Resolved(ToolResult(call.tool_call_id, "tool", "{}", ToolOutcome.DONE), mode)
        is_over = stored is None or stored.outcome is not None
        after = self.apply(AnswerAction(action_id, answer, said, person, claimed_by))
        assert not is_over or after is None

    def remembered_call(self, digest: str, person: str) -> RememberedCall | None:
        """Return the rule that an approval may leave, by its digest."""
        if not digest:
            return None
        return RememberedCall(
            uuid_of(self.salt, f"rule {digest}"),
            self.root_id,
            "tool",
            "",
            f"{person} said so",
            person == "bob",
            digest,
            REMEMBERED_MAX,
        )

    def some_action(self, place: int, which: str) -> ExecutionId:
        """Return an action that is open or over, or one that never was."""
        found = [
            action_id
            for action_id, action in self.chat.actions.items()
            if (action.outcome is None) == (which == "open")
        ]
        if which == "unknown" or not found:
            return execution_id(self.salt, f"stale {place}")
        return found[place % len(found)]

    @rule(
        local=st.integers(0, 3),
        kinds=st.lists(
            st.tuples(st.sampled_from(ASKING_KINDS), st.sampled_from((None, 60.0, 300.0))),
            max_size=3,
        ),
    )
    def step(self, local: int, kinds: list[tuple[PendingKind, float | None]]) -> None:
        state, mode = self.chat.state, self.chat.mode
        names = [f"call_{self.calls + place}" for place in range(local + len(kinds))]
        self.calls += len(names)
        calls = [ToolCall(name, "tool", '{"said": "a\\u0000b"}') for name in names]
        executors = (Executor.TOOLRUNNER, Executor.MCPGATEWAY, Executor.CHATD)
        dispatches = tuple(
            Dispatch(execution_id(self.salt, call.tool_call_id), call, executor, "j1", mode)
            for call, executor in zip(calls[:local], executors, strict=False)
        )
        asked = tuple(
            AskedCall(
                PendingCall(
                    call.tool_call_id,
                    "tool",
                    execution_id(self.salt, call.tool_call_id),
                    kind=kind,
                    deadline_s=deadline_s,
                    reason="It reaches out." if kind is PendingKind.APPROVAL else "",
                ),
                call,
                mode,
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
    def wait_for_answers(self) -> None:
        state = self.chat.state
        if all(call.is_asked for call in state.pending):
            self.apply(EnterRequiresAction(fence_of(state)))


def calls_of(content: tuple[object, ...]) -> list[str]:
    """Return the ids of the calls in a message."""
    return [part.tool_call_id for part in content if isinstance(part, ToolCall)]


def execution_id(salt: str, tool_call_id: str) -> ExecutionId:
    """Return the id of an execution or an action."""
    return ExecutionId(uuid_of(salt, tool_call_id))


def uuid_of(salt: str, name: str) -> str:
    """Return an id that depends on a name only."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, salt + name))
