import pytest

from chatd.chats.store.pins import with_pin_moved
from chatd.primitives.domain.ids import ChatId

A, B, C, D = map(ChatId, "abcd")


@pytest.mark.parametrize(
    ("chat_id", "place", "expected"),
    [
        (D, 1, (D, A, B, C)),
        (D, 2, (A, D, B, C)),
        (D, 99, (A, B, C, D)),
        (D, 0, (A, B, C)),
        (A, 0, (B, C)),
        (C, 1, (C, A, B)),
        (A, 2, (B, A, C)),
        (A, 99, (B, C, A)),
        (B, 2, (A, B, C)),
    ],
)
def test_a_pin_is_put_where_it_was_wanted_or_removed(
    chat_id: ChatId, place: int, expected: tuple[ChatId, ...]
) -> None:
    assert with_pin_moved((A, B, C), chat_id, place) == expected
