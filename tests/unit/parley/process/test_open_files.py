"""How many connections of clients a limit of open files allows."""

import pytest

from parley.process import OpenFiles


@pytest.mark.parametrize(
    ("limit", "connections"), [(1024, 704), (640, 320), (600, 300), (400, 200), (1, 1)]
)
def test_files_for_everything_else_are_kept_back_and_never_more_than_half(
    limit: int, connections: int
) -> None:
    assert OpenFiles(limit, limit_at_start=limit).connections_max == connections
