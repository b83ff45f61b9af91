"""Calls that are repeated with the same result: a hint after three, a question after six.

Two short runs of a command have the same result if they differ only in the process and how long it
took; a longer run waits for something or works. A command that is run again after a call that may
have changed something is no repetition.
"""

import json
from collections.abc import Iterator, Sequence

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.content.domain.tools import FIND_TOOLS, LIST_AGENTS, LIST_SUBAGENT_MODELS
from chatd.primitives.domain.ids import MessageId

HINT_AFTER = 3
ASK_AFTER = 6
HINT = "loop_hint"
COMMAND = "execute"
#: A command that ran as long waits for something, or works: running it again is no repetition.
LONG_RUN_MS = 10_000
#: Tools after which a command has no other result than before.
READING = frozenset(
    {
        FIND_TOOLS,
        LIST_AGENTS,
        LIST_SUBAGENT_MODELS,
        "find_files",
        "list_files",
        "list_templates",
        "process_list",
        "process_output",
        "read_file",
        "read_skill",
        "read_skill_file",
        "read_template",
        "search_files",
        "todo",
    }
)


def repetitions(history: Sequence[Message], turn_id: MessageId, call: ToolCall) -> tuple[int, str]:
    """Return how often a turn made a call with the newest result of it, and that result.

    Only the newest series counts: another result of the same call ends it. The result is returned
    in the form in which results are compared.
    """
    results = map(_comparable, _results_of(history, turn_id, call))
    newest = next(results, None)
    if newest is None:
        return 0, ""
    count = 1
    for result_json in results:
        if result_json != newest:
            break
        count += 1
    return count, newest


def with_loop_hint(
    history: Sequence[Message],
    turn_id: MessageId,
    call: ToolCall,
    result_json: str,
    *,
    has_advisor: bool = False,
) -> str:
    """Return a result, with a hint if the call had the same one twice before.

    Args:
        history: The messages of the chat.
        turn_id: The turn.
        call: The call.
        result_json: Its result.
        has_advisor: Whether the turn may ask the advisor, which the hint then says.
    """
    count, newest = repetitions(history, turn_id, call)
    if count + 1 < HINT_AFTER or newest != _comparable(result_json):
        return result_json
    told = _object_of(result_json)
    if told is None:
        return result_json
    advice = "ask the advisor, " if has_advisor else ""
    told[HINT] = (
        f"This call had the same result {count + 1} times. Repeating it will not change it: try "
        f"something else, {advice}or say what is in the way."
    )
    return json.dumps(told, ensure_ascii=False)


def _results_of(history: Sequence[Message], turn_id: MessageId, call: ToolCall) -> Iterator[str]:
    """Yield the results of identical calls of the turn, the newest first."""
    results: dict[str, str] = {}
    for message in reversed(history):
        if message.id <= turn_id:
            return
        for part in message.content:
            if isinstance(part, ToolResult):
                results[part.tool_call_id] = part.result_json
        if message.role is not Role.ASSISTANT or message.is_compressed:
            continue
        calls = [part for part in message.content if isinstance(part, ToolCall)]
        same = [each for each in calls if _identity(each) == _identity(call)]
        others = (each for each in calls if each not in same)
        if call.tool_name == COMMAND and any(map(_may_change, others)):
            return
        answered = next((each for each in same if each.tool_call_id in results), None)
        if answered is not None:
            yield results.pop(answered.tool_call_id)


def _identity(call: ToolCall) -> tuple[str, str]:
    return call.tool_name, call.args_json


def _may_change(call: ToolCall) -> bool:
    return call.tool_name not in READING and not call.provider_executed


def _comparable(result_json: str) -> str:
    """Return a result without its hint, and without what differs between equal runs of a command.

    A process that still runs is waited for again and again, which is no repetition; nor is a
    command that itself waits before it looks again.
    """
    if HINT not in result_json and "process_id" not in result_json:
        return result_json
    told = _object_of(result_json)
    if told is None:
        return result_json
    told.pop(HINT, None)
    if told.get("running") is False and not _is_long(told):
        process_id = told.pop("process_id", None)
        told.pop("wall_duration_ms", None)
        for name in ("hint", "log_path", "next_step"):
            # They name the log of the process.
            text = told.get(name)
            if isinstance(text, str) and isinstance(process_id, str) and process_id:
                told[name] = text.replace(process_id, "")
    return json.dumps(told, ensure_ascii=False)


def _is_long(told: dict[str, object]) -> bool:
    duration_ms = told.get("wall_duration_ms")
    return isinstance(duration_ms, int) and duration_ms >= LONG_RUN_MS


def _object_of(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
