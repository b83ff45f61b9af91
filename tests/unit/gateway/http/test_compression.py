"""Which answers are compressed, and for whom."""

import gzip
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from gateway.http.compression import BYTES_MIN, PIECE_BYTES, accepts_gzip, compressed

LARGE = b'{"text": "' + b"whale " * PIECE_BYTES + b'"}'


def request(path: str = "/api/v1/chats", method: str = "GET", accepted: str = "gzip") -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"accept-encoding", accepted.encode()), (b"host", b"x")],
    }
    return Request(scope)


def answer(body: bytes = LARGE, media_type: str = "application/json") -> Response:
    return Response(body, headers={"etag": '"1"'}, media_type=media_type)


async def answered(asked: Request, given: Response) -> Response:
    sent = await compressed(asked, given)
    assert isinstance(sent, Response)
    return sent


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("identity, *;q=0.1", True),
        ("gzip;q=0, *", False),
        ("gzip;q=0.000", False),
        ("gzip;q=x", False),
        ("br", False),
        ("", False),
    ],
)
def test_a_client_says_whether_it_accepts_gzip(header: str, is_accepted: bool) -> None:
    assert accepts_gzip(header) == is_accepted


async def test_a_large_answer_is_compressed_and_keeps_its_tag() -> None:
    sent = await answered(request(), answer())
    assert gzip.decompress(sent.body) == LARGE
    assert len(sent.body) < len(LARGE) // 50
    assert dict(sent.headers) == {
        "etag": '"1"',
        "content-type": "application/json",
        "content-encoding": "gzip",
        "content-length": str(len(sent.body)),
        "vary": "Accept-Encoding",
    }


async def test_who_does_not_accept_it_gets_the_plain_answer_and_caches_know() -> None:
    sent = await answered(request(accepted="br"), answer())
    assert (sent.body, sent.headers["vary"]) == (LARGE, "Accept-Encoding")
    assert "content-encoding" not in sent.headers


@pytest.mark.parametrize(
    "path",
    ["/api/v1/me", "/api/v1/me/api-keys", "/api/v1/sign-in", "/api/v1/secrets", "/api/v1/settings"],
)
async def test_what_may_contain_secrets_is_never_compressed(path: str) -> None:
    sent = await answered(request(path), answer())
    assert "content-encoding" not in sent.headers


async def test_changes_small_answers_and_other_types_are_not_compressed() -> None:
    for asked, given in (
        (request(method="POST"), answer()),
        (request(method="HEAD"), answer()),
        (request(), answer(b"x" * (BYTES_MIN - 1))),
        (request(), answer(media_type="text/event-stream")),
        (request(), JSONResponse({"a": "b" * BYTES_MIN})),
        (request(), StreamingResponse(iter([LARGE]), media_type="application/json")),
    ):
        sent = await answered(asked, given)
        assert sent is given
        assert "content-encoding" not in sent.headers
