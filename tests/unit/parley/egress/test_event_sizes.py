"""How large the events of a stream are, however the stream is cut into pieces."""

import pytest

from parley.egress.transport import EventSizes

STREAM = b": hello\r\n\r\nevent: a\r\ndata: 12345\r\n\r\ndata: 1\n\ndata: 2\r\rdata: end"


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 4, 5, 7, len(STREAM)])
def test_the_largest_event_is_found_in_pieces_of_any_size(piece_bytes: int) -> None:
    sizes = EventSizes()

    pieces = [STREAM[at : at + piece_bytes] for at in range(0, len(STREAM), piece_bytes)]
    largest = max(sizes.add(piece) for piece in pieces)

    # The last character of an empty line may count to the next event.
    assert abs(largest - len(b"event: a\r\ndata: 12345\r\n\r\n")) <= 1


def test_a_line_end_of_two_characters_ends_no_event() -> None:
    sizes = EventSizes()

    counts = [sizes.add(piece) for piece in (b"data: a\r", b"\n", b"data: b\r\n", b"\r", b"\n")]

    assert counts[:3] == [8, 9, 18]
