import click
import pytest
from click.testing import CliRunner

from parley.cli.chats.schedule import schedule, time_of, when_of


def test_a_time_is_given_with_an_offset_or_in_local_time() -> None:
    assert time_of("2026-12-24T18:00+02:00") == "2026-12-24T16:00:00Z"
    assert time_of("2026-12-24T18:00").endswith("Z")
    with pytest.raises(click.UsageError, match="tomorrow is not a time"):
        time_of("tomorrow")


def test_the_time_of_a_schedule_is_told_with_its_zone() -> None:
    cron = {"cron": "0 9 * * *", "time_zone": None, "at": None}
    assert when_of(cron) == "0 9 * * * UTC"
    assert when_of({**cron, "time_zone": "Europe/Berlin"}) == "0 9 * * * Europe/Berlin"
    assert when_of({"cron": None, "time_zone": None, "at": "2026-12-24T16:00:00Z"})[:10] == (
        "2026-12-24"
    )


def test_a_schedule_needs_exactly_one_kind_of_time() -> None:
    for options in ([], ["--cron", "* * * * *", "--at", "2026-12-24T18:00"]):
        result = CliRunner().invoke(schedule, ["add", "Look.", *options])
        assert result.exit_code == 2
        assert "Give either --cron or --at." in result.output
