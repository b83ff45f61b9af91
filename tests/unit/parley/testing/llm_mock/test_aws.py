from base64 import b64decode
from dataclasses import replace

import msgspec
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.request import HttpRequest
from parley.testing.llm_mock.providers.anthropic.aws import (
    EXAMPLE_ACCESS_KEY,
    EXAMPLE_SECRET_KEY,
    authorise,
    event_message,
    exception_message,
)

TARGET = "/model/us.anthropic.claude-v1%3A0/invoke-with-response-stream"


def signed(access_key: str, secret_key: str) -> HttpRequest:
    """Return a request as AWS's own library signs it."""
    request = AWSRequest("POST", f"http://localhost:80{TARGET}", data=b"{}")
    SigV4Auth(Credentials(access_key, secret_key), "bedrock", "us-east-1").add_auth(request)
    headers = {name.lower(): value for name, value in request.headers.items()}
    return HttpRequest("POST", TARGET, TARGET, {}, {"host": "localhost", **headers}, b"{}")


def test_a_stream_is_framed_as_the_library_of_aws_reads_it() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(event_message(b'{"type":"ping"}') + exception_message("x", "wait"))
    chunk, exception = (message.to_response_dict() for message in buffer)
    assert b64decode(msgspec.json.decode(chunk["body"])["bytes"]) == b'{"type":"ping"}'
    assert chunk["headers"] == {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    assert (exception["status_code"], exception["body"]) == (400, b'{"message":"wait"}')
    assert exception["headers"][":exception-type"] == "x"


def test_a_request_signed_with_the_example_key_passes() -> None:
    authorise(signed(EXAMPLE_ACCESS_KEY, EXAMPLE_SECRET_KEY))


def test_the_signature_of_the_example_key_is_verified() -> None:
    with pytest.raises(Refused):
        authorise(signed(EXAMPLE_ACCESS_KEY, "another secret"))
    right = signed(EXAMPLE_ACCESS_KEY, EXAMPLE_SECRET_KEY)
    with pytest.raises(Refused):
        authorise(replace(right, body=b'{"changed":1}'))


def test_other_keys_need_a_signature_of_the_right_form_only() -> None:
    authorise(signed("AKIAOTHER", "whatever"))
    right = signed("AKIAOTHER", "whatever")
    for value in ("", "AWS4-HMAC-SHA256 nonsense", right.headers["authorization"][:-1]):
        with pytest.raises(Refused) as refused:
            authorise(replace(right, headers={**right.headers, "authorization": value}))
        assert refused.value.status == 403
