import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.content.domain.errors import FileTooLarge, MediaTypeRefused
from chatd.content.domain.files import (
    ACCEPTED,
    FILE_BYTES_MAX,
    NAME_BYTES_MAX,
    clean_name,
    confirmed,
    sniffed,
)
from chatd.primitives.domain.errors import InvalidRequest

PNG = b"\x89PNG\r\n\x1a\n\x00\x00"
JPEG = b"\xff\xd8\xff\xe0\x00"
WEBP = b"RIFF\x00\x00\x00\x00WEBPVP8 "
PDF = b"%PDF-1.7\n\x00"
SVG = b'<?xml version="1.0"?>\n<!-- a > b --><svg xmlns="x"><script>1</script></svg>'


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("x.txt", PNG, "image/png"),
        ("x", JPEG, "image/jpeg"),
        ("x", b"GIF87a\x00", "image/gif"),
        ("x", b"GIF89a\x00", "image/gif"),
        ("x", WEBP, "image/webp"),
        ("x.txt", PDF, "application/pdf"),
        ("x.txt", b"hello", "text/plain"),
        ("X.MD", b"# hello", "text/markdown"),
        ("x.md", b"<h1 align=center>hello</h1>", "text/markdown"),
        ("x.csv", b"a,b\r\n1,2\r\n", "text/csv"),
        ("x.csv", "größe".encode("cp1252"), "text/csv"),
        ("x.json", b'{"a": [1, null]}', "application/json"),
        ("x.json", b'{"a": [1, }', "text/plain"),
        ("x.json", b"[" * 100_000, "text/plain"),
        ("x.txt", b"\x1b[31mred\x1b[0m\n", "text/plain"),
        ("x.txt", b"a\x00b", "application/octet-stream"),
        ("x.txt", b"PK\x03\x04", "application/octet-stream"),
        ("x.txt", SVG, "image/svg+xml"),
        ("x.md", b"\xef\xbb\xbf \n<SVG/onload=1>", "image/svg+xml"),
        ("x.csv", b"<!-- 1 --><!DOCTYPE html><p>", "text/html"),
        ("x.txt", b"<script>1</script>", "text/html"),
        ("x.txt", b"<svgs are pictures", "text/plain"),
        ("x.txt", b"<!---->" * 2000 + b"x", "text/plain"),
    ],
)
def test_a_file_is_what_its_bytes_are(name: str, data: bytes, media_type: str) -> None:
    assert sniffed(name, data) == media_type


@pytest.mark.parametrize(
    ("declared", "name", "data", "media_type"),
    [
        ("image/png", "x", PNG, "image/png"),
        ("", "x", PNG, "image/png"),
        ("application/octet-stream", "x.csv", b"a,b", "text/csv"),
        ("text/plain; charset=utf-8", "x.md", b"a", "text/markdown"),
        ("Text/Plain", "x.txt", b"a", "text/plain"),
        ("text/csv", "x.txt", b"a;b", "text/csv"),
        ("application/json", "x", b"[1]", "application/json"),
        ("text/plain", "x.json", b"[1]", "application/json"),
    ],
)
def test_an_upload_is_taken_as_what_it_is(
    declared: str, name: str, data: bytes, media_type: str
) -> None:
    assert confirmed(declared, name, data) == media_type


@pytest.mark.parametrize(
    ("declared", "data", "media_type", "contradicted"),
    [
        ("image/png", JPEG, "image/jpeg", "image/png"),
        ("text/plain", PNG, "image/png", "text/plain"),
        ("image/png", b"hello", "text/plain", "image/png"),
        ("application/json", b"{", "text/plain", "application/json"),
        ("text/html", b"hello", "text/html", ""),
        ("image/svg+xml", SVG, "image/svg+xml", ""),
        ("text/plain", SVG, "image/svg+xml", ""),
        ("text/plain", b"<html>", "text/html", ""),
        ("", b"PK\x03\x04", "application/octet-stream", ""),
    ],
)
def test_an_upload_that_is_not_what_it_says_or_is_not_taken_is_refused(
    declared: str, data: bytes, media_type: str, contradicted: str
) -> None:
    with pytest.raises(MediaTypeRefused) as refused:
        confirmed(declared, "x", data)
    assert (refused.value.media_type, refused.value.declared) == (media_type, contradicted)


def test_an_upload_has_at_least_one_byte_and_at_most_ten_mebibytes() -> None:
    with pytest.raises(InvalidRequest):
        confirmed("text/plain", "x", b"")
    with pytest.raises(FileTooLarge):
        confirmed("text/plain", "x", b"x" * (FILE_BYTES_MAX + 1))
    assert confirmed("text/plain", "x", b"x" * FILE_BYTES_MAX) == "text/plain"


@given(st.binary(min_size=1), st.text())
def test_whatever_is_sent_is_taken_as_an_accepted_type_or_refused(data: bytes, name: str) -> None:
    if sniffed(name, data) in ACCEPTED:
        assert confirmed("", name, data) in ACCEPTED
    else:
        with pytest.raises(MediaTypeRefused):
            confirmed("", name, data)


@pytest.mark.parametrize(
    ("given_name", "stored"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\fakepath\\a b.png", "a b.png"),
        ("a\r\nb\x00.txt", "ab.txt"),
        ("evil\u202egpj.exe", "evilgpj.exe"),
        ("..", "file"),
        (" \t ", "file"),
        ("", "file"),
        ("dir/", "dir"),
        ("größe.csv", "größe.csv"),
        ("ö" * 200, "ö" * 127),
    ],
)
def test_a_name_is_stored_without_what_could_mislead(given_name: str, stored: str) -> None:
    assert clean_name(given_name) == stored


@given(st.text())
def test_every_name_becomes_one_that_can_be_stored(name: str) -> None:
    clean = clean_name(name)
    assert 1 <= len(clean.encode()) <= NAME_BYTES_MAX
    assert clean.isprintable()
    assert clean_name(clean) == clean
