"""To-do lists: replaced, changed item by item, refused, and kept beyond a summary."""

import json
from dataclasses import replace

import pytest

from chatd.content.domain.parts import Part, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.todos import (
    TODOS_MAX,
    Todo,
    TodoStatus,
    newest_todos,
    open_todos_text,
    todos_from_result,
)
from chatd.content.domain.tools import Dispatch, Execution, Executor, NeverSeen, Outcome
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.tools.todos import SPEC, TodoTools
from chatd.turns.domain.compaction import stored_summary

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("ann"), "member")
LISTED = (Todo(1, "look", TodoStatus.DONE), Todo(2, "leap"))


class Stored:
    """The list of one chat."""

    def __init__(self, *todos: Todo, exists: bool = True) -> None:
        self._todos = todos
        self._exists = exists

    async def todos(self, chat_id: ChatId, reader: Reader) -> tuple[Todo, ...]:
        assert (chat_id, reader) == (CHAT, Reader(ANN.id))
        if not self._exists:
            raise ChatNotFound(chat_id)
        return self._todos


def call(args: object, call_id: str = "c") -> ToolCall:
    return ToolCall(call_id, "todo", json.dumps(args))


def execution(made: ToolCall, *answer: Part) -> Execution:
    context = TurnContext(CHAT, ANN, answer=lambda: answer or (made,))
    dispatch = Dispatch(
        ExecutionId("00000000-0000-0000-0000-00000000000e"), made, Executor.CHATD, ""
    )
    return Execution(context, 1, dispatch, SPEC)


async def outcome(stored: Stored, args: object) -> Outcome:
    ended = await TodoTools(stored).execute(execution(call(args)))
    assert isinstance(ended, Outcome)
    return ended


async def list_after(stored: Stored, args: object) -> tuple[Todo, ...]:
    ended = await outcome(stored, args)
    assert ended.outcome is ToolOutcome.DONE, ended.result_json
    return todos_from_result(ended.result_json)


async def test_a_list_is_begun_changed_read_and_cleared() -> None:
    items = [{"text": " look\n twice\u200b "}, {"text": "leap", "status": "in_progress"}]
    begun = (Todo(1, "look twice"), Todo(2, "leap", TodoStatus.IN_PROGRESS))
    assert await list_after(Stored(*LISTED), {"items": items}) == begun
    updates = [{"id": 2, "status": "done"}, {"id": 1, "text": "look once"}]
    assert await list_after(Stored(*begun), {"updates": updates}) == (
        Todo(1, "look once"),
        Todo(2, "leap", TodoStatus.DONE),
    )
    assert await list_after(Stored(*LISTED), {}) == LISTED
    assert await list_after(Stored(*LISTED), {"items": []}) == ()


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"updates": [{"id": 3, "status": "done"}]}, "there is no item 3"),
        ({"items": [{"text": "\u200b"}]}, "an item has no text"),
        ({"items": [{"text": "x"}] * (TODOS_MAX + 1)}, f"{TODOS_MAX + 1} items are more than"),
        ({"items": [{"text": "x" * 201}]}, "items[0].text"),
        ({"items": [{"text": "x", "status": "soon"}]}, "items[0].status"),
        ({"add": "x"}, "there is no argument 'add'"),
    ],
)
async def test_what_no_list_can_be_is_refused(args: object, problem: str) -> None:
    ended = await outcome(Stored(*LISTED), args)
    assert ended.outcome is ToolOutcome.FAILED
    assert problem in json.loads(ended.result_json)["error"]


async def test_a_chat_that_is_gone_has_no_list() -> None:
    ended = await outcome(Stored(exists=False), {})
    assert json.loads(ended.result_json)["reason"] == "TODOS_UNAVAILABLE"


async def test_calls_of_one_answer_build_on_each_other() -> None:
    made = (
        call({"updates": [{"id": 9, "status": "done"}]}, "refused"),
        call({"items": [{"text": "a"}, {"text": "b"}]}, "first"),
        call({"updates": [{"id": 1, "status": "done"}]}, "second"),
    )
    tools = TodoTools(Stored(*LISTED))
    again = execution(made[2], *made)
    ended = await tools.execute(again)
    assert isinstance(ended, Outcome)
    assert todos_from_result(ended.result_json) == (Todo(1, "a", TodoStatus.DONE), Todo(2, "b"))
    assert await tools.find(again) == NeverSeen()
    assert await tools.execute(again) == ended


def test_the_list_of_a_history_is_that_of_its_newest_call() -> None:
    first = ToolResult("a", "todo", '{"todos": []}', ToolOutcome.DONE)
    told = json.dumps({"todos": [{"id": 1, "text": "x", "status": "pending"}]})
    second = replace_result(first, told)
    failed = ToolResult("b", "todo", "{}", ToolOutcome.FAILED)
    assert newest_todos([(first,), (second, failed), ()]) == (Todo(1, "x"),)
    assert newest_todos([]) == ()
    assert todos_from_result("[truncated]") == ()


@pytest.mark.parametrize(
    "item",
    [
        {"id": "1", "text": "x", "status": "pending"},
        {"id": True, "text": "x", "status": "pending"},
        {"id": 1, "text": ["x"], "status": "pending"},
        {"id": 1, "text": "x", "status": ["pending"]},
        {"id": 1, "text": "x"},
        "x",
        None,
    ],
)
def test_a_list_with_values_of_other_types_is_none(item: object) -> None:
    assert todos_from_result(json.dumps({"todos": [item]})) == ()


def replace_result(result: ToolResult, told: str) -> ToolResult:
    return ToolResult(result.tool_call_id, result.tool_name, told, result.outcome)


def test_the_open_list_is_part_of_a_summary() -> None:
    made = ToolCall("s", "chat_summarized", "{}")
    result = ToolResult("s", "chat_summarized", "{}", ToolOutcome.DONE)
    boundary = stored_summary(made, result, "so far", ModelUse("m"), None, LISTED)[0]
    assert "so far\n\nYour to-do list (tool todo) is:\n1. [done] look\n2. [pending] leap" in str(
        boundary.content
    ).replace("\\n", "\n")
    assert open_todos_text([replace(todo, status=TodoStatus.DONE) for todo in LISTED]) == ""
