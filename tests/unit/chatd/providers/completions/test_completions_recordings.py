"""Recorded traffic of real endpoints: what it says, cut short, and the request that followed.

What is expected is computed from the recorded events with plain JSON, and by the official SDK from
the same bytes. Requests are compared up to fields that mean nothing here: `tool_choice` "auto" and
`strict` false (both the default), OpenRouter's `usage` (superseded by `stream_options`), our
`store`, marks for caches (placed differently), space around content, and ids of calls (cleaned in
every prompt). The client that was recorded lost some of what it was told (a text before a second
one, the first word of a thought, encrypted thoughts), so the answer that goes back is compared with
the events it came in.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any

import httpx2
import pytest

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Part, Text, ToolOutcome, ToolResult
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.price import ModelUse
from chatd.models.engine.target import Target
from chatd.primitives.domain.ids import MessageId
from chatd.providers.completions import CompletionsDecoder, CompletionsWire
from chatd.providers.sse import ServerSentEvents
from chatd.providers.wire import ProviderFailed
from chatd.turns.domain.prompt import PromptBuilder
from chatd.turns.domain.system_prompt import SystemPrompt
from parley.clock.fake import EPOCH
from support.chatd.providers.completions import Decoded, decoded_from, target
from support.chatd.providers.recordings import Recording, recorded, recordings

FOLDERS = ("openai-chat", "openai-compatible")
MODEL = "model-1"
REASONS = {
    "stop": FinishReason.STOP,
    "tool_calls": FinishReason.TOOL_CALLS,
    "length": FinishReason.LENGTH,
}
ODD = re.compile(r"[^A-Za-z0-9_-]")


def streamed(folder: str) -> pytest.MarkDecorator:
    """Run a test once for each recorded stream of a folder; errors of HTTP are not ours."""
    found = [each for each in recordings(folder) if each.is_streamed]
    if not found:
        return recorded(folder)
    return pytest.mark.parametrize("recording", found, ids=[each.name for each in found])


chat = streamed(FOLDERS[0])
compatible = streamed(FOLDERS[1])


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer says, whoever read it."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str, Any], ...]
    usage: UsageReported | None
    reason: FinishReason | None
    error: tuple[int, str] | None = None


def events_of(recording: Recording) -> list[bytes]:
    """Take the events from the body with nothing but string methods."""
    lines = recording.body.split("\n")
    return [line[5:].strip().encode() for line in lines if line.startswith("data:")]


def expected(recording: Recording) -> Said:
    """Walk over the recorded events."""
    text, reasoning, usage, reason, error = "", "", None, None, None
    calls: dict[int, list[str]] = {}
    for event in map(json.loads, (each for each in events_of(recording) if each != b"[DONE]")):
        usage = event.get("usage") or usage
        if "error" in event:
            error = (event["error"]["code"], event["error"]["message"])
        for choice in event["choices"][:1]:
            reason = choice.get("finish_reason") or reason
            delta = choice["delta"]
            text += delta.get("content") or ""
            reasoning += _thought(delta)
            for call in delta.get("tool_calls", ()):
                made = calls.setdefault(call["index"], [call.get("id"), "", ""])
                made[1] += call["function"].get("name") or ""
                made[2] += call["function"].get("arguments") or ""
    return Said(
        text,
        reasoning,
        tuple((made[0], made[1], json.loads(made[2] or "{}")) for made in calls.values()),
        _usage(usage),
        None if error else REASONS[str(reason)],
        error,
    )


def _thought(delta: dict[str, Any]) -> str:
    told = delta.get("reasoning_content") or delta.get("reasoning")
    details = delta.get("reasoning_details") or ()
    return told or "".join(each.get("text") or each.get("summary") or "" for each in details)


def _usage(told: dict[str, Any] | None) -> UsageReported | None:
    if told is None:
        return None
    prompt, output = told["prompt_tokens"], told["completion_tokens"]
    cached = (told.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (told.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    # xAI counts thoughts beside the output, which only the total shows.
    extra = told["total_tokens"] - prompt - output
    assert extra in (0, reasoning)
    return UsageReported(prompt - cached, output, reasoning, cached, is_reasoning_apart=extra != 0)


def said_by(answer: Decoded) -> Said:
    """Return what our decoder read."""
    requested = [each.call for each in answer.events if isinstance(each, ToolCallRequested)]
    used = [each for each in answer.events if isinstance(each, UsageReported)]
    failure = answer.failure
    return Said(
        "".join(each.text for each in answer.events if isinstance(each, TextDelta)),
        "".join(each.text for each in answer.events if isinstance(each, ReasoningDelta)),
        tuple(
            (call.tool_call_id, call.tool_name, json.loads(call.args_json)) for call in requested
        ),
        used[-1] if used else None,
        answer.finished.reason if answer.finished else None,
        (failure.status_code, failure.text.split(";")[0]) if failure else None,
    )


def check_reading(recording: Recording) -> None:
    assert said_by(decoded_from(events_of(recording))) == expected(recording)


@chat
def test_openai_says_what_was_recorded(recording: Recording) -> None:
    check_reading(recording)


@compatible
def test_others_say_what_was_recorded(recording: Recording) -> None:
    check_reading(recording)


def sdk_said(recording: Recording) -> Said:
    """Return what the official SDK accumulates from the same bytes."""
    # Here, because it takes longer than all other tests of this file.
    from openai import OpenAI
    from openai.lib.streaming.chat import ChatCompletionStreamState

    def answer(_request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=recording.body.encode())

    state: Any = ChatCompletionStreamState()
    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        client = OpenAI(api_key="x", base_url="http://sdk.example", http_client=http)
        for each in client.chat.completions.create(messages=[], model="x", stream=True):
            state.handle_chunk(each)
    snapshot = state.current_completion_snapshot
    message = snapshot.choices[0].message
    extra = message.model_extra or {}
    return Said(
        message.content or "",
        extra.get("reasoning_content") or extra.get("reasoning") or "",
        tuple(
            (call.id, call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
        ),
        _usage(snapshot.usage.model_dump()) if snapshot.usage else None,
        REASONS[snapshot.choices[0].finish_reason],
    )


def check_against_sdk(recording: Recording) -> None:
    from openai import APIError

    ours = said_by(decoded_from(events_of(recording)))
    if ours.error is None:
        assert ours == sdk_said(recording)
    else:
        with pytest.raises(APIError):
            sdk_said(recording)


@pytest.mark.slow
@chat
def test_the_sdk_reads_the_same_from_openai(recording: Recording) -> None:
    check_against_sdk(recording)


@pytest.mark.slow
@compatible
def test_the_sdk_reads_the_same_from_others(recording: Recording) -> None:
    check_against_sdk(recording)


def check_cuts(recording: Recording) -> None:
    """Cut before every event up to the first that names a reason to finish."""
    events = events_of(recording)
    decoder = CompletionsDecoder()
    for place, event in enumerate(events):
        # A decoder that was told of the end once must say the same after more events.
        with pytest.raises(ProviderFailed) as failed:
            decoder.end()
        assert failed.value.failure.is_cut_off
        if any(each.get("finish_reason") for each in json.loads(event).get("choices", ())):
            break
        assert not any(isinstance(each, Finished) for each in decoder.decode(event))
        if place % 50 == 0:
            cut = decoded_from(events[: place + 1])
            assert cut.failure is not None
            assert cut.failure.is_cut_off
            assert cut.finished is None


@chat
def test_an_answer_of_openai_that_was_cut_short_fails(recording: Recording) -> None:
    check_cuts(recording)


@compatible
def test_an_answer_of_others_that_was_cut_short_fails(recording: Recording) -> None:
    check_cuts(recording)


def framed(body: bytes) -> Iterator[bytes]:
    """Take a body apart as it arrives in pieces of odd sizes."""
    framing = ServerSentEvents()
    sizes = cycle((1, 977, 2, 61, 5003, 7))
    at = 0
    while at < len(body):
        size = next(sizes)
        yield from framing.feed(body[at : at + size])
        at += size
    yield from framing.end()


@compatible
def test_the_cutting_of_bytes_changes_nothing(recording: Recording) -> None:
    pieces = framed(recording.body.encode())
    assert decoded_from(pieces) == decoded_from(events_of(recording))


def followed() -> list[tuple[Recording, Recording]]:
    """Return the exchanges that were followed by another one of the same conversation."""
    found = [each for folder in FOLDERS for each in recordings(folder) if each.is_streamed]
    by_place = {(each.case, each.index): each for each in found}
    return [
        (each, by_place[each.case, each.index + 1])
        for each in found
        if (each.case, each.index + 1) in by_place
    ]


FOLLOWED = followed()


def history(first: Recording, second: Recording) -> list[Message]:
    """Return our own history: what was asked, what we decoded, what the tools gave."""
    rows: list[tuple[Role, tuple[Part, ...]]] = [
        (Role(message["role"]), (Text(message["content"]),))
        for message in first.request["messages"]
    ]
    answer = decoded_from(events_of(first))
    rows.append((Role.ASSISTANT, answer.content))
    names = {each["id"]: each["function"]["name"] for each in _recorded_calls(second)}
    for message in second.request["messages"][len(rows) :]:
        call_id = message["tool_call_id"]
        result = ToolResult(
            call_id, names[call_id], json.dumps(message["content"]), ToolOutcome.DONE
        )
        rows.append((Role.TOOL, (result,)))
    return [
        Message(MessageId(place), place, role, content, "", EPOCH, use=ModelUse(MODEL))
        for place, (role, content) in enumerate(rows, 1)
    ]


def _recorded_calls(recording: Recording) -> list[dict[str, Any]]:
    return [
        call for message in recording.request["messages"] for call in message.get("tool_calls", ())
    ]


def options_for(recording: Recording) -> dict[str, Any]:
    """Return the options that an administrator would set for this endpoint."""
    fields = {field for message in recording.request["messages"] for field in message}
    options: dict[str, Any] = {}
    if "reasoning_content" in fields:
        options["reasoning_replay"] = "reasoning_content"
    if "max_completion_tokens" in recording.request:
        options["max_tokens_field"] = "max_completion_tokens"
    return options


def target_of(recording: Recording) -> Target:
    is_openai = recording.host == "api.openai.com"
    path = recording.url_path.removesuffix("/chat/completions")
    return target(
        ProviderType.OPENAI if is_openai else ProviderType.OPENAI_COMPATIBLE,
        model_name=recording.request["model"],
        base_url=f"https://{recording.host}{path}",
        **options_for(recording),
    )


def mended(first: Recording, second: Recording) -> dict[str, Any]:
    """Return the request that followed with the whole answer in it."""
    body: dict[str, Any] = json.loads(json.dumps(second.request))
    (answer,) = (each for each in body["messages"] if each["role"] == "assistant")
    said = expected(first)
    assert answer.get("content", "") in said.text
    answer["content"] = said.text
    if "reasoning_content" in answer:
        assert answer["reasoning_content"] == said.reasoning
    if "reasoning_details" in answer:
        answer["reasoning_details"] = _merged_details(first)
    return body


def _merged_details(recording: Recording) -> list[dict[str, Any]]:
    found = [
        {name: value for name, value in detail.items() if value is not None}
        for event in map(json.loads, events_of(recording)[:-1])
        for choice in event["choices"]
        for detail in choice["delta"].get("reasoning_details", ())
    ]
    merged = []
    for _, same in groupby(found, key=lambda detail: (detail["type"], detail["index"])):
        details = list(same)
        texts = {
            name: "".join(detail[name] for detail in details)
            for name in ("text", "summary", "data")
            if name in details[0]
        }
        merged.append({**details[0], **texts})
    return merged


def normal(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body without what means nothing."""
    body = json.loads(json.dumps(body), object_hook=_without_marks)
    for name, value in (("tool_choice", "auto"), ("usage", {"include": True}), ("store", True)):
        if body.get(name) == value:
            del body[name]
    for tool in body["tools"]:
        tool["function"].pop("strict", None)
    for message in body["messages"]:
        message["content"] = (message.get("content") or "").strip()
        if "tool_call_id" in message:
            message["tool_call_id"] = ODD.sub("_", message["tool_call_id"])
        for call in message.get("tool_calls", ()):
            call["id"] = ODD.sub("_", call["id"])
    return body


def _without_marks(value: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name != "cache_control"}


@pytest.mark.skipif(not FOLLOWED, reason="no recordings beside the clone")
@pytest.mark.parametrize(("first", "second"), FOLLOWED, ids=[second.name for _, second in FOLLOWED])
def test_the_request_that_followed_is_made_from_our_own_history(
    first: Recording, second: Recording
) -> None:
    rows = history(first, second)
    tools = tuple(
        ToolSpec(
            tool["function"]["name"],
            tool["function"]["description"],
            json.dumps(tool["function"]["parameters"]),
            Executor.TOOLRUNNER,
        )
        for tool in second.request["tools"]
    )
    recorded_body = second.request
    asked = ModelRequest(
        MODEL,
        PromptBuilder().of(rows, SystemPrompt()),
        tools,
        output_tokens_max=recorded_body.get("max_tokens")
        or recorded_body.get("max_completion_tokens"),
        reasoning_effort=recorded_body.get("reasoning_effort", ""),
    )
    sent = CompletionsWire().request(asked, target_of(second))
    assert normal(json.loads(sent.body)) == normal(mended(first, second))
