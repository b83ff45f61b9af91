"""JSON without what is nested too deep, however the text is cut into pieces."""

import json

import pytest

from parley.foreign_json import ShallowJson

#: Each text, and what is left of it with two levels.
TEXTS = {
    '{"a": [1, [2, {"b": 3}], 4], "c": {}}': '{"a": [1, null, 4], "c": {}}',
    '[[["x"], ["y"]], 5]': "[[null, null], 5]",
    '{"[[[": "]]\\"]", "\\\\": [[]]}': '{"[[[": "]]\\"]", "\\\\": [null]}',
    '[["\\u005b[[[\\\\"]]': '[["\\u005b[[[\\\\"]]',
    "17": "17",
}


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_deeper_becomes_null_in_pieces_of_any_size(text: str, piece_bytes: int) -> None:
    shallow, encoded = ShallowJson(2), text.encode()

    pieces = [encoded[at : at + piece_bytes] for at in range(0, len(encoded), piece_bytes)]
    left = b"".join(shallow.add(piece) for piece in pieces).decode()

    assert left == TEXTS[text]
    json.loads(left)


def test_each_event_of_a_stream_is_read_from_its_own_beginning() -> None:
    stream = b': it is "quoted\n\ndata: {"a": [[1]]}\n\ndata: {"b": [[2]]}\n\n'

    left = ShallowJson(2).add(stream)

    assert left == b': it is "quoted\n\ndata: {"a": [null]}\n\ndata: {"b": [null]}\n\n'
