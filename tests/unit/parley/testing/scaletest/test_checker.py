"""The checker of streams: a healthy one passes, and every planted fault is found."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from parley.testing.scaletest import Checker, Counts
from parley.testing.scaletest.events import Message
from support.testing.told_chat import HEALTHY, Told, message, part, stored

PLACES = range(len(HEALTHY))
PARTS = [place for place in PLACES if HEALTHY[place].kind == "message_part"]
# A part behind which another one comes in the same episode.
FOLLOWED = [place for place in PARTS if HEALTHY[place + 1].kind == "message_part"]


def checked(events: Iterable[Told], there: list[Message] | None = None) -> Checker:
    checker = Checker()
    for event in events:
        checker.take(event.kind, event.cursor, event.document)
    checker.compare(stored() if there is None else there)
    return checker


def test_a_healthy_stream_passes() -> None:
    checker = checked(HEALTHY)
    assert checker.counts == Counts(events=len(HEALTHY), unfinished_previews=1)
    assert (checker.status, checker.users, checker.is_answered) == ("waiting", 2, True)
    assert checker.findings == []


@pytest.mark.parametrize("place", PLACES)
def test_an_event_that_comes_twice_is_found(place: int) -> None:
    checker = checked((*HEALTHY[: place + 1], *HEALTHY[place:]))
    assert checker.counts.duplicates >= 1
    assert checker.findings


@pytest.mark.parametrize("place", [place for place in PLACES if HEALTHY[place].kind == "message"])
def test_a_message_that_comes_twice_with_different_cursors_is_found(place: int) -> None:
    # As if a reconnect gave it once more in another step.
    again = replace(HEALTHY[place], cursor="a1b2c3-8.8.1.8.0.0")
    assert checked((*HEALTHY, again)).counts.duplicates == 1


@pytest.mark.parametrize("place", PLACES[:-1])
def test_two_events_that_change_places_are_found(place: int) -> None:
    first, second = HEALTHY[place], HEALTHY[place + 1]
    checker = checked((*HEALTHY[:place], second, first, *HEALTHY[place + 2 :]))
    assert checker.counts.reordered >= 1


@pytest.mark.parametrize("place", FOLLOWED)
def test_a_part_that_never_comes_is_found(place: int) -> None:
    checker = checked((*HEALTHY[:place], *HEALTHY[place + 1 :]))
    assert checker.counts.missing == 1
    assert checker.counts.duplicates == 0


@pytest.mark.parametrize("place", [place for place in PLACES if HEALTHY[place].kind == "message"])
def test_a_message_that_never_comes_is_found(place: int) -> None:
    checker = checked((*HEALTHY[:place], *HEALTHY[place + 1 :]))
    assert checker.counts.missing == 1


def test_three_missing_parts_count_as_three() -> None:
    events = [
        *HEALTHY[:3],
        Told("message_part", "1.1.2.1.1.5", {"message_part": part(1, 5, "late")}),
    ]
    checker = checked(events, [])
    assert checker.counts.missing == 3


@pytest.mark.parametrize("place", PARTS)
def test_a_piece_with_another_text_is_found(place: int) -> None:
    shown = HEALTHY[place].data["message_part"]
    wrong = replace(
        HEALTHY[place], data={"message_part": {**shown, "part": {"type": "text", "text": "no"}}}
    )
    checker = checked((*HEALTHY[:place], wrong, *HEALTHY[place + 1 :]))
    assert checker.counts.wrong_texts == 1


def test_a_part_of_another_episode_without_a_reset_is_found() -> None:
    events = [
        *HEALTHY[:4],
        Told("message_part", "1.1.2.1.2.1", {"message_part": part(1, 1, "", attempt=2)}),
    ]
    assert checked(events, []).counts.reordered == 1


def test_a_part_of_a_chat_that_does_not_run_is_found() -> None:
    events = [HEALTHY[0], *HEALTHY[2:]]
    assert checked(events).counts.reordered >= 1


def test_a_message_that_the_chat_does_not_have_is_found() -> None:
    assert checked(HEALTHY, stored()[1:]).counts.wrong_texts == 1


def test_a_message_that_the_chat_has_otherwise_is_found() -> None:
    last, *others = stored()
    changed = Message(last.id, last.role, last.revision + 1, last.content)
    assert checked(HEALTHY, [changed, *others]).counts.wrong_texts == 1


def test_a_message_that_was_changed_later_is_no_duplicate() -> None:
    shown = HEALTHY[0].data["message"]
    changed = Told("message", "7.8.100000000000000001.7.0.0", {"message": {**shown, "revision": 8}})
    assert checked((*HEALTHY, changed), []).counts.duplicates == 0


@pytest.mark.parametrize("rest", ["waiting", "error", "requires_action"])
def test_the_status_after_a_turn_that_was_over_at_once_is_no_duplicate(rest: str) -> None:
    at_rest = {"status": {"status": rest, "place_in_line": 0}}
    first = Told("status", "a1b2c3-0.2.101000000000000002.2.0.0", at_rest)
    turn = [
        Told("message", f"a1b2c3-2.4.10000000000000000{number}.2.0.0", {"message": sent})
        for number, sent in (
            (3, message(3, "user", "hello", 3)),
            (4, message(4, "assistant", "", 4)),
        )
    ]
    end = Told("status", "a1b2c3-2.4.101000000000000002.2.0.0", at_rest)
    again = replace(end, cursor="a1b2c3-4.5.101000000000000002.4.0.0")
    assert checked((first, *turn, end), []).counts.duplicates == 0
    assert checked((first, *turn, end, again), []).counts.duplicates == 1


def test_a_running_chat_that_is_told_to_run_again_is_found() -> None:
    running = HEALTHY[1].data
    events = [
        *HEALTHY[:2],
        Told("message", "a1b2c3-1.2.200000000000000002.1.1.0", HEALTHY[5].data),
        Told("status", "a1b2c3-1.2.201000000000000002.1.1.0", running),
    ]
    assert checked(events, []).counts.duplicates == 1


def test_what_comes_again_after_a_reset_is_no_duplicate() -> None:
    reset = Told("history_reset", "0.7.0.1.0.0", {"history_reset": {"truncated": False}})
    again = [event for event in HEALTHY if event.kind == "message"]
    checker = checked(
        (
            *HEALTHY,
            reset,
            *(replace(e, cursor=f"a1b2c3-0.7.{i}.1.0.0") for i, e in enumerate(again, 1)),
        )
    )
    assert (checker.counts.faults, checker.counts.resets) == (0, 1)


def test_a_hole_that_the_server_tells_of_is_not_missing() -> None:
    hole = Told("preview_truncated", "1.1.2.1.1.2", {})
    checker = checked((*HEALTHY[:2], hole, *HEALTHY[4:]))
    assert (checker.counts.faults, checker.counts.truncations) == (0, 1)


def test_cursors_of_an_unknown_form_must_differ() -> None:
    events = [replace(event, cursor=f"c{place}") for place, event in enumerate(HEALTHY)]
    assert checked(events).counts.faults == 0
    events[5] = replace(events[5], cursor="c4")
    assert checked(events).counts.duplicates == 1


def test_waiting_in_line_and_then_running_is_no_duplicate() -> None:
    in_line = Told("status", "1.1.10.1.1.0", {"status": {"status": "running", "place_in_line": 3}})
    running = Told("status", "2.2.2.1.1.0", {"status": {"status": "running", "place_in_line": 0}})
    checker = checked([HEALTHY[0], in_line, running], [])
    assert (checker.counts.duplicates, checker.counts.lines) == (0, 1)
