"""Encodes a prompt as messages."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import msgspec

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import ModelRequest
from chatd.providers.attachments import Accepted
from chatd.providers.completions.calls import NAMELESS
from chatd.providers.completions.contents import image_part, user_content
from chatd.providers.completions.options import Options, ReasoningReplay
from chatd.providers.media import ImageContent, as_text, read_result

CALL_ID_CHARACTERS_MAX = 40
TOOL_NAME_CHARACTERS_MAX = 64
IMAGES_OF_TOOLS = "The images that the tool results above mention, in their order:"

_ODD = re.compile(r"[^A-Za-z0-9_-]")
_MARK = {"type": "ephemeral"}

WireMessage = dict[str, object]


@dataclass(frozen=True, slots=True)
class Conversion:
    """Converts one request's prompt into messages."""

    request: ModelRequest
    options: Options

    def messages(self) -> list[WireMessage]:
        """Return the messages, with cache breakpoints if they are enabled."""
        prompt = self.request.messages
        leading = 0
        while leading < len(prompt) and prompt[leading].role is Role.SYSTEM:
            leading += 1
        made: list[WireMessage] = []
        if leading:
            # Chat templates of open models reject a second system message.
            made.append(self._system(*prompt[:leading]))
        for message in prompt[leading:]:
            plain = _plain(message)
            if plain is None:
                made.extend(self._converted(message))
            else:
                made.append(plain)
        return _marked(made, is_led=leading > 0) if self.options.cache_control else made

    def _converted(self, message: PromptMessage) -> Iterator[WireMessage]:
        match message.role:
            case Role.SYSTEM:
                yield self._system(message)
            case Role.USER:
                content = user_content(message.content, self.request.files, self.options)
                if content:
                    yield {"role": "user", "content": content}
            case Role.ASSISTANT:
                yield from self._assistant(message)
            case Role.TOOL:
                yield from self._results(message.content)

    def _system(self, *messages: PromptMessage) -> WireMessage:
        texts = (_text(message.content) for message in messages)
        return {"role": self.options.system_role, "content": "\n\n".join(texts)}

    def _assistant(self, message: PromptMessage) -> Iterator[WireMessage]:
        """Yield an answer as it was received, without provider-executed parts."""
        is_own = message.model_id == self.request.model
        text = _text(message.content)
        calls = [
            _call(part, is_own=is_own)
            for part in message.content
            if isinstance(part, ToolCall) and not part.provider_executed
        ]
        made: WireMessage = {"role": "assistant"}
        if text:
            made["content"] = text
        if calls:
            made["tool_calls"] = calls
        if len(made) > 1:
            reasoning = [part for part in message.content if isinstance(part, Reasoning)]
            yield made | self._reasoning(reasoning, is_own=is_own, has_calls=bool(calls))

    def _reasoning(
        self, reasoning: Sequence[Reasoning], *, is_own: bool, has_calls: bool
    ) -> WireMessage:
        """Return the field with the reasoning; signed reasoning only for its own model."""
        match self.options.reasoning_replay:
            case ReasoningReplay.REASONING_DETAILS:
                details = [each for part in reasoning for each in _details(part)] if is_own else []
                return {"reasoning_details": details} if details else {}
            case ReasoningReplay.REASONING_CONTENT | ReasoningReplay.REASONING as field:
                text = "".join(part.text for part in reasoning)
                # Endpoints that want reasoning reject a call without it; an empty one suffices.
                return {str(field): text} if text or has_calls else {}
            case ReasoningReplay.NONE | None:
                return {}

    def _results(self, results: Sequence[Part]) -> Iterator[WireMessage]:
        """Yield the results, which contain only text, and then their images."""
        accepted: Set[Accepted] = self.options.accepted_files or frozenset()
        images: list[ImageContent] = []
        for result in results:
            if isinstance(result, ToolResult) and not result.provider_executed:
                contents = read_result(result.result_json)
                images += (each for each in contents if isinstance(each, ImageContent))
                yield {
                    "role": "tool",
                    "tool_call_id": _call_id(result.tool_call_id),
                    "content": "\n".join(as_text(each) for each in contents),
                }
        if images and Accepted.IMAGE in accepted:
            shown = [image_part(each.media_type, each.data_base64, self.options) for each in images]
            yield {"role": "user", "content": [{"type": "text", "text": IMAGES_OF_TOOLS}, *shown]}


def _plain(message: PromptMessage) -> WireMessage | None:
    """Return a message of one text, as nearly all are; None for any other message."""
    role, content = message.role, message.content
    if role is not Role.USER and role is not Role.ASSISTANT:
        return None
    if len(content) != 1 or type(part := content[0]) is not Text or not part.text:
        return None
    return {"role": "user" if role is Role.USER else "assistant", "content": part.text}


def _text(content: Sequence[Part]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def _call(call: ToolCall, *, is_own: bool) -> WireMessage:
    name = _ODD.sub("_", call.tool_name)[:TOOL_NAME_CHARACTERS_MAX] or NAMELESS
    made: WireMessage = {
        "id": _call_id(call.tool_call_id),
        "type": "function",
        "function": {"name": name, "arguments": call.args_json},
    }
    extra_content = _own_metadata(call.provider_metadata).get("extra_content") if is_own else None
    return made | ({"extra_content": extra_content} if extra_content else {})


def _call_id(call_id: str) -> str:
    """Return the id, or a shorter deterministic one: OpenAI rejects long ids."""
    if len(call_id) <= CALL_ID_CHARACTERS_MAX:
        return call_id
    return f"call_{hashlib.sha256(call_id.encode(errors='replace')).hexdigest()[:32]}"


def _details(reasoning: Reasoning) -> Sequence[object]:
    details = _own_metadata(reasoning.provider_metadata).get("reasoning_details")
    return details if isinstance(details, list) else ()


def _own_metadata(provider_metadata: str) -> Mapping[str, object]:
    """Return this format's metadata of a part; that of other formats is ignored."""
    if not provider_metadata:
        return {}
    try:
        stored = msgspec.json.decode(provider_metadata)
    except (ValueError, RecursionError):
        return {}
    own = stored.get("chat") if isinstance(stored, dict) else None
    return own if isinstance(own, dict) else {}


def _marked(messages: list[WireMessage], *, is_led: bool) -> list[WireMessage]:
    """Return the messages with breakpoints on the system message and the last two with content."""
    places = [place for place, message in enumerate(messages) if message.get("content")][-2:]
    marked = {*places, 0} if is_led else set(places)
    return [_with_mark(each) if place in marked else each for place, each in enumerate(messages)]


def _with_mark(message: WireMessage) -> WireMessage:
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return message | {"content": [*parts[:-1], {**parts[-1], "cache_control": _MARK}]}
