"""Deltas that arrived together become one; everything else stays where it was."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    TextEnded,
    ToolInputDelta,
)
from chatd.providers.joining import joined_deltas

WORDS = st.text(max_size=3)
BLOCKS = st.sampled_from(["", "a", "b"])
EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, WORDS, BLOCKS),
        st.builds(ReasoningDelta, WORDS, BLOCKS),
        st.just(TextEnded()),
        st.just(Heartbeat()),
        st.builds(ToolInputDelta, st.just("call"), st.just("tool"), WORDS),
    )
)


def test_only_neighbours_of_one_kind_and_one_block_are_joined() -> None:
    events: list[ModelEvent] = [
        ReasoningDelta("hm"),
        ReasoningDelta("m"),
        ReasoningEnded(),
        TextDelta("a", "1"),
        TextDelta("b", "1"),
        TextDelta("c", "2"),
        ToolInputDelta("call", "tool", "{"),
        ToolInputDelta("call", "tool", "}"),
        TextDelta("d", "2"),
        Finished(),
    ]
    assert list(joined_deltas(events)) == [
        ReasoningDelta("hmm"),
        ReasoningEnded(),
        TextDelta("ab", "1"),
        TextDelta("c", "2"),
        ToolInputDelta("call", "tool", "{"),
        ToolInputDelta("call", "tool", "}"),
        TextDelta("d", "2"),
        Finished(),
    ]


def test_what_came_before_an_error_is_not_lost() -> None:
    def broken() -> Iterator[ModelEvent]:
        yield TextDelta("a")
        yield TextDelta("b")
        raise ValueError("cut")

    joined = joined_deltas(broken())
    assert next(joined) == TextDelta("ab")
    with pytest.raises(ValueError, match="cut"):
        next(joined)


@given(EVENTS)
def test_joining_again_changes_nothing_and_no_two_that_belong_together_are_left(
    events: list[ModelEvent],
) -> None:
    joined = list(joined_deltas(events))
    assert list(joined_deltas(joined)) == joined
    assert _told(joined) == _told(events)


def _told(events: list[ModelEvent]) -> list[tuple[object, ...]]:
    """Return every character with its kind and block, and every other event."""
    told: list[tuple[object, ...]] = []
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta):
            told += [(type(event), event.block_id, character) for character in event.text]
        else:
            told.append((event,))
    return told
