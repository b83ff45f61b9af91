"""Results of MCP tools: as stored, and as files of the chat if they are too large for a message."""

import base64
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from chatd.content.domain.errors import TooManyFiles
from chatd.content.domain.files import FILE_BYTES_MAX, sniffed
from chatd.content.domain.parts import File, ToolOutcome
from chatd.content.domain.tools import REPEAT_HINT, Execution, Outcome
from chatd.content.domain.truncation import truncated
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerClaim, OwnerId
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2

BODIES_BYTES_MAX: Final = 64 * 1024 * 1024

OUTCOMES: Mapping[int, ToolOutcome] = {
    tool_pb2.CALL_OUTCOME_SUCCEEDED: ToolOutcome.DONE,
    tool_pb2.CALL_OUTCOME_TOOL_ERROR: ToolOutcome.FAILED,
    tool_pb2.CALL_OUTCOME_FAILED: ToolOutcome.FAILED,
    tool_pb2.CALL_OUTCOME_CANCELLED: ToolOutcome.CANCELLED,
    tool_pb2.CALL_OUTCOME_TIMED_OUT: ToolOutcome.FAILED,
    tool_pb2.CALL_OUTCOME_UNKNOWN: ToolOutcome.UNKNOWN,
}


class AttachmentStore(Protocol):
    """Stores files of chats."""

    async def keep(
        self, claim: OwnerClaim, owner_id: OwnerId, file_id: str, file: FileData
    ) -> None:
        """Store a file; the same id again changes nothing.

        Raises:
            FenceLost: Another process owns the chat, and nothing was stored.
            TooManyFiles: The chat has as many as it may have.
        """
        ...


@dataclass(slots=True)
class Bodies:
    """Bodies that came in chunks, by the index of their part."""

    by_part: dict[int, bytearray] = field(default_factory=dict)
    count: int = 0

    def add(self, chunk: api.ContentChunk) -> None:
        """Append a chunk; what exceeds all bounds is dropped."""
        self.count += len(chunk.data)
        if self.count <= BODIES_BYTES_MAX:
            self.by_part.setdefault(chunk.part_index, bytearray()).extend(chunk.data)


class ResultFiles:
    """Makes files of the parts of a result that are too large for a message."""

    def __init__(self, store: AttachmentStore) -> None:
        self._store = store

    async def outcome(
        self, execution: Execution, result: tool_pb2.CallResult, bodies: Bodies
    ) -> Outcome:
        """Return the outcome of a call, with files for its large parts."""
        contents: list[dict[str, object]] = []
        files: list[File] = []
        for index, part in enumerate(result.parts):
            body = bytes(bodies.by_part.get(index, b""))
            text = part.text.text.encode() if part.WhichOneof("content") == "text" else b""
            if part.streamed_bytes and body:
                contents.append(await self._filed(execution, index, part, body, files))
            elif len(text) > execution.budget_bytes:
                contents.append(await self._filed(execution, index, part, text, files))
            else:
                contents.append(_content(part))
        return _outcome(result, contents, tuple(files))

    async def unstreamed(self, execution: Execution, result: tool_pb2.CallResult) -> Outcome:
        """Return the outcome of a call of which no part came in chunks."""
        return await self.outcome(execution, result, Bodies())

    async def _filed(
        self,
        execution: Execution,
        index: int,
        part: tool_pb2.ContentPart,
        body: bytes,
        files: list[File],
    ) -> dict[str, object]:
        """Store a body as a file of the chat, and return what the model reads of it."""
        kind = part.WhichOneof("content") or "unknown"
        told: dict[str, object] = {"type": kind, "size_bytes": len(body)}
        is_text = kind in ("text", "structured") or part.resource.WhichOneof("body") == "text"
        if is_text:
            text = body.decode(errors="replace")
            told |= {"type": "text", "text": truncated(text, execution.budget_bytes // 2)}
        name = f"{execution.spec.original_name or 'result'}-{index + 1}"
        name += {"text": ".txt", "structured": ".json"}.get(kind, "")
        if len(body) > FILE_BYTES_MAX:
            return told | {"note": "The whole result is too large to be kept; ask for less."}
        media_type = _media_type(part, name, body)
        seed = f"result {execution.dispatch.execution_id} {index}"
        file_id = str(uuid.uuid5(uuid.NAMESPACE_OID, seed))
        file = FileData(name, media_type, body)
        try:
            await self._store.keep(execution.claim, execution.owner.id, file_id, file)
        except TooManyFiles as error:
            return told | {"note": str(error)}
        files.append(File(file_id, media_type, name))
        note = "The whole result is attached to the chat, where its users can read it."
        return told | {"file_id": file_id, "note": note}


def outcome_of(result: tool_pb2.CallResult) -> Outcome:
    """Convert a result to its stored form."""
    return _outcome(result, [_content(part) for part in result.parts], ())


def _outcome(
    result: tool_pb2.CallResult, contents: list[dict[str, object]], files: tuple[File, ...]
) -> Outcome:
    told: dict[str, object] = {"content": contents}
    if result.message:
        told["error"] = result.message
    if result.outcome == tool_pb2.CALL_OUTCOME_UNKNOWN:
        told["hint"] = REPEAT_HINT
    return Outcome(OUTCOMES[result.outcome], json.dumps(told, ensure_ascii=False), files)


def _media_type(part: tool_pb2.ContentPart, name: str, body: bytes) -> str:
    match part.WhichOneof("content"):
        case "image" | "audio" as kind:
            return str(getattr(part, kind).media_type)
        case "structured":
            return "application/json"
        case "resource" if part.resource.media_type:
            return part.resource.media_type
        case _:
            return sniffed(name, body)


def _content(part: tool_pb2.ContentPart) -> dict[str, object]:
    """Convert one part of a result; data that was sent in chunks is replaced by its size."""
    match part.WhichOneof("content"):
        case "text":
            return {"type": "text", "text": part.text.text}
        case "structured":
            return {"type": "structured", "data": json.loads(part.structured.json)}
        case "resource_link":
            link = part.resource_link
            return {"type": "resource_link", "uri": link.uri, "name": link.name}
        case "image" | "audio" as kind if not part.streamed_bytes:
            return {"type": kind, **_bytes(getattr(part, kind))}
        case "resource" if not part.streamed_bytes:
            return {"type": "resource", "uri": part.resource.uri, **_resource(part.resource)}
        case kind:
            return {"type": kind or "unknown", "streamed_bytes": part.streamed_bytes}


def _bytes(blob: tool_pb2.BlobContent | tool_pb2.ResourceContent) -> dict[str, object]:
    return {"media_type": blob.media_type, "data": base64.b64encode(blob.data).decode()}


def _resource(resource: tool_pb2.ResourceContent) -> dict[str, object]:
    if resource.WhichOneof("body") == "data":
        return _bytes(resource)
    return {"media_type": resource.media_type, "text": resource.text}
