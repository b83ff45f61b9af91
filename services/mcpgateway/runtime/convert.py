"""Conversion of arguments, tools, outcomes and results between protos and domain values."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import msgspec

from mcpgateway.client.call import CallRecord, Progress
from mcpgateway.client.content import (
    BlobPart,
    LinkPart,
    Part,
    ResourcePart,
    StructuredPart,
    TextPart,
    UnknownPart,
    body_of,
)
from mcpgateway.client.questions import Question
from mcpgateway.runtime.tool_listing import OfferedTool, ServerOutcome
from mcpgateway.servers.domain import Reason, ToolHints
from mcpgateway.servers.errors import BadArguments
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason
from parley.rpc import LIMITS

BODIES_BYTES_MAX: Final = 256 * 1024
#: For how long an executor waits for an answer.
ANSWER_MS_MAX: Final = 86_400_000
CHUNK_BYTES_MAX: Final = LIMITS.frame_bytes_max
ARGUMENTS_BYTES_MAX: Final = 1024 * 1024
ARGUMENTS_DEPTH_MAX: Final = 64
STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKET: Final = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class ResultMessages:
    """A result as messages: parts that are too large for one message precede it in chunks."""

    chunks: Sequence[api.ContentChunk]
    result: tool_pb2.CallResult


def reason_to_proto(reason: Reason | None) -> "ErrorReason.ValueType":
    """Convert a reason; None becomes unspecified."""
    name = "UNSPECIFIED" if reason is None else reason.value
    return ErrorReason.Value(f"ERROR_REASON_{name}")


def tool_to_proto(offered: OfferedTool) -> tool_pb2.McpTool:
    """Convert a tool as offered to a model."""
    tool = offered.tool
    return tool_pb2.McpTool(
        model_name=offered.model_name,
        server_id=offered.server.id,
        original_name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema_json=tool.input_schema_json,
        output_schema_json=tool.output_schema_json,
        hints=_hints_to_proto(tool.hints),
        digest=tool.digest,
        needs_approval=offered.needs_approval,
        is_repeatable=offered.is_repeatable,
    )


def outcome_to_proto(outcome: ServerOutcome) -> api.ServerOutcome:
    """Convert the outcome of one server in a listing."""
    message = api.ServerOutcome(
        server_id=outcome.server_id,
        slug=outcome.slug,
        state=server_pb2.ServerState.Value(f"SERVER_STATE_{outcome.state.name}"),
        reason=reason_to_proto(outcome.reason),
        message=outcome.message,
        tool_count=outcome.tool_count,
        dropped_tool_count=outcome.dropped_tool_count,
        is_stale=outcome.is_stale,
        instructions=outcome.instructions,
        retry_after_ms=outcome.retry_after_ms,
        is_required=outcome.is_required,
        display_name=outcome.display_name,
        quarantined_tool_count=outcome.quarantined_tool_count,
        tool_search=server_pb2.ToolSearch.Value(f"TOOL_SEARCH_{outcome.tool_search.name}"),
    )
    if outcome.fetched_at is not None:
        message.fetched_at.FromDatetime(outcome.fetched_at)
    return message


def progress_to_proto(progress: Progress) -> api.CallProgress:
    """Convert the progress of a tool."""
    return api.CallProgress(
        progress=progress.progress, total=progress.total, message=progress.message
    )


def question_to_proto(question: Question) -> tool_pb2.InputRequired:
    """Convert what a running call asks."""
    return tool_pb2.InputRequired(
        request_id=question.id,
        kind=tool_pb2.InputKind.Value(f"INPUT_KIND_{question.kind.name}"),
        message=question.message,
        schema_json=question.schema_json,
        url=question.url,
        expires_after_ms=ANSWER_MS_MAX,
    )


def result_to_proto(record: CallRecord) -> ResultMessages:
    """Convert the result of a finished call."""
    end = record.end
    if end is None or record.started_at is None or record.finished_at is None:
        raise ValueError("a call that is not finished has no result")
    result = tool_pb2.CallResult(
        outcome=tool_pb2.CallOutcome.Value(f"CALL_OUTCOME_{end.outcome.name}"),
        reason=reason_to_proto(end.reason),
        message=end.message,
        may_have_executed=end.may_have_executed,
        retry_after_ms=end.retry_after_ms,
        original_bytes=end.original_bytes,
    )
    result.started_at.FromDatetime(record.started_at)
    result.finished_at.FromDatetime(record.finished_at)
    chunks: list[api.ContentChunk] = []
    room = BODIES_BYTES_MAX
    for index, part in enumerate(end.parts):
        body = body_of(part)
        is_in_place = len(body) <= room
        if is_in_place:
            room -= len(body)
        else:
            chunks.extend(_chunks(index, body))
        result.parts.append(_part_to_proto(part, 0 if is_in_place else len(body)))
    return ResultMessages(chunks, result)


def _chunks(index: int, body: bytes) -> Iterator[api.ContentChunk]:
    for offset in range(0, len(body), CHUNK_BYTES_MAX):
        piece = body[offset : offset + CHUNK_BYTES_MAX]
        yield api.ContentChunk(part_index=index, offset_bytes=offset, data=piece)


def _part_to_proto(part: Part, streamed_bytes: int) -> tool_pb2.ContentPart:
    """Convert a part, with an empty body if it is sent in chunks."""
    message = tool_pb2.ContentPart(streamed_bytes=streamed_bytes)
    is_streamed = streamed_bytes > 0
    match part:
        case TextPart(text, is_truncated):
            message.is_truncated = is_truncated
            message.text.CopyFrom(tool_pb2.TextContent(text="" if is_streamed else text))
        case BlobPart(kind, media_type, data):
            blob = tool_pb2.BlobContent(media_type=media_type, data=b"" if is_streamed else data)
            getattr(message, kind).CopyFrom(blob)
        case ResourcePart(uri, media_type, body, is_text):
            resource = tool_pb2.ResourceContent(uri=uri[:2048], media_type=media_type[:128])
            if is_text:
                resource.text = "" if is_streamed else body.decode()
            else:
                resource.data = b"" if is_streamed else body
            message.resource.CopyFrom(resource)
        case LinkPart(uri, name, description, media_type):
            message.resource_link.CopyFrom(
                tool_pb2.ResourceLink(
                    uri=uri, name=name, description=description, media_type=media_type
                )
            )
        case StructuredPart(json):
            message.structured.CopyFrom(
                tool_pb2.StructuredContent(json=b"" if is_streamed else json)
            )
        case UnknownPart(name):
            message.unknown.CopyFrom(tool_pb2.UnknownContent(type=name))
        case _:
            assert_never(part)
    return message


def _hints_to_proto(hints: ToolHints) -> tool_pb2.ToolHints:
    result_message: dict[str, Any] = {
        "read_only": hints.read_only,
        "destructive": hints.destructive,
        "idempotent": hints.idempotent,
        "open_world": hints.open_world,
    }
    return tool_pb2.ToolHints(
        **{name: hint for name, hint in result_message.items() if hint is not None}
    )


def check_arguments(text: bytes) -> bytes:
    """Return the arguments of a call as they are sent; empty text means an empty object.

    Raises:
        BadArguments: They are not a JSON object within the limits.
    """
    if not text:
        return b"{}"
    if len(text) > ARGUMENTS_BYTES_MAX:
        raise BadArguments("size", f"the arguments exceed {ARGUMENTS_BYTES_MAX} bytes")
    if _depth(text) > ARGUMENTS_DEPTH_MAX:
        raise BadArguments("depth", f"the arguments are deeper than {ARGUMENTS_DEPTH_MAX} levels")
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise BadArguments("json", "the arguments are not a JSON object") from None
    return text


def _depth(text: bytes) -> int:
    """Return how deep brackets nest outside of strings, without recursion."""
    deepest = depth = 0
    for bracket in BRACKET.findall(STRING.sub(b"", text)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
