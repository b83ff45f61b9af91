"""`parley agents diff` and `apply` against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

AGENT = "0190ffff-bbbb-7ccc-8ddd-eeeeeeeeee03"
CONFLICT = {"path": "a.txt", "kind": "content", "preview": "<<<<<<<\nmine\n=======\nits\n"}
HINT = f"`parley agents diff {AGENT}`"


def report(*merged: str, conflicts: tuple[dict[str, str], ...] = (), **fields: Any) -> Answer:
    body = {"applied": bool(merged), "merged_paths": list(merged), "conflicts": list(conflicts)}
    empty = {"omitted": 0, "patches": [], "left_out_paths": [], "applied_merges": []}
    return Answer(200, body | empty | fields)


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


def test_a_diff_shows_both_versions_of_a_conflict(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(report(conflicts=(CONFLICT,))) as api:
        assert parley(api, "agents", "diff", AGENT) == 0
    assert capsys.readouterr().out == f"conflict (content): a.txt\n{CONFLICT['preview']}"


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (
            (),
            1,
            "parley: nothing was applied: give --keep-parent or --take-fork, or --path; "
            f"see {HINT}",
        ),
        (("--keep-parent",), 0, "Nothing else was left to apply."),
    ],
)
def test_conflicts_alone_are_an_error_unless_the_version_of_the_parent_is_chosen(
    options: tuple[str, ...], code: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(report(conflicts=(CONFLICT,))) as api:
        assert parley(api, "agents", "apply", AGENT, *options) == code
    assert capsys.readouterr().err == f"{error}\n"


@pytest.mark.parametrize(
    ("path", "code", "error"),
    [
        ("nope.txt", 1, f"parley: the agent did not change nope.txt; {HINT} shows what it changed"),
        (
            "src/",
            0,
            "Nothing was left to apply: the changes are there already, or there are none.",
        ),
    ],
)
def test_a_path_that_the_agent_never_changed_is_refused(
    path: str, code: int, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    applied = {"paths": ["src/new.txt"], "omitted": 0, "patches": [], "applied_at": "now"}
    whole = report("a.txt", conflicts=(CONFLICT,), applied_merges=[applied])
    with fake_api(report(), whole) as api:
        assert parley(api, "agents", "apply", AGENT, "--path", path) == code
    assert capsys.readouterr().err == f"{error}\n"
    assert api.requests[1].body == {"strategy": "take_fork", "dry_run": True}
