"""Tools for files over a real socket, with a toolrunner whose files are a dictionary."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatd.content.domain.parts import File, ToolOutcome
from chatd.content.domain.tools import ExecutorUnreachable
from chatd.content.domain.truncation import truncated_json
from chatd.models.domain.language_model import FileData
from chatd.providers.media import ImageContent, TextContent, read_result
from parley.clock import FakeClock
from support.chatd.workspaces.fake_toolrunner import PNG, FakeToolrunner, served
from support.chatd.workspaces.workspace_calls import Calls

NUMBERS = "".join(f"line {number}\n" for number in range(1, 5001))


@pytest.fixture
def fake() -> FakeToolrunner:
    fake = FakeToolrunner()
    fake.files = {
        "a.py": b"def a():\n    return 1\n",
        "src/b.py": b"def b():\n    return 2\n",
        "empty": b"",
        "numbers": NUMBERS.encode(),
        "picture.png": PNG,
        "program": b"\x7fELF\0",
    }
    return fake


@pytest.fixture
async def calls(fake: FakeToolrunner, tmp_path: Path) -> AsyncIterator[Calls]:
    async with served(fake, tmp_path) as channels:
        yield Calls.through(channels, FakeClock())


async def test_a_file_is_read_with_numbered_lines_and_its_etag(calls: Calls) -> None:
    outcome, told = await calls.call("read_file", path="a.py")
    etag = told.pop("etag")
    assert len(etag) == 64
    assert (outcome, told) == (
        ToolOutcome.DONE,
        {
            "ok": True,
            "path": "a.py",
            "kind": "text",
            "size_bytes": 22,
            "content": "1\tdef a():\n2\t    return 1",
            "start_line": 1,
            "end_line": 2,
            "has_more": False,
            "total_lines": 2,
        },
    )


@pytest.mark.parametrize("budget_bytes", [16_384, 65_536])
async def test_pages_of_a_file_fit_the_model_and_lose_no_line(
    calls: Calls, budget_bytes: int
) -> None:
    read: list[str] = []
    offset = 1
    while True:
        arguments = json.dumps({"path": "numbers", "offset": offset})
        execution = await calls.execution("read_file", arguments, budget_bytes)
        outcome = await calls.tools.execute(execution)
        assert truncated_json(outcome.result_json, budget_bytes) == outcome.result_json
        told = json.loads(outcome.result_json)
        read += told["content"].split("\n")
        if not told["has_more"]:
            break
        offset = told["next_offset"]
        assert told["next_step"] == f"read_file with offset={offset} goes on."
    assert read == [f"{number}\tline {number}" for number in range(1, 5001)]


async def test_a_picture_is_shown_to_the_model(calls: Calls) -> None:
    execution = await calls.execution("read_file", '{"path": "picture.png"}')
    outcome = await calls.tools.execute(execution)
    picture, described = read_result(outcome.result_json)
    assert picture == ImageContent("image/png", base64.b64encode(PNG).decode())
    assert isinstance(described, TextContent)
    assert json.loads(described.text)["kind"] == "image"


@pytest.mark.parametrize(("path", "kind"), [("program", "binary"), ("empty", "empty")])
async def test_what_cannot_be_shown_is_described(calls: Calls, path: str, kind: str) -> None:
    outcome, told = await calls.call("read_file", path=path)
    assert (outcome, told["ok"], told["kind"]) == (ToolOutcome.DONE, True, kind)


async def test_a_file_that_is_not_there_is_answered_with_names_that_are(calls: Calls) -> None:
    assert await calls.call("read_file", path="c.py") == (
        ToolOutcome.FAILED,
        {
            "ok": False,
            "error": "refused: path_not_found",
            "reason": "PATH_NOT_FOUND",
            "hint": "Did you mean a.py or b.py?",
        },
    )


async def test_a_read_that_is_lost_once_is_asked_for_again(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.down["ReadFile"] = 1
    assert (await calls.call("read_file", path="a.py"))[0] is ToolOutcome.DONE


async def test_a_written_file_is_told_with_what_changed(calls: Calls, fake: FakeToolrunner) -> None:
    outcome, told = await calls.call(
        "write_file", path="new.txt", content="one\ntwo", create_only=True
    )
    assert (outcome, told["change"], told["lines"], told["size_bytes"], told["diff"]) == (
        ToolOutcome.DONE,
        "created",
        2,
        7,
        "+one\n+two",
    )
    assert fake.files["new.txt"] == b"one\ntwo"
    _, again = await calls.call("write_file", path="new.txt", content="", create_only=True)
    assert again["reason"] == "PATH_EXISTS"
    _, stale = await calls.call("write_file", path="new.txt", content="", if_etag="0" * 64)
    assert stale["reason"] == "FILE_CHANGED"
    assert "read_file" in stale["hint"]


async def test_a_write_whose_answer_is_lost_happens_once(
    calls: Calls, fake: FakeToolrunner
) -> None:
    execution = await calls.execution("write_file", '{"path": "n", "content": "x"}')
    fake.lost["WriteFile"] = 1
    with pytest.raises(ExecutorUnreachable):
        await calls.carried_out(execution)
    fake.files["n"] = b"somebody else's"
    outcome, told = await calls.carried_out(execution)
    assert (outcome, told["change"]) == (ToolOutcome.DONE, "created")
    assert fake.files["n"] == b"somebody else's"
    assert set(fake.starts.values()) == {1}


async def test_edits_are_told_with_diffs_that_fit(calls: Calls, fake: FakeToolrunner) -> None:
    files = [
        {"path": path, "edits": [{"old_text": "return", "new_text": "yield"}]}
        for path in ("a.py", "src/b.py")
    ]
    execution = await calls.execution("edit_files", json.dumps({"files": files}), 16_384)
    outcome, told = await calls.carried_out(execution)
    assert (outcome, told["applied"]) == (ToolOutcome.DONE, True)
    assert told["truncation"] == {"shortened_diffs": 2}
    assert all(len(each["diff"]) <= 4096 for each in told["files"])
    assert told["notes"][0].startswith("a.py had changed since you last read it")
    assert fake.files["src/b.py"] == b"def b():\n    yield 2\n"


async def test_edits_that_do_not_fit_change_nothing_and_are_all_told(
    calls: Calls, fake: FakeToolrunner
) -> None:
    before = dict(fake.files)
    good = {"path": "a.py", "edits": [{"old_text": "return", "new_text": "yield"}]}
    bad = {
        "path": "src/b.py",
        "edits": [{"old_text": "zzz", "new_text": ""}, {"old_text": "b", "new_text": "c"}],
    }
    outcome, told = await calls.call("edit_files", files=[good, bad])
    assert (outcome, told["applied"], told["reason"]) == (ToolOutcome.FAILED, False, "NO_MATCH")
    assert told["problems"] == [
        {
            "path": "src/b.py",
            "reason": "NO_MATCH",
            "error": "the old text is there 0 times",
            "edit": 0,
        }
    ]
    assert fake.files == before


async def test_a_patch_is_sent_as_it_is(calls: Calls, fake: FakeToolrunner) -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-    return 1\n+    return 2\n*** End Patch\n"
    )
    outcome, told = await calls.call("apply_patch", patch=patch)
    assert (outcome, told["applied"], fake.requests[-1].patch) == (ToolOutcome.DONE, True, patch)
    outcome, told = await calls.call("apply_patch", patch="--- a.py\n+++ a.py\n")
    assert (outcome, told["reason"]) == (ToolOutcome.FAILED, "INVALID_ARGUMENTS")


async def test_a_directory_is_listed(calls: Calls) -> None:
    _, told = await calls.call("list_files", limit=3)
    assert told == {
        "ok": True,
        "entries": ["src/ (1 inside)", "a.py (22 bytes)", "empty (0 bytes)"],
        "next_page_token": "more",
        "truncation": {"hidden_entries": 2},
        "next_step": "list_files with this next_page_token as page_token goes on.",
    }


async def test_files_are_found_by_name(calls: Calls) -> None:
    _, told = await calls.call("find_files", query="*.py")
    assert told == {"ok": True, "files": ["a.py", "src/b.py"]}
    _, nothing = await calls.call("find_files", query="*.rs")
    assert nothing["next_step"].startswith("Nothing fits")


async def test_matches_are_grouped_by_file(calls: Calls, fake: FakeToolrunner) -> None:
    fake.files = {name: fake.files[name] for name in ("a.py", "src/b.py")}
    _, told = await calls.call("search_files", pattern="return")
    assert told == {
        "ok": True,
        "results": ["a.py\n2:    return 1", "src/b.py\n2:    return 2"],
        "files": 2,
        "matches": 2,
    }
    _, counted = await calls.call("search_files", pattern="return", output_mode="count")
    assert counted["results"] == ["a.py: 1", "src/b.py: 1"]
    _, nothing = await calls.call("search_files", pattern="zzz")
    assert nothing["next_step"].startswith("Nothing matches")


async def test_many_matches_are_cut_to_what_the_model_can_read(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.files = {f"file-{number:04}": b"match " * 80 for number in range(100)}
    execution = await calls.execution("search_files", '{"pattern": "match"}', 16_384)
    _, told = await calls.carried_out(execution)
    assert len(told["results"]) + told["truncation"]["omitted_files"] == 100
    assert "Narrow it" in told["next_step"]


async def test_a_file_is_attached_once_however_often_it_is_asked_for(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.files["out/report.md"] = b"# Report\n" * 100_000
    execution = await calls.execution("attach_file", '{"path": "out/report.md"}')
    fake.lost["ReadBytes"] = 1
    outcome, told = await calls.carried_out(execution)
    assert outcome is ToolOutcome.DONE
    assert told == {
        "ok": True,
        "path": "out/report.md",
        "file_id": told["file_id"],
        "name": "report.md",
        "media_type": "text/markdown",
        "size_bytes": 900_000,
    }
    assert await calls.carried_out(execution) == (outcome, told)
    report = FileData("report.md", "text/markdown", fake.files["out/report.md"])
    assert calls.attachment_store.files == {told["file_id"]: report}
    shown = (await calls.tools.execute(execution)).files
    assert shown == (File(told["file_id"], "text/markdown", "report.md"),)


async def test_a_picture_that_can_run_is_not_attached_as_text(
    calls: Calls, fake: FakeToolrunner
) -> None:
    fake.files["a.txt"] = b'<?xml version="1.0"?><svg onload="1"/>'
    args_json = json.dumps({"path": "a.txt", "name": "../b\u202e.txt"})
    _, told = await calls.carried_out(await calls.execution("attach_file", args_json))
    assert (told["name"], told["media_type"]) == ("b.txt", "image/svg+xml")


@pytest.mark.parametrize(
    ("data", "reason"), [(b"", "FILE_EMPTY"), (b"x" * (10 * 2**20 + 1), "FILE_TOO_LARGE")]
)
async def test_a_file_that_cannot_be_attached_is_not(
    calls: Calls, fake: FakeToolrunner, data: bytes, reason: str
) -> None:
    fake.files["big"] = data
    outcome, told = await calls.call("attach_file", path="big")
    assert (outcome, told["reason"], calls.attachment_store.files) == (
        ToolOutcome.FAILED,
        reason,
        {},
    )
