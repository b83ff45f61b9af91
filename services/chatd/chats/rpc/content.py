"""Validates messages, tools and results of users, and converts them to domain values."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from chatd.chats.domain.views import FILES_MAX
from chatd.chats.rpc.tool_schemas import schema_problems
from chatd.content.domain import parts
from chatd.content.domain.tools import (
    ASK_USER_QUESTION,
    BUILT_IN_TOOL_NAMES,
    PROPOSE_PLAN,
    ClientTool,
)
from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.rpc import fields
from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api

CONTENT_BYTES_MAX = 256 * 1024
TITLE_WORDS_MAX = 6
TITLE_CHARACTERS_MAX = 80
UNTITLED = "New chat"

# Names of MCP tools are the server's slug, two underscores, and the tool.
_MCP_TOOL_NAME = re.compile(r"[a-z0-9-]+__.+")


def content_from_proto(content: Sequence[message_pb2.Part]) -> tuple[parts.Part, ...]:
    """Return the content of a user message; its files are not looked up yet.

    Raises:
        InvalidRequest: It is too large, or has a kind of part that users cannot send.
    """
    if sum(part.ByteSize() for part in content) > CONTENT_BYTES_MAX:
        raise InvalidRequest("content", f"is longer than {CONTENT_BYTES_MAX} bytes")
    written = all_of(
        partial(_part, part, f"content[{index}]") for index, part in enumerate(content)
    )
    if len(file_ids_of(written)) > FILES_MAX:
        raise InvalidRequest("content", f"refers to more than {FILES_MAX} files")
    return written


def _part(part: message_pb2.Part, field: str) -> parts.Part:
    match part.WhichOneof("kind"):
        case "text":
            return parts.Text(part.text.text)
        case "file":
            file_id = fields.uuid_of(part.file.file_id, f"{field}.file.file_id")
            return parts.File(file_id, media_type="")
        case "file_reference":
            return _reference(part.file_reference, f"{field}.file_reference")
        case _:
            raise InvalidRequest(field, "is no text, file or file reference")


def _reference(reference: message_pb2.FileReferencePart, field: str) -> parts.FileReference:
    first, last = reference.start_line, reference.end_line
    if last < first:
        raise InvalidRequest(f"{field}.end_line", f"is less than {first}")
    return parts.FileReference(reference.file_name, first, last, reference.content)


def file_ids_of(content: Iterable[parts.Part]) -> tuple[str, ...]:
    """Return the files that a message refers to, each once."""
    ids = (part.file_id for part in content if isinstance(part, parts.File))
    return tuple(dict.fromkeys(ids))


def title_of(content: tuple[parts.Part, ...]) -> str:
    """Return the first words of a message, as the title until one is generated."""
    words = " ".join(part.text for part in content if isinstance(part, parts.Text)).split()
    title = " ".join(words[:TITLE_WORDS_MAX])[:TITLE_CHARACTERS_MAX]
    return (title if len(words) <= TITLE_WORDS_MAX else f"{title}…") or UNTITLED


def client_tools_from_proto(tools: Sequence[chat_pb2.ClientTool]) -> tuple[ClientTool, ...]:
    """Return the tools that a client executes.

    Raises:
        InvalidRequest: A name is taken, or a schema is invalid.
    """
    names = [tool.name for tool in tools]
    all_of(
        check
        for index, tool in enumerate(tools)
        for field in (f"client_tools[{index}]",)
        for check in (
            partial(_check_tool_name, tool.name, f"{field}.name", names[:index]),
            partial(_check_schema, tool.input_schema_json, f"{field}.input_schema_json"),
        )
    )
    return tuple(ClientTool(tool.name, tool.description, tool.input_schema_json) for tool in tools)


def _check_tool_name(name: str, field: str, before: Sequence[str]) -> None:
    if name in before:
        raise InvalidRequest(field, "is the name of two tools")
    if name in BUILT_IN_TOOL_NAMES or name in (ASK_USER_QUESTION, PROPOSE_PLAN):
        raise InvalidRequest(field, "is the name of a tool that Parley offers; choose another one")
    if _MCP_TOOL_NAME.fullmatch(name):
        raise InvalidRequest(
            field, "looks like a tool of an MCP server; leave out the two underscores"
        )


def _check_schema(schema_json: str, field: str) -> None:
    fields.json_value(schema_json, field)
    if problems := schema_problems(schema_json):
        raise InvalidRequest.together(
            [InvalidRequest(f"{field}#{at}" if at else field, problem) for at, problem in problems]
        )


def results_from_proto(
    results: Sequence[api.ClientToolResult], names: dict[str, str]
) -> tuple[parts.ToolResult, ...]:
    """Return the results of client tools, in the order of their calls.

    Whether they match the requested calls is decided with the chat's state; `names` are the names
    of the tools by their calls.
    """
    places = {call_id: place for place, call_id in enumerate(names)}
    ordered = sorted(results, key=lambda each: places.get(each.tool_call_id, len(places)))
    return tuple(
        parts.ToolResult(
            tool_call_id=result.tool_call_id,
            tool_name=names.get(result.tool_call_id, ""),
            result_json=result.output_json,
            outcome=parts.ToolOutcome.FAILED if result.is_error else parts.ToolOutcome.DONE,
        )
        for result in ordered
    )
