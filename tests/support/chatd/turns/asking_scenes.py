"""Chats that ask: one scene for each kind of action, and what people may do then."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.chats.domain.chat import NewMessage, PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    BusyBehavior,
    EditMessage,
    ExpireAction,
    Resolved,
    SetArchived,
    Supplied,
)
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    ASK_USER_QUESTION,
    PROPOSE_PLAN,
    Dispatch,
    Executor,
    InputAction,
    InputRequired,
    PendingKind,
)
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.loops import ASK_AFTER
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.turn_stage import ANN, SETUP, WORKER, Stage, calling, client_tool, tool

TWO_CALLS = (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))


def with_client_tools() -> Stage:
    """Return a chat whose second call the client makes."""
    setup = replace(SETUP, client_tools=(client_tool("two"),))
    return begun(Stage(calling(*TWO_CALLS), tool("one"), setup=setup))


def with_a_question() -> Stage:
    """Return a chat that asks a person."""
    asked = {"questions": [{"question": "Which?", "options": [{"label": "x"}, {"label": "y"}]}]}
    call = ToolCall("a", ASK_USER_QUESTION, json.dumps(asked))
    return begun(Stage(calling(call), tool("one"), setup=replace(SETUP, mode=ChatMode.PLAN)))


def with_a_plan() -> Stage:
    """Return a chat that proposes a plan."""
    call = ToolCall("a", PROPOSE_PLAN, '{"plan": "# first this"}')
    return begun(Stage(calling(call), tool("one"), setup=replace(SETUP, mode=ChatMode.PLAN)))


def with_an_approval() -> Stage:
    """Return a chat whose first call waits for permission while its second one runs."""
    rules = Rules([Rule("1", INSTALLATION, Effect.ASK, tool="one")])
    return begun(Stage(calling(*TWO_CALLS), tool("one"), tool("two"), approvals=judge_of(rules)))


def with_a_loop() -> Stage:
    """Return a chat that makes one call again and again, until a person is asked."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        results = [
            part
            for message in request.messages
            for part in message.content
            if isinstance(part, ToolResult)
        ]
        if len(results) <= ASK_AFTER:
            yield ToolCallRequested(ToolCall(f"call {len(results)}", "one", "{}"))
        else:
            yield TextDelta("done")
        yield Finished()

    return begun(Stage(play, tool("one")))


def with_an_elicitation() -> Stage:
    """Return a chat with a call that asks while it runs, beside one that does not."""
    return with_a_call_that_asks(InputRequired("r1", PendingKind.ELICITATION, "Which?"))


def with_a_login() -> Stage:
    """Return a chat with a call that asks a person to sign in."""
    login = InputRequired("r1", PendingKind.LOGIN, "Sign in.", url="https://example.com/login")
    return with_a_call_that_asks(login)


def with_a_wait_for_agents() -> Stage:
    """Return a chat with a call that waits for other chats."""
    wait = InputRequired("r1", PendingKind.AGENTS, "Waits.", agent_ids=("agent",))
    return with_a_call_that_asks(wait)


def with_a_call_that_asks(*questions: InputRequired) -> Stage:
    """Return a chat whose first call asks this while it runs, beside one that does not."""
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"))
    stage.tools.questions["one"] = questions
    return begun(stage)


def begun(stage: Stage) -> Stage:
    """Return a chat to which a message was sent."""
    stage.send()
    return stage


#: Every kind of action with a chat that asks it.
ASKING: Mapping[PendingKind, Callable[[], Stage]] = {
    PendingKind.CLIENT: with_client_tools,
    PendingKind.QUESTION: with_a_question,
    PendingKind.PLAN: with_a_plan,
    PendingKind.APPROVAL: with_an_approval,
    PendingKind.LOOP: with_a_loop,
    PendingKind.LOGIN: with_a_login,
    PendingKind.ELICITATION: with_an_elicitation,
    PendingKind.AGENTS: with_a_wait_for_agents,
}


class Move(StrEnum):
    """What people do with a chat that asks."""

    ACCEPT = "accept"
    REFUSE = "refuse"
    LET_EXPIRE = "let expire"
    INTERRUPT = "interrupt"
    SEND_URGENTLY = "send urgently"
    SEND_AND_ACCEPT = "send and accept"
    EDIT = "edit"
    ARCHIVE = "archive"


ANSWERS = (Move.ACCEPT, Move.REFUSE, Move.LET_EXPIRE)


class Person:
    """Somebody who does one thing with a chat that asks, and runs it on until it rests."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._is_done = False

    async def attend(self, stage: Stage) -> None:
        """Do what is to be done while the chat asks; what is done is not done again."""
        while stage.status is Status.REQUIRES_ACTION and not self._is_done:
            self._act(stage)
            if stage.state.worker_id is not None:
                await stage.run()

    def _act(self, stage: Stage) -> None:
        self._is_done = self._move not in ANSWERS
        match self._move:
            case Move.ACCEPT | Move.REFUSE | Move.LET_EXPIRE:
                self._end_all(stage)
            case Move.INTERRUPT:
                stage.interrupt()
            case Move.SEND_URGENTLY:
                stage.send("at once", BusyBehavior.INTERRUPT)
            case Move.SEND_AND_ACCEPT:
                self._move, self._is_done = Move.ACCEPT, False
                stage.send("later")
                self._end_all(stage)
            case Move.EDIT:
                message = NewMessage(Role.USER, (Text("other"),), ANN.id)
                stage.do(EditMessage(MessageId(1), message, WORKER))
            case Move.ARCHIVE:
                stage.do(SetArchived(archived=True))

    def _end_all(self, stage: Stage) -> None:
        for pending in stage.state.pending:
            if not pending.is_asked:
                continue
            if self._move is Move.LET_EXPIRE and pending.kind is not PendingKind.AGENTS:
                stage.do(ExpireAction(pending.action_id, WORKER))
            elif pending.kind is PendingKind.CLIENT:
                outcome = ToolOutcome.FAILED if self._move is Move.REFUSE else ToolOutcome.DONE
                stage.submit(ToolResult(pending.tool_call_id, pending.tool_name, "{}", outcome))
            else:
                is_accepted = self._move is not Move.REFUSE
                stage.do(answer_of(stage, pending, is_accepted=is_accepted))


def answer_of(stage: Stage, pending: PendingCall, *, is_accepted: bool = True) -> AnswerAction:
    """Return the answer of a person to an open action."""
    action_id = pending.action_id
    assert action_id is not None
    said = json.dumps({"accepted": is_accepted})
    if pending.is_suspended:
        supplied = Supplied(InputAction.ACCEPT if is_accepted else InputAction.DECLINE)
        return AnswerAction(action_id, supplied, said, "ann", WORKER)
    call = stage.chats.chats[stage.state.chat_id].actions[action_id].asked.call
    message_id = next(each.id for each in stage.messages if call in each.content)
    is_plan = is_accepted and pending.kind is PendingKind.PLAN
    given: Approved | Resolved = Resolved(
        ToolResult(call.tool_call_id, call.tool_name, said, ToolOutcome.DONE),
        ChatMode.ORDINARY if is_plan else None,
    )
    if is_accepted and pending.kind in (PendingKind.APPROVAL, PendingKind.LOOP):
        given = Approved(message_id, Dispatch(action_id, call, Executor.TOOLRUNNER, "j1"))
    return AnswerAction(action_id, given, said, "ann", WORKER)
