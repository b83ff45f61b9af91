"""Parts of results: cutting, packing, and what travels in place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgateway.client.call import CallEnd, CallRecord, Outcome
from mcpgateway.client.content import (
    CUT_MARK,
    BlobPart,
    LinkPart,
    Part,
    ResourcePart,
    StructuredPart,
    TextPart,
    TooLarge,
    UnknownPart,
    body_of,
    decode_parts,
    encode_parts,
    truncated,
)
from mcpgateway.runtime.convert import result_to_proto
from support.mcpgateway.values import NOW, an_order

EVERY_KIND: tuple[Part, ...] = (
    TextPart("hello"),
    BlobPart("image", "image/png", b"\x89PNG"),
    ResourcePart("file:///a", "text/plain", b"text", True),
    LinkPart("file:///b", "b", "another", "text/plain"),
    StructuredPart(b'{"a":1}'),
    UnknownPart("hologram"),
)


def test_every_kind_of_part_comes_back_from_the_journal_as_it_was() -> None:
    assert decode_parts(encode_parts(EVERY_KIND)) == EVERY_KIND


def test_parts_within_the_limit_stay_as_they_are() -> None:
    assert truncated(EVERY_KIND, 1000) == EVERY_KIND


def test_the_middle_of_the_longest_text_is_cut_first() -> None:
    long, short = TextPart("a" * 500 + "b" * 500), TextPart("short")

    cut, kept = truncated((long, short), 305)

    assert kept == short
    assert cut == TextPart("a" * 135 + CUT_MARK + "b" * 135, is_truncated=True)


def test_a_blob_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge):
        truncated((BlobPart("image", "image/png", b"x" * 2000),), 1000)


def test_more_parts_than_allowed_end_in_a_note() -> None:
    parts = truncated([TextPart("x")] * 300, 1000)

    assert len(parts) == 256
    assert parts[-1] == TextPart("[45 more parts were cut]", is_truncated=True)


@given(st.lists(st.text(max_size=300), max_size=5), st.integers(min_value=60, max_value=500))
def test_text_always_fits(texts: list[str], bytes_max: int) -> None:
    parts = truncated([TextPart(text) for text in texts], bytes_max)

    assert sum(len(body_of(part)) for part in parts) <= bytes_max


def test_bodies_beyond_the_frame_are_streamed_ahead_in_order() -> None:
    large = "x" * 600_000
    messages = result_to_proto(a_record(TextPart("small"), TextPart(large)))

    assert [(chunk.part_index, chunk.offset_bytes) for chunk in messages.chunks] == [
        (1, 0),
        (1, 262_144),
        (1, 524_288),
    ]
    assert b"".join(chunk.data for chunk in messages.chunks).decode() == large
    assert [part.streamed_bytes for part in messages.result.parts] == [0, 600_000]
    assert [part.text.text for part in messages.result.parts] == ["small", ""]


def test_every_kind_of_part_has_its_message() -> None:
    parts = result_to_proto(a_record(*EVERY_KIND)).result.parts

    assert [part.WhichOneof("content") for part in parts] == [
        "text",
        "image",
        "resource",
        "resource_link",
        "structured",
        "unknown",
    ]


def a_record(*parts: Part) -> CallRecord:
    end = CallEnd(Outcome.SUCCEEDED, parts)
    return CallRecord(an_order().key, None, NOW, NOW, end, is_acknowledged=False)
