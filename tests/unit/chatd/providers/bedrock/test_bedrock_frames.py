import struct
import zlib

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from chatd.providers.bedrock import EventStreamFrames
from chatd.providers.wire import Failure, ProviderFailed
from support.chatd.providers.aws_frames import EVENT, exception, frame


def read(data: bytes, *cuts: int) -> list[bytes]:
    """Return the payloads of a whole stream that arrives in pieces."""
    frames = EventStreamFrames()
    ends = [*sorted(cuts), len(data)]
    payloads: list[bytes] = []
    for start, end in zip([0, *ends], ends, strict=False):
        payloads.extend(frames.feed(data[start:end]))
    return [*payloads, *frames.end()]


def failure_of(data: bytes) -> Failure:
    with pytest.raises(ProviderFailed) as failed:
        read(data)
    return failed.value.failure


def test_frames_are_found_wherever_the_bytes_are_cut() -> None:
    data = frame(b'{"a":1}') + frame(b"") + frame(b"xyz" * 100)

    for cut in range(len(data) + 1):
        assert read(data, cut) == [b'{"a":1}', b"", b"xyz" * 100]


@given(st.lists(st.binary(max_size=50), max_size=5), st.data())
def test_random_pieces_change_nothing_and_agree_with_botocore(
    payloads: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(frame(payload) for payload in payloads)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))

    oracle = EventStreamBuffer()
    oracle.add_data(stream)
    assert read(stream, *cuts) == payloads == [message.payload for message in oracle]


def test_headers_of_every_type_are_skipped() -> None:
    odd = [
        b"\x00",
        b"\x01",
        b"\x02a",
        b"\x03ab",
        b"\x04abcd",
        b"\x05abcdefgh",
        b"\x06\x00\x02ab",
        b"\x08abcdefgh",
        b"\x09" + bytes(16),
    ]
    raw_headers = b"".join(b"\x01h" + value for value in odd)

    assert read(frame(b"x", EVENT, raw_headers=raw_headers)) == [b"x"]


def test_a_frame_that_is_no_event_is_skipped() -> None:
    assert read(frame(b"x", {":message-type": "greeting"}) + frame(b"y")) == [b"y"]


def test_a_damaged_frame_fails_the_call() -> None:
    good = frame(b"hello")

    for place in range(len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 1
        failure_of(bytes(damaged) + good)


@pytest.mark.parametrize(
    ("frame_bytes", "headers_bytes"), [(15, 0), (16, 1), (16 * 1024**2 + 1, 0)]
)
def test_a_frame_of_an_impossible_size_fails_before_it_is_read(
    frame_bytes: int, headers_bytes: int
) -> None:
    lengths = struct.pack(">II", frame_bytes, headers_bytes)
    prelude = lengths + struct.pack(">I", zlib.crc32(lengths))

    assert failure_of(prelude) == Failure(
        f"a frame claims to have {frame_bytes} bytes", is_garbled=True
    )


@pytest.mark.parametrize(
    "raw_headers", [b"\x05ab", b"\x01a", b"\x01a\x0f", b"\x01a\x07\x00\x09x", b"\x01\xff\x00"]
)
def test_headers_that_cannot_be_read_fail_the_call(raw_headers: bytes) -> None:
    data = frame(b"x", {}, raw_headers=raw_headers)

    assert failure_of(data) == Failure("the headers of a frame cannot be read", is_garbled=True)


def test_a_stream_that_ends_inside_a_frame_was_cut_off() -> None:
    data = frame(b"hello")

    for kept in range(1, len(data)):
        assert failure_of(data[:kept]) == Failure(
            "the event stream ended inside a frame", is_cut_off=True
        )


@pytest.mark.parametrize(
    ("name", "status_code"),
    [
        ("throttlingException", 429),
        ("modelTimeoutException", 408),
        ("internalServerException", 500),
        ("serviceUnavailableException", 503),
        ("validationException", 400),
        ("novelException", 0),
    ],
)
def test_an_exception_fails_the_call(name: str, status_code: int) -> None:
    assert failure_of(exception(name, message="Slow down")) == Failure(
        f"{name}: Slow down", status_code=status_code, body=b'{"message": "Slow down"}'
    )


def test_the_status_behind_an_exception_is_told() -> None:
    data = exception(
        "modelStreamErrorException",
        message="The model failed",
        originalStatusCode=529,
        originalMessage="Overloaded",
    )

    failure = failure_of(data)

    assert failure.text == "modelStreamErrorException: The model failed: Overloaded"
    assert failure.status_code == 529


def test_an_error_frame_fails_the_call() -> None:
    headers = {
        ":message-type": "error",
        ":error-code": "InternalServerException",
        ":error-message": "Sorry",
    }

    assert failure_of(frame(b"", headers)) == Failure(
        "InternalServerException: Sorry", status_code=500, body=b'{"message":"Sorry"}'
    )


def test_what_came_before_an_exception_is_told_first() -> None:
    payloads = iter(EventStreamFrames().feed(frame(b"x") + exception("throttlingException")))

    assert next(payloads) == b"x"
    with pytest.raises(ProviderFailed):
        next(payloads)


@given(st.lists(st.binary(max_size=40)))
def test_anything_at_all_raises_only_the_typed_error(chunks: list[bytes]) -> None:
    frames = EventStreamFrames()
    try:
        for chunk in chunks:
            list(frames.feed(chunk))
        frames.end()
    except ProviderFailed:
        return
    assert not any(chunks)
