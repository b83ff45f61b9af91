"""`parley spend-limits` against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

PATH = "/api/v1/spend-limits"
ADA = {"id": "u-1", "login": "ada"}
GROUP = {"id": "g-1", "name": "Engineers"}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("spend-limits", *arguments), Invocation(environment, "parley"))


def page(*items: dict[str, Any]) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": None})


def limit(micros: int, period: str, **subject: Any) -> dict[str, Any]:
    nothing = {"user_id": None, "group_id": None, "everyone": False}
    return {**nothing, **subject, "limit_micros": micros, "period": period}


def test_limits_are_listed_with_logins_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    limits = (
        limit(12_500_000, "month", everyone=True),
        limit(1, "day", user_id="u-1"),
        limit(5_000_000, "week", group_id="g-1"),
        limit(1_000_000, "day", user_id="u-deleted"),
    )
    with fake_api(page(*limits), page(ADA), page(GROUP)) as api:
        assert parley(api, "ls") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["everyone", "12.50", "month"],
        ["ada", "0.000001", "day"],
        ["group", "Engineers", "5.00", "week"],
        ["u-deleted", "1.00", "day"],
    ]


def test_a_limit_is_set_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(
        Answer(200, limit(12_500_000, "month", everyone=True)),
        *(page(ADA), Answer(200, limit(1_000_000, "day", user_id="u-1"))),
        *(page(GROUP), Answer(204)),
    ) as api:
        assert parley(api, "set", "12.50", "--everyone") == 0
        assert parley(api, "set", "1", "--user", "ada", "--per", "day") == 0
        assert parley(api, "rm", "--group", "engineers") == 0
    assert capsys.readouterr().out.splitlines() == [
        "everyone: 12.50 US dollars per month",
        "ada: 1.00 US dollars per day",
        "Removed the limit of Engineers.",
    ]
    changes = [each for each in api.requests if each.method != "GET"]
    assert [(each.method, each.path, each.body) for each in changes] == [
        ("PUT", f"{PATH}/everyone", {"limit_micros": 12_500_000, "period": "month"}),
        ("PUT", f"{PATH}/users/u-1", {"limit_micros": 1_000_000, "period": "day"}),
        ("DELETE", f"{PATH}/groups/g-1", None),
    ]


@pytest.mark.parametrize(
    ("limited", "said"),
    [
        (None, "1.00 US dollars, without a limit, until T\n"),
        (limit(2_000_000, "day", everyone=True), "1.00 US dollars of 2.00, until T\n"),
    ],
)
def test_a_user_reads_what_they_spent(
    limited: dict[str, Any] | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = {"limit": limited, "spent_micros": 1_000_000, "resets_at": "T"}
    with fake_api(Answer(200, status)) as api:
        assert parley(api, "mine") == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "5"),
        ("set", "5", "--everyone", "--user", "ada"),
        ("set", "0", "--everyone"),
        ("set", "NaN", "--everyone"),
        ("set", "Infinity", "--everyone"),
        ("set", "0.0000001", "--everyone"),
        ("set", "five", "--everyone"),
        ("rm",),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...]) -> None:
    with fake_api() as api:
        assert parley(api, *arguments) == 2
    assert api.requests == []
