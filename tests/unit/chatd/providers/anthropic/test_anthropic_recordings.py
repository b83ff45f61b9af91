"""Recorded answers of Anthropic, read by our decoder, by hand and by the official SDK."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    ProviderToolResult,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.engine.target import Target
from chatd.providers.anthropic import AnthropicDecoder, AnthropicWire
from chatd.providers.sse import ServerSentEvents
from chatd.providers.wire import ProviderFailed
from parley.settings import Secret
from support.chatd.providers.anthropic_events import JsonObject, data_of, decoded, parts_of
from support.chatd.providers.recordings import Recording, recorded, recordings

if TYPE_CHECKING:
    from anthropic.types.beta import BetaMessage

FOLDER = "anthropic-messages"

Call = tuple[str, str, Any]


@dataclass(frozen=True, slots=True)
class Content:
    """What an answer comes to."""

    text: str
    reasoning: str
    calls: tuple[Call, ...]
    provider_calls: tuple[Call, ...]
    results: tuple[str, ...]
    usage: UsageReported


def content_of(events: list[ModelEvent]) -> Content:
    calls = [event.call for event in events if isinstance(event, ToolCallRequested)]
    return Content(
        "".join(event.text for event in events if isinstance(event, TextDelta)),
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        tuple(_call(call) for call in calls if not call.provider_executed),
        tuple(_call(call) for call in calls if call.provider_executed),
        tuple(
            event.result.tool_call_id for event in events if isinstance(event, ProviderToolResult)
        ),
        [event for event in events if isinstance(event, UsageReported)][-1],
    )


def _call(call: ToolCall) -> Call:
    return (call.tool_call_id, call.tool_name, json.loads(call.args_json))


def walked(body: str) -> Content:
    """Return what the events of a body say, without any of our code."""
    blocks: dict[int, JsonObject] = {}
    usage: JsonObject = {}
    for event in map(json.loads, data_of(body)):
        match event["type"]:
            case "message_start":
                usage |= event["message"]["usage"]
            case "message_delta":
                usage |= {
                    name: value for name, value in event["usage"].items() if value is not None
                }
            case "content_block_start":
                blocks[event["index"]] = event["content_block"] | {"json": ""}
            case "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                for name, field in (
                    ("text", "text"),
                    ("thinking", "thinking"),
                    ("json", "partial_json"),
                ):
                    block[name] = (block.get(name) or "") + delta.get(field, "")
    return Content(
        "".join(each["text"] for each in blocks.values() if each["type"] == "text"),
        "".join(each["thinking"] for each in blocks.values() if each["type"] == "thinking"),
        tuple(_walked_calls(blocks, "tool_use")),
        tuple(_walked_calls(blocks, "server_tool_use", "mcp_tool_use")),
        tuple(each["tool_use_id"] for each in blocks.values() if "tool_use_id" in each),
        UsageReported(
            input_tokens=usage["input_tokens"],
            output_tokens=usage["output_tokens"],
            reasoning_tokens=usage.get("output_tokens_details", {}).get("thinking_tokens", 0),
            cache_read_tokens=usage["cache_read_input_tokens"],
            cache_write_tokens=usage["cache_creation_input_tokens"],
        ),
    )


def _walked_calls(blocks: dict[int, JsonObject], *kinds: str) -> Iterator[Call]:
    for block in blocks.values():
        if block["type"] in kinds:
            yield block["id"], block["name"], json.loads(block["json"] or "{}")


def accumulated(body: str) -> Content:
    """Return what the official SDK makes of a body."""
    # Here, because it takes longer than all other tests of this file.
    from anthropic import Anthropic

    def answer(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=body.encode())

    with (
        httpx2.Client(transport=httpx2.MockTransport(answer)) as http_client,
        Anthropic(api_key="none", http_client=http_client) as client,
        client.beta.messages.stream(
            model="claude-sonnet-5",
            max_tokens=1,
            messages=[{"role": "user", "content": "hi"}],
        ) as stream,
    ):
        return _message_content(stream.get_final_message())


def _message_content(message: "BetaMessage") -> Content:
    blocks: list[Any] = list(message.content)
    details = message.usage.output_tokens_details
    calls = [
        (each.type, each.id, each.name, each.input) for each in blocks if "tool_use" in each.type
    ]
    return Content(
        "".join(each.text for each in blocks if each.type == "text"),
        "".join(each.thinking for each in blocks if each.type == "thinking"),
        tuple((id_, name, given) for kind, id_, name, given in calls if kind == "tool_use"),
        tuple((id_, name, given) for kind, id_, name, given in calls if kind != "tool_use"),
        tuple(each.tool_use_id for each in blocks if each.type.endswith("_tool_result")),
        UsageReported(
            input_tokens=message.usage.input_tokens,
            output_tokens=message.usage.output_tokens,
            reasoning_tokens=0 if details is None else details.thinking_tokens,
            cache_read_tokens=message.usage.cache_read_input_tokens or 0,
            cache_write_tokens=message.usage.cache_creation_input_tokens or 0,
        ),
    )


@recorded(FOLDER)
def test_a_recorded_answer_holds_what_its_events_say(recording: Recording) -> None:
    events = decoded(data_of(recording.body))

    assert content_of(events) == walked(recording.body)
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(event, Finished) for event in events) == 1


@pytest.mark.slow
@recorded(FOLDER)
def test_a_recorded_answer_holds_what_the_official_sdk_finds(recording: Recording) -> None:
    assert content_of(decoded(data_of(recording.body))) == accumulated(recording.body)


@recorded(FOLDER)
def test_a_recorded_answer_names_each_page_that_it_cites(recording: Recording) -> None:
    deltas = (json.loads(data).get("delta", {}) for data in data_of(recording.body))
    cited = {delta["citation"]["url"] for delta in deltas if delta.get("type") == "citations_delta"}

    events = decoded(data_of(recording.body))

    assert {event.source.url for event in events if isinstance(event, SourceCited)} == cited


@recorded(FOLDER)
def test_a_recorded_answer_cut_anywhere_is_an_error(recording: Recording) -> None:
    datas = data_of(recording.body)
    last = next(place for place, data in enumerate(datas) if b'"message_stop"' in data)

    for kept in range(last + 1):
        decoder = AnthropicDecoder()
        events = [event for data in datas[:kept] for event in decoder.decode(data)]
        with pytest.raises(ProviderFailed) as failed:
            decoder.end()
        assert failed.value.failure.is_cut_off
        assert not any(isinstance(event, Finished) for event in events)


@recorded(FOLDER)
def test_our_framing_finds_the_same_events(recording: Recording) -> None:
    frames, body = ServerSentEvents(), recording.body.encode()

    framed = [
        data for start in range(0, len(body), 97) for data in frames.feed(body[start : start + 97])
    ]

    assert [json.loads(data) for data in (*framed, *frames.end())] == [
        json.loads(data) for data in data_of(recording.body)
    ]


def follow_ups() -> list[tuple[Recording, Recording]]:
    by_case: dict[str, list[Recording]] = {}
    for recording in recordings(FOLDER):
        by_case.setdefault(recording.case, []).append(recording)
    pairs = [pair for each in by_case.values() for pair in itertools.pairwise(each)]
    return [(first, second) for first, second in pairs if len(second.request["messages"]) > 1]


FOLLOW_UPS = follow_ups()


@pytest.mark.skipif(not FOLLOW_UPS, reason="no recordings beside the clone")
@pytest.mark.parametrize(
    ("first", "second"), FOLLOW_UPS, ids=[second.name for _, second in FOLLOW_UPS]
)
def test_a_recorded_follow_up_is_made_from_our_own_history(
    first: Recording, second: Recording
) -> None:
    """Rebuild the second request from the first answer.

    Irrelevant are `tool_choice` auto, which is the default, `is_error` false, `defer_loading`, null
    fields, cache marks where the recording has none, and words before a call where the recorder
    left them out. A search for tools is sent back as text, not as what it was.
    """
    is_cached = "cache_control" in json.dumps(first.request)
    sent = AnthropicWire().request(request_after(first, second), target_of(first, is_cached))

    expected = relevant(second.request)
    answer = expected["messages"][1]
    answer["content"] = [sent_back(block) for block in answer["content"] if is_sent(block)]
    made = relevant(json.loads(sent.body))
    if not any(block["type"] == "text" for block in answer["content"]):
        made["messages"][1]["content"] = [
            block for block in made["messages"][1]["content"] if block["type"] != "text"
        ]
    assert made == expected


def searching(recording: Recording) -> bool:
    names = {name for _, name, _ in walked(recording.body).provider_calls}
    return names == {"web_search"}


SEARCHING = [each for each in recordings(FOLDER) if each.is_streamed and searching(each)]


@pytest.mark.skipif(not SEARCHING, reason="no recordings beside the clone")
@pytest.mark.parametrize("recording", SEARCHING, ids=[each.name for each in SEARCHING])
def test_a_recorded_web_search_is_sent_back_as_it_came(recording: Recording) -> None:
    answer = parts_of(decoded(data_of(recording.body)))
    user = PromptMessage(Role.USER, (Text("hi"),))
    request = ModelRequest("m", (user, PromptMessage(Role.ASSISTANT, answer), user), ())

    sent = AnthropicWire().request(request, target_of(recording, is_cached=False))

    assert json.loads(sent.body)["messages"][1]["content"] == blocks_of(recording.body)


def blocks_of(body: str) -> list[JsonObject]:
    """Return the blocks of an answer as they are sent back, without any of our code."""
    blocks: dict[int, JsonObject] = {}
    for event in map(json.loads, data_of(body)):
        if event["type"] == "content_block_start":
            block = blocks[event["index"]] = event["content_block"]
            if block["type"] == "text":
                block.pop("citations", None)
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "signature_delta":
                    block["signature"] = delta["signature"]
                case "citations_delta":
                    block.setdefault("citations", []).append(delta["citation"])
                case "input_json_delta":
                    block["json"] = block.get("json", "") + delta["partial_json"]
    for block in blocks.values():
        if "json" in block:
            block["input"] = json.loads(block.pop("json") or "{}")
    return list(blocks.values())


def target_of(recording: Recording, is_cached: bool) -> Target:
    tools = recording.request.get("tools", [])
    options: JsonObject = {
        "prompt_caching": is_cached,
        "server_tools": [tool for tool in tools if "input_schema" not in tool],
    }
    if "thinking" in recording.request:
        options["thinking"] = recording.request["thinking"]
    model = recording.request["model"]
    return Target("p", ProviderType.ANTHROPIC, "Anthropic", model, "", Secret("key"), options)


def request_after(first: Recording, second: Recording) -> ModelRequest:
    answer = parts_of(decoded(data_of(first.body)))
    names = {part.tool_call_id: part.tool_name for part in answer if isinstance(part, ToolCall)}
    system = first.request.get("system", [])
    asked = first.request["messages"][0]["content"]
    results = second.request["messages"][-1]["content"]
    messages = (
        *(PromptMessage(Role.SYSTEM, (Text(block["text"]),)) for block in system),
        PromptMessage(Role.USER, tuple(Text(block["text"]) for block in asked)),
        PromptMessage(Role.ASSISTANT, answer),
        PromptMessage(Role.TOOL, tuple(result_of(block, names) for block in results)),
    )
    tools = tuple(
        ToolSpec(
            tool["name"],
            tool["description"],
            json.dumps(tool["input_schema"]),
            Executor.CLIENT,
        )
        for tool in first.request["tools"]
        if "input_schema" in tool
    )
    limit = first.request["max_tokens"]
    return ModelRequest("m", messages, tools, output_tokens_max=limit)


def result_of(block: JsonObject, names: dict[str, str]) -> ToolResult:
    call_id = block["tool_use_id"]
    content = [
        {
            "type": "image",
            "media_type": each["source"]["media_type"],
            "data": each["source"]["data"],
        }
        if each["type"] == "image"
        else each
        for each in block["content"]
    ]
    return ToolResult(call_id, names[call_id], json.dumps({"content": content}), ToolOutcome.DONE)


def is_sent(block: JsonObject) -> bool:
    return bool(block["type"] != "server_tool_use")


def sent_back(block: JsonObject) -> JsonObject:
    if block["type"] != "tool_search_tool_result":
        return block
    # The result is told in the provider's own order of fields.
    told = {"type": block["content"]["type"], **block["content"]}
    told["tool_references"] = [{"type": each["type"], **each} for each in told["tool_references"]]
    text = json.dumps(told, separators=(",", ":"))
    return {"type": "text", "text": f"[tool_search_tool_bm25 gave {text}]"}


def relevant(body: Any) -> Any:
    """Return a body without the fields that change nothing."""
    if isinstance(body, list):
        return [relevant(each) for each in body]
    if not isinstance(body, dict):
        return body
    without = ("tool_choice", "defer_loading")
    return {
        name: relevant(each)
        for name, each in body.items()
        if name not in without and each is not None and (name, each) != ("is_error", False)
    }
