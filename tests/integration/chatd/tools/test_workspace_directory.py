"""Tools for files with a real toolrunner and a real directory."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from chatd.content.domain.parts import ToolOutcome
from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import Calls
from support.toolrunner.node import House, connected, node

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@
-    return 1
+    return 2
*** Add File: src/b.py
+print("b")
*** End Patch
"""


@pytest.fixture
async def calls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calls]:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(30), node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


async def write(
    calls: Calls, path: str = "src/a.py", content: str = "def a():\n    return 1\n"
) -> str:
    outcome, told = await calls.call("write_file", path=path, content=content)
    assert (outcome, told["change"]) == (ToolOutcome.DONE, "created"), told
    etag: str = told["etag"]
    return etag


async def test_what_is_written_can_be_read_found_listed_and_searched(calls: Calls) -> None:
    etag = await write(calls)
    _, read = await calls.call("read_file", path="src/a.py")
    assert (read["content"], read["etag"], read["total_lines"]) == (
        "1\tdef a():\n2\t    return 1",
        etag,
        2,
    )
    _, listed = await calls.call("list_files", depth=2)
    assert listed["entries"] == ["src/", "src/a.py (22 bytes)"]
    _, found = await calls.call("find_files", query="**/*.py")
    assert found["files"] == ["src/a.py"]
    _, searched = await calls.call("search_files", pattern="return \\d")
    assert searched["results"] == ["src/a.py\n2:    return 1"]
    _, missing = await calls.call("read_file", path="src/aa.py")
    assert missing["reason"] == "PATH_NOT_FOUND"
    assert missing["hint"] == "Did you mean src/a.py?"


async def test_an_edit_is_made_or_explained(calls: Calls) -> None:
    etag = await write(calls)
    edit = {"old_text": "return 1", "new_text": "return 2"}
    file = {"path": "src/a.py", "edits": [edit], "if_etag": etag}
    outcome, told = await calls.call("edit_files", files=[file])
    assert (outcome, told["applied"]) == (ToolOutcome.DONE, True)
    assert "-    return 1\n+    return 2\n" in told["files"][0]["diff"]
    outcome, told = await calls.call("edit_files", files=[{**file, "if_etag": ""}])
    assert (outcome, told["applied"], told["reason"]) == (ToolOutcome.FAILED, False, "NO_MATCH")
    assert told["problems"][0]["path"] == "src/a.py"


async def test_a_patch_is_applied_once(calls: Calls) -> None:
    await write(calls)
    execution = await calls.execution("apply_patch", json.dumps({"patch": PATCH}))
    first = await calls.carried_out(execution)
    assert (first[0], [each["change"] for each in first[1]["files"]]) == (
        ToolOutcome.DONE,
        ["modified", "created"],
    )
    assert await calls.carried_out(execution) == first


async def test_the_last_change_of_a_file_is_taken_back_unless_the_file_changed_since(
    calls: Calls,
) -> None:
    await write(calls)
    edit = {"old_text": "return 1", "new_text": "return 2"}
    await calls.call("edit_files", files=[{"path": "src/a.py", "edits": [edit]}])
    outcome, told = await calls.call("undo_edit", path="src/a.py")
    assert (outcome, [each["change"] for each in told["files"]]) == (ToolOutcome.DONE, ["modified"])
    _, read = await calls.call("read_file", path="src/a.py")
    assert read["content"] == "1\tdef a():\n2\t    return 1"
    await calls.call("execute", command="echo x >src/a.py")
    outcome, told = await calls.call("undo_edit", path="src/a.py")
    assert (outcome, told["reason"]) == (ToolOutcome.FAILED, "FILE_CHANGED")
    outcome, told = await calls.call("undo_edit", path="src/never.py")
    assert (outcome, told["reason"], told["hint"]) == (
        ToolOutcome.FAILED,
        "NOTHING_TO_UNDO",
        "No tool of this chat changed it lately; edit the file instead.",
    )


async def test_pages_pictures_and_binaries_are_told_apart(calls: Calls) -> None:
    await write(calls, "numbers", "".join(f"{number}\n" for number in range(1, 5001)))
    _, page = await calls.call("read_file", path="numbers", offset=4990, limit=5)
    assert (page["start_line"], page["end_line"], page["next_offset"]) == (4990, 4994, 4995)
    _, past = await calls.call("read_file", path="numbers", offset=6000)
    assert (past["ok"], past["reason"]) == (False, "PAST_END")
    await calls.call(
        "execute", command="printf '\\211PNG\\r\\n\\032\\n....' >p.png; : >e; printf 'a\\0b' >b"
    )
    kinds = {
        name: (await calls.call("read_file", path=name))[1]["kind"] for name in ("p.png", "e", "b")
    }
    assert kinds == {"p.png": "image", "e": "empty", "b": "binary"}


async def test_a_file_is_attached(calls: Calls) -> None:
    await write(calls, "report.md", "# Report\n")
    outcome, told = await calls.call("attach_file", path="report.md")
    assert (outcome, told["media_type"], told["size_bytes"]) == (
        ToolOutcome.DONE,
        "text/markdown",
        9,
    )
    assert calls.attachment_store.files[told["file_id"]].data == b"# Report\n"


async def test_no_path_leads_out_of_the_workspace(calls: Calls) -> None:
    outcome, told = await calls.call("read_file", path="../../../etc/passwd")
    assert (outcome, told["ok"], told["reason"]) == (ToolOutcome.FAILED, False, "OUTSIDE_WORKSPACE")
