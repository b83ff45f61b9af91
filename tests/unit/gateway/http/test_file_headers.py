import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.file_headers import disposition, name_in, requested_span
from gateway.http.problems.errors import HttpProblem


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("", ""),
        ("attachment", ""),
        ('attachment; filename="a b.txt"', "a b.txt"),
        ("attachment; filename=a.txt", "a.txt"),
        ("attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt", "größe.txt"),
        ('attachment; filename="größe.txt"'.encode().decode("latin-1"), "größe.txt"),
        ("inline; filename*=no-such-charset''%ff", "ÿ"),
        ("inline; filename*=unicode_escape''%5Cud800", "?"),
        ("inline; filename*=idna''%ff", ""),
        ("inline; filename*=punycode''%ff", ""),
        ("inline; filename*=undefined''a", ""),
        ("inline; filename*=a%00b''a", ""),
        ("inline; filename*=UTF-8''a; filename*0=b", ""),
        (f"inline; filename*{'9' * 5000}=a", ""),
    ],
)
def test_the_name_of_a_file_is_found_in_its_header(header: str, name: str) -> None:
    assert name_in(header) == name


@given(st.text(alphabet=st.characters(max_codepoint=255)))
def test_no_header_breaks_the_reading(header: str) -> None:
    for each in (f"attachment; filename={header}", f"attachment; filename*={header}", header):
        assert name_in(each).encode() is not None


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_name_fits_into_its_header_and_stays_in_it(name: str) -> None:
    header = disposition(name, "text/plain")
    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
    assert header.startswith('attachment; filename="')


@given(st.integers(1, 10**8), st.text(alphabet="bytes=-,0123456789 ", max_size=12))
def test_a_span_is_never_empty_and_never_beyond_the_file(size: int, header: str) -> None:
    try:
        span = requested_span(header, size)
    except HttpProblem:
        return
    assert span is None or (span.length >= 1 and 0 <= span.first <= size - span.length)
