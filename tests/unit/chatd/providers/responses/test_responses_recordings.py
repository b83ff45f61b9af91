"""Recorded Responses: read as they were meant, told apart from cut ones, answered as they were."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.engine.target import Target
from chatd.providers.responses import ResponsesDecoder, ResponsesWire
from chatd.providers.wire import ProviderFailed
from parley.settings import Secret
from support.chatd.providers.recordings import Recording, recorded, recordings
from support.chatd.providers.responses_events import stored

if TYPE_CHECKING:
    from openai.types.responses import Response, ResponseStreamEvent

FOLDER = "openai-responses"
# What one of the recorders wrote instead, in requests only.
TYPOGRAPHY = str.maketrans({"\u2014": "--", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def datas(recording: Recording) -> list[bytes]:
    """Return the data of each event, read as plainly as can be."""
    lines = recording.body.replace("\r\n", "\n").split("\n")
    return [line[len("data:") :].strip().encode() for line in lines if line.startswith("data:")]


def walked(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yield the events as plain JSON."""
    for data in datas(recording):
        if data != b"[DONE]":
            yield json.loads(data)


def decoded(events: list[bytes]) -> list[ModelEvent]:
    decoder = ResponsesDecoder()
    told = [each for data in events for each in decoder.decode(data)]
    told.extend(decoder.end())
    return told


def text_of(told: list[ModelEvent]) -> str:
    return "".join(each.text for each in told if isinstance(each, TextDelta))


def reasoning_of(told: list[ModelEvent]) -> str:
    return "".join(each.text for each in told if isinstance(each, ReasoningDelta))


def calls_of(told: list[ModelEvent]) -> list[ToolCall]:
    calls = (each.call for each in told if isinstance(each, ToolCallRequested))
    return [call for call in calls if not call.provider_executed]


def provider_calls_of(told: list[ModelEvent]) -> list[str]:
    calls = (each.call for each in told if isinstance(each, ToolCallRequested))
    return sorted(call.tool_call_id for call in calls if call.provider_executed)


def usage_of(told: list[ModelEvent]) -> list[UsageReported]:
    return [each for each in told if isinstance(each, UsageReported)]


