"""Encodes the parts of a prompt as content blocks."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, assert_never

import msgspec

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    File,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.truncation import repaired
from chatd.models.domain.language_model import FileData, ModelError
from chatd.models.engine.target import Target
from chatd.providers.anthropic.metadata import anthropic_metadata_of
from chatd.providers.anthropic.options import config_error
from chatd.providers.attachments import (
    Accepted,
    Audio,
    Dropped,
    Image,
    InlineText,
    PdfDocument,
    Placeholder,
    TextDocument,
    attachment_of,
)
from chatd.providers.media import ImageContent, as_text, read_result

if TYPE_CHECKING:
    from anthropic.types import (
        ContentBlockParam,
        ImageBlockParam,
        TextBlockParam,
        ToolResultBlockParam,
    )

IMAGE_BYTES_MAX = 5 * 1024 * 1024
ACCEPTED = frozenset({Accepted.IMAGE, Accepted.PDF, Accepted.TEXT})
TOOL_NAME_CHARACTERS_MAX = 128

_ODD_NAME = re.compile(r"[^A-Za-z0-9_-]")


class BlockMaker:
    """Makes blocks for one request.

    Args:
        target: The target; errors name it.
        files: Files by their ids.
        with_citations: Whether the search results that citations refer to are still in the prompt.
    """

    def __init__(
        self, target: Target, files: Mapping[str, FileData], *, with_citations: bool
    ) -> None:
        self._target = target
        self._files = files
        self._with_citations = with_citations

    def blocks(self, message: PromptMessage) -> "list[ContentBlockParam]":
        """Return the blocks of a message.

        Raises:
            ModelError: It contains a file that the provider does not accept.
        """
        made = [block for part in message.content for block in self._blocks(part)]
        if message.role is Role.ASSISTANT:
            # An answer that was interrupted while thinking would be rejected.
            while made and made[-1]["type"] in ("thinking", "redacted_thinking"):
                made.pop()
        return made

    def _blocks(self, part: Part) -> "Iterator[ContentBlockParam]":
        match part:
            case Text():
                yield self._text(part)
            case Reasoning():
                yield from _thinking_block(part)
            case ToolCall():
                yield _call(part)
            case ToolResult(provider_executed=True):
                yield from _search_result(part)
            case ToolResult():
                yield _result(part)
            case File():
                yield from self._file(part)
            case _:
                return  # The prompt contains no others.

    def _text(self, part: Text) -> "TextBlockParam":
        citations = (
            anthropic_metadata_of(part.provider_metadata).citations if self._with_citations else ()
        )
        if not citations:
            return _text_block(part.text)
        cited = [msgspec.to_builtins(citation) for citation in citations]
        return {"type": "text", "text": part.text, "citations": cited}

    def _file(self, part: File) -> "Iterator[ContentBlockParam]":
        match attachment_of(part, self._files.get(part.file_id), ACCEPTED):
            case InlineText(text) | Placeholder(text):
                yield _text_block(text)
            case Image(media_type, data, name):
                if len(data) >= IMAGE_BYTES_MAX:
                    raise self._too_large(name)
                yield _image_block(media_type, base64.b64encode(data).decode())
            case PdfDocument(data, name):
                encoded = base64.b64encode(data).decode()
                yield {
                    "type": "document",
                    "source": {
                        "type": "base64",
                        "media_type": "application/pdf",
                        "data": encoded,
                    },
                    "title": name or None,
                }
            case TextDocument(text, name):
                yield {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": text},
                    "title": name or None,
                }
            case Audio() | Dropped():
                return
            case attachment:
                assert_never(attachment)

    def _too_large(self, name: str) -> ModelError:
        called = f' "{name}"' if name else ""
        return config_error(
            self._target,
            f"takes images of less than {IMAGE_BYTES_MAX // 1024**2} MiB only. Edit the message "
            f"and attach the image{called} in a smaller form.",
        )


def result_blocks_first(blocks: "Iterable[ContentBlockParam]") -> "list[ContentBlockParam]":
    """Return the blocks of a user message with the tool results before all others."""
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def tool_name(name: str) -> str:
    """Return a tool name with only those characters that the provider accepts."""
    return _ODD_NAME.sub("_", name)[:TOOL_NAME_CHARACTERS_MAX] or "tool"


def _text_block(text: str) -> "TextBlockParam":
    return {"type": "text", "text": text}


def _image_block(media_type: str, data_base64: str) -> "ImageBlockParam":
    source = {"type": "base64", "media_type": media_type, "data": data_base64}
    return {"type": "image", "source": source}  # type: ignore[typeddict-item]  # The type was seen in the bytes.


def _thinking_block(part: Reasoning) -> "Iterator[ContentBlockParam]":
    """Yield a thinking block made by Anthropic; those of others are rejected."""
    own = anthropic_metadata_of(part.provider_metadata)
    if own.redacted_data:
        yield {"type": "redacted_thinking", "data": own.redacted_data}
    elif own.signature:
        yield {"type": "thinking", "thinking": part.text, "signature": own.signature}


def _call(part: ToolCall) -> "ContentBlockParam":
    if part.provider_executed:
        return {
            "type": "server_tool_use",
            "id": part.tool_call_id,
            "name": "web_search",
            "input": _arguments(part.args_json),
        }
    return {
        "type": "tool_use",
        "id": part.tool_call_id,
        "name": tool_name(part.tool_name),
        "input": _arguments(part.args_json),
    }


def _arguments(args_json: str) -> dict[str, object]:
    """Return arguments as an object of strictly valid JSON."""
    try:
        value = msgspec.json.decode(args_json)
    except (ValueError, RecursionError):
        try:  # Lone surrogates are accepted by some parsers and rejected by others.
            loose = json.dumps(json.loads(args_json), ensure_ascii=False, allow_nan=False)
            value = json.loads(repaired(loose))
        except (ValueError, RecursionError):
            value = {}
    return value if isinstance(value, dict) else {}


def _search_result(part: ToolResult) -> "Iterator[ContentBlockParam]":
    search = anthropic_metadata_of(part.provider_metadata).search
    if search is None:
        return
    yield {
        "type": "web_search_tool_result",
        "tool_use_id": part.tool_call_id,
        "content": msgspec.to_builtins(search),
    }


def _result(part: ToolResult) -> "ToolResultBlockParam":
    """Return the result of a tool; a failed one may contain only text."""
    is_error = part.outcome is not ToolOutcome.DONE
    content = [
        _image_block(each.media_type, each.data_base64)
        if isinstance(each, ImageContent) and not is_error and each.bytes_count < IMAGE_BYTES_MAX
        else _text_block(as_text(each))
        for each in read_result(part.result_json)
    ]
    block: ToolResultBlockParam = {
        "type": "tool_result",
        "tool_use_id": part.tool_call_id,
        "content": content,
    }
    if is_error:
        block["is_error"] = True
    return block
