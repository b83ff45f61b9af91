"""Commands wait in workspaces that were ended, longer each time."""

from toolrunner.directories.restart_delays import FIRST_S, MOST_S, WINDOW_S, RestartDelays
from toolrunner.primitives.domain import WorkspaceId

ONE, NEXT, OTHER = WorkspaceId("one"), WorkspaceId("next"), WorkspaceId("other")


def test_the_delay_doubles_with_each_time_that_a_workspace_of_the_user_was_ended() -> None:
    delays = RestartDelays()
    delays.note(ONE, "ann", 100.0)
    delays.note(OTHER, "bob", 100.0)
    assert (delays.left_s(ONE, 100.0), delays.left_s(NEXT, 100.0)) == (FIRST_S, 0.0)
    # A new workspace is no way around it.
    delays.note(NEXT, "ann", 101.0)
    delays.note(ONE, "ann", 102.0)
    left_s = [delays.left_s(each, 102.0) for each in (ONE, NEXT, OTHER)]
    assert left_s == [4 * FIRST_S, 2 * FIRST_S - 1.0, 0.0]


def test_the_delay_is_bounded_and_starts_again_after_a_minute() -> None:
    delays = RestartDelays()
    for second in range(10):
        delays.note(ONE, "ann", float(second))
    assert (delays.left_s(ONE, 9.0), delays.was_ended(ONE, 9.0)) == (MOST_S, True)
    after_s = 9.0 + WINDOW_S
    assert (delays.left_s(ONE, after_s), delays.was_ended(ONE, after_s)) == (0.0, False)
    delays.note(ONE, "ann", after_s)
    assert delays.left_s(ONE, after_s) == FIRST_S


def test_a_workspace_without_a_known_user_counts_for_itself() -> None:
    delays = RestartDelays()
    delays.note(ONE, "", 0.0)
    delays.note(NEXT, "", 0.0)
    assert (delays.left_s(ONE, 0.0), delays.left_s(NEXT, 0.0)) == (FIRST_S, FIRST_S)
