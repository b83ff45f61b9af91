import asyncio
import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from parley.postgres import (
    DirectoryInUse,
    DirectoryUnusable,
    EmbeddedServer,
    ServerStartFailed,
    WrongMajorVersion,
    compose_url,
    launch,
)
from parley.postgres.processes import end_leftover, until_exit

SUPERVISOR = """
import asyncio, sys
from pathlib import Path
from parley.postgres import EmbeddedServer

async def main():
    server = EmbeddedServer(Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    await server.wait()

asyncio.run(main())
"""
ORDINARY_USER = """
import asyncio, json, os, sys
from pathlib import Path
import asyncpg
from parley.postgres import EmbeddedServer

async def main():
    async with EmbeddedServer(Path(sys.argv[1]), is_durable=False).running() as server:
        connection = await asyncpg.connect(server.admin_url())
        answer = await connection.fetchval("SELECT 6 * 7")
        await connection.close()
        print(json.dumps([answer, os.geteuid(), os.stat(f"/proc/{server.pid}").st_uid]))

asyncio.run(main())
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A directory that sockets have room in, which pytest's need not have."""
    with tempfile.TemporaryDirectory(prefix="parley-test-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def home(short_path: Path) -> Path:
    """A directory below one that only its owner can enter, like a home below /root."""
    (short_path / "closed").mkdir(mode=0o700)
    return short_path / "closed" / "postgres"


@pytest.fixture
def supervisor(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that runs the server of `home` and has printed its process id."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, home], stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate(timeout=10)


async def ask(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def modes_in(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}


async def test_a_new_server_is_private_and_wants_a_password(home: Path) -> None:
    async with asyncio.timeout(30):
        async with EmbeddedServer(home, is_durable=False).running() as server:
            assert modes_in(home) == {
                "data": 0o700,
                "lock": 0o600,
                "postgres.log": 0o600,
                "socket": 0o700,
                "superuser-password": 0o600,
            }
            assert await ask(server.admin_url(), "SHOW data_checksums") == "on"
            assert await ask(server.admin_url(), "SHOW listen_addresses") == ""
            assert await ask(server.admin_url(), "SHOW max_connections") == "200"
            methods = "SELECT array_agg(DISTINCT auth_method) FROM pg_hba_file_rules"
            assert await ask(server.admin_url(), methods) == ["scram-sha-256"]
            wrong = server.url(role="postgres", password="guess", database="postgres")
            with pytest.raises(asyncpg.InvalidPasswordError):
                await ask(wrong, "SELECT 1")
        assert server.pid is None


async def test_data_outlives_the_server_and_a_tcp_port_can_be_asked_for(home: Path) -> None:
    async with asyncio.timeout(30):
        async with EmbeddedServer(home).running() as server:
            await ask(server.admin_url(), "CREATE TABLE kept AS SELECT 7 AS n")
            first_password = server.admin_url()
        async with EmbeddedServer(home, tcp_port=0).running() as server:
            assert server.admin_url().split("?")[0] == first_password.split("?")[0]
            password = first_password.partition(":")[2].partition(":")[2].partition("@")[0]
            url = compose_url(
                role="postgres",
                password=password,
                database="postgres",
                host="127.0.0.1",
                port=server.port,
            )
            assert await ask(url, "SELECT n FROM kept") == 7


async def test_a_killed_server_is_started_again_with_everything_it_acknowledged(
    home: Path,
) -> None:
    async with asyncio.timeout(60), EmbeddedServer(home).running() as server:
        await ask(server.admin_url(), "CREATE TABLE kept AS SELECT 7 AS n")
        busy = await asyncpg.connect(server.admin_url())
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert await server.wait() == -signal.SIGKILL
        await server.start()
        assert await ask(server.admin_url(), "SELECT n FROM kept") == 7
        busy.terminate()


async def test_a_server_does_not_outlive_its_killed_supervisor(
    home: Path, supervisor: "subprocess.Popen[str]"
) -> None:
    assert supervisor.stdout is not None
    async with asyncio.timeout(30):
        pid = int(await asyncio.to_thread(supervisor.stdout.readline))
        with pytest.raises(DirectoryInUse):
            await EmbeddedServer(home).start()
        supervisor.kill()
        await until_exit(supervisor.pid)
        async with EmbeddedServer(home).running() as server:
            assert server.pid != pid
            assert await ask(server.admin_url(), "SELECT 1") == 1
        await until_exit(pid)


async def test_a_server_that_was_left_behind_is_stopped(home: Path) -> None:
    async with asyncio.timeout(30), EmbeddedServer(home, is_durable=False).running() as server:
        await end_leftover(home / "data")
        assert await server.wait() == 0


@contextmanager
def a_stranger(user: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Some process of the server's user that has nothing to do with it."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=user) as process:
        yield process


async def test_a_lock_file_that_names_some_other_process_is_set_aside(home: Path) -> None:
    lock_file = home / "data" / "postmaster.pid"
    async with asyncio.timeout(30):
        async with EmbeddedServer(home, is_durable=False).running():
            _, _, rest = lock_file.read_text().partition("\n")
        with a_stranger(user=(home / "data").stat().st_uid) as stranger:
            lock_file.write_text(f"{stranger.pid}\n{rest}")
            async with EmbeddedServer(home, is_durable=False).running() as server:
                assert await ask(server.admin_url(), "SELECT 1") == 1
            assert stranger.poll() is None
        assert lock_file.with_name("postmaster.pid.stale").exists()


async def test_something_else_in_the_data_directory_is_left_alone(home: Path) -> None:
    (home / "data").mkdir(parents=True)
    (home / "data" / "letters.txt").write_text("mine")
    with pytest.raises(DirectoryUnusable) as refusal:
        await EmbeddedServer(home).start()
    assert refusal.value.directory == home / "data"
    assert (home / "data" / "letters.txt").read_text() == "mine"


async def test_an_initialisation_that_was_killed_is_done_again(home: Path) -> None:
    (home / "data.unfinished" / "base").mkdir(parents=True)
    async with asyncio.timeout(30), EmbeddedServer(home, is_durable=False).running() as server:
        assert await ask(server.admin_url(), "SELECT 1") == 1
        assert not (home / "data.unfinished").exists()


async def test_data_of_a_version_that_is_not_installed_is_refused(home: Path) -> None:
    (home / "data").mkdir(parents=True)
    (home / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(WrongMajorVersion) as refusal:
        await EmbeddedServer(home).start()
    assert refusal.value.found == 9
    assert 18 in refusal.value.installed


async def test_a_refused_start_says_what_postgres_said_and_frees_the_directory(
    home: Path,
) -> None:
    async with asyncio.timeout(30):
        async with EmbeddedServer(home, is_durable=False).running():
            pass
        settings = home / "data" / "postgresql.auto.conf"
        before = settings.read_text()
        settings.write_text("no_such_setting = 1\n")
        with pytest.raises(ServerStartFailed) as refusal:
            await EmbeddedServer(home, is_durable=False).start()
        assert "no_such_setting" in refusal.value.tail
        settings.write_text(before)
        async with EmbeddedServer(home, is_durable=False).running() as server:
            assert await ask(server.admin_url(), "SELECT 1") == 1


async def test_a_home_too_deep_for_a_socket_gets_a_short_one(home: Path, short_path: Path) -> None:
    deep = home / ("d" * 60) / ("e" * 60)
    server = EmbeddedServer(deep, is_durable=False, runtime_root=short_path)
    async with asyncio.timeout(30), server.running():
        assert server.socket_directory.is_relative_to(short_path)
        assert not server.socket_directory.is_relative_to(home)
        assert await ask(server.admin_url(), "SELECT 1") == 1


async def test_a_home_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable):
        await EmbeddedServer(tmp_path / "file" / "home").start()


@pytest.mark.skipif(os.geteuid() != 0, reason="every other test here runs as an ordinary user")
def test_an_ordinary_user_runs_a_server_too(private_to_nobody: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    command = [
        *(sys.executable, "-I", "-S", launch.__file__, "--parent", str(os.getpid())),
        *("--uid", str(nobody.pw_uid), "--gid", str(nobody.pw_gid)),
        *("--reach", os.path.realpath(sys.executable), "--reach", launch.__file__),
        *("--log", str(private_to_nobody / "said")),
        *("--", sys.executable, "-c", ORDINARY_USER, str(private_to_nobody / "postgres")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = (private_to_nobody / "said").read_text()
    assert json.loads(said) == [42, nobody.pw_uid, nobody.pw_uid]
