"""Calls that are repeated with the same result: a hint after three, a question after six."""

import json
from collections.abc import Iterator, Sequence

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.primitives.domain.ids import MessageId

HINT_AFTER = 3
ASK_AFTER = 6
HINT = "loop_hint"


def repetitions(history: Sequence[Message], turn_id: MessageId, call: ToolCall) -> tuple[int, str]:
    """Return how often a turn made a call with the newest result of it, and that result.

    Only the newest series counts: another result of the same call ends it.
    """
    results = _results_of(history, turn_id, call)
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
    history: Sequence[Message], turn_id: MessageId, call: ToolCall, result_json: str
) -> str:
    """Return a result, with a hint if the call had the same one twice before."""
    count, newest = repetitions(history, turn_id, call)
    if count + 1 < HINT_AFTER or newest != result_json:
        return result_json
    told = _object_of(result_json)
    if told is None:
        return result_json
    told[HINT] = (
        f"This is the same result of the same call for the {count + 1}th time. Repeating it will "
        "not change it: try something else, or say what is in the way."
    )
    return json.dumps(told, ensure_ascii=False)


def _results_of(history: Sequence[Message], turn_id: MessageId, call: ToolCall) -> Iterator[str]:
    """Yield the results of identical calls of the turn, the newest first, without hints."""
    results: dict[str, str] = {}
    for message in reversed(history):
        if message.id <= turn_id:
            return
        for part in message.content:
            if isinstance(part, ToolResult):
                results[part.tool_call_id] = part.result_json
        if message.role is not Role.ASSISTANT or message.is_compressed:
            continue
        for part in message.content:
            is_same = (
                isinstance(part, ToolCall)
                and (part.tool_name, part.args_json) == (call.tool_name, call.args_json)
                and part.tool_call_id in results
            )
            if is_same and isinstance(part, ToolCall):
                yield _without_hint(results.pop(part.tool_call_id))
                break


def _without_hint(result_json: str) -> str:
    if HINT not in result_json:
        return result_json
    told = _object_of(result_json)
    if told is None or HINT not in told:
        return result_json
    del told[HINT]
    return json.dumps(told, ensure_ascii=False)


def _object_of(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
