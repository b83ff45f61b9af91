"""Handles requests: routes them, applies the faults of each model, and counts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.utils import format_datetime

from parley.clock import Clock
from parley.testing.llm_mock.behaviour.grammar import behaviour_of
from parley.testing.llm_mock.behaviour.options import Behaviour, FailureRule, Fault, RetryForm
from parley.testing.llm_mock.errors import BehaviourUnknown, Refused
from parley.testing.llm_mock.exchange.dialect import Dialect, Event
from parley.testing.llm_mock.exchange.placeholders import IDENTITY, PlaceholderValues, identity_of
from parley.testing.llm_mock.exchange.reply import estimated_tokens, reply_to
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest
from parley.testing.llm_mock.http.pages import own_page
from parley.testing.llm_mock.http.statistics import RequestCounters
from parley.testing.llm_mock.playback.encoded import (
    LAST_CHUNK,
    EncodedAnswer,
    chunk,
    http_head,
    in_chunks,
    prepare_stream,
    prepare_whole,
)
from parley.testing.llm_mock.playback.recording import Recording, RecordingQueue
from parley.testing.llm_mock.playback.steps import (
    AS_IS,
    Framed,
    Framing,
    Step,
    course,
    delayed,
    evenly,
)
from parley.testing.llm_mock.providers.anthropic.messages import AnthropicMessages, BedrockMessages
from parley.testing.llm_mock.providers.openai.completions import ChatCompletions
from parley.testing.llm_mock.providers.openai.responses import OpenAIResponses

_COMPLETIONS = ChatCompletions()
_RESPONSES = OpenAIResponses()
_MESSAGES = AnthropicMessages()
_BEDROCK = BedrockMessages()

#: The exact paths; other paths contain a name, or the prefix of an endpoint.
PATHS: dict[str, Dialect] = {
    "/v1/messages": _MESSAGES,
    "/v1/chat/completions": _COMPLETIONS,
    "/v1/responses": _RESPONSES,
    "/openai/v1/chat/completions": _COMPLETIONS,
    "/openai/v1/responses": _RESPONSES,
}
PATTERNS: tuple[tuple[re.Pattern[str], Dialect], ...] = (
    (re.compile(r"/model/.+/invoke(-with-response-stream)?"), _BEDROCK),
    (re.compile(r"/openai/deployments/.+/chat/completions"), _COMPLETIONS),
    (re.compile(r"/.+/chat/completions"), _COMPLETIONS),
    (re.compile(r"/.+/responses"), _RESPONSES),
    (re.compile(r"/.+/messages"), _MESSAGES),
)


def dialect_at(path: str) -> Dialect | None:
    """Return the protocol of a path, None if it has none."""
    if (exact := PATHS.get(path)) is not None:
        return exact
    return next((dialect for pattern, dialect in PATTERNS if pattern.fullmatch(path)), None)


JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}
BAD_GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body>mock</body></html>"


@dataclass(frozen=True, slots=True)
class ReadyAnswer:
    """An answer that is complete."""

    data: bytes


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """An answer that is sent over time, as steps."""

    steps: Iterator[Step]


Answer = ReadyAnswer | TimedAnswer


@dataclass(slots=True)
class _ModelHistory:
    """The requests so far for one model name, and the behaviour of that name."""

    behaviour: Behaviour
    first_at_s: float
    requests: int = 0
    streams: int = 0


@dataclass(slots=True)
class RequestHandler:
    """Answers requests; independent of the connection."""

    clock: Clock
    seed: int
    default: Behaviour
    shelf: RecordingQueue
    tally: RequestCounters
    _pasts: dict[str, _ModelHistory] = field(default_factory=dict)
    _number: int = 0

    def answer(self, request: HttpRequest) -> Answer:
        """Return the answer to a request."""
        if request.method == "GET" or request.path.startswith("/mock/"):
            return ReadyAnswer(own_page(request, self.tally, self.reset))
        dialect = dialect_at(request.path)
        if dialect is None:
            unknown = Refused(
                404, f"Invalid URL ({request.method} {request.path})", code="unknown_url"
            )
            return self._refuse(request, ChatCompletions(), unknown, "", self.default)
        if self.shelf.recordings:
            return self._replay(request, dialect)
        return self._ask(request, dialect)

    def reset(self) -> None:
        """Reset counters and histories."""
        self.tally.reset()
        self.shelf.rewind()
        self._pasts.clear()
        self._number = 0

    def _ask(self, request: HttpRequest, dialect: Dialect) -> Answer:
        behaviour, model = self.default, ""
        try:
            question = dialect.question(request)
            model = question.model
            past = self._past(model)
            behaviour = past.behaviour
            self._fail(behaviour, past, dialect)
            self._measure(behaviour, request, dialect)
        except BehaviourUnknown as error:
            return self._refuse(request, dialect, Refused(400, str(error)), model, behaviour)
        except Refused as refused:
            return self._refuse(request, dialect, refused, model, behaviour)
        self.tally.count(request, model, 200)
        past.streams += 1
        if behaviour.times is not None and past.streams > behaviour.times:
            behaviour = replace(behaviour, fault=None, is_endless=False, drip_s=0.0)
        return self._speak(request, dialect, question, behaviour)

    def _speak(
        self, request: HttpRequest, dialect: Dialect, question: ParsedRequest, behaviour: Behaviour
    ) -> Answer:
        fault = behaviour.fault
        reply = reply_to(question, behaviour, self.seed)
        if question.is_streamed:
            is_checksummed = isinstance(dialect, BedrockMessages)
            prepared = prepare_stream(dialect, reply, is_checksummed=is_checksummed)
        else:
            prepared = prepare_whole(dialect, reply)
            fault = None if fault is None else replace(fault, after=0)
        tokens = reply.tokens
        filling = PlaceholderValues(
            self._identity(is_stored=question.is_stored, is_reasoned=reply.is_reasoned),
            estimated_tokens(request.body),
            0 if tokens is None else tokens.cache_read + tokens.cache_write,
            0 if tokens is None else tokens.output,
        )
        if not prepared.burst or fault is not None or not behaviour.is_even:
            return _perform(prepared, filling, Framed(dialect), behaviour, fault)
        burst = filling.fill(prepared.burst)
        if not behaviour.is_paced:
            return ReadyAnswer(burst)
        pieces = prepared.pieces(burst)
        return TimedAnswer(evenly(pieces, behaviour))

    def _fail(self, behaviour: Behaviour, past: _ModelHistory, dialect: Dialect) -> None:
        """Refuse the request if the model's behaviour says so.

        Raises:
            Refused: the request fails.
        """
        elapsed_s = self.clock.monotonic() - past.first_at_s
        number, past.requests = past.requests, past.requests + 1
        failing = _failing_now(behaviour.failures, number, elapsed_s)
        if failing is not None and failing.is_quota:
            raise dialect.quota()
        if failing is not None:
            raise Refused(failing.status, f"mock: failing with {failing.status} as asked")

    def _measure(self, behaviour: Behaviour, request: HttpRequest, dialect: Dialect) -> None:
        tokens = estimated_tokens(request.body)
        if behaviour.context is not None and tokens > behaviour.context:
            raise dialect.overflow(tokens, behaviour.context)

    def _past(self, model: str) -> _ModelHistory:
        if model not in self._pasts:
            behaviour = behaviour_of(model, self.default)
            self._pasts[model] = _ModelHistory(behaviour, self.clock.monotonic())
        return self._pasts[model]

    def _identity(self, *, is_stored: bool = False, is_reasoned: bool = False) -> str:
        self._number += 1
        return identity_of(self.seed, self._number, is_stored=is_stored, is_reasoned=is_reasoned)

    def _refuse(
        self,
        request: HttpRequest,
        dialect: Dialect,
        refused: Refused,
        model: str,
        behaviour: Behaviour,
    ) -> ReadyAnswer:
        self.tally.count(request, model, refused.status)
        more, body = dialect.refusal(refused)
        headers = {**JSON, **more, **self._retry_headers(behaviour)}
        if refused.status == 502:
            headers, body = {**headers, **HTML}, BAD_GATEWAY
        body = body.replace(IDENTITY.encode(), self._identity().encode())
        return ReadyAnswer(http_head(refused.status, headers, len(body)) + body)

    def _retry_headers(self, behaviour: Behaviour) -> Mapping[str, str]:
        count = behaviour.retry_s
        match behaviour.retry_form:
            case None:
                return {}
            case RetryForm.SECONDS:
                return {"retry-after": f"{count:.0f}" if count == int(count) else str(count)}
            case RetryForm.MILLISECONDS:
                return {"retry-after-ms": f"{count:.0f}"}
            case RetryForm.DATE:
                moment = self.clock.now() + timedelta(seconds=count)
                return {"retry-after": format_datetime(moment, usegmt=True)}

    def _replay(self, request: HttpRequest, dialect: Dialect) -> Answer:
        recording = self.shelf.take(request.path)
        if recording is None:
            spent = Refused(
                400,
                f"mock: no recording is left for {request.path}; give more files with --replay, "
                "or begin again with POST /mock/reset",
            )
            return self._refuse(request, dialect, spent, "", self.default)
        self.tally.count(request, "", recording.status)
        return _replay_bytes(recording, dialect, self.default)


def _failing_now(
    failures: tuple[FailureRule, ...], number: int, elapsed_s: float
) -> FailureRule | None:
    """Return how the request of this number fails, None if it does not."""
    for failing in failures:
        if failing.for_s is not None:
            if elapsed_s < failing.for_s:
                return failing
        elif failing.times is None or number < failing.times:
            return failing
        else:
            number -= failing.times
    return None


def _perform(
    prepared: EncodedAnswer,
    filling: PlaceholderValues,
    framing: Framing,
    behaviour: Behaviour,
    fault: Fault | None,
) -> TimedAnswer:
    steps = course(prepared.filled(filling), framing, behaviour, fault)
    return TimedAnswer(delayed(in_chunks(filling.fill(prepared.head), steps), behaviour.wait_s))


def _replay_bytes(recording: Recording, dialect: Dialect, behaviour: Behaviour) -> Answer:
    headers = dict(recording.headers)
    if not recording.is_streamed:
        head = http_head(recording.status, headers, len(recording.body))
        return ReadyAnswer(head + recording.body)
    head = http_head(recording.status, headers)
    if behaviour.fault is None and not behaviour.is_paced:
        return ReadyAnswer(head + b"".join(map(chunk, recording.events())) + LAST_CHUNK)
    events = (Event(AS_IS, data, is_delta=True) for data in recording.events())
    steps = course(events, Framed(dialect), behaviour, behaviour.fault)
    return TimedAnswer(delayed(in_chunks(head, steps), behaviour.wait_s))
