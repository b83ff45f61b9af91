"""What failed calls mean: every row of the table, and which row wins where two fit."""

import json
from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelError
from chatd.providers.classifier import RULES, classify
from chatd.providers.failure_detail import BODY_BYTES_MAX
from chatd.providers.signals import Signals
from chatd.providers.wire import Failure
from parley.clock.fake import EPOCH
from support.chatd.providers.recordings import Recording, recordings

JSON = {"content-type": "application/json"}


def judged(failure: Failure, name: str = "Acme") -> ModelError:
    return classify(
        failure, provider_type=ProviderType.OPENAI_COMPATIBLE, provider_name=name, now=EPOCH
    )


def verdict(failure: Failure) -> tuple[ErrorKind, bool]:
    error = judged(failure)
    return error.kind, error.is_retryable


def answered(status_code: int, message: str = "", **codes: object) -> Failure:
    """Return the failure of an answer with an error object."""
    body = json.dumps({"error": {"message": message, **codes}}).encode()
    return Failure("the call failed", status_code, JSON, body)


TABLE = [
    (Failure("the chat was interrupted"), ErrorKind.GENERIC, False),
    (Failure("operation interrupted"), ErrorKind.GENERIC, False),
    (answered(400, "No tool output found for function call c_1."), ErrorKind.GENERIC, False),
    (
        answered(400, "No tool call found for function call output with call_id c_1."),
        ErrorKind.GENERIC,
        False,
    ),
    (
        answered(400, "Item 'fc_1' was provided without its required 'reasoning' item: 'rs_2'"),
        ErrorKind.GENERIC,
        False,
    ),
    (Failure("", is_cut_off=True), ErrorKind.TIMEOUT, True),
    (Failure("quota, cannot be read", is_garbled=True), ErrorKind.TIMEOUT, True),
    (Failure("stream closed before message_stop"), ErrorKind.TIMEOUT, True),
    (Failure("", 529), ErrorKind.OVERLOADED, True),
    (Failure("overloaded_error: Overloaded"), ErrorKind.OVERLOADED, True),
    (answered(200, "the engine is overloaded"), ErrorKind.OVERLOADED, True),
    (answered(429, "You are out", code="insufficient_quota"), ErrorKind.USAGE_LIMIT, False),
    (answered(403, "AI budget of US$5 exceeded"), ErrorKind.USAGE_LIMIT, False),
    (answered(400, "your credit is too low: Plans & Billing"), ErrorKind.USAGE_LIMIT, False),
    (answered(403, "quota exceeded"), ErrorKind.USAGE_LIMIT, False),
    (Failure("402 Payment Required", 402), ErrorKind.USAGE_LIMIT, False),
    (Failure("", 401), ErrorKind.AUTH, False),
    (Failure("authentication_error"), ErrorKind.AUTH, False),
    (answered(400, "Unauthorized"), ErrorKind.AUTH, False),
    (answered(400, "Invalid API key"), ErrorKind.AUTH, False),
    (answered(400, "no", code="invalid_api_key"), ErrorKind.AUTH, False),
    (answered(403, "not for you"), ErrorKind.AUTH, False),
    (Failure("forbidden"), ErrorKind.AUTH, False),
    (Failure("", 429), ErrorKind.RATE_LIMIT, True),
    (Failure("rate limit reached"), ErrorKind.RATE_LIMIT, True),
    (answered(400, "slow down", type="rate_limit_error"), ErrorKind.RATE_LIMIT, True),
    (answered(503, "gone", code="provider_disabled"), ErrorKind.PROVIDER_DISABLED, False),
    *((Failure("", status), ErrorKind.TIMEOUT, True) for status in (408, 502, 503, 504)),
    (Failure("it broke", is_transport=True), ErrorKind.TIMEOUT, True),
    *(
        (Failure(words), ErrorKind.TIMEOUT, True)
        for words in (
            "context deadline exceeded",
            "i/o timeout",
            "the read timed out",
            "service unavailable",
            "connection reset by peer",
            "connection refused",
            "unexpected EOF",
            "write: broken pipe",
            "bad gateway",
            "gateway timeout",
            "http2: client connection lost",
            "http2: client connection force closed via ClientConn.Close",
            "http2: server sent GOAWAY and closed the connection",
            "stream closed",
            "use of closed network connection",
            "stream error: stream ID 7; INTERNAL_ERROR; received from peer",
        )
    ),
    *(
        (Failure("reset", reset_code=code), ErrorKind.TIMEOUT, True)
        for code in (
            "NO_ERROR",
            "INTERNAL_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "ENHANCE_YOUR_CALM",
        )
    ),
    (Failure("reset", is_transport=True, reset_code="PROTOCOL_ERROR"), ErrorKind.GENERIC, False),
    *(
        (answered(400, words), ErrorKind.CONTEXT_OVERFLOW, False)
        for words in (
            "This model's maximum context length is 8192 tokens.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "Your input exceeds the context window of this model.",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "the request exceeds the available context size",
            "Input is too long for requested model.",
            "This model's maximum prompt length is 131072",
        )
    ),
    (answered(400, "no", code="context_length_exceeded"), ErrorKind.CONTEXT_OVERFLOW, False),
    *(
        (answered(400, words), ErrorKind.CONFIG, False)
        for words in (
            "invalid model: x",
            "unsupported model",
            "unknown model x",
            "The model `x` does not exist or you do not have access to it.",
            'model "x" not found, try pulling it first',
            "malformed configuration",
            "cannot resolve AWS credentials",
            "Unable to locate credentials",
        )
    ),
    (answered(404, "nothing here", code="model_not_found"), ErrorKind.CONFIG, False),
    (answered(404, "model: claude-9", type="not_found_error"), ErrorKind.CONFIG, False),
    (Failure("certificate verify failed: expired", is_transport=True), ErrorKind.CONFIG, False),
    (Failure("", 500), ErrorKind.GENERIC, True),
    (Failure("internal server error"), ErrorKind.GENERIC, True),
    (answered(0, "sorry", type="server_error"), ErrorKind.GENERIC, True),
    (Failure("the call was canceled"), ErrorKind.GENERIC, False),
    (Failure("cancelled"), ErrorKind.GENERIC, False),
    (Failure(""), ErrorKind.GENERIC, False),
    (answered(400, "temperature is too low"), ErrorKind.GENERIC, False),
    (Failure("not found", 404), ErrorKind.GENERIC, False),
    (Failure("unreadable", body=b'{"text":"half an answer about quota'), ErrorKind.GENERIC, False),
]


