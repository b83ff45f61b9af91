"""Converts the parts of messages to JSON.

A part contains only the fields that are set, because a live part may be a delta.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import message_pb2

Json = dict[str, object]


def enum_names(enum: Any, prefix: str) -> Mapping[int, str | None]:
    """Return the lower-case name of each value of a proto enum; None for the unspecified one."""
    return {
        value: None if value == 0 else name.removeprefix(prefix).lower()
        for name, value in enum.items()
    }


OUTCOME = enum_names(message_pb2.ToolOutcome, "TOOL_OUTCOME_")


def parts_to_json(parts: Iterable[message_pb2.Part]) -> list[Json]:
    """Convert the parts of a message; unsupported kinds are left out."""
    return [shown for part in parts if (shown := part_to_json(part)) is not None]


def part_to_json(part: message_pb2.Part) -> Json | None:
    """Convert one part with its set fields; None for an unsupported kind."""
    match part.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": part.text.text}
        case "reasoning":
            thought = part.reasoning
            times = _times(thought, "created_at", "completed_at")
            return {"type": "reasoning", "text": thought.text, **times}
        case "tool_call":
            return _tool_call_to_json(part.tool_call)
        case "tool_result":
            return _tool_result_to_json(part.tool_result)
        case "source":
            source = part.source
            shown = _present(source_id=source.source_id, title=source.title)
            return {"type": "source", "url": source.url, **shown}
        case "file":
            return _file_to_json(part.file)
        case "file_reference":
            reference = part.file_reference
            return {
                "type": "file-reference",
                "file_name": reference.file_name,
                "start_line": reference.start_line,
                "end_line": reference.end_line,
                "content": reference.content,
            }
        case "context_file":
            context = part.context_file
            return {
                "type": "context-file",
                "context_file_path": context.path,
                "truncated": context.truncated,
            }
        case "skill":
            shown = _present(skill_description=part.skill.description)
            return {"type": "skill", "skill_name": part.skill.name, **shown}
        case "notice":
            return {"type": "notice", "text": part.notice.text}
        case _:
            return None


def embedded_json(text: str) -> msgspec.Raw | str:
    """Return JSON text to embed in a document, on one line; otherwise the text itself."""
    try:
        return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))
    except (msgspec.DecodeError, RecursionError):
        return text


def time_of(holder: Any, name: str) -> str | None:
    """Return the time in a field of a message; None if it is absent."""
    if not holder.HasField(name):
        return None
    timestamp: Timestamp = getattr(holder, name)
    return timestamp.ToJsonString()


def _tool_call_to_json(call: message_pb2.ToolCallPart) -> Json:
    return {
        "type": "tool-call",
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        **({"args": embedded_json(call.args_json)} if call.args_json else {}),
        **_present(
            args_delta=call.args_delta,
            mcp_server_id=call.mcp_server_id,
            provider_executed=call.provider_executed,
        ),
        **_times(call, "created_at"),
    }


def _tool_result_to_json(result: message_pb2.ToolResultPart) -> Json:
    outcome = OUTCOME.get(result.outcome)
    ended = {} if outcome is None else {"outcome": outcome, "is_error": outcome != "done"}
    return {
        "type": "tool-result",
        "tool_call_id": result.tool_call_id,
        "tool_name": result.tool_name,
        **({"result": embedded_json(result.result_json)} if result.result_json else {}),
        **ended,
        **_present(
            result_delta=result.result_delta,
            result_reset=result.result_reset,
            mcp_server_id=result.mcp_server_id,
            provider_executed=result.provider_executed,
        ),
        **_times(result, "created_at"),
        **({"files": [_file_to_json(file) for file in result.files]} if result.files else {}),
    }


def _file_to_json(file: message_pb2.FilePart) -> Json:
    shown = _present(name=file.name)
    return {"type": "file", "file_id": file.file_id, "media_type": file.media_type, **shown}


def _present(**fields: str | bool) -> Json:
    return {name: value for name, value in fields.items() if value}


def _times(holder: Any, *names: str) -> Json:
    return {name: time for name in names if (time := time_of(holder, name)) is not None}
