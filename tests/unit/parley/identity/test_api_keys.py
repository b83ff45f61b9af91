import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.identity import ApiKey, MalformedApiKey


def zeros(count: int) -> bytes:
    return bytes(count)


@given(st.binary(min_size=32, max_size=32))
def test_a_key_survives_being_shown_and_read_again(chance: bytes) -> None:
    key = ApiKey.generate(lambda count: chance[:count])

    assert ApiKey.parse(key.reveal()) == key


@given(st.text())
def test_any_text_is_a_key_or_refused_by_type(text: str) -> None:
    try:
        key = ApiKey.parse(text)
    except MalformedApiKey:
        return
    assert key.reveal() == text


def test_a_key_has_a_form_that_scanners_can_find() -> None:
    assert ApiKey.generate(zeros).reveal() == f"pk_{'0' * 8}_{'0' * 43}"
    assert ApiKey.generate(lambda count: b"\xff" * count).secret != "0" * 43


def test_different_chance_gives_different_secrets() -> None:
    first = ApiKey.generate(lambda count: b"\x00" * (count - 1) + b"\x01")
    second = ApiKey.generate(lambda count: b"\x80" + b"\x00" * (count - 1))

    assert len({first.secret, second.secret, ApiKey.generate(zeros).secret}) == 3


def test_only_the_digest_of_the_secret_is_stored() -> None:
    key = ApiKey.generate(zeros)

    assert key.digest() == hashlib.sha256(key.secret.encode()).digest()
    assert key.matches(key.digest())
    assert not key.matches(ApiKey.generate(lambda count: b"\x01" * count).digest())
    assert not key.matches(b"")


def test_the_secret_is_not_in_the_representation() -> None:
    key = ApiKey.generate(lambda count: b"\x07" * count)

    assert key.secret not in repr(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pk",
        "pk_",
        f"sk_{'0' * 8}_{'0' * 43}",
        f"pk_{'0' * 8}",
        f"pk_{'0' * 8}_{'0' * 42}",
        f"pk_{'0' * 8}_{'0' * 44}",
        f"pk_{'0' * 7}_{'0' * 43}",
        f"pk_{'0' * 8}_{'0' * 42}-",
        f"pk_{'0' * 8}_{'0' * 42}_",
        f"pk_{'0' * 8}_{'0' * 42}\n",
        f"pk_{'0' * 8}_{'٣' * 43}",
    ],
)
def test_a_malformed_key_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(MalformedApiKey) as caught:
        ApiKey.parse(text)

    assert len(text) < 10 or text not in str(caught.value)
