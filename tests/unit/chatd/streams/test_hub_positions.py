"""Where readers stand, and what they are still owed there."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import ChatState, PendingCall, Retry, Status
from chatd.chats.domain.views import EndedAction
from chatd.chats.domain.writes import ActionOutcome
from chatd.chats.store.reading import PageVersions
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.tools import PendingKind
from chatd.primitives.domain.ids import ChatId, ExecutionId, MessageId, WorkerId
from chatd.streams.hub.timeline import Snapshot, is_all_known, settled, step_events
from chatd.streams.rpc.position import TAIL, Position, cursor_after, position_in, status_sent_of
from parley.api.chat.v1.event_pb2 import ChatEvent
from parley.api.chat.v1.message_pb2 import Message

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
OOPS = TurnError("It broke.", ErrorKind.GENERIC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
RUNNING = ChatState(CHAT, Status.RUNNING, 5, 5, 1, MessageId(4), worker_id=WORKER)
AT_FIVE = settled(Position(), Snapshot(RUNNING))


def kinds(seen: Position, now: Snapshot, *rows: int) -> list[str]:
    """Return the kinds of the events of a step."""
    body = ChatEvent(message=Message()).SerializeToString()
    events = step_events(seen, now, [(row, body) for row in rows])
    return [str(ChatEvent.FromString(each).WhichOneof("kind")) for _, each in events]


@pytest.mark.parametrize(
    "position",
    [
        Position(),
        Position(3, 3, 0, 3, 1, 17, status_sent=2),
        Position(3, 5, 12, 3, 1, 17, status_sent=2),
        Position(3, 5, TAIL + 2, 3, 1, 17, status_sent=10),
        Position(0, 5, 7),
    ],
)
def test_a_cursor_is_read_back_as_it_was_written(position: Position) -> None:
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text", ["", "1.2.3", "5.4.0.0.0.0", "a.b.c.d.e.f", "-1.0.0.0.0.0", f"1.{2**63}.0.0.0.0"]
)
def test_what_is_no_cursor_is_not_read(text: str) -> None:
    assert Position.parse(text) is None


def test_the_events_of_a_step_come_in_the_fixed_order() -> None:
    failed = replace(
        RUNNING,
        status=Status.ERROR,
        snapshot_version=6,
        history_version=6,
        queue_version=6,
        retry_version=6,
        generation_attempt=0,
        worker_id=None,
        last_error=OOPS,
        retry=Retry(1, 10, LATER, OOPS),
    )
    assert kinds(AT_FIVE, Snapshot(failed), 4, 5) == [
        "message",
        "message",
        "queue_update",
        "status",
        "error",
        "retry",
        "preview_reset",
    ]


def test_a_step_cut_behind_any_of_its_events_goes_on_with_the_next() -> None:
    asking = replace(
        RUNNING,
        status=Status.REQUIRES_ACTION,
        snapshot_version=6,
        history_version=6,
        queue_version=6,
        generation_attempt=0,
        worker_id=None,
        deadline_at=LATER,
    )
    now = Snapshot(asking)
    body = ChatEvent(message=Message()).SerializeToString()
    rows = [(4, body), (5, body)]
    events = step_events(AT_FIVE, now, rows)
    for place, (cut, _) in enumerate(events[:-1]):
        seen = Position.parse(str(cut))
        assert seen is not None
        behind, _ = seen.rows_behind
        left = [row for row in rows if row[0] > behind] if seen.row < TAIL else []
        assert step_events(seen, now, left) == events[place + 1 :]
    assert events[-1][0] == settled(AT_FIVE, now)


def test_an_error_between_whose_status_and_itself_the_stream_was_cut_is_still_sent() -> None:
    failed = replace(
        RUNNING,
        status=Status.ERROR,
        snapshot_version=6,
        generation_attempt=0,
        worker_id=None,
        last_error=OOPS,
    )
    (cut, _), *_ = step_events(AT_FIVE, Snapshot(failed), [])
    archived = replace(failed, snapshot_version=7, archived=True)
    assert kinds(cut, Snapshot(archived)) == ["error"]
    assert kinds(settled(AT_FIVE, Snapshot(failed)), Snapshot(archived)) == []


def test_what_changes_nothing_that_is_shown_sends_nothing() -> None:
    taken_over = replace(RUNNING, snapshot_version=6, owner_epoch=2)
    assert kinds(AT_FIVE, Snapshot(taken_over)) == []


RESTS = [
    replace(RUNNING, status=status, worker_id=None, generation_attempt=0)
    for status in (Status.WAITING, Status.ERROR, Status.REQUIRES_ACTION)
]


@pytest.mark.parametrize("rest", RESTS, ids=lambda rest: rest.status)
def test_a_turn_that_went_by_unseen_ends_with_a_status_nevertheless(rest: ChatState) -> None:
    seen = settled(Position(), Snapshot(rest))
    now = Snapshot(replace(rest, snapshot_version=9, history_version=8))
    assert "status" in kinds(seen, now, 5, 6)
    assert kinds(settled(seen, now), now) == []


@pytest.mark.parametrize("rest", RESTS, ids=lambda rest: rest.status)
def test_a_cut_behind_that_status_tells_it_once_but_once_more_for_another_turn(
    rest: ChatState,
) -> None:
    now = Snapshot(replace(rest, snapshot_version=9, history_version=8))
    at_status, *_ = [at for at, _ in step_events(settled(Position(), Snapshot(rest)), now, [])]
    assert "status" not in kinds(at_status, now)
    after = Snapshot(replace(rest, snapshot_version=12, history_version=11))
    assert "status" in kinds(at_status, after)


def test_a_chat_that_loses_its_owner_waits_in_line_and_says_so() -> None:
    released = replace(RUNNING, snapshot_version=6, worker_id=None)
    assert status_sent_of(released) != status_sent_of(RUNNING)
    assert kinds(AT_FIVE, Snapshot(released, place_in_line=3)) == ["status"]


def test_a_new_attempt_voids_the_preview_after_the_retry_was_told() -> None:
    retried = replace(
        RUNNING,
        snapshot_version=6,
        retry_version=6,
        generation_attempt=2,
        retry=Retry(1, 10, LATER, OOPS),
    )
    assert kinds(AT_FIVE, Snapshot(retried)) == ["retry", "preview_reset"]


def test_a_reader_from_the_beginning_gets_no_reset_and_no_empty_queue() -> None:
    assert kinds(Position(), Snapshot(RUNNING), 1, 2) == ["message", "message", "status"]


def ended(version: int) -> EndedAction:
    """Return an action that ended at a version."""
    outcome = ActionOutcome.ANSWERED
    return EndedAction(f"a{version}", PendingKind.PLAN, "c", "plan", outcome, "ann", LATER, version)


def told_ends(seen: Position, now: Snapshot) -> list[str]:
    """Return the actions whose end a step tells."""
    events = [ChatEvent.FromString(body) for _, body in step_events(seen, now, [])]
    return [action.id for event in events for action in event.action_ended.actions]


def test_the_ends_of_actions_are_told_after_the_version_that_a_reader_has() -> None:
    now = Snapshot(replace(RUNNING, snapshot_version=9), ended=(ended(4), ended(6), ended(9)))
    assert told_ends(AT_FIVE, now) == ["a6", "a9"]
    assert told_ends(settled(AT_FIVE, now), now) == []


def test_a_step_cut_before_the_ends_of_actions_goes_on_with_them() -> None:
    rests = replace(RUNNING, snapshot_version=6, history_version=6, queue_version=6)
    now = Snapshot(rests, ended=(ended(6),))
    *before, (last, _) = step_events(AT_FIVE, now, [])
    for cut, _ in before:
        seen = Position.parse(str(cut))
        assert seen is not None
        assert told_ends(seen, now) == ["a6"]
    assert told_ends(last, now) == []


def test_neither_a_new_reader_nor_one_behind_a_page_is_told_of_ends_before_it() -> None:
    now = Snapshot(replace(RUNNING, snapshot_version=9), ended=(ended(4), ended(9)))
    assert told_ends(Position(), now) == []
    page = PageVersions(snapshot=5, history=5, generation_attempt=1)
    behind_page = position_in(CHAT, cursor_after(CHAT, page))
    assert behind_page is not None
    assert told_ends(behind_page, now) == ["a9"]


def test_a_reader_whose_messages_are_void_is_told_of_the_ends_with_the_new_ones() -> None:
    now = Snapshot(replace(RUNNING, snapshot_version=9), ended=(ended(9),))
    assert told_ends(AT_FIVE.voided(9, 1), now) == ["a9"]


def test_a_commit_that_ends_an_action_is_read_and_no_other_is() -> None:
    asked = PendingCall("c", "plan", ExecutionId("a1"), kind=PendingKind.PLAN)
    dispatched = PendingCall("d", "execute", ExecutionId("a2"))
    before = replace(RUNNING, pending=(asked, dispatched))
    still = replace(before, snapshot_version=6, pending=(asked,))
    over = replace(before, snapshot_version=6, pending=(dispatched,))
    assert is_all_known(before, still, ())
    assert not is_all_known(before, over, ())
