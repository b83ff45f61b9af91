"""The hosts that workspaces reached, in files that a restart does not lose."""

import asyncio
from pathlib import Path

import pytest

from support.host.busy_threads import busy_threads
from toolrunner.egress.domain.reached import OTHER_HOSTS, ReachedHost
from toolrunner.egress.reached_hosts import FILE, ReachedHosts, copy_record
from toolrunner.primitives.domain import WorkspaceId

WORKSPACE = WorkspaceId("11111111-1111-4111-8111-111111111111")
OTHER = WorkspaceId("22222222-2222-4222-8222-222222222222")
PATIENCE_S = 10.0
SITE, INDEX = ReachedHost("example.org"), ReachedHost("index.example.org", is_git=True)


def hosts_in(directory: Path) -> ReachedHosts:
    for workspace_id in (WORKSPACE, OTHER):
        (directory / workspace_id).mkdir(exist_ok=True)
    return ReachedHosts(lambda workspace_id: directory / workspace_id)


async def test_what_was_reached_is_known_after_a_restart_at_any_moment(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        await hosts.join(WORKSPACE, "first")
        await hosts.note(WORKSPACE, SITE)
        await hosts.join(WORKSPACE, "second")
    # Each is stored before it is answered, so nothing is left to do at the end.
    async with hosts_in(tmp_path) as hosts:
        await hosts.note(WORKSPACE, INDEX)
        hosts.forget(WORKSPACE)
        assert await hosts.since(WORKSPACE, "first") == (SITE, INDEX)
        assert await hosts.since(WORKSPACE, "second") == (INDEX,)
        assert await hosts.since(OTHER, "first") == ()


async def test_requests_at_the_same_time_are_all_recorded(tmp_path: Path) -> None:
    reached = tuple(sorted(ReachedHost(f"{number}.example.org") for number in range(20)))
    async with hosts_in(tmp_path) as hosts:
        await hosts.join(WORKSPACE, "first")
        async with asyncio.TaskGroup() as tasks:
            for each in reached:
                tasks.create_task(hosts.note(WORKSPACE, each))
        assert await hosts.since(WORKSPACE, "first") == reached
    async with hosts_in(tmp_path) as hosts:
        assert await hosts.since(WORKSPACE, "first") == reached


async def test_a_host_is_recorded_while_long_work_holds_all_threads(tmp_path: Path) -> None:
    with busy_threads():
        async with hosts_in(tmp_path) as hosts, asyncio.timeout(PATIENCE_S):
            await hosts.note(WORKSPACE, SITE)
            hosts.forget(WORKSPACE)
            assert await hosts.since(WORKSPACE, "first") == (SITE,)


async def test_a_connection_that_is_open_when_a_chat_comes_counts_for_it(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        async with hosts.connection(WORKSPACE, SITE), hosts.connection(WORKSPACE, SITE):
            pass
        async with hosts.connection(WORKSPACE, INDEX), hosts.connection(OTHER, SITE):
            await hosts.join(WORKSPACE, "first")
        await hosts.join(WORKSPACE, "second")
    # It is stored with the chat itself.
    async with hosts_in(tmp_path) as hosts:
        assert await hosts.since(WORKSPACE, "first") == (INDEX,)
        assert await hosts.since(WORKSPACE, "second") == ()


async def test_a_connection_that_is_made_while_a_chat_is_recorded_counts_for_it(
    tmp_path: Path,
) -> None:
    is_writing = asyncio.Event()

    def directory_of(_: WorkspaceId) -> Path:
        is_writing.set()
        return tmp_path

    async with ReachedHosts(directory_of) as hosts:
        await hosts.note(WORKSPACE, SITE)
        is_writing.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(hosts.join(WORKSPACE, "first"))
            await is_writing.wait()
            async with hosts.connection(WORKSPACE, SITE):
                pass
        assert await hosts.since(WORKSPACE, "first") == (SITE,)


async def test_only_what_changes_an_answer_is_written(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        await hosts.join(WORKSPACE, "first")
        await hosts.note(WORKSPACE, SITE)
        (tmp_path / WORKSPACE / FILE).unlink()
        await hosts.note(WORKSPACE, SITE)
        await hosts.join(WORKSPACE, "first")
        assert not (tmp_path / WORKSPACE / FILE).exists()


async def test_a_host_that_cannot_be_recorded_is_not_reached(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        (tmp_path / WORKSPACE).rmdir()
        with pytest.raises(FileNotFoundError):
            await hosts.note(WORKSPACE, SITE)
        await hosts.join(WORKSPACE, "first")
        assert await hosts.since(WORKSPACE, "first") == ()


@pytest.mark.parametrize("damaged", [b'{"trees": {}', b'{"trees": {"\xff": 1}}'])
async def test_a_file_that_is_damaged_counts_as_anything(tmp_path: Path, damaged: bytes) -> None:
    hosts = hosts_in(tmp_path)
    (tmp_path / WORKSPACE / FILE).write_bytes(damaged)
    async with hosts:
        await hosts.join(WORKSPACE, "first")
        assert await hosts.since(WORKSPACE, "first") == (ReachedHost(OTHER_HOSTS),)


async def test_a_file_that_cannot_be_read_now_stays_and_counts_as_anything_until_then(
    tmp_path: Path,
) -> None:
    path, aside = tmp_path / WORKSPACE / FILE, tmp_path / "aside"
    async with hosts_in(tmp_path) as hosts:
        await hosts.join(WORKSPACE, "first")
        hosts.forget(WORKSPACE)
        path.rename(aside)
        # Every user fails to read it, root too.
        path.mkdir()
        assert await hosts.since(WORKSPACE, "first") == (ReachedHost(OTHER_HOSTS),)
        await hosts.join(WORKSPACE, "second")
        with pytest.raises(IsADirectoryError):
            await hosts.note(WORKSPACE, SITE)
        with pytest.raises(IsADirectoryError):
            await hosts.merge(WORKSPACE, OTHER)
        with pytest.raises(IsADirectoryError):
            copy_record(tmp_path / WORKSPACE, tmp_path / OTHER)
        path.rmdir()
        aside.rename(path)
        await hosts.note(WORKSPACE, SITE)
        assert await hosts.since(WORKSPACE, "first") == (SITE,)
        assert await hosts.since(OTHER, "first") == ()


async def test_a_record_is_read_once(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        await hosts.note(WORKSPACE, SITE)
        hosts.forget(WORKSPACE)
        assert await hosts.since(WORKSPACE, "first") == (SITE,)
        (tmp_path / WORKSPACE / FILE).unlink()
        assert await hosts.since(WORKSPACE, "first") == (SITE,)


async def test_a_copy_of_a_workspace_has_what_its_original_reached(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        await hosts.join(WORKSPACE, "first")
        await hosts.note(WORKSPACE, SITE)
        copy_record(tmp_path / WORKSPACE, tmp_path / OTHER)
        assert await hosts.since(OTHER, "first") == (SITE,)


async def test_what_a_copy_reached_itself_comes_back_with_its_files(tmp_path: Path) -> None:
    async with hosts_in(tmp_path) as hosts:
        await hosts.note(WORKSPACE, SITE)
        copy_record(tmp_path / WORKSPACE, tmp_path / OTHER)
        # For a copy of the copy, the rest is of its original.
        await hosts.note(OTHER, INDEX)
        await hosts.join(WORKSPACE, "first")
        await hosts.merge(OTHER, WORKSPACE)
        assert await hosts.since(WORKSPACE, "first") == (INDEX,)
        copy_record(tmp_path / OTHER, tmp_path / WORKSPACE)
        hosts.forget(WORKSPACE)
        await hosts.join(OTHER, "second")
        await hosts.merge(WORKSPACE, OTHER)
        assert await hosts.since(OTHER, "second") == ()
