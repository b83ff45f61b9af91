"""Server-sent events, however they are written and cut."""

import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatd.providers.sse import BYTE_ORDER_MARK, ServerSentEvents
from chatd.providers.wire import Failure, ProviderFailed


def take_all(frames: ServerSentEvents, chunks: Iterable[bytes], taken: list[bytes]) -> None:
    for chunk in chunks:
        taken.extend(frames.feed(chunk))
    taken.extend(frames.end())


def events(*chunks: bytes) -> list[bytes]:
    taken: list[bytes] = []
    take_all(ServerSentEvents(), chunks, taken)
    return taken


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b'data: {"a":1}\n\ndata: {"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
        (b"event: message\ndata: 1\nid: 7\nretry: 10\n\n", [b"1"]),
        (b"data:1\n\ndata:  2\n\n", [b"1", b" 2"]),
        (b"data: 1\r\n\r\ndata: 2\r\n\r\n", [b"1", b"2"]),
        (b"data: 1\r\rdata: 2\r\r", [b"1", b"2"]),
        (b"data: 1\n\r\ndata: 2\r\n\n", [b"1", b"2"]),
        (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
        (b": a comment\n\n:\n\ndata: 1\n\n", [b"1"]),
        (b"\xef\xbb\xbfdata: 1\n\n", [b"1"]),
        (b"\n\n\ndata: 1\n\n\n\n", [b"1"]),
        (b"event: ping\n\ndata:\n\ndata\n\ndata: 1\n\n", [b"1"]),
        (b'event: error\ndata: {"error":{}}\n\n', [b'{"error":{}}']),
        (b"data: a\x00b\n\n", [b"a\x00b"]),
        (b"data: \xff\xfe\n\n", [b"\xff\xfe"]),
        (b"data: a\xc2\x85b\xe2\x80\xa8c\x0b\x0c\n\n", [b"a\xc2\x85b\xe2\x80\xa8c\x0b\x0c"]),
    ],
    ids=[
        "plain",
        "other fields",
        "one space belongs to the colon",
        "return and line feed",
        "return alone",
        "mixed",
        "several lines",
        "comments",
        "byte order mark",
        "blank lines",
        "no data",
        "an error in JSON",
        "NUL",
        "not UTF-8",
        "what only Unicode calls a line end",
    ],
)
def test_each_event_gives_its_data(body: bytes, data: list[bytes]) -> None:
    assert events(body) == data
    assert events(b":\n\n", body.removeprefix(BYTE_ORDER_MARK)) == data
    assert events(*(body[place : place + 1] for place in range(len(body)))) == data


LINES = st.sampled_from(
    [
        b"data: 1\n\n",
        b"event: y\ndata: 2\n\n",
        b"event: error\ndata: {}\n\n",
        b"data: ",
        b"data:",
        b": ",
        b"event: x",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b'{"a":1}',
        b"\xc3",
    ]
)


@given(
    st.lists(LINES, max_size=30).map(b"".join),
    st.lists(st.integers(min_value=0, max_value=100), max_size=10),
)
@example(b"data: 1\r\n\r\ndata: 2\r\n\r\n", [8, 9, 10])
@example(b"data: data: \nevent: error\ndata: {}\n\n", [3, 20])
def test_how_the_bytes_are_cut_changes_nothing(body: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[start:end] for start, end in pairwise(places)]
    assert outcome(*chunks) == outcome(body)
    assert outcome(b":\n\n", *chunks) == outcome(b":\n\n", body) == outcome(b":\n\n" + body)


def outcome(*chunks: bytes) -> list[bytes] | Failure:
    """Return the events, or what a body fails with that reports an error in plain words."""
    try:
        return events(*chunks)
    except ProviderFailed as failed:
        return failed.failure


def test_an_event_comes_with_its_last_byte_and_not_later() -> None:
    frames = ServerSentEvents()
    assert list(frames.feed(b"data: 1\r\n")) == []
    assert list(frames.feed(b"\r")) == [b"1"]
    assert list(frames.feed(b"\ndata: 2\n\n")) == [b"2"]


@pytest.mark.parametrize("unfinished", [b'data: {"a":1}', b'data: {"a":1}\n', b"data: [DONE]"])
def test_a_last_event_may_lack_its_blank_line(unfinished: bytes) -> None:
    assert events(b"data: 1\n\n" + unfinished) == [
        b"1",
        unfinished.removeprefix(b"data: ").strip(),
    ]


@pytest.mark.parametrize("half", [b"data", b'data: {"a":', b'data: {"a":\n', b"data: [DON", b"da"])
def test_half_an_event_at_the_end_is_none(half: bytes) -> None:
    assert events(b"data: 1\n\n" + half) == [b"1"]


@pytest.mark.parametrize("end", [b"\n\n", b""], ids=["ended", "cut"])
def test_an_error_in_plain_words_is_a_failure_after_what_came_before(end: bytes) -> None:
    taken: list[bytes] = []
    chunks = (b"data: 1\n\nevent: error\ndata: we are ove", b"rloaded" + end)
    with pytest.raises(ProviderFailed) as failed:
        take_all(ServerSentEvents(), chunks, taken)
    assert taken == [b"1"]
    assert failed.value.failure == Failure("we are overloaded")


def test_a_name_holds_for_its_own_event_only() -> None:
    assert events(b"event: error\n\ndata: words\n\n") == [b"words"]


def test_a_line_of_many_megabytes_is_taken_in_reasonable_time() -> None:
    data = json.dumps({"text": "x" * 10_000_000}).encode()
    body = b"data: " + data + b"\n\n"
    chunks = (body[place : place + 4096] for place in range(0, len(body), 4096))
    assert events(*chunks) == [data]


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 94 + b"\n"])
def test_a_line_or_an_event_without_end_is_a_failure(piece: bytes) -> None:
    frames = ServerSentEvents(event_bytes_max=1000)
    take_all(frames, [b"data: " + b"x" * 900 + b"\n\n"] * 5, [])
    with pytest.raises(ProviderFailed):
        take_all(frames, [piece] * 12, [])
