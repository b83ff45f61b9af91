"""What clients did and were told, and the check of what is stored against it.

Every operation is invoked and then ok, failed, or left open: an open one may have taken effect or
may still do so, once. The check reads each chat as a client does and compares.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from parley.client import Message, Role, ToolOutcome, ToolResult
from support.faults.report import RowReport

COUNT = re.compile(r"count to (\d+)")
ECHO = re.compile(r"repeat after me: (.+)", re.DOTALL)
CALL = re.compile(r"^call: ", re.MULTILINE)
RUN = re.compile(r"^run: (.+)$", re.MULTILINE)
MARK = re.compile(r"echo (\S+) >> runs")
RUNS_FILE = "runs"


class Known(StrEnum):
    """What a client knows of its operation."""

    INVOKED = "invoked"
    OK = "ok"
    FAILED = "failed"
    OPEN = "open"
    REPLACED = "replaced"  # An edit of an earlier message took it away.


@dataclass(slots=True)
class Operation:
    """A message that a client sent, perhaps several times with one key."""

    chat_id: str
    key: str
    text: str
    invoked_s: float
    known: Known = Known.INVOKED
    ended_s: float = 0.0
    replays: int = 0
    message_ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Expected:
    """What may have become of a chat."""

    may_be_cut: bool = False  # Its answer was interrupted.
    may_fail: bool = False  # It may end in an error.


class History:
    """All operations of one fault."""

    def __init__(self) -> None:
        self.operations: dict[str, Operation] = {}
        self.expected: dict[str, Expected] = {}

    def invoke(self, chat_id: str, key: str, text: str) -> Operation:
        """Note that a message leaves; the same key again is the same operation."""
        found = self.operations.get(key)
        if found is None:
            found = self.operations[key] = Operation(chat_id, key, text, time.monotonic())
        return found

    def end(self, operation: Operation, known: Known, message_id: int | None = None) -> None:
        """Note what a client was told; an operation that was ok once stays so."""
        if operation.known is not Known.OK:
            operation.known, operation.ended_s = known, time.monotonic()
        if message_id is not None:
            operation.message_ids.append(message_id)

    def expect(self, chat_id: str) -> Expected:
        """Return what may become of a chat, to be changed."""
        return self.expected.setdefault(chat_id, Expected())

    def replace(self, chat_id: str, edit: Operation) -> None:
        """Note that an edit of the first message took all others of a chat away."""
        for operation in self.of(chat_id):
            if operation is not edit:
                operation.known = Known.REPLACED

    def of(self, chat_id: str) -> list[Operation]:
        """Return the operations of a chat, in the order in which they were invoked."""
        return [each for each in self.operations.values() if each.chat_id == chat_id]


def check_chat(
    history: History, chat_id: str, messages: Sequence[Message], workspace: Path, row: RowReport
) -> None:
    """Compare a chat with what its clients were told."""
    said = [message for message in messages if not message.is_compressed]
    _check_sends(history, chat_id, said, row)
    expected = history.expect(chat_id)
    runs = Counter(_lines(workspace / "files" / RUNS_FILE))
    for user, answers in _turns(said):
        _check_answer(chat_id, user.text, answers, expected, row)
        _check_runs(chat_id, user.text, answers, runs, row)


def _check_sends(history: History, chat_id: str, said: Sequence[Message], row: RowReport) -> None:
    users = [message for message in said if message.role is Role.USER]
    places: dict[str, int] = {}
    for operation in history.of(chat_id):
        found = [place for place, user in enumerate(users) if user.text == operation.text]
        if operation.known is Known.OK:
            row.acknowledged += 1
            if not found:
                row.lost += 1
                row.problems.append(f"{chat_id}: {operation.text!r} was acknowledged and is gone")
        if operation.known is Known.FAILED and found:
            row.problems.append(f"{chat_id}: {operation.text!r} was refused and is there")
        if operation.known is Known.REPLACED and found:
            row.problems.append(f"{chat_id}: {operation.text!r} was edited and is there")
        if len(found) > 1:
            row.duplicates += len(found) - 1
            row.problems.append(f"{chat_id}: {operation.text!r} is there {len(found)} times")
        if len(set(operation.message_ids)) > 1:
            row.problems.append(f"{chat_id}: one key has the messages {operation.message_ids}")
        if found:
            places[operation.key] = found[0]
    if len(users) > len(history.of(chat_id)):
        row.duplicates += 1
        row.problems.append(f"{chat_id}: holds {len(users)} messages of users")
    _check_order(history.of(chat_id), places, row)


def _check_order(operations: Sequence[Operation], places: dict[str, int], row: RowReport) -> None:
    for before in operations:
        for after in operations:
            is_earlier = before.known is Known.OK and before.ended_s < after.invoked_s
            if not is_earlier or before.key not in places or after.key not in places:
                continue
            if places[before.key] > places[after.key]:
                row.problems.append(f"{before.chat_id}: {after.text!r} overtook {before.text!r}")


def _turns(said: Sequence[Message]) -> Iterable[tuple[Message, list[Message]]]:
    begun: tuple[Message, list[Message]] | None = None
    for message in said:
        if message.role is Role.USER:
            if begun is not None:
                yield begun
            begun = (message, [])
        elif begun is not None:
            begun[1].append(message)
    if begun is not None:
        yield begun


def _check_answer(
    chat_id: str, text: str, answers: Sequence[Message], expected: Expected, row: RowReport
) -> None:
    spoken = [message.text for message in answers if message.role is Role.ASSISTANT]
    commands = CALL.findall(text) or RUN.findall(text)
    if not expected.may_be_cut and not expected.may_fail and len(spoken) != len(commands) + 1:
        row.duplicates += max(0, len(spoken) - len(commands) - 1)
        row.problems.append(f"{chat_id}: {text!r} has {len(spoken)} answers: {spoken!r:.200}")
    if not spoken:
        return
    if commands:
        is_whole = spoken[-1].rstrip().endswith("That is all the demo does.")
    elif (count := COUNT.search(text)) is not None:
        is_whole = spoken[-1] == counted(int(count[1]))
        if expected.may_be_cut and not is_whole:
            is_whole = counted(int(count[1])).startswith(spoken[-1])
    elif (echo := ECHO.search(text)) is not None:
        is_whole = spoken[-1] == echo[1]
    else:
        is_whole = True
    if not is_whole and not (commands and expected.may_be_cut):
        row.problems.append(f"{chat_id}: {text!r} is answered with {spoken[-1]!r:.300}")


def _check_runs(
    chat_id: str, text: str, answers: Sequence[Message], runs: Counter[str], row: RowReport
) -> None:
    results = [
        part for message in answers for part in message.content if isinstance(part, ToolResult)
    ]
    for command, result in zip(RUN.findall(text), results, strict=False):
        row.counts[f"tool_{result.outcome}"] += 1
        for mark in MARK.findall(command):
            if runs[mark] > 1:
                row.double_executions += runs[mark] - 1
                row.problems.append(f"{chat_id}: {command!r} ran {runs[mark]} times")
            if runs[mark] == 0 and result.outcome is ToolOutcome.DONE:
                row.problems.append(f"{chat_id}: {command!r} is done and never ran")


def counted(last: int) -> str:
    """Return what a model says that counts."""
    return "".join(f"{number} " for number in range(1, last + 1))


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []
