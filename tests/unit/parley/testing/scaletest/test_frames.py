"""HTTP answers and event streams, cut anywhere."""

import pytest

from parley.testing.scaletest.follower import pause_s
from parley.testing.scaletest.frames import Dechunker, Frame, Framer, Head, read_head

STREAM = (
    b"retry: 2000\n: connected\n\n"
    b'id: 1.1\nevent: status\ndata: {"a":1}\n\n'
    b": hb\n\n"
    b"event: bye\ndata: {}\n\n"
    b"id\nevent: resync\ndata: {}\n\n"
)
FRAMES = [
    Frame("status", "1.1", b'{"a":1}'),
    Frame("bye", None, b"{}"),
    Frame("resync", "", b"{}"),
]


def chunked(data: bytes, size: int) -> bytes:
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_chunked_stream_is_read_however_it_is_cut(step: int, size: int) -> None:
    sent = chunked(STREAM, size)
    dechunker, framer = Dechunker(), Framer()
    frames = []
    for place in range(0, len(sent), step):
        frames += framer.feed(dechunker.feed(sent[place : place + step]))
    assert frames == FRAMES
    assert dechunker.is_over


def test_a_head_tells_how_long_the_body_is() -> None:
    head = read_head(b"HTTP/1.1 201 Created\r\nContent-Length: 12\r\nConnection: close")
    assert head == Head(201, 12, is_chunked=False, is_closing=True)
    head = read_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked")
    assert head == Head(200, None, is_chunked=True, is_closing=False)


def test_a_head_tells_when_to_come_again() -> None:
    assert read_head(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: 7") == Head(
        503, 0, retry_after_s=7.0
    )
    dated = read_head(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: Fri, 1 Jan 2100")
    assert dated == Head(503, 0)


@pytest.mark.parametrize(
    ("asked_s", "waited_s"), [(None, 0.2), (0.0, 0.2), (7.0, 7.0), (9e9, 30.0)]
)
def test_who_is_refused_waits_as_asked_within_reason(
    asked_s: float | None, waited_s: float
) -> None:
    assert pause_s(Head(503, retry_after_s=asked_s)) == waited_s


def test_what_is_no_http_is_refused() -> None:
    with pytest.raises(ValueError, match="HTTP"):
        read_head(b"SSH-2.0-x y")
