import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from chatd.content.domain.messages import ErrorKind, FinishReason
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    TextDelta,
    TextEnded,
    UsageReported,
)
from chatd.models.engine.target import Target
from chatd.providers.bedrock import BedrockWire, EventStreamFrames
from chatd.providers.bedrock.signature import AwsKey, signed_headers
from chatd.providers.wire import Failure, Framing, ProviderFailed
from parley.clock import FakeClock
from parley.settings import Secret
from support.chatd.providers.anthropic_events import ending, message_start, text_block
from support.chatd.providers.anthropic_requests import asked, user
from support.chatd.providers.aws_frames import chunk

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
URL = f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{MODEL}/invoke-with-response-stream"


def target(key: str = "AKIA1:secret", base_url: str = "", **options: object) -> Target:
    return Target(
        "provider-1", ProviderType.BEDROCK, "Bedrock", MODEL, base_url, Secret(key), options
    )


def wire() -> BedrockWire:
    return BedrockWire(FakeClock(NOW))


def expected_authorization(body: bytes, token: str = "") -> str:
    """Return the signature as AWS describes it, step by step."""
    headers = {
        "content-type": "application/json",
        "host": "bedrock-runtime.eu-west-1.amazonaws.com",
        "x-amz-date": "20260304T050607Z",
        **({"x-amz-security-token": token} if token else {}),
    }
    names = ";".join(headers)
    canonical = "\n".join(
        [
            "POST",
            "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream",
            "",
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = "20260304/eu-west-1/bedrock/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"AWS4secret"
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    to_sign = f"AWS4-HMAC-SHA256\n20260304T050607Z\n{scope}\n{digest}"
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return (
        f"AWS4-HMAC-SHA256 Credential=AKIA1/{scope}, SignedHeaders={names}, Signature={signature}"
    )


def test_the_whole_request_is_as_bedrock_wants_it() -> None:
    request = replace(asked(user("hi")), output_tokens_max=100, chat_id="c")

    sent = wire().request(request, target(region="eu-west-1", context_1m=True))

    assert json.loads(sent.body) == {
        "anthropic_version": "bedrock-2023-05-31",
        "anthropic_beta": ["context-1m-2025-08-07"],
        "max_tokens": 100,
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
            }
        ],
    }
    assert sent.url == URL
    assert sent.framing is Framing.AWS_EVENT_STREAM
    assert sent.headers == {
        "accept": "application/vnd.amazon.eventstream",
        "content-type": "application/json",
        "x-amz-date": "20260304T050607Z",
        "authorization": expected_authorization(sent.body),
    }


def test_a_session_is_part_of_the_signature() -> None:
    sent = wire().request(asked(user("hi")), target("AKIA1:secret:to:ken", region="eu-west-1"))

    assert sent.headers["x-amz-security-token"] == "to:ken"
    assert sent.headers["authorization"] == expected_authorization(sent.body, "to:ken")


@pytest.mark.parametrize("token", ["", "token"])
def test_the_signature_is_that_of_botocore(token: str) -> None:
    request = AWSRequest("POST", URL, {"content-type": "application/json"}, b"{}")
    SigV4Auth(Credentials("AKIA1", "secret", token or None), "bedrock", "eu-west-1").add_auth(
        request
    )
    now = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")

    ours = signed_headers(URL, b"{}", AwsKey("AKIA1", "secret", token), region="eu-west-1", now=now)

    assert ours["authorization"] == request.headers["Authorization"]


def test_the_region_is_read_from_the_address() -> None:
    address = "https://bedrock-runtime.eu-west-1.amazonaws.com"

    sent = wire().request(asked(user("hi")), target(base_url=address))

    assert sent.url == URL
    assert "/eu-west-1/bedrock/" in sent.headers["authorization"]


def test_a_key_of_the_newer_kind_is_sent_as_it_is() -> None:
    sent = wire().request(asked(user("hi")), target("bedrock-key", region="eu-west-1"))

    assert sent.headers == {
        "accept": "application/vnd.amazon.eventstream",
        "content-type": "application/json",
        "authorization": "Bearer bedrock-key",
    }


def test_without_a_key_nothing_is_sent() -> None:
    with pytest.raises(ModelError) as refused:
        wire().request(asked(user("hi")), target(""))

    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.MISSING_KEY, False)


def test_a_name_with_slashes_stays_one_step_of_the_address() -> None:
    named = replace(target(region="eu-west-1"), model_name="arn:aws:bedrock:x/y")

    assert (
        wire()
        .request(asked(user("hi")), named)
        .url.endswith("/model/arn:aws:bedrock:x%2Fy/invoke-with-response-stream")
    )


def test_keys_are_not_shown() -> None:
    assert repr(AwsKey("AKIA1", "secret")) == "AwsKey(...)"


ANSWER = [message_start(input_tokens=3), *text_block(0, "Hel", "lo"), *ending(output_tokens=7)]


def test_an_answer_in_frames_is_read() -> None:
    frames, decoder = EventStreamFrames(), wire().decoder()

    body = b"".join(chunk(event) for event in ANSWER)
    events = [
        event
        for start in range(0, len(body), 7)
        for payload in frames.feed(body[start : start + 7])
        for event in decoder.decode(payload)
    ]

    assert [*events, *frames.end(), *decoder.end()] == [
        UsageReported(input_tokens=3),
        TextDelta("Hel", "0"),
        TextDelta("lo", "0"),
        TextEnded(),
        UsageReported(input_tokens=3, output_tokens=7),
        Finished(FinishReason.STOP),
    ]


def test_an_answer_without_its_last_frame_was_cut_off() -> None:
    frames, decoder = EventStreamFrames(), wire().decoder()
    for payload in frames.feed(b"".join(chunk(event) for event in ANSWER[:-1])):
        decoder.decode(payload)

    with pytest.raises(ProviderFailed) as failed:
        decoder.end()

    assert failed.value.failure.is_cut_off


def test_a_frame_without_an_event_means_nothing() -> None:
    assert wire().decoder().decode(b'{"other": 1}') == ()


@pytest.mark.parametrize("payload", [b"", b"[]", b'{"bytes": 1}', b'{"bytes": "%"}'])
def test_a_payload_that_cannot_be_read_fails_the_call(payload: bytes) -> None:
    with pytest.raises(ProviderFailed) as failed:
        wire().decoder().decode(payload)

    text = "the event stream holds a frame that cannot be read"
    assert failed.value.failure == Failure(text, is_garbled=True)


@pytest.mark.parametrize("region", ["evil.test/x", "evil.test#", "a.b", "eu-west-1@evil.test"])
def test_a_region_cannot_name_another_host(region: str) -> None:
    with pytest.raises(ModelError) as refused:
        wire().request(asked(user("hi")), target(region=region))

    assert (refused.value.kind, refused.value.is_retryable) == (ErrorKind.CONFIG, False)
