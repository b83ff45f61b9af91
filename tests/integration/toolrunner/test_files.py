"""Files over the real service: read, written, edited, patched, found and undone."""

import grpc
import pytest

from parley.api.workspace.v1 import file_pb2
from parley.rpc import problem_of
from support.toolrunner_files import Files
from support.toolrunner_node import Client, House


@pytest.fixture
def files(client: Client, house: House) -> Files:
    return Files.of(client, house)


async def reason_of(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    problem = problem_of(refused.value)
    return problem.status, problem.reason


async def test_a_file_is_written_with_a_diff_and_read_back(files: Files) -> None:
    created = await files.write("src/new/a.py", b"x = 1\n")
    assert created.kind == file_pb2.FILE_CHANGE_KIND_CREATED
    assert created.diff == "--- /dev/null\n+++ b/src/new/a.py\n@@ -0,0 +1 @@\n+x = 1\n"
    page = await files.read("src/new/a.py")
    assert (page.text, page.total_lines, page.etag) == ("x = 1\n", 1, created.etag)
    changed = await files.write("src/new/a.py", b"x = 2\n", if_etag=created.etag)
    assert (changed.kind, changed.added_lines, changed.deleted_lines) == (
        file_pb2.FILE_CHANGE_KIND_MODIFIED,
        1,
        1,
    )
    assert files.bytes_of("src/new/a.py") == b"x = 2\n"
    assert files.leavings() == []