@recorded(FOLDER)
def test_a_recording_says_what_its_events_say(recording: Recording) -> None:
    told = decoded(datas(recording))
    events = list(walked(recording))
    whole = next(each["response"] for each in events if each["type"] in TERMINAL)
    items = whole["output"]
    usage = whole["usage"]
    cached = usage["input_tokens_details"]["cached_tokens"]

    deltas = {
        kind: "".join(each["delta"] for each in events if each["type"] == kind)
        for kind in (
            "response.output_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_text.delta",
        )
    }
    assert text_of(told) == deltas["response.output_text.delta"]
    assert reasoning_of(told) == (
        deltas["response.reasoning_summary_text.delta"] + deltas["response.reasoning_text.delta"]
    )
    assert [(call.tool_call_id, call.tool_name, call.args_json) for call in calls_of(told)] == [
        (item["call_id"], item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call"
    ]
    ours = ("message", "reasoning", "function_call", "compaction")
    assert provider_calls_of(told) == sorted(
        item["id"] for item in items if item["type"] not in ours
    )
    assert usage_of(told) == [
        UsageReported(
            input_tokens=usage["input_tokens"] - cached,
            output_tokens=usage["output_tokens"],
            reasoning_tokens=usage["output_tokens_details"]["reasoning_tokens"],
            cache_read_tokens=cached,
        )
    ]
    cited = [
        annotation["url"]
        for item in items
        for content in item.get("content") or ()
        for annotation in content.get("annotations") or ()
        if annotation["type"] == "url_citation"
    ]
    assert [each.source.url for each in told if isinstance(each, SourceCited)] == cited
    assert [isinstance(each, Finished) for each in told].count(True) == 1
    assert isinstance(told[-1], Finished)


@pytest.mark.slow
@recorded(FOLDER)
def test_a_recording_says_what_the_official_sdk_reads_in_it(recording: Recording) -> None:
    told = decoded(datas(recording))
    events, whole = read_by_sdk(recording)

    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert text_of(told) == "".join(deltas) == whole.output_text
    thoughts = [
        each.delta
        for each in events
        if each.type in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
    ]
    assert reasoning_of(told) == "".join(thoughts)
    assert [(call.tool_call_id, call.tool_name, call.args_json) for call in calls_of(told)] == [
        (item.call_id, item.name, item.arguments)
        for item in whole.output
        if item.type == "function_call"
    ]
    usage = whole.usage
    assert usage is not None
    assert usage_of(told) == [
        UsageReported(
            input_tokens=usage.input_tokens - usage.input_tokens_details.cached_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
            cache_read_tokens=usage.input_tokens_details.cached_tokens,
        )
    ]


def read_by_sdk(recording: Recording) -> tuple[list["ResponseStreamEvent"], "Response"]:
    """Return the events and the whole answer that the official SDK makes of the same bytes."""
    import httpx2
    import openai

    def answer(_: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=recording.body.encode())

    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    with openai.OpenAI(
        api_key="key", base_url="http://test.example/v1", http_client=transport
    ) as client:
        stream = client.responses.create(model="any", input="any", stream=True)
        events = list(stream)
    whole = next(
        each.response
        for each in events
        if each.type in ("response.completed", "response.incomplete", "response.failed")
    )
    return events, whole


@recorded(FOLDER)
def test_a_recording_that_is_cut_before_its_end_is_an_error(recording: Recording) -> None:
    events = datas(recording)
    terminal = next(
        place for place, each in enumerate(walked(recording)) if each["type"] in TERMINAL
    )
    decoder = ResponsesDecoder()
    for data in events[:terminal]:
        with pytest.raises(ProviderFailed) as caught:
            decoder.end()
        assert caught.value.failure.is_cut_off
        assert not any(isinstance(each, Finished) for each in decoder.decode(data))
    with pytest.raises(ProviderFailed):
        decoder.end()


@recorded(FOLDER)
def test_a_recording_whose_last_event_is_cut_is_an_error(recording: Recording) -> None:
    events = datas(recording)
    terminal = next(
        place for place, each in enumerate(walked(recording)) if each["type"] in TERMINAL
    )
    last = events[terminal]
    for length in range(1, len(last), max(1, len(last) // 40)):
        with pytest.raises(ProviderFailed):
            decoded([*events[:terminal], last[:length]])


def follow_ups() -> list[Any]:
    """Return each recorded step together with the one that sent its answer back."""
    found = recordings(FOLDER)
    by_place = {(each.case, each.index): each for each in found}
    pairs = [
        pytest.param(each, by_place[each.case, each.index + 1], id=each.name)
        for each in found
        if each.is_streamed and (each.case, each.index + 1) in by_place
    ]
    absent = pytest.param(
        None, None, marks=pytest.mark.skip(reason="no recordings beside the clone")
    )
    return pairs or [absent]


@pytest.mark.parametrize(("first", "second"), follow_ups())
def test_a_recorded_follow_up_is_made_again_from_our_own_history(
    first: Recording, second: Recording
) -> None:
    """Compare the request that we would send next with the one that was recorded.

    Left aside: `developer` against `system`, a text alone against a list of one, `instructions`
    against a message, ids and thoughts (the recording clients sent none), `include`, `tool_choice`,
    `strict`, typographic marks, and which of its two ids a client took for a call.
    """
    answer = PromptMessage(Role.ASSISTANT, stored(decoded(datas(first))))
    history = (*messages_of(first.request), answer)
    asked = messages_of(second.request)
    sent = sent_for(second, (*history, *followed(asked[len(history) :], answer)))
    assert plain_input(sent["input"]) == plain_input(second.request["input"])
    for name in ("model", "max_output_tokens", "stream"):
        assert sent.get(name) == second.request.get(name)
    assert sent["store"] == second.request.get("store", True)
    assert sent.get("reasoning") == second.request.get("reasoning")
    assert plain_tools(sent) == plain_tools(second.request)


def messages_of(request: dict[str, Any]) -> list[PromptMessage]:
    """Return a recorded request as a prompt; calls and results are one message each."""
    made: list[PromptMessage] = []
    for item in request["input"]:
        role, part = message_part(item)
        if made and made[-1].role is role and role is not Role.USER:
            made[-1] = PromptMessage(role, (*made[-1].content, part))
        else:
            made.append(PromptMessage(role, (part,)))
    return made


def message_part(item: dict[str, Any]) -> tuple[Role, Part]:
    match item:
        case {"type": "function_call"}:
            return Role.ASSISTANT, ToolCall(item["call_id"], item["name"], item["arguments"])
        case {"type": "function_call_output"}:
            output = json.dumps(item["output"])
            return Role.TOOL, ToolResult(item["call_id"], "tool", output, ToolOutcome.DONE)
        case {"type": "compaction"}:
            return Role.ASSISTANT, Text("compaction")
        case {"role": "system" | "developer"}:
            return Role.SYSTEM, Text(plain_content(item["content"]))
        case {"role": "assistant"}:
            return Role.ASSISTANT, Text(plain_content(item["content"]))
        case _:
            return Role.USER, Text(plain_content(item["content"]))


def followed(rest: list[PromptMessage], answer: PromptMessage) -> Iterator[PromptMessage]:
    """Yield what followed an answer, results under the ids of our own calls."""
    calls = [part for part in answer.content if isinstance(part, ToolCall)]
    for message in rest:
        if message.role is not Role.TOOL:
            yield message
            continue
        results = (part for part in message.content if isinstance(part, ToolResult))
        yield PromptMessage(
            Role.TOOL,
            tuple(
                ToolResult(call.tool_call_id, call.tool_name, result.result_json, result.outcome)
                for call, result in zip(calls, results, strict=True)
            ),
        )


def sent_for(recording: Recording, messages: tuple[PromptMessage, ...]) -> Any:
    request = recording.request
    options: dict[str, object] = {"store": request.get("store", True)}
    if "context_management" in request:
        options["extra_body"] = {"context_management": request["context_management"]}
    thinking = request.get("reasoning") or {}
    if thinking.get("summary"):
        options["reasoning_summary"] = thinking["summary"]
    tools = tuple(
        ToolSpec(
            each["name"], each["description"], json.dumps(each["parameters"]), Executor.TOOLRUNNER
        )
        for each in request.get("tools", ())
    )
    asked = ModelRequest(
        "model",
        messages,
        tools,
        output_tokens_max=request.get("max_output_tokens"),
        reasoning_effort=thinking.get("effort", ""),
    )
    key = Secret("key")
    target = Target("p", ProviderType.OPENAI, "OpenAI", request["model"], "", key, options)
    return json.loads(ResponsesWire().request(asked, target).body)


def plain_input(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    call_ids: dict[str, str] = {}
    return [plain_item(item, call_ids) for item in items if item.get("type") != "reasoning"]


def plain_item(item: dict[str, Any], call_ids: dict[str, str]) -> dict[str, Any]:
    """Return an item without what clients do differently."""
    if "call_id" in item:
        numbered = call_ids.setdefault(item["call_id"], f"call_{len(call_ids)}")
        kept = ("type", "name", "arguments", "output")
        return {"call_id": numbered} | {name: item[name] for name in kept if name in item}
    if "role" not in item:
        return item
    role = "developer" if item["role"] == "system" else item["role"]
    return {"role": role, "content": plain_content(item["content"])}


def plain_content(content: Any) -> str:
    text = content if isinstance(content, str) else "".join(each["text"] for each in content)
    return text.translate(TYPOGRAPHY)


def plain_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {name: each[name] for name in ("type", "name", "description", "parameters")}
        for each in body.get("tools", ())
    ]
