"""The check of lists and streams finds every kind of loss, repetition and disorder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from support.faults.history import History, Known
from support.faults.report import RowReport
from support.faults.stream_history import (
    Ended,
    Fold,
    Followed,
    Listing,
    Opening,
    Seen,
    Stored,
    check_listings,
)

QUESTION, ANSWER = "count to 3", "1 2 3 "
ENDED = Ended("waiting", (Stored(1, 1, "user", QUESTION), Stored(2, 3, "assistant", ANSWER)))


def message(cursor: str, number: int, revision: int, role: str, text: str) -> Seen:
    body = {
        "id": number,
        "revision": revision,
        "role": role,
        "content": [{"type": "text", "text": text}],
    }
    return Seen(cursor, "message", {"message": body})


def status(cursor: str, word: str) -> Seen:
    return Seen(cursor, "status", {"status": {"status": word, "place_in_line": 0}})


def part(seq: int, text: str, attempt: int = 1) -> Seen:
    body = {
        "history_version": 1,
        "generation_attempt": attempt,
        "seq": seq,
        "part": {"type": "text", "text": text},
    }
    return Seen(f"2.2.1.1.{attempt}.{seq}", "message_part", {"message_part": body})


TOLD = 10**17
TAIL = 10**15
RESET = Seen("3.3.2.3.0.0", "preview_reset", {})
WHOLE = [
    message("0.2.1.0.0.0", 1, 1, "user", QUESTION),
    status("2.2.1.1.1.0", "running"),
    part(1, "1 "),
    part(2, "2 "),
    part(3, "3 "),
    message(f"2.3.{TOLD + 2}.1.1.3", 2, 3, "assistant", ANSWER),
    status(f"2.3.{2 * TOLD + TAIL + 2}.1.1.3", "waiting"),
    RESET,
]


def found(events: list[Seen], openings: list[Opening] | None = None) -> RowReport:
    row = RowReport("X")
    Fold(Followed("reader", "c", openings or [], events), ENDED, row).check()
    return row


def test_a_whole_stream_has_no_problems() -> None:
    row = found(WHOLE)
    assert (row.problems, row.counts["stream_events"]) == ([], len(WHOLE))


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_stream_that_was_cut_and_resumed_anywhere_has_no_problems(cut: int) -> None:
    events = WHOLE[:cut] + [replace(event, connection=1) for event in WHOLE[cut:]]
    openings = [Opening("", 0, Known.OK), Opening(WHOLE[cut - 1].cursor, 1, Known.OK)]
    assert found(events, openings).problems == []


def test_a_reader_that_is_told_to_begin_anew_may_get_everything_again() -> None:
    row = found([*WHOLE[:4], Seen("", "resync", {}), *WHOLE])
    assert (row.problems, row.counts["resyncs"]) == ([], 1)


def without(*places: int) -> list[Seen]:
    return [event for place, event in enumerate(WHOLE) if place not in places]


def swapped(one: int, other: int) -> list[Seen]:
    events = list(WHOLE)
    events[one], events[other] = events[other], events[one]
    return events


def changed(place: int, change: Callable[[Any], Any]) -> list[Seen]:
    events = list(WHOLE)
    events[place] = change(events[place])
    return events


@pytest.mark.parametrize(
    ("events", "gaps", "repeats"),
    [
        pytest.param(without(0), True, False, id="a_message_is_missing_at_the_start"),
        pytest.param(without(3), True, False, id="a_part_is_missing"),
        pytest.param(without(5), True, False, id="an_answer_is_missing"),
        pytest.param(without(6), True, False, id="the_last_status_is_missing"),
        pytest.param(WHOLE[:5], True, False, id="the_end_is_missing"),
        pytest.param([*WHOLE[:4], WHOLE[3], *WHOLE[4:]], False, True, id="a_part_comes_twice"),
        pytest.param([*WHOLE[:6], WHOLE[5], *WHOLE[6:]], False, True, id="a_message_comes_twice"),
        pytest.param([*WHOLE, *WHOLE], False, True, id="everything_comes_twice_without_a_word"),
        pytest.param(swapped(2, 3), True, True, id="parts_are_swapped"),
        pytest.param(swapped(5, 6), True, True, id="the_status_comes_before_its_message"),
        pytest.param(swapped(1, 2), False, True, id="a_part_comes_before_its_turn_runs"),
        pytest.param(
            [*WHOLE[:4], part(1, "1 ", attempt=2), *WHOLE[5:]],
            False,
            True,
            id="another_attempt_without_a_reset",
        ),
        pytest.param([*WHOLE, part(4, "4 ")], False, True, id="a_part_after_its_message"),
        pytest.param(
            changed(5, lambda _: message(WHOLE[5].cursor, 2, 3, "assistant", "1 2 ")),
            True,
            False,
            id="the_message_is_another_than_is_stored",
        ),
        pytest.param(
            changed(3, lambda _: part(2, "two ")), False, False, id="another_word_was_shown"
        ),
    ],
)
def test_whatever_a_stream_must_not_do_is_found(
    events: list[Seen], gaps: bool, repeats: bool
) -> None:
    row = found(events)
    assert row.problems != []
    assert row.bound is None
    assert row.counts["stream_gaps"] > 0 or not gaps
    assert row.counts["stream_repeats"] > 0 or not repeats


def test_a_reader_that_did_not_go_on_where_it_stood_is_found() -> None:
    openings = [Opening("", 0, Known.OK), Opening(WHOLE[1].cursor, 1, Known.OK)]
    events = WHOLE[:4] + [replace(event, connection=1) for event in WHOLE[4:]]
    assert found(events, openings).problems != []


def test_an_edit_takes_away_what_was_and_nothing_else() -> None:
    ended = Ended(
        "waiting",
        (
            Stored(1, 5, "user", QUESTION, is_deleted=True),
            Stored(2, 5, "assistant", ANSWER, is_deleted=True),
            Stored(3, 5, "user", "another"),
        ),
    )
    edited = [
        *WHOLE,
        Seen(f"0.5.{2 * TOLD + 2}.3.0.0", "history_reset", {"history_reset": {}}),
        message(f"0.5.{2 * TOLD + 3}.3.0.0", 3, 5, "user", "another"),
        status(f"0.5.{TOLD + TAIL + 2}.3.0.0", "running"),
        Seen("5.5.1.5.1.0", "preview_reset", {}),
        status("6.6.2.6.0.0", "waiting"),
    ]
    for events, is_clean in (
        (edited, True),
        ([each for each in edited if each.kind != "history_reset"], False),
    ):
        row = RowReport("X")
        Fold(Followed("reader", "c", [], events), ended, row).check()
        assert (row.problems == []) is is_clean


def listed(invoked_s: float, *texts: str, queued: tuple[str, ...] = ()) -> Listing:
    messages = tuple(enumerate(texts, start=1))
    return Listing("ann", "c", invoked_s, invoked_s + 1, Known.OK, messages, queued)


def listings_of(*listings: Listing, sent: Known = Known.OK) -> RowReport:
    history, row = History(), RowReport("X")
    operation = history.invoke("c", "key", QUESTION)
    operation.known, operation.invoked_s, operation.ended_s = sent, 0.0, 1.0
    check_listings(history, "c", listings, ENDED, row)
    return row


def test_lists_that_grow_have_no_problems() -> None:
    waiting = listed(2, queued=(QUESTION,))
    row = listings_of(listed(0), waiting, listed(4, QUESTION), listed(6, QUESTION, ANSWER))
    assert row.problems == []


def test_what_was_never_acknowledged_need_not_be_listed() -> None:
    assert listings_of(listed(2), sent=Known.OPEN).problems == []


@pytest.mark.parametrize(
    ("listings", "lost"),
    [
        pytest.param((listed(2),), 1, id="an_acknowledged_message_is_not_listed"),
        pytest.param((listed(2, QUESTION, ANSWER), listed(4, QUESTION)), 0, id="a_list_shrinks"),
        pytest.param((listed(2, ANSWER, QUESTION),), 0, id="a_list_has_another_order"),
        pytest.param((listed(2, QUESTION, QUESTION),), 0, id="a_list_repeats_itself"),
        pytest.param((listed(2, QUESTION, ANSWER, "x"),), 0, id="a_list_knows_more_than_is"),
    ],
)
def test_whatever_a_list_must_not_show_is_found(listings: tuple[Listing, ...], lost: int) -> None:
    row = listings_of(*listings)
    assert (row.problems != [], row.lost) == (True, lost)
