"""Conversations of the load test with a Parley that behaves as a test wants it to."""

import asyncio
import random  # noqa: TID251 (a composition root)
from dataclasses import replace

import pytest

from parley.clock import SystemClock
from parley.testing.scaletest import ChatOutcome, Plan, Stage
from parley.testing.scaletest.chat_group import ChatGroup
from support.testing.fake_parley import CHAT_ID, FakeParley
from support.testing.told_chat import HEALTHY, MESSAGES, Told, message


async def conversed(parley: FakeParley, turns: int = 2, **changes: object) -> ChatOutcome:
    """Have one conversation of two turns and return what became of it."""
    async with asyncio.timeout(20), parley.serving(), asyncio.TaskGroup() as tasks:
        plan = Plan(target=parley.target, run="run", turns=turns, **changes)  # type: ignore[arg-type]
        crowd = ChatGroup(plan, tasks, clock=SystemClock(), rng=random.Random(7))
        await crowd.converse()
        (outcome,) = await crowd.end()
    return outcome


async def test_a_conversation_is_timed_checked_and_deleted() -> None:
    parley = FakeParley()
    outcome = await conversed(parley)
    assert (outcome.failure, outcome.problem, outcome.findings) == (None, "", [])
    assert (outcome.turns_completed, outcome.final_status) == (2, "waiting")
    assert outcome.counts.events in (len(HEALTHY) - 1, len(HEALTHY))
    for turn in outcome.turns:
        assert turn.answered_s is not None
        assert turn.running_s is not None
        assert turn.output_s is not None
        assert turn.over_s is not None
        assert 0 < turn.running_s <= turn.output_s <= turn.over_s
    assert parley.keys == ['"run-0-1"', '"run-0-2"']
    assert parley.asked == [
        ("POST", "/chats"),
        ("GET", f"/chats/{CHAT_ID}/events"),
        ("POST", f"/chats/{CHAT_ID}/messages"),
        ("GET", f"/chats/{CHAT_ID}/messages?limit=200"),
        ("DELETE", f"/chats/{CHAT_ID}"),
    ]


async def test_a_stream_that_breaks_inside_of_an_event_goes_on_behind_the_last_whole_one() -> None:
    parley = FakeParley(breaks=[3, 2, 0, 9])
    outcome = await conversed(parley)
    assert (outcome.failure, outcome.breaks, outcome.turns_completed) == (None, 4, 2)
    places = [2, 4, 4, 13]
    assert parley.cursors == ["", *(HEALTHY[place].cursor for place in places)]


async def test_a_client_that_cuts_its_stream_loses_and_repeats_nothing() -> None:
    outcome = await conversed(FakeParley(), cut_every=3)
    assert (outcome.failure, outcome.counts.faults, outcome.breaks) == (None, 0, 0)
    assert outcome.cuts > 3


async def test_a_turn_of_which_only_the_messages_are_news_is_over_too() -> None:
    # As when it was over before the stream could tell that it was running.
    messages = [event for event in HEALTHY[8:] if event.kind == "message"]
    unseen = [replace(event, cursor=f"2.7.{place}.2.0.0") for place, event in enumerate(messages)]
    settled = replace(HEALTHY[-1], cursor="7.7.1.7.0.0")
    unseen[0] = replace(unseen[0], cursor=HEALTHY[8].cursor)
    outcome = await conversed(FakeParley(events=(*HEALTHY[:8], *unseen, settled)))
    assert (outcome.failure, outcome.turns_completed) == (None, 2)
    assert outcome.turns[1].running_s is None


async def test_kept_chats_are_not_deleted() -> None:
    parley = FakeParley()
    await conversed(parley, keeps=True)
    assert ("DELETE", f"/chats/{CHAT_ID}") not in parley.asked


async def test_an_event_that_comes_twice_fails_the_chat() -> None:
    outcome = await conversed(FakeParley(events=(*HEALTHY[:4], *HEALTHY[3:])))
    assert (outcome.failure, outcome.counts.duplicates) == (Stage.VERIFICATION, 2)


async def test_a_message_that_was_never_told_fails_the_chat() -> None:
    more = (*MESSAGES, message(7, "assistant", "secret", 8))
    outcome = await conversed(FakeParley(messages=more))
    assert (outcome.failure, outcome.counts.missing) == (Stage.VERIFICATION, 1)


@pytest.mark.parametrize(
    ("refused", "stage"),
    [
        (("POST", "chats"), Stage.CREATE_CHAT),
        (("POST", "messages"), Stage.CREATE_MESSAGE),
        (("GET", "events"), Stage.STREAM_OPEN),
        (("GET", "messages"), Stage.VERIFICATION),
    ],
)
async def test_a_refusal_fails_the_chat_where_it_happens(
    refused: tuple[str, str], stage: Stage
) -> None:
    outcome = await conversed(FakeParley(refusals={refused: [403]}))
    assert outcome.failure is stage


async def test_a_stream_that_is_refused_later_ended_early() -> None:
    outcome = await conversed(FakeParley(breaks=[3], refusals={("GET", "events"): [200, 404]}))
    assert outcome.failure is Stage.STREAM_ENDED_EARLY


async def test_a_request_that_nobody_could_take_is_sent_again_with_its_key() -> None:
    parley = FakeParley(refusals={("POST", "chats"): [503, 502]})
    outcome = await conversed(parley)
    assert (outcome.failure, outcome.resent) == (None, 2)
    assert parley.keys[:3] == ['"run-0-1"'] * 3


async def test_a_stream_that_is_refused_for_the_moment_is_asked_for_again_and_counted() -> None:
    parley = FakeParley(refusals={("GET", "events"): [503, 429, 504]})
    outcome = await conversed(parley)
    assert (outcome.failure, outcome.refused, outcome.breaks) == (None, 3, 0)


async def test_a_turn_that_ends_in_an_error_fails_with_what_was_said() -> None:
    failed = {"status": {"status": "error", "place_in_line": 0}}
    events = (
        *HEALTHY[:2],
        Told("status", "1.2.501000000000000002.1.1.0", failed),
        Told("error", "2.2.5.1.0.0", {"error": {"message": "no key"}}),
    )
    outcome = await conversed(FakeParley(events=events))
    assert (outcome.failure, outcome.problem) == (Stage.STATUS_ERROR, "no key")
    assert outcome.final_status == "error"


async def test_a_turn_that_takes_too_long_fails() -> None:
    outcome = await conversed(FakeParley(is_silent=True), turn_timeout_s=0.2)
    assert outcome.failure is Stage.TIMEOUT


async def test_nobody_goes_on_behind_the_first_turn_before_being_told_to() -> None:
    parley = FakeParley()
    async with asyncio.timeout(20), parley.serving(), asyncio.TaskGroup() as tasks:
        plan = Plan(target=parley.target, run="run", turns=2, waits_after_first=True)
        crowd = ChatGroup(plan, tasks, clock=SystemClock(), rng=random.Random(7))
        conversing = tasks.create_task(crowd.converse())
        await crowd.first_turns_done()
        assert ("POST", f"/chats/{CHAT_ID}/messages") not in parley.asked
        crowd.release()
        await conversing
        (outcome,) = await crowd.end()
    assert outcome.turns_completed == 2