@pytest.mark.parametrize(("failure", "kind", "is_retryable"), TABLE)
def test_each_failure_is_of_its_kind(failure: Failure, kind: ErrorKind, is_retryable: bool) -> None:
    assert verdict(failure) == (kind, is_retryable)


PAIRS = [
    ("interrupted, although overloaded", Failure("request interrupted: overloaded"), "generic"),
    (
        "lost thread, although 401",
        answered(401, "No tool output found for function call"),
        "generic",
    ),
    ("cut off, although overloaded", Failure("overloaded", is_cut_off=True), "timeout"),
    ("overloaded, although quota", answered(529, "quota"), "overloaded"),
    ("overloaded, although 429", Failure("overloaded", 429), "overloaded"),
    ("overloaded, although 500", Failure("overloaded", 500), "overloaded"),
    ("quota, although 401", answered(401, "check your billing"), "usage_limit"),
    ("quota, although 403", answered(403, "quota"), "usage_limit"),
    ("quota, although 429", answered(429, "insufficient_quota"), "usage_limit"),
    ("429, although billing", answered(429, "see your billing page"), "rate_limit"),
    ("401, although the model is unknown", answered(401, "unknown model"), "auth"),
    ("401, although too long", answered(401, "prompt is too long"), "auth"),
    ("401, although a rate limit", Failure("rate limit", 401), "auth"),
    ("config, although 403", answered(403, "invalid model"), "config"),
    ("403, although a rate limit", Failure("rate limit", 403), "auth"),
    ("config, although 429", answered(429, "unsupported model"), "config"),
    ("too long, although 429", answered(429, "maximum context length"), "context_overflow"),
    ("a sentence about rate limits is none", answered(400, "rate limit tiers"), "generic"),
    ("429, although a timeout", Failure("timeout", 429), "rate_limit"),
    ("disabled, although 503", answered(503, "", code="provider_disabled"), "provider_disabled"),
    ("429, although disabled", answered(429, "", code="provider_disabled"), "rate_limit"),
    ("config, although 503", answered(503, "invalid model"), "config"),
    ("too long, although 503", answered(503, "prompt is too long"), "context_overflow"),
    ("config, although torn", Failure("unknown model", is_transport=True), "config"),
    ("timeout, although 500", Failure("upstream timed out", 500), "timeout"),
    ("config, although 500", answered(500, "unknown model"), "config"),
    (
        "too long before other config",
        Failure("invalid model, prompt is too long"),
        "context_overflow",
    ),
    ("500, although cancelled", Failure("cancelled", 500), "generic"),
    ("a status beside a reset", Failure("x", 503, reset_code="PROTOCOL_ERROR"), "timeout"),
    ("words beside a reset", Failure("timed out", reset_code="PROTOCOL_ERROR"), "generic"),
    ("torn, but with a status", Failure("x", 400, is_transport=True), "generic"),
]


