"""Bedrock's additions: signed requests, and streams framed with checksums."""

import hmac
import re
from base64 import b64encode
from binascii import crc32
from hashlib import sha256
from urllib.parse import parse_qsl, quote

import msgspec

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.request import HttpRequest

STREAM_TYPE = "application/vnd.amazon.eventstream"
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/"
    r"(?P<service>[^/]+)/aws4_request, ?SignedHeaders=(?P<headers>[^,]+), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
#: The key pair of AWS's documentation; signatures made with it are verified.
EXAMPLE_ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
EXAMPLE_SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
STRING = 7


def authorise(request: HttpRequest) -> None:
    """Accept a signed request; one signed with the example key must have a correct signature.

    Raises:
        Refused: there is no signature, or it is wrong.
    """
    given = request.headers.get("authorization", "")
    if given.startswith("Bearer ") and given.removeprefix("Bearer ").strip():
        return
    found = SIGNATURE.fullmatch(given)
    if found is None:
        raise Refused(403, "Missing Authentication Token")
    if found["service"] != "bedrock":
        raise Refused(403, "Credential should be scoped to correct service: 'bedrock'.")
    signed = found["headers"].split(";")
    if not {"host", "x-amz-date"} <= {*signed}:
        raise Refused(403, "'Host' and 'X-Amz-Date' must be signed headers.")
    if found["key"] == EXAMPLE_ACCESS_KEY and found["signature"] != _signature(request, found):
        raise Refused(
            403,
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method.",
        )


def event_message(data: bytes) -> bytes:
    """Return one chunk of the answer."""
    payload = msgspec.json.encode({"bytes": b64encode(data).decode(), "p": "abcdefgh"})
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return _message(headers, payload)


def exception_message(name: str, text: str) -> bytes:
    """Return the message that ends a stream with an error."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return _message(headers, msgspec.json.encode({"message": text}))


def _message(headers: dict[str, str], payload: bytes) -> bytes:
    head = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    total = 12 + len(head) + len(payload) + 4
    prelude = total.to_bytes(4) + len(head).to_bytes(4)
    message = prelude + crc32(prelude).to_bytes(4) + head + payload
    return message + crc32(message).to_bytes(4)


def _header(name: bytes, value: bytes) -> bytes:
    return len(name).to_bytes(1) + name + bytes([STRING]) + len(value).to_bytes(2) + value


def _signature(request: HttpRequest, found: re.Match[str]) -> str:
    path, _, query = request.target.partition("?")
    names = found["headers"].split(";")
    canonical = "\n".join(
        (
            request.method,
            quote(path, safe="/-_.~"),
            "&".join(sorted(f"{_encoded(k)}={_encoded(v)}" for k, v in parse_qsl(query, True))),
            *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names),
            "",
            found["headers"],
            sha256(request.body).hexdigest(),
        )
    )
    scope = f"{found['day']}/{found['region']}/{found['service']}/aws4_request"
    text = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            request.headers.get("x-amz-date", ""),
            scope,
            sha256(canonical.encode()).hexdigest(),
        )
    )
    key = f"AWS4{EXAMPLE_SECRET_KEY}".encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")
