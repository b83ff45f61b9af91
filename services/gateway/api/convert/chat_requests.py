"""Converts request bodies about chats to the protos for chatd, field by field."""

from collections.abc import Iterable
from typing import Any, assert_never

import msgspec
from google.protobuf.field_mask_pb2 import FieldMask
from msgspec import UNSET

from gateway.api.inputs.chats import (
    BusyBehavior,
    ChatPatch,
    ContentInput,
    Effort,
    FileInput,
    FileReferenceInput,
    JsonObject,
    Mode,
    NewChat,
    ShareInput,
    TextInput,
    ToolResultInput,
)
from parley.api.chat.v1 import chat_pb2, chat_service_pb2, message_pb2

BUSY_BEHAVIOR = {
    BusyBehavior.QUEUE: chat_service_pb2.BUSY_BEHAVIOR_QUEUE,
    BusyBehavior.INTERRUPT: chat_service_pb2.BUSY_BEHAVIOR_INTERRUPT,
}


def content_to_proto(content: Iterable[ContentInput]) -> list[message_pb2.Part]:
    """Convert the content of a request to parts."""
    return [_part_to_proto(each) for each in content]


def effort_to_proto(effort: Effort | None) -> "chat_pb2.ReasoningEffort.ValueType":
    """Convert a reasoning effort; None leaves it to the model or the chat."""
    if effort is None:
        return chat_pb2.REASONING_EFFORT_UNSPECIFIED
    return chat_pb2.ReasoningEffort.Value(f"REASONING_EFFORT_{effort.name}")


def new_chat_to_proto(
    body: NewChat, *, request_id: str, chat_id: str
) -> chat_service_pb2.CreateChatRequest:
    """Return the request that creates a chat."""
    return chat_service_pb2.CreateChatRequest(
        request_id=request_id,
        chat_id=chat_id,
        content=content_to_proto(body.content),
        title=body.title,
        model_id=body.model_id or "",
        reasoning_effort=effort_to_proto(body.reasoning_effort),
        mode=_mode_to_proto(body.mode),
        workspace_id=body.workspace_id or "",
        mcp_server_ids=body.mcp_server_ids,
        labels=body.labels,
        system_prompt=body.system_prompt,
        client_tools=[
            chat_pb2.ClientTool(
                name=tool.name,
                description=tool.description,
                input_schema_json=json_text(tool.input_schema),
            )
            for tool in body.client_tools
        ],
    )


def chat_patch_to_proto(
    body: ChatPatch, *, request_id: str, chat_id: str, etag: str
) -> chat_service_pb2.UpdateChatRequest:
    """Return the request that changes the fields of a patch; with an etag, conditionally."""
    given = given_fields(body)
    if "reasoning_effort" in given:
        given["reasoning_effort"] = effort_to_proto(given["reasoning_effort"])
    if "mode" in given:
        given["mode"] = _mode_to_proto(given["mode"])
    return chat_service_pb2.UpdateChatRequest(
        request_id=request_id,
        # A field of None is not set, which is the meaning of null.
        chat=chat_pb2.Chat(id=chat_id, etag=etag, **given),
        update_mask=FieldMask(paths=list(given)),
    )


def share_to_proto(share: ShareInput) -> chat_service_pb2.Share:
    """Convert a share, which names a user or a group."""
    if share.group_id:
        return chat_service_pb2.Share(group_id=share.group_id)
    return chat_service_pb2.Share(user_id=share.user_id)


def tool_result_to_proto(result: ToolResultInput) -> chat_service_pb2.ClientToolResult:
    """Convert the result of a tool that the client executed; its JSON is not changed."""
    return chat_service_pb2.ClientToolResult(
        tool_call_id=result.tool_call_id,
        output_json=bytes(result.output).decode(),
        is_error=result.is_error,
    )


def given_fields(patch: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that a patch contains, in the order of its type."""
    values = ((name, getattr(patch, name)) for name in patch.__struct_fields__)
    return {name: value for name, value in values if value is not UNSET}


def json_text(document: JsonObject | None) -> str:
    """Encode a JSON object as text, with its members unchanged; empty for None."""
    return "" if document is None else msgspec.json.encode(document).decode()


def _part_to_proto(part: ContentInput) -> message_pb2.Part:
    match part:
        case TextInput(text=text):
            return message_pb2.Part(text=message_pb2.TextPart(text=text))
        case FileInput(file_id=file_id):
            return message_pb2.Part(file=message_pb2.FilePart(file_id=file_id))
        case FileReferenceInput():
            reference = message_pb2.FileReferencePart(
                file_name=part.file_name,
                start_line=part.start_line,
                end_line=part.end_line,
                content=part.content,
            )
            return message_pb2.Part(file_reference=reference)
        case _:
            assert_never(part)


def _mode_to_proto(mode: Mode | None) -> "chat_pb2.ChatMode.ValueType":
    if mode is None:
        return chat_pb2.CHAT_MODE_UNSPECIFIED
    return chat_pb2.ChatMode.Value(f"CHAT_MODE_{mode.name}")