@pytest.mark.parametrize(
    ("failure", "kind"), [each[1:] for each in PAIRS], ids=[p[0] for p in PAIRS]
)
def test_the_higher_row_wins(failure: Failure, kind: str) -> None:
    assert judged(failure).kind.value == kind


def test_a_500_beside_cancelled_is_tried_again() -> None:
    assert verdict(Failure("cancelled", 500)) == (ErrorKind.GENERIC, True)


@pytest.mark.parametrize(
    ("text", "status_code"),
    [
        ("status 503", 503),
        ("Status Code: 418 teapot", 418),
        ("HTTP 404", 404),
        ("HTTP/1.1 502 Bad Gateway", 502),
        ("status_code=429", 429),
        ("got 429.", 429),
        ("error (529)", 529),
        ("error: 500 there", 500),
        ("dial 127.0.0.1:503 failed", 0),
        ("port 429", 0),
        ("stream error: stream ID 429; PROTOCOL_ERROR", 0),
        ("stream id: 503", 0),
        ("after 5000 ms and 429ms", 0),
        ("claude-500", 0),
        ("version 1.429 or 429.1", 0),
        ("a 404 alone", 0),
    ],
)
def test_a_status_is_found_in_words_that_name_one(text: str, status_code: int) -> None:
    assert judged(Failure(text)).status_code == status_code


def test_a_status_of_the_answer_counts_before_one_in_its_words() -> None:
    assert judged(answered(400, "upstream said status 503")).status_code == 400
    assert judged(answered(0, "upstream said status 503", code=429)).status_code == 429


