"""The answer of Anthropic Messages: as a stream, as one body, and the signatures of thinking."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from parley.testing.llm_mock.behaviour.options import Stop
from parley.testing.llm_mock.exchange.dialect import Event
from parley.testing.llm_mock.exchange.placeholders import IDENTITY, IDENTITY_LENGTH, INPUT
from parley.testing.llm_mock.exchange.reply import cut
from parley.testing.llm_mock.exchange.request import Call, Reply, Tokens

DATA_PREFIX = "mockredacted"
STOP_REASONS = {
    Stop.END: "end_turn",
    Stop.LENGTH: "max_tokens",
    Stop.FILTER: "refusal",
    Stop.REFUSAL: "refusal",
}


def signature_of(thought: str) -> str:
    """Return the mock's signature of a thinking block."""
    return "mocksig" + blake2b(thought.encode(), digest_size=24).hexdigest()


def is_own_signature(thought: str, signature: str) -> bool:
    """Return whether the mock signed this thinking block."""
    return signature == signature_of(thought)


def is_own_data(data: str) -> bool:
    """Return whether the mock made this redacted thinking block."""
    return data.startswith(DATA_PREFIX) and len(data) == len(DATA_PREFIX) + IDENTITY_LENGTH


def events(reply: Reply) -> Iterator[Event]:
    """Yield the events of the stream."""
    yield _event("message_start", message=_message(reply, [], None, _start_usage(reply.tokens)))
    yield _event("ping")
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            event = _event("content_block_delta", index=index, delta=delta)
            yield event._replace(is_delta=delta["type"] != "signature_delta")
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    usage = {} if reply.tokens is None else {"usage": _usage(reply.tokens)}
    yield _event("message_delta", delta=ending, **usage)
    yield _event("message_stop")


def whole(reply: Reply) -> bytes:
    """Return the answer as one body."""
    content = [_completed(block, deltas) for block, deltas in _blocks(reply)]
    usage = None if reply.tokens is None else _usage(reply.tokens)
    return msgspec.json.encode(_message(reply, content, _stop_reason(reply), usage))


def _event(name: str, **fields: object) -> Event:
    return Event(name, msgspec.json.encode({"type": name, **fields}))


def _message(
    reply: Reply, content: list[dict[str, Any]], stop_reason: str | None, usage: object
) -> dict[str, Any]:
    message = {
        "id": f"msg_{IDENTITY}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
    }
    return message if usage is None else {**message, "usage": usage}


def _blocks(reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each content block at its start, and its deltas."""
    if reply.is_redacted:
        yield {"type": "redacted_thinking", "data": f"{DATA_PREFIX}{IDENTITY}"}, []
    if reply.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in reply.thoughts]
        proof = {"type": "signature_delta", "signature": signature_of("".join(reply.thoughts))}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, proof]
    if reply.text:
        yield (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in reply.text],
        )
    for call in reply.calls:
        parts = ("", *cut(call.args, reply.args_size))
        yield (
            {"type": "tool_use", "id": _call_id(call), "name": call.name, "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in parts],
        )


def _completed(block: dict[str, Any], deltas: list[dict[str, Any]]) -> dict[str, Any]:
    block = dict(block)
    arguments = "".join(delta.get("partial_json", "") for delta in deltas)
    for delta in deltas:
        for field in ("text", "thinking", "signature"):
            if field in delta:
                block[field] += delta[field]
    if block["type"] == "tool_use":
        block["input"] = _decoded(arguments)
    return block


def _decoded(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def _call_id(call: Call) -> str:
    return f"toolu_{IDENTITY}{call.number:02}" if call.has_id else ""


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else STOP_REASONS[reply.stop]


def _start_usage(tokens: Tokens | None) -> dict[str, Any] | None:
    return None if tokens is None else {**_usage(tokens), "output_tokens": 1}


def _usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": INPUT if tokens.input is None else tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
    }
