"""The answer of OpenAI Responses: as a stream and as one body."""

from collections.abc import Iterator
from typing import Any

import msgspec

from parley.testing.llm_mock.behaviour.options import Stop
from parley.testing.llm_mock.exchange.dialect import Event
from parley.testing.llm_mock.exchange.placeholders import IDENTITY, PROMPT, TOTAL
from parley.testing.llm_mock.exchange.reply import cut
from parley.testing.llm_mock.exchange.request import Call, Reply, Tokens

CREATED = 1_767_225_600
SEAL = "gAAAAAmock"


def events(reply: Reply) -> Iterator[Event]:
    """Yield the numbered events of the stream."""
    for number, (name, fields, is_delta) in enumerate(_stream(reply)):
        data = {"type": name, "sequence_number": number, **fields}
        yield Event(name, msgspec.json.encode(data), is_delta)


def whole(reply: Reply) -> bytes:
    """Return the answer as one body."""
    return msgspec.json.encode(_response(reply, _status(reply), _output(reply)))


Fields = tuple[str, dict[str, Any], bool]


def _stream(reply: Reply) -> Iterator[Fields]:
    begun = _response(reply, "in_progress", [])
    yield "response.created", {"response": begun}, False
    yield "response.in_progress", {"response": begun}, False
    output = _output(reply)
    for index, item in enumerate(output):
        match item["type"]:
            case "reasoning":
                yield from _reasoning(reply, item, index)
            case "message":
                yield from _message(reply, item, index)
            case _:
                yield from _function_call(reply, item, index)
    final = _response(reply, _status(reply), output)
    yield f"response.{_status(reply)}", {"response": final}, False


def _reasoning(reply: Reply, item: dict[str, Any], index: int) -> Iterator[Fields]:
    begun = {**item, "summary": []}
    yield "response.output_item.added", {"output_index": index, "item": begun}, False
    if item["summary"]:
        place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        empty, full = {"type": "summary_text", "text": ""}, item["summary"][0]
        yield "response.reasoning_summary_part.added", {**place, "part": empty}, False
        for piece in reply.thoughts:
            yield "response.reasoning_summary_text.delta", {**place, "delta": piece}, True
        yield "response.reasoning_summary_text.done", {**place, "text": full["text"]}, False
        yield "response.reasoning_summary_part.done", {**place, "part": full}, False
    yield "response.output_item.done", {"output_index": index, "item": item}, False


def _message(reply: Reply, item: dict[str, Any], index: int) -> Iterator[Fields]:
    begun = {**item, "status": "in_progress", "content": []}
    yield "response.output_item.added", {"output_index": index, "item": begun}, False
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    (part,) = item["content"]
    kind, field = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    yield "response.content_part.added", {**place, "part": {**part, field: ""}}, False
    for piece in reply.text:
        yield f"response.{kind}.delta", {**place, "delta": piece, **more}, True
    yield f"response.{kind}.done", {**place, field: part[field], **more}, False
    yield "response.content_part.done", {**place, "part": part}, False
    yield "response.output_item.done", {"output_index": index, "item": item}, False


def _function_call(reply: Reply, item: dict[str, Any], index: int) -> Iterator[Fields]:
    begun = {**item, "status": "in_progress", "arguments": ""}
    yield "response.output_item.added", {"output_index": index, "item": begun}, False
    place = {"item_id": item["id"], "output_index": index}
    for part in cut(item["arguments"], reply.args_size):
        yield "response.function_call_arguments.delta", {**place, "delta": part}, True
    finished = {**place, "arguments": item["arguments"], "name": item["name"]}
    yield "response.function_call_arguments.done", finished, False
    yield "response.output_item.done", {"output_index": index, "item": item}, False


def _output(reply: Reply) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = []
    if reply.thoughts or reply.is_redacted:
        summary = [{"type": "summary_text", "text": "".join(reply.thoughts)}]
        thought: dict[str, Any] = {
            "id": f"rs_{IDENTITY}00",
            "type": "reasoning",
            "summary": summary if reply.thoughts else [],
        }
        if reply.wants_encrypted:
            thought["encrypted_content"] = f"{SEAL}{IDENTITY}"
        output.append(thought)
    if reply.text:
        output.append(
            {
                "id": f"msg_{IDENTITY}00",
                "type": "message",
                "status": "incomplete" if _status(reply) == "incomplete" else "completed",
                "role": "assistant",
                "content": [_content(reply)],
            }
        )
    output.extend(_call(call, place) for place, call in enumerate(reply.calls))
    return output


def _content(reply: Reply) -> dict[str, Any]:
    text = "".join(reply.text)
    if reply.stop is Stop.REFUSAL:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: Call, place: int) -> dict[str, Any]:
    return {
        "id": f"fc_{IDENTITY}{place:02}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{IDENTITY}{call.number:02}" if call.has_id else "",
        "name": call.name,
        "arguments": call.args,
    }


def _status(reply: Reply) -> str:
    return "incomplete" if reply.stop in (Stop.LENGTH, Stop.FILTER) else "completed"


def _response(reply: Reply, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    is_over = status != "in_progress"
    reasons = {Stop.LENGTH: "max_output_tokens", Stop.FILTER: "content_filter"}
    reason = reasons.get(reply.stop) if is_over else None
    counted = None if reply.tokens is None or not is_over else _usage(reply.tokens)
    return {
        "id": f"resp_{IDENTITY}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "instructions": None,
        "metadata": {},
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": counted,
    }


def _usage(tokens: Tokens) -> dict[str, Any]:
    cached = tokens.cache_read + tokens.cache_write
    prompt: Any = PROMPT if tokens.input is None else tokens.input + cached
    total: Any = TOTAL if tokens.input is None else tokens.input + cached + tokens.output
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            **({"cache_write_tokens": tokens.cache_write} if tokens.cache_write else {}),
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": total,
    }
