"""The to-do list of a chat: a list of items that the model replaces or changes.

The list is the result of the newest call of the tool. So forks and reverts have the list of the
history that they keep, and nothing else is stored.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from chatd.content.domain.parts import Part, ToolOutcome, ToolResult
from chatd.content.domain.sanitizing import sanitized

TODO: Final = "todo"
TODOS_MAX: Final = 50
TEXT_CHARACTERS_MAX: Final = 200


class TodoStatus(StrEnum):
    """How far an item is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Todo:
    """An item; its id is its place in the list, from 1, as long as the list is not replaced."""

    id: int
    text: str
    status: TodoStatus = TodoStatus.PENDING

    @property
    def is_open(self) -> bool:
        """Whether something is left to do."""
        return self.status in (TodoStatus.PENDING, TodoStatus.IN_PROGRESS)


@dataclass(frozen=True, slots=True)
class TodoUpdate:
    """A change of one item; None and an empty text keep what there is."""

    id: int
    status: TodoStatus | None = None
    text: str = ""


class TodosRefused(Exception):
    """A change that the list cannot have."""


def replaced(items: Sequence[tuple[str, TodoStatus]]) -> tuple[Todo, ...]:
    """Return a new list.

    Raises:
        TodosRefused: It is too long, or an item has no text.
    """
    if len(items) > TODOS_MAX:
        raise TodosRefused(f"{len(items)} items are more than {TODOS_MAX}")
    return tuple(Todo(place, _text(text), status) for place, (text, status) in enumerate(items, 1))


def updated(todos: Sequence[Todo], updates: Iterable[TodoUpdate]) -> tuple[Todo, ...]:
    """Return a list with changed items.

    Raises:
        TodosRefused: There is no such item.
    """
    by_id = {todo.id: todo for todo in todos}
    for update in updates:
        todo = by_id.get(update.id)
        if todo is None:
            raise TodosRefused(f"there is no item {update.id}")
        text = _text(update.text) if update.text.strip() else todo.text
        by_id[todo.id] = replace(todo, text=text, status=update.status or todo.status)
    return tuple(by_id.values())


def todos_to_json(todos: Iterable[Todo]) -> list[dict[str, object]]:
    """Return a list as results contain it."""
    return [{"id": todo.id, "text": todo.text, "status": todo.status} for todo in todos]


def todos_from_result(result_json: str) -> tuple[Todo, ...]:
    """Return the list in the result of a call; an empty one if it cannot be read."""
    try:
        items = json.loads(result_json)["todos"]
        return tuple(map(_todo_of, items))
    except (KeyError, TypeError, ValueError):
        return ()


def _todo_of(item: dict[str, object]) -> Todo:
    match item:
        case {"id": int(id), "text": str(text), "status": str(status)} if not isinstance(id, bool):
            return Todo(id, text, TodoStatus(status))
        case _:
            raise ValueError("is no item")


def newest_todos(contents: Iterable[Sequence[Part]]) -> tuple[Todo, ...]:
    """Return the list of a history, given the contents of its messages."""
    return next(map(todos_from_result, _results(contents)), ())


def open_todos_text(todos: Sequence[Todo]) -> str:
    """Return a list for a model that has not seen its calls; empty if nothing is left to do."""
    if not any(todo.is_open for todo in todos):
        return ""
    lines = (f"{todo.id}. [{todo.status}] {todo.text}" for todo in todos)
    return "Your to-do list (tool todo) is:\n" + "\n".join(lines)


def _results(contents: Iterable[Sequence[Part]]) -> Iterator[str]:
    for content in reversed(tuple(contents)):
        for part in reversed(content):
            match part:
                case ToolResult(tool_name="todo", outcome=ToolOutcome.DONE, mcp_server_id=""):
                    yield part.result_json
                case _:
                    pass


def _text(text: str) -> str:
    plain = " ".join(sanitized(text).split())
    if not plain:
        raise TodosRefused("an item has no text")
    if len(plain) > TEXT_CHARACTERS_MAX:
        raise TodosRefused(f"a text is longer than {TEXT_CHARACTERS_MAX} characters")
    return plain
