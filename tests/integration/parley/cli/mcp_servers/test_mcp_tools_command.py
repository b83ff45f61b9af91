"""`parley mcp tools` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

SERVERS = Answer(200, {"items": [{"id": "id-1", "slug": "notes"}], "next_cursor": None})


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("mcp", *arguments), Invocation(environment, "parley"))


def page(name: str, cursor: str | None, dropped_count: int) -> Answer:
    tool = {
        "original_name": name,
        "needs_approval": False,
        "is_quarantined": False,
        "description": "Finds notes.",
    }
    counted = {"next_cursor": cursor, "dropped_tool_count": dropped_count}
    return Answer(200, {"items": [tool], **counted})


@pytest.mark.parametrize("dropped_count", [0, 2])
def test_tools_of_all_pages_are_listed_and_those_left_out_are_counted(
    dropped_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = page("find", "next", dropped_count), page("read", None, dropped_count)
    with fake_api(SERVERS, *pages) as api:
        assert parley(api, "tools", "notes") == 0
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == ["find", "read"]
    assert shown.err == (
        "2 more cannot be used: the definitions are invalid, too large or nested too deep.\n"
        if dropped_count
        else ""
    )
