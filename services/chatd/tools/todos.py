"""The tool `todo`: the model's list of what is to do, shown to the readers of the chat."""

from collections.abc import Sequence
from typing import Annotated, Final, Protocol

import msgspec

from chatd.content.domain.parts import Part, ToolCall
from chatd.content.domain.todos import (
    TEXT_CHARACTERS_MAX,
    TODO,
    TODOS_MAX,
    Todo,
    TodosRefused,
    TodoStatus,
    TodoUpdate,
    replaced,
    todos_to_json,
    updated,
)
from chatd.content.domain.tools import (
    Execution,
    Executor,
    Found,
    InputRequired,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import Reader
from chatd.tools.workspace.arguments import BadArguments, Input, read, schema_of
from chatd.tools.workspace.results import failed, misused, succeeded


class TodoItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An item of a new list."""

    text: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=TEXT_CHARACTERS_MAX,
            description="What is to do, in one line.",
        ),
    ]
    status: Annotated[TodoStatus, msgspec.Meta(description="How far it is.")] = TodoStatus.PENDING


class TodoChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of an item."""

    id: Annotated[int, msgspec.Meta(description="The id of the item in the list.")]
    status: Annotated[TodoStatus | None, msgspec.Meta(description="How far it is now.")] = None
    text: Annotated[
        str,
        msgspec.Meta(max_length=TEXT_CHARACTERS_MAX, description="Another text."),
    ] = ""


class TodoInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `todo`."""

    items: Annotated[
        tuple[TodoItem, ...] | None,
        msgspec.Meta(
            description=f"A new list in place of the present one, at most {TODOS_MAX} items; "
            "empty to clear it."
        ),
    ] = None
    updates: Annotated[
        tuple[TodoChange, ...],
        msgspec.Meta(description="Changes of items by their ids, after items if both are given."),
    ] = ()


SPEC: Final = ToolSpec(
    TODO,
    "Keep a to-do list for work of several steps; the user watches it. Give items to begin it, "
    "updates when an item begins or ends, nothing to read it. Work on one item at a time.",
    schema_of(TodoInput),
    Executor.CHATD,
    is_serial=True,
)


class StoredTodos(Protocol):
    """The lists of chats."""

    async def todos(self, chat_id: ChatId, reader: Reader) -> tuple[Todo, ...]:
        """Return the list of a chat.

        Raises:
            ChatNotFound: There is no such chat for this reader.
        """
        ...


class TodoTools:
    """Offers the to-do list."""

    names = frozenset({TODO})

    def __init__(self, stored: StoredTodos) -> None:
        self._stored = stored

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tool: every chat may have a list."""
        return (SPEC,)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Return the list after the call, which is stored as the result."""
        call, owner_id = execution.dispatch.call, OwnerId(execution.owner.id)
        try:
            given = read(TodoInput, call.args_json)
            todos = await self._stored.todos(execution.chat_id, Reader(owner_id))
            todos = changed(before(todos, execution.context.answer(), call.tool_call_id), given)
        except BadArguments as error:
            return misused(error)
        except ChatError as error:
            return failed(str(error), "TODOS_UNAVAILABLE", "Go on without the list.")
        return succeeded({"todos": todos_to_json(todos)})

    async def find(self, execution: Execution) -> Found:
        """Return that a call may be made again: it changes nothing but its result."""
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: a call takes no time."""


def changed(todos: tuple[Todo, ...], given: TodoInput) -> tuple[Todo, ...]:
    """Return the list after a call.

    Raises:
        BadArguments: The list cannot be like that.
    """
    updates = (TodoUpdate(each.id, each.status, each.text) for each in given.updates)
    try:
        if given.items is not None:
            todos = replaced([(item.text, item.status) for item in given.items])
        return updated(todos, updates)
    except TodosRefused as refusal:
        hint = "call todo without arguments to read the list"
        raise BadArguments(str(refusal), hint) from None


def before(todos: tuple[Todo, ...], answer: Sequence[Part], tool_call_id: str) -> tuple[Todo, ...]:
    """Return the list after the calls of an answer that come before one of them."""
    for part in answer:
        match part:
            case ToolCall(tool_name="todo", provider_executed=False):
                if part.tool_call_id == tool_call_id:
                    return todos
                try:
                    todos = changed(todos, read(TodoInput, part.args_json))
                except BadArguments:
                    continue  # Its result says so.
            case _:
                pass
    return todos
