import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.content.domain.parts import File
from chatd.models.domain.language_model import FileData
from chatd.providers.attachments import (
    INLINE_BYTES_MAX,
    Accepted,
    Attachment,
    Audio,
    Dropped,
    Image,
    InlineText,
    PdfDocument,
    Placeholder,
    TextDocument,
    attachment_of,
)

PNG = b"\x89PNG\r\n\x1a\n..."
ALL = frozenset(Accepted)
NONE: frozenset[Accepted] = frozenset()


def attached(
    media_type: str, data: bytes, accepted: frozenset[Accepted] = ALL, name: str = "a"
) -> Attachment:
    file = File("file-1", media_type, name)
    return attachment_of(file, FileData(name, media_type, data), accepted)


def test_a_file_that_is_gone_asks_for_another_upload() -> None:
    assert attachment_of(File("file-1", "image/png", "cat.png"), None, ALL) == Placeholder(
        '[The file "cat.png" is no longer stored. Ask for it to be uploaded again if it is needed.]'
    )


def test_an_empty_file_is_dropped() -> None:
    assert attached("image/png", b"") == Dropped()


@pytest.mark.parametrize(
    ("media_type", "data", "expected"),
    [
        ("image/png", PNG, Image("image/png", PNG, "a")),
        ("image/jpeg", PNG, Image("image/png", PNG, "a")),
        ("application/pdf", b"%PDF-", PdfDocument(b"%PDF-", "a")),
        ("text/plain; charset=utf-8", b"hi", TextDocument("hi", "a")),
        ("audio/wav", b"RIFF", Audio("audio/wav", b"RIFF", "a")),
        ("text/markdown", b"# hi", InlineText('File "a":\n# hi')),
        ("application/json", b"{}", InlineText('File "a":\n{}')),
        ("image/svg+xml", b"<svg/>", InlineText('File "a":\n<svg/>')),
        ("text/plain", b" \n", Placeholder('[The file "a" is blank.]')),
    ],
)
def test_what_a_format_takes_is_given_as_it_is(
    media_type: str, data: bytes, expected: Attachment
) -> None:
    assert attached(media_type, data) == expected


@pytest.mark.parametrize(
    ("media_type", "data"),
    [
        ("image/png", PNG),
        ("application/pdf", b"%PDF-"),
        ("audio/wav", b"RIFF"),
        ("application/zip", b"PK"),
    ],
)
def test_what_a_format_does_not_take_is_named(media_type: str, data: bytes) -> None:
    assert attached(media_type, data, NONE) == Placeholder(
        f'[The file "a" of type {media_type} cannot be read by this model. '
        "Ask for it in another form if it is needed.]"
    )


def test_a_picture_that_is_none_is_not_sent_as_one() -> None:
    assert isinstance(attached("image/heic", b"ftypheic"), Placeholder)


def test_a_plain_text_is_inlined_where_the_format_takes_none() -> None:
    assert attached("text/plain", b"hi", NONE) == InlineText('File "a":\nhi')


def test_pasted_text_is_inlined_even_where_the_format_takes_texts() -> None:
    name = "pasted-text-2026-01-02-03-04-05.txt"

    assert attached("text/plain", b"hi", ALL, name) == InlineText(f'File "{name}":\nhi')


def test_a_long_text_is_cut_between_characters() -> None:
    name = "pasted-text-2026-01-02-03-04-05.txt"
    data = "ä".encode() * INLINE_BYTES_MAX

    inlined = attached("text/plain", b"x" + data, ALL, name)

    kept = "x" + "ä" * ((INLINE_BYTES_MAX - 1) // 2)
    left_out_bytes = 1 + len(data) - INLINE_BYTES_MAX
    assert inlined == InlineText(
        f'File "{name}":\n{kept}\n[... {left_out_bytes} more bytes were left out ...]'
    )


def test_what_is_no_text_in_a_text_is_replaced() -> None:
    assert attached("text/csv", b"\xef\xbb\xbfa\xff\x00b") == InlineText(
        'File "a":\na\ufffd\ufffdb'
    )


@given(
    st.sampled_from(
        ["text/plain", "text/html", "image/png", "application/pdf", "audio/mp3", "", "x"]
    ),
    st.binary(max_size=64),
    st.frozensets(st.sampled_from(list(Accepted))),
)
def test_any_file_becomes_something_that_the_format_takes(
    media_type: str, data: bytes, accepted: frozenset[Accepted]
) -> None:
    needs: dict[type, Accepted] = {
        Image: Accepted.IMAGE,
        PdfDocument: Accepted.PDF,
        Audio: Accepted.AUDIO,
    }
    made = attached(media_type, data, accepted)

    assert isinstance(made, Dropped) == (not data)
    assert type(made) not in needs or needs[type(made)] in accepted
    assert not isinstance(made, TextDocument) or Accepted.TEXT in accepted
