"""The page knows messages of goals and monitors by the sentences that the server writes."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from chatd.goals.domain.goal import CheckResult, Goal, GoalState, Verdict, next_message
from chatd.monitors.domain.monitor import Monitor, MonitorCause, wake_message
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId

PAGE = Path(__file__).resolve().parents[2] / "services/gateway/web/page/src/timeline/sent-by.ts"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
OWNER = Owner(OwnerId("a"), "member")
GOAL = Goal(
    id="9a",
    chat_id=ChatId("c"),
    owner=OWNER,
    text="Mend the tests.\n\nAll of them.",
    check_command="make test",
    turns_max=3,
    seconds_max=60,
    cost_max_micros=1,
    state=GoalState.ACTIVE,
    created_at=NOON,
)
MONITOR = Monitor(
    id="9a",
    chat_id=ChatId("c"),
    owner=OWNER,
    process_id="p1",
    command="npm run dev",
    pattern="listening",
    note="Then open it.",
    cursor=4,
    created_at=NOON,
    expires_at=NOON + timedelta(hours=1),
)


def pattern_of_the_page(name: str) -> re.Pattern[str]:
    """Return a regular expression of the page, in which `[^]` is any character."""
    found = re.search(rf"^const {name} = /(.*)/;$", PAGE.read_text(), re.MULTILINE)
    assert found is not None
    return re.compile(found[1].replace("[^]", r"[\s\S]"))


def test_the_page_recognises_every_message_that_a_goal_or_a_monitor_sends() -> None:
    goals = [
        next_message(GOAL, CheckResult(2, "1 failed\n\nin two files")),
        next_message(GOAL, Verdict(is_done=False, reason="No tests.")),
    ]
    monitors = [wake_message(replace(MONITOR, cause=cause, detail="0")) for cause in MonitorCause]
    goal, monitor = (pattern_of_the_page(name) for name in ("GOAL", "MONITOR"))
    assert [bool(goal.search(each)) for each in (*goals, *monitors)] == (
        [True] * len(goals) + [False] * len(monitors)
    )
    assert [bool(monitor.search(each)) for each in (*goals, *monitors)] == (
        [False] * len(goals) + [True] * len(monitors)
    )
