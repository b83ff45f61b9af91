"""The process dies that asks a client or a person, or that takes the answer: row A39."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass

import pytest

from parley.client import (
    Action,
    ActionAnswer,
    ActionDecision,
    ChatOptions,
    ClientTool,
    Parley,
    QuestionAnswer,
    ToolAnswer,
)
from parley.testing.faultpoints import Action as Injected
from support.faults.asking_servers import WHOAMI, AskingServer, NoServer, eliciting, guarded
from support.faults.delegating_server import SLUG
from support.faults.lab import FaultLab
from support.faults.trials import Fault, faults

pytestmark = pytest.mark.slow

QUESTIONS = {"questions": [{"question": "Which?", "options": [{"label": "x"}, {"label": "y"}]}]}
ACCEPT = ActionAnswer(ActionDecision.ACCEPT)
ASKED_COMMAND = "sleep 0.01"
#: The same result of the same call for the seventh time is asked about first.
REPEATED = "\n".join(['call: read_file {"path": "absent"}'] * 7)
RULES = "/me/approval-rules"
ACTIONS = "SELECT kind, outcome FROM chat.chat_actions WHERE chat_id = $1::uuid"


@dataclass(frozen=True, slots=True)
class Scene:
    """A chat that asks, and the answer of a person; None for that of a client."""

    text: str
    answer: ActionAnswer | None = ACCEPT
    options: ChatOptions | None = None


MEASURE = ClientTool("measure", "Measures something.", {"type": "object"})
SCENES = {
    "client": Scene("call: measure {}", None, ChatOptions(client_tools=(MEASURE,))),
    "question": Scene(
        f"call: ask_user_question {json.dumps(QUESTIONS)}",
        ActionAnswer(answers=(QuestionAnswer(("x",)),)),
        ChatOptions(is_planning=True),
    ),
    "plan": Scene(
        'call: propose_plan {"plan": "# first this"}', options=ChatOptions(is_planning=True)
    ),
    "approval": Scene(f"run: {ASKED_COMMAND}; echo @ >> runs"),
    "loop": Scene(REPEATED),
    "elicitation": Scene(
        f"call: {SLUG}__paint {{}}",
        ActionAnswer(ActionDecision.ACCEPT, content_json='{"colour": "red"}'),
    ),
    "login": Scene(WHOAMI),
}
#: Kinds of running calls, which ask at their executor.
OF_CALLS = frozenset({"elicitation", "login"})
#: One of each kind is part of every test run, each with another commit.
SHORT = {
    ("client", "SubmitToolResults.after"),
    ("question", "AnswerAction.before"),
    ("plan", "EnterRequiresAction.before"),
    ("approval", "AnswerAction.after"),
    ("loop", "EnterRequiresAction.after"),
    ("elicitation", "SuspendCall.after"),
    ("login", "SuspendCall.before"),
    ("login", "AnswerAction.before"),
    ("login", "AnswerAction.after"),
}


def variants(*commands: str) -> Iterator[object]:
    """Yield each kind with the points around the commands that it has of these."""
    for kind in SCENES:
        for command in commands:
            is_of_client = command == "SubmitToolResults"
            is_answer = is_of_client or command == "AnswerAction"
            if is_answer and is_of_client is not (kind == "client"):
                continue
            if command == "SuspendCall" and kind not in OF_CALLS:
                continue
            for point in (f"{command}.before", f"{command}.after"):
                marks = [pytest.mark.short] if (kind, point) in SHORT else []
                yield pytest.param(kind, point, marks=marks)


@pytest.mark.row("A39")
@pytest.mark.parametrize(("kind", "point"), tuple(variants("SuspendCall", "EnterRequiresAction")))
async def test_a39_what_is_asked_by_an_owner_that_is_killed_is_asked_once(
    lab: FaultLab, kind: str, point: str
) -> None:
    async with prepared(lab, kind) as server:
        async for fault in faults(lab):
            victim = await lab.victim()
            await server.made_to_ask()
            began = await server.calls()
            lab.points.arm(point, Injected.HOLD, pid=victim.pid)
            chat_ids = await begin(fault, await lab.client(victim.address), kind)
            await fault.kill_held(victim, point, chat_ids)
            client = await lab.client()
            asked = await until_asked(fault, client)
            await server.made_answerable()
            for chat_id, action in asked.items():
                await answer(client, kind, chat_id, action)
            await check(fault, kind, server, began)


@pytest.mark.row("A39")
@pytest.mark.parametrize(("kind", "point"), tuple(variants("AnswerAction", "SubmitToolResults")))
async def test_a39_an_answer_whose_process_is_killed_is_stored_once(
    lab: FaultLab, kind: str, point: str
) -> None:
    async with prepared(lab, kind) as server:
        async for fault in faults(lab):
            victim = await lab.victim()
            client = await lab.client(victim.address)
            await server.made_to_ask()
            began = await server.calls()
            await begin(fault, client, kind)
            asked = await until_asked(fault, client)
            await server.made_answerable()
            lab.points.arm(point, Injected.HOLD, pid=victim.pid)
            async with asyncio.TaskGroup() as tasks:
                for chat_id, action in asked.items():
                    tasks.create_task(answer(client, kind, chat_id, action))
                await fault.kill_held(victim, point, asked)
            await check(fault, kind, server, began)


def prepared(lab: FaultLab, kind: str) -> AbstractAsyncContextManager[AskingServer]:
    """Return what lets chats ask in this way: a rule, or a server whose tool asks."""
    match kind:
        case "approval":
            return asked_about(lab)
        case "elicitation":
            return eliciting(lab)
        case "login":
            return guarded(lab)
        case _:
            return nullcontext(NoServer())


@asynccontextmanager
async def asked_about(lab: FaultLab) -> AsyncIterator[AskingServer]:
    """Let a command need approval."""
    body = {"effect": "ask", "tool": "execute", "command": ASKED_COMMAND}
    status, _, rule = await lab.http("POST", RULES, body, lab.unique())
    assert status in (200, 201), rule
    try:
        yield NoServer()
    finally:
        await lab.http("DELETE", f"{RULES}/{rule['id']}", None, lab.unique())


async def begin(fault: Fault, client: Parley, kind: str) -> list[str]:
    """Create chats that ask."""
    scene = SCENES[kind]
    chat_ids = await fault.create_all(client, fault.texts(scene.text), scene.options)
    assert len(chat_ids) == fault.size
    return chat_ids


async def until_asked(fault: Fault, client: Parley) -> dict[str, Action]:
    """Wait until every chat asks something, and return what."""
    await fault.until_all(lambda state: state.status == "requires_action", "a question")
    listed = await client.manage.list_actions(page_size=200)
    asked = {each.chat_id: each for each in listed.actions}
    return {chat_id: asked[chat_id] for chat_id in fault.chat_ids}


async def answer(client: Parley, kind: str, chat_id: str, action: Action) -> None:
    """Answer as a person or a client does, who repeats it until it is taken."""
    given = SCENES[kind].answer
    if given is None:
        await client.manage.submit_tool_results(chat_id, ToolAnswer(action.tool_call_id, "{}"))
    else:
        await client.manage.answer_action(chat_id, action.id, given, request_id=action.id)


async def check(fault: Fault, kind: str, server: AskingServer, began: int) -> None:
    """Require that each chat asked once, was answered once, and made its call once."""
    await fault.at_rest()
    for chat_id in fault.chat_ids:
        actions = [tuple(row) for row in await fault.lab.query(ACTIONS, chat_id)]
        if actions != [(kind, "answered")]:
            fault.row.problems.append(f"{chat_id}: its actions are {actions}")
    begun = await server.calls() - began
    if kind in OF_CALLS and begun != len(fault.chat_ids):
        fault.row.problems.append(f"{begun} calls began for {len(fault.chat_ids)} chats")