@pytest.mark.parametrize(
    ("name", "provider_type", "text", "label"),
    [
        ("Work", ProviderType.ANTHROPIC, "openai broke", "Work"),
        ("", ProviderType.ANTHROPIC, "openai broke", "Anthropic"),
        ("", None, "azure openai broke", "Azure OpenAI"),
        ("", None, "openrouter: anthropic broke", "OpenRouter"),
        ("", None, "bedrock claude broke", "AWS Bedrock"),
        ("", None, "vercel broke", "Vercel AI Gateway"),
        ("", None, "claude broke", "Anthropic"),
        ("", None, "vertex broke", "Google"),
        ("", None, "openai broke", "OpenAI"),
        (
            "",
            ProviderType.OPENAI_COMPATIBLE,
            "openai-compat broke",
            "The OpenAI-compatible endpoint",
        ),
        ("", None, "it broke", "The AI provider"),
    ],
)
def test_the_provider_is_named_as_configured_or_guessed(
    name: str, provider_type: ProviderType | None, text: str, label: str
) -> None:
    error = classify(Failure(text), provider_type=provider_type, provider_name=name, now=EPOCH)
    assert error.message == f"{label} returned an unexpected error."
    assert error.provider == label.removesuffix("The AI provider")


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (answered(400, "too low"), "too low"),
        (Failure("x", 400, JSON, b'{"message":"top"}'), "top"),
        (Failure("x", 400, JSON, b'{"error":"flat"}'), "flat"),
        (Failure("x", 400, JSON, b'[{"error":{"message":"listed"}}]'), "listed"),
        (answered(429, "Upstream", metadata={"raw": "it is busy"}), "Upstream: it is busy"),
        (Failure("x", 400, {"content-type": "text/plain"}, b"one\ntwo"), "one"),
        (Failure("x y", 502, {"content-type": "text/html"}, b"<h1>no"), "x y"),
        (Failure("x y", 502, {}, b" <!doctype html>"), "x y"),
        (Failure("<html>", 502), ""),
        (Failure("x y", 400, JSON, b"{" + b" " * BODY_BYTES_MAX + b"}"), "x y"),
        (Failure("x y", 400, JSON, b'{"message":'), "x y"),
        (Failure("x y", 400, JSON, b"[" * 50_000), "x y"),
        (Failure("x y", body=b'{"text":"half an answer about quota'), "x y"),
        (Failure("x y", body=b"x" * 60_000), "x y"),
        (Failure("two\nlines\tand\x00NUL"), "two lines and NUL"),
        (
            Failure("get https://me:pw@host.example/a/b?key=1#frag failed"),
            "get https://host.example/a/b failed",
        ),
        (answered(400, "see https://u@h.example/x?token=abc"), "see https://h.example/x"),
        (
            answered(400, 'POST "https://h.example/v1?k=1": 400 Bad Request {"message":"deep"}'),
            "deep",
        ),
        (
            Failure("POST https://h.example/v1: 404 Not Found"),
            "POST https://h.example/v1: 404 Not Found",
        ),
        (Failure("x" * 600), "x" * 499 + "…"),
        (
            answered(401, "Incorrect key sk-abcdefghijklmnop given"),
            "Incorrect key [redacted] given",
        ),
        (Failure("unauthorized: key 1234", 401), ""),
        (
            answered(400, "Item 'rs_1' was provided without its required 'reasoning' item: 'rs_2'"),
            "responses_reasoning_item_missing",
        ),
        (
            answered(
                400,
                "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            ),
            "responses_reasoning_item_missing",
        ),
        (
            answered(400, "No tool call found for function call output with call_id c_1."),
            "responses_function_call_missing",
        ),
    ],
)
def test_the_detail_is_the_providers_own_words_made_safe(failure: Failure, detail: str) -> None:
    assert judged(failure).detail == detail


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7),
        ({"Retry-After": "1.5"}, 1.5),
        ({"RETRY-AFTER-MS": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after-ms": "0", "retry-after": "7"}, 7),
        ({"retry-after": format_datetime(EPOCH + timedelta(seconds=90), usegmt=True)}, 90),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:30 -0000"}, 90),
        ({"retry-after": format_datetime(EPOCH - timedelta(seconds=1), usegmt=True)}, None),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 99 Foo 99999 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read_in_all_its_forms(headers: dict[str, str], wait_s: float | None) -> None:
    assert judged(Failure("", 429, headers)).retry_after_s == wait_s


def test_an_error_that_will_not_pass_has_no_wait() -> None:
    assert judged(Failure("", 401, {"retry-after": "7"})).retry_after_s is None


def test_a_message_never_holds_the_status() -> None:
    for failure, _, _ in TABLE:
        assert not any(character.isdigit() for character in judged(failure).message)


def test_every_rule_decides_something() -> None:
    signals = [Signals.of(failure) for failure, _, _ in TABLE]
    assert {next(rule for rule in RULES if rule.fits(each)) for each in signals} == set(RULES)


@example(Failure("", body=b"\x1c"))
@given(
    st.builds(
        Failure,
        st.text(),
        st.integers(min_value=0, max_value=999),
        st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()),
        st.binary(max_size=200),
        st.booleans(),
        st.booleans(),
        st.text(),
    )
)
def test_whatever_fails_is_judged(failure: Failure) -> None:
    error = judged(failure)
    assert error.message
    assert len(error.detail) <= 500


FOLDERS = ("anthropic-messages", "openai-chat", "openai-responses", "openai-compatible")
REFUSALS = [each for folder in FOLDERS for each in recordings(folder) if each.status != 200]


@pytest.mark.skipif(not REFUSALS, reason="no recordings beside the clone")
@pytest.mark.parametrize("recording", REFUSALS, ids=[each.name for each in REFUSALS])
def test_a_recorded_refusal_is_repeated_only_if_that_may_help(recording: Recording) -> None:
    error = judged(Failure("", recording.status, recording.headers, recording.body.encode()))
    assert (error.is_retryable, error.status_code) == (recording.status == 429, recording.status)
    is_lost_thread = error.detail == "responses_reasoning_item_missing"
    assert is_lost_thread or error.detail.startswith(json.loads(recording.body)["error"]["message"])
