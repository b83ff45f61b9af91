"""Large lines that are reduced in programs of their own."""

import asyncio
import json
import sys

import psutil
import pytest

from chatd.workspace_servers.clients.line_reducer import TOO_COMPLEX, ProcessLineReducer
from chatd.workspace_servers.domain.state import ServerFailed

TEXT = "x" * (4 * 1024 * 1024)


async def test_lines_are_reduced_and_their_programs_end() -> None:
    reducer = ProcessLineReducer()
    line = json.dumps({"id": 1, "result": {"content": [{"type": "text", "text": TEXT}]}, "x": []})
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        running = [group.create_task(reducer.reduced(line.encode())) for _ in range(4)]
    for each in running:
        assert json.loads(each.result()) == {
            "id": 1,
            "result": {"content": [{"type": "text", "text": TEXT}]},
        }
    children = psutil.Process().children()
    assert [each for each in children if "reduce_line" in " ".join(each.cmdline())] == []


async def test_a_program_that_fails_fails_the_server() -> None:
    reducer = ProcessLineReducer((sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(ServerFailed, match=TOO_COMPLEX):
        await reducer.reduced(b"{}")
