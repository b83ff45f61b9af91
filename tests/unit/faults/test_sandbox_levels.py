"""What the end of a run says of the levels of the sandbox."""

from support.session.sandbox_levels import LevelsOfTests, level_lines


def test_every_level_has_a_line_also_one_that_nothing_ran_at() -> None:
    ran = ["ns", "none", "ns"]
    skipped = ["uid\tonly root", "landlock\tno user", "landlock\tno user"]
    assert level_lines(ran, skipped, [("uid", "the service is not root")]) == [
        "none         1 ran",
        "uid          0 ran, not offered by this machine: the service is not root, "
        "1 skipped: only root",
        "landlock     0 ran, 2 skipped: no user",
        "ns           2 ran",
    ]


def test_what_stays_open_counts_for_tests_that_open_nothing() -> None:
    levels = LevelsOfTests()
    with levels.held("ns"):
        with levels.held("none"):
            pass
        assert levels.seen() == {"none", "ns"}
        levels.end_test()
        assert levels.seen() == {"ns"}
        levels.end_test()
        levels.note("uid")
        assert levels.seen() == {"uid"}
        levels.end_test()
    assert levels.seen() == set()
