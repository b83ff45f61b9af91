import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.providers.media import (
    ImageContent,
    TextContent,
    as_text,
    image_media_type,
    read_result,
    result_text,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(300)
PNG_BASE64 = base64.b64encode(PNG).decode()


def mcp(*content: object, **more: object) -> str:
    return json.dumps({"content": content, **more})


def test_the_texts_of_a_result_are_read_one_by_one() -> None:
    result_json = mcp({"type": "text", "text": "one"}, {"type": "text", "text": "two"})

    assert read_result(result_json) == (TextContent("one"), TextContent("two"))


def test_a_picture_stays_a_picture() -> None:
    result_json = mcp({"type": "image", "media_type": "image/png", "data": PNG_BASE64})

    assert read_result(result_json) == (ImageContent("image/png", PNG_BASE64),)


def test_the_type_of_a_picture_is_what_its_bytes_say() -> None:
    result_json = mcp({"type": "image", "mimeType": "image/jpeg", "data": PNG_BASE64})

    assert read_result(result_json) == (ImageContent("image/png", PNG_BASE64),)


def test_a_damaged_picture_becomes_a_note() -> None:
    cut = PNG_BASE64[:100] + "\n[... 300 bytes were left out here ...]\n"
    result_json = mcp({"type": "image", "media_type": "image/png", "data": cut})

    assert read_result(result_json) == (
        TextContent("[image of type image/png that was damaged and cannot be shown]"),
    )


def test_bytes_that_are_no_picture_become_a_note() -> None:
    sound = base64.b64encode(b"RIFF0000WAVE").decode()
    result_json = mcp({"type": "audio", "media_type": "audio/wav", "data": sound})

    assert read_result(result_json) == (
        TextContent("[audio of type audio/wav, 12 bytes, that cannot be shown]"),
    )


def test_an_empty_picture_becomes_a_note() -> None:
    assert read_result(mcp({"type": "image", "data": ""})) == (
        TextContent("[image that is empty]"),
    )


def test_a_resource_with_a_picture_is_a_picture() -> None:
    resource = {"uri": "file:///a.png", "mimeType": "image/png", "blob": PNG_BASE64}

    assert read_result(mcp({"type": "resource", "resource": resource})) == (
        ImageContent("image/png", PNG_BASE64),
    )


def test_a_resource_with_text_is_read_with_its_address() -> None:
    resource = {"uri": "file:///a.txt", "text": "hello"}

    assert read_result(mcp({"type": "resource", "resource": resource})) == (
        TextContent('{"uri": "file:///a.txt", "text": "hello"}'),
    )


def test_structured_data_are_read_as_json() -> None:
    assert read_result(mcp({"type": "structured", "data": {"answer": "ä"}})) == (
        TextContent('{"answer": "ä"}'),
    )


def test_what_stands_beside_the_content_is_read_too() -> None:
    assert read_result(mcp({"type": "text", "text": "no"}, error="it failed")) == (
        TextContent("no"),
        TextContent('{"error": "it failed"}'),
    )


def test_a_result_without_content_says_so() -> None:
    assert read_result(mcp()) == (TextContent("[no output]"),)
    assert read_result('""') == (TextContent("[no output]"),)
    assert read_result("") == (TextContent("[no output]"),)


def test_a_result_of_another_shape_is_read_as_it_is() -> None:
    result_json = '{"output": "hello", "exit_code": 0}'

    assert read_result(result_json) == (TextContent(result_json),)


def test_a_result_that_is_a_text_is_read_without_its_quotes() -> None:
    assert read_result('"5"') == (TextContent("5"),)


def test_bytes_in_a_result_that_was_cut_never_become_text() -> None:
    whole = mcp({"type": "image", "media_type": "image/png", "data": PNG_BASE64})
    cut = json.dumps({"output": whole[:380] + "\n[... 40 bytes were left out here ...]\n"})

    (content,) = read_result(cut)

    assert PNG_BASE64[:64] not in as_text(content)
    assert "[bytes left out]" in as_text(content)


def test_half_a_character_is_replaced() -> None:
    assert read_result('"a\\ud83d"') == (TextContent("a�"),)


def test_a_format_without_pictures_is_told_of_them() -> None:
    result_json = mcp({"type": "text", "text": "see"}, {"type": "image", "data": PNG_BASE64})

    assert result_text(result_json) == "see\n[an image of type image/png, 308 bytes]"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0JFIF", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_pictures_are_known_by_their_first_bytes(data: bytes, media_type: str | None) -> None:
    assert image_media_type(data) == media_type


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "type", "text", "data", "blob", "resource", "error"])
            | st.text(max_size=3),
            inner | st.sampled_from(["text", "image", "audio", "resource", PNG_BASE64]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_result_can_be_read_and_is_never_blank(value: object) -> None:
    contents = read_result(json.dumps(value))

    assert contents
    assert all(as_text(content).strip() for content in contents)


@given(st.text())
def test_even_what_is_no_json_can_be_read(text: str) -> None:
    assert read_result(text)
