import asyncio
from pathlib import Path

from parley.cli.commands.logs import matching_logs, new_lines
from parley.cli.home.layout import Home, write_private
from parley.cli.home.log_files import LOOK_EVERY_S, bound_logs, open_log, tail
from parley.cli.stack.plan import Readiness, Sign
from parley.cli.supervision.process_table import (
    ProcessIdentity,
    ProcessRecord,
    ProcessTable,
    load,
    save,
)
from parley.clock import FakeClock


def test_a_private_file_is_replaced_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("before")
    path.chmod(0o644)
    write_private(path, "after")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("after", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_process_table_survives_its_file(tmp_path: Path) -> None:
    table = ProcessTable(
        supervisor=ProcessIdentity(1, 2.5),
        http="http://127.0.0.1:1",
        processes=(
            ProcessRecord(
                name="chatd-0",
                service="chatd",
                identity=ProcessIdentity(3, 4.25),
                address="unix:/x",
                restarts=2,
                readiness=(Readiness(Sign.GRPC_HEALTH, "unix:/x"),),
            ),
        ),
    )
    save(table, tmp_path / "processes.json")
    assert load(tmp_path / "processes.json") == table


def test_a_damaged_or_absent_process_table_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_text('{"supervisor": {"pid"')
    assert load(tmp_path / "damaged") == load(tmp_path / "absent") == ProcessTable()


def test_a_large_log_is_put_aside_and_older_ones_move_on(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.log"
    for text in (b"first\n", b"second\n", b"third\n"):
        with open_log(path, bytes_max=3) as log:
            log.write(text)
    found = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert found == {
        "chatd-0.log": "third\n",
        "chatd-0.log.1": "second\n",
        "chatd-0.log.2": "first\n",
    }


def test_a_small_log_is_continued(tmp_path: Path) -> None:
    for text in (b"first\n", b"second\n"):
        with open_log(tmp_path / "log") as log:
            log.write(text)
    assert tail(tmp_path / "log", 10) == ("first", "second")


def test_the_tail_is_the_last_lines_after_a_place(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a\nb\nc\n")
    assert tail(path, 2) == ("b", "c")
    assert tail(path, 9, since=2) == ("b", "c")
    assert tail(path, 0) == ()
    assert tail(tmp_path / "absent", 2) == ()


def test_logs_are_found_by_service_or_by_process(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.prepare()
    for name in ("chatd-0", "chatd-1", "gateway-0", "mcp-demo-0", "supervisor"):
        home.log_file(name).touch()
    home.postgres.mkdir()
    home.postgres_log.touch()

    def names(service: str | None) -> list[str]:
        return [path.stem for path in matching_logs(home, service)]

    assert names("chatd") == ["chatd-0", "chatd-1"]
    assert names("chatd-1") == ["chatd-1"]
    assert names("supervisor") == ["supervisor"]
    assert names("postgres") == ["postgres"]
    assert names("nothing") == []
    assert names("*") == []
    assert len(names(None)) == 6


def test_following_a_log_gives_whole_lines_and_survives_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n")
    lines = new_lines(path)
    assert next(lines) == []
    with path.open("a") as log:
        log.write("one\ntw")
    assert next(lines) == ["one"]
    with path.open("a") as log:
        log.write("o\n")
    assert next(lines) == ["two"]
    path.rename(tmp_path / "log.1")
    assert next(lines) == []
    path.write_text("new\n")
    assert next(lines) == ["new"]


async def test_a_log_that_grows_while_its_process_runs_is_put_aside(tmp_path: Path) -> None:
    home, clock = Home.at(tmp_path), FakeClock()
    home.prepare()
    home.postgres.mkdir()
    home.postgres_log.write_text("small\n")
    path = home.log_file("chatd-0")
    with open_log(path) as log:
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            bounding = tasks.create_task(bound_logs(home, clock, bytes_max=6))
            for text in (b"the first lines\n", b"the second lines\n", b"third\n"):
                await clock.until_sleeping()
                log.write(text)
                clock.advance(LOOK_EVERY_S)
            await clock.until_sleeping()
            bounding.cancel()
    found = {file.name: file.read_text() for file in home.logs.iterdir()}
    assert found == {
        "chatd-0.log": "third\n",
        "chatd-0.log.1": "the second lines\n",
        "chatd-0.log.2": "the first lines\n",
    }
    assert home.postgres_log.read_text() == "small\n"


def test_after_a_log_was_put_aside_its_tail_is_what_came_since(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("new\n")
    assert tail(path, 2, since=1000) == ("new",)
