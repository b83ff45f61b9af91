"""OpenAI Chat Completions, at OpenAI, at Azure and at compatible endpoints."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from parley.testing.llm_mock.behaviour.options import Stop
from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.dialect import Event, server_sent
from parley.testing.llm_mock.exchange.parsing import ParseError, read
from parley.testing.llm_mock.exchange.placeholders import IDENTITY, PROMPT, TOTAL
from parley.testing.llm_mock.exchange.reply import cut
from parley.testing.llm_mock.exchange.request import Call, HttpRequest, ParsedRequest, Reply, Tokens
from parley.testing.llm_mock.providers.openai import errors as openai_errors
from parley.testing.llm_mock.providers.openai.completions_request import Body, parsed_request_of
from parley.testing.llm_mock.providers.openai.completions_validation import check

CREATED = 1_767_225_600
DONE = Event("", b"[DONE]")
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/chat/completions")
FINISH_REASONS = {
    Stop.END: "stop",
    Stop.LENGTH: "length",
    Stop.FILTER: "content_filter",
    Stop.REFUSAL: "stop",
}


class ChatCompletions:
    """The protocol that most endpoints implement."""

    def question(self, request: HttpRequest) -> ParsedRequest:
        """Parse the request."""
        openai_errors.authorise(request)
        try:
            body = read(request.body, Body)
            deployment = DEPLOYMENT.fullmatch(request.target.partition("?")[0])
            if deployment is not None:
                body.model = unquote(deployment[1])
            if not body.model:
                raise Refused(400, "you must provide a model parameter")
            check(body)
            return parsed_request_of(body)
        except ParseError as error:
            raise openai_errors.refusal_of(error) from error

    def events(self, reply: Reply) -> list[Event]:
        """Return the whole stream."""
        return list(_events(reply))

    def whole(self, reply: Reply) -> bytes:
        """Return the answer as one body."""
        is_refusal = reply.stop is Stop.REFUSAL
        text = "".join(reply.text) or None
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if is_refusal else text,
            "refusal": text if is_refusal else None,
        }
        if reply.thoughts:
            message[reply.reasoning_field] = "".join(reply.thoughts)
        if reply.calls:
            message["tool_calls"] = [_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
        answer = _envelope(reply, "chat.completion", [choice])
        if reply.tokens is not None:
            answer["usage"] = _usage(reply.tokens)
        return msgspec.json.encode(answer)

    def framed(self, event: Event) -> bytes:
        """Return a server-sent event."""
        return server_sent(event)

    def refusal(self, refused: Refused) -> tuple[Mapping[str, str], bytes]:
        """Return headers and body of a refusal."""
        return {}, openai_errors.refusal_body(refused)

    def overflow(self, tokens: int, tokens_max: int) -> Refused:
        """Return the refusal of a prompt that is too long."""
        return openai_errors.overflow(tokens, tokens_max, "messages")

    def quota(self) -> Refused:
        """Return the refusal for an exhausted quota."""
        return openai_errors.no_quota()

    def error_event(self) -> Event:
        """Return an event that ends a stream with an error."""
        message = "The server had an error while processing your request. Sorry about that!"
        return Event("", openai_errors.refusal_body(Refused(500, message)))

    @property
    def heartbeat(self) -> bytes:
        """Return a comment."""
        return b": PROCESSING\n\n"

    @property
    def stream_type(self) -> str:
        """Return the content type of a stream."""
        return "text/event-stream; charset=utf-8"


def _events(reply: Reply) -> Iterator[Event]:
    yield _chunk(reply, {"role": "assistant", "content": "", "refusal": None})
    for piece in reply.thoughts:
        yield _chunk(reply, {reply.reasoning_field: piece}, is_delta=True)
    field = "refusal" if reply.stop is Stop.REFUSAL else "content"
    for piece in reply.text:
        yield _chunk(reply, {field: piece}, is_delta=True)
    for index, call in enumerate(reply.calls):
        place = {"index": index} if reply.has_index else {}
        begun = {**place, **_call(call)}
        begun["function"] = {"name": call.name, "arguments": ""}
        yield _chunk(reply, {"tool_calls": [begun]}, is_delta=True)
        for part in cut(call.args, reply.args_size):
            more = {**place, "function": {"arguments": part}}
            yield _chunk(reply, {"tool_calls": [more]}, is_delta=True)
    yield _chunk(reply, {}, _finish_reason(reply))
    if reply.wants_usage and reply.tokens is not None:
        counted = _envelope(reply, "chat.completion.chunk", [])
        yield Event("", msgspec.json.encode({**counted, "usage": _usage(reply.tokens)}))
    if reply.has_done:
        yield DONE


def _chunk(
    reply: Reply, delta: dict[str, Any], finish_reason: str | None = None, *, is_delta: bool = False
) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    chunk = _envelope(reply, "chat.completion.chunk", [choice])
    if reply.wants_usage:
        chunk["usage"] = None
    return Event("", msgspec.json.encode(chunk), is_delta)


def _envelope(reply: Reply, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{IDENTITY}",
        "object": kind,
        "created": CREATED,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": "fp_mock",
        "choices": choices,
    }


def _call(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.args}
    called: dict[str, Any] = {"type": "function", "function": function}
    return {"id": f"call_{IDENTITY}{call.number:02}", **called} if call.has_id else called


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else FINISH_REASONS[reply.stop]


def _usage(tokens: Tokens) -> dict[str, Any]:
    cached = tokens.cache_read + tokens.cache_write
    prompt: Any = PROMPT if tokens.input is None else tokens.input + cached
    total: Any = TOTAL if tokens.input is None else tokens.input + cached + tokens.output
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": total,
        "prompt_tokens_details": {
            "cached_tokens": tokens.cache_read,
            **({"cache_write_tokens": tokens.cache_write} if tokens.cache_write else {}),
        },
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }
