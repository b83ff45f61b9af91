"""What a recorded answer says, read from its events by hand: nothing of the adapters is used."""

import json
from collections.abc import Iterator
from typing import Any

from support.chatd.providers.recordings import Recording

Json = dict[str, Any]

#: Of Responses, everything else that the model does is done by the provider.
OWN_ITEMS = ("message", "reasoning", "function_call", "compaction")
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "stop": "stop",
    "completed": "stop",
    "tool_use": "tool_calls",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "length": "length",
}


EXECUTED = ("server_tool_use", "mcp_tool_use")


def said_by(recording: Recording) -> Json:
    """Return text, reasoning, calls, usage and finish reason, as `parley replay` names them.

    Of calls that the provider executed only the ids are told, sorted: the protocols agree on no
    more. An answer that reports no usage has none.
    """
    events = list(_events(recording.body))
    if recording.url_path.partition("?")[0].endswith("/messages"):
        return _anthropic(events)
    if recording.url_path.endswith("/responses"):
        return _responses(events)
    return _completions(events)


def _events(body: str) -> Iterator[Json]:
    for line in body.split("\n"):
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data != "[DONE]":
            yield json.loads(data)


def _answer(**said: Any) -> Json:
    return {"provider_call_ids": [], "usage": _usage(0, 0, 0, 0, 0), **said}


def _usage(
    all_input: int, output: int, reasoning: int | None, read: int | None, written: int | None
) -> Json:
    return {
        "input_tokens": all_input - (read or 0) - (written or 0),
        "output_tokens": output,
        "reasoning_tokens": reasoning or 0,
        "cache_read_tokens": read or 0,
        "cache_write_tokens": written or 0,
    }


def _call(call_id: str, name: str, arguments: str) -> Json:
    return {"id": call_id, "name": name, "arguments": json.loads(arguments or "{}")}


def _anthropic(events: list[Json]) -> Json:
    text, reasoning, reason = "", "", None
    usage: Json = {}
    blocks: dict[int, Json] = {}
    arguments: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                usage = dict(event["message"]["usage"])
            case "content_block_start":
                blocks[event["index"]] = event["content_block"]
                text += event["content_block"].get("text", "")
                reasoning += event["content_block"].get("thinking", "")
            case "content_block_delta":
                delta = event["delta"]
                text += delta.get("text", "")
                reasoning += delta.get("thinking", "")
                so_far = arguments.get(event["index"], "")
                arguments[event["index"]] = so_far + delta.get("partial_json", "")
            case "message_delta":
                usage |= {
                    name: value for name, value in event["usage"].items() if value is not None
                }
                reason = event["delta"]["stop_reason"]
    calls: dict[str, list[Json]] = {kind: [] for kind in ("tool_use", *EXECUTED)}
    for index, block in blocks.items():
        if block["type"] in calls:
            whole = arguments.get(index) or json.dumps(block["input"])
            calls[block["type"]].append(_call(block["id"], block["name"], whole))
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    return _answer(
        text=text,
        reasoning=reasoning,
        tool_calls=calls["tool_use"],
        provider_call_ids=sorted(call["id"] for kind in EXECUTED for call in calls[kind]),
        usage=_usage(
            usage["input_tokens"] + read + written, usage["output_tokens"], thought, read, written
        ),
        finish_reason=FINISH_REASONS[str(reason)],
    )


def _responses(events: list[Json]) -> Json:
    (last,) = [e["response"] for e in events if e["type"] == "response.completed"]
    streamed = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    items = last["output"] or streamed  # Some are only in the one, some only in the other.
    deltas = {"response.output_text.delta": "", "response.refusal.delta": ""}
    thoughts = {"response.reasoning_summary_text.delta": "", "response.reasoning_text.delta": ""}
    for event in events:
        for said in (deltas, thoughts):
            if event["type"] in said:
                said[event["type"]] += event["delta"]
    calls = [
        _call(item["call_id"], item["name"], item["arguments"])
        for item in items
        if item["type"] == "function_call"
    ]
    usage = last["usage"]
    return _answer(
        text="".join(deltas.values()),
        reasoning="".join(thoughts.values()),
        tool_calls=calls,
        provider_call_ids=sorted(item["id"] for item in items if item["type"] not in OWN_ITEMS),
        usage=_usage(
            usage["input_tokens"],
            usage["output_tokens"],
            usage["output_tokens_details"]["reasoning_tokens"],
            usage["input_tokens_details"]["cached_tokens"],
            usage["input_tokens_details"].get("cache_write_tokens"),
        ),
        finish_reason="tool_calls" if calls else "stop",
    )


def _completions(events: list[Json]) -> Json:
    text, reasoning, reason = "", "", None
    usage: Json | None = None
    calls: dict[int, Json] = {}
    for event in events:
        usage = event.get("usage") or usage
        for choice in event.get("choices", []):
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or {}
            text += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or delta.get("reasoning") or ""
            for part in delta.get("tool_calls") or []:
                call = calls.setdefault(part["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] = call["id"] or part.get("id") or ""
                call["name"] += part["function"].get("name") or ""
                call["arguments"] += part["function"].get("arguments") or ""
    said = _answer(
        text=text,
        reasoning=reasoning,
        tool_calls=[_call(**{"call_id": c.pop("id"), **c}) for c in calls.values()],
        finish_reason=FINISH_REASONS.get(str(reason)),
    )
    if usage is not None:
        prompt = usage.get("prompt_tokens_details") or {}
        completion = usage.get("completion_tokens_details") or {}
        said["usage"] = _usage(
            usage["prompt_tokens"],
            usage["completion_tokens"],
            completion.get("reasoning_tokens"),
            prompt.get("cached_tokens"),
            prompt.get("cache_write_tokens"),
        )
    return said
