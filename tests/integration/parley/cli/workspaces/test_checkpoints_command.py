"""`parley checkpoints` against a scripted gateway."""

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

CHAT = "d54ac2ca-6657-5cfa-94f3-26d7ff2c992d"
FILES = f"/api/v1/chats/{CHAT}/turns/7/files"
CHANGED = {
    "path": "a.txt",
    "change": "modified",
    "patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
    "added_lines": 1,
    "deleted_lines": 1,
}
BINARY = {
    "path": "b\x1b[2J",
    "change": "created",
    "patch": "",
    "added_lines": 0,
    "deleted_lines": 0,
}
LISTED = {"files": [CHANGED, BINARY], "omitted": 0, "incomplete": True}
CONTENT = {"content": "two\n", "size_bytes": 4, "binary": False, "truncated": False}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("checkpoints", *arguments), Invocation(environment, "parley"))


def test_the_files_of_a_turn_are_listed_compared_and_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    binary = {**CONTENT, "content": "", "binary": True}
    answers = [Answer(200, each) for each in (LISTED, LISTED, CONTENT, binary)]
    with fake_api(*answers) as api:
        assert parley(api, "ls", CHAT, "7") == 0
        listed = capsys.readouterr()
        assert parley(api, "diff", CHAT, "7") == 0
        compared = capsys.readouterr()
        assert parley(api, "cat", CHAT, "7", "d/a b.txt", "--before") == 0
        printed = capsys.readouterr()
        assert parley(api, "cat", CHAT, "7", "b") == 1

    assert "modified" in listed.out
    assert "+1 -1" in listed.out
    assert "not known" in listed.err
    assert "\x1b" not in listed.out + compared.err
    assert compared.out == CHANGED["patch"]
    assert printed.out == "two\n"
    assert "is not text" in capsys.readouterr().err
    assert [each.path for each in api.requests] == [
        FILES,
        FILES,
        f"{FILES}/content?path=d%2Fa+b.txt&before=true",
        f"{FILES}/content?path=b",
    ]
