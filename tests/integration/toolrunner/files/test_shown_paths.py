"""Errors of file tools and of checkpoints name no directory of the node."""

import shutil
from collections.abc import Awaitable

import grpc
import pytest

from parley.api.workspace.v1 import checkpoint_service_pb2 as checkpoint_api
from parley.rpc import problem_of
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House


@pytest.fixture
def files(client: Client, house: House) -> Files:
    return Files.of(client, house)


async def told(call: Awaitable[object]) -> tuple[str, str]:
    """Return the reason of a refusal, and all that its callers see of it."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    problem = problem_of(refused.value)
    return problem.reason, f"{problem.message} {problem.metadata} {problem.violations}"


async def test_errors_of_file_tools_name_no_directory_of_the_node(
    files: Files, house: House
) -> None:
    files.put("directory/file", "x\n")
    (files.root / "circle").symlink_to("circle")
    (files.root / "outside").symlink_to(house.data)
    expected = {
        "nowhere/file": "PATH_NOT_FOUND",
        "directory": "WRONG_PATH_KIND",
        "directory/file/below": "WRONG_PATH_KIND",
        "circle": "OUTSIDE_WORKSPACE",
        "outside/journal.db": "OUTSIDE_WORKSPACE",
        "n" * 300: "INVALID_REQUEST",
    }
    refused = {path: await told(files.read(path)) for path in expected}
    assert {path: reason for path, (reason, _) in refused.items()} == expected
    for path in ("directory", "circle", "directory/file/below", "outside/new"):
        refused[f"write {path}"] = await told(files.write(path, b"y"))
    texts = [text for _, text in refused.values()]
    assert [text for text in texts if str(house.data) in text] == []


async def test_errors_of_checkpoints_name_no_directory_of_the_node(
    client: Client, files: Files, house: House
) -> None:
    shutil.rmtree(files.root)
    files.root.write_bytes(b"no directory")
    request = checkpoint_api.PreviewRestoreRequest(context=client.context, turn_id=1)
    reason, text = await told(client.checkpoints.PreviewRestore(request, timeout=20))
    assert reason == "NODE_FULL"
    assert "File exists" in text
    assert str(house.data) not in text
