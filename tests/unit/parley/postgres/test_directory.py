import os
from pathlib import Path

import pytest

from parley.postgres import DirectoryInUse, DirectoryUnusable
from parley.postgres.directory import ServerDirectory
from parley.postgres.processes import is_ready, recorded_pid, serves

READY = "71\n/somewhere/data\n1\n5432\n/somewhere/socket\n\n12 34\nready   \n"


@pytest.fixture
def place(tmp_path: Path) -> ServerDirectory:
    (tmp_path / "pg" / "data").mkdir(parents=True)
    return ServerDirectory.at(tmp_path / "pg", runtime_root=tmp_path)


def test_a_socket_lies_beside_the_data_while_its_name_fits() -> None:
    place = ServerDirectory.at(Path("/home/ada/.parley/postgres"), runtime_root=Path("/tmp"))
    assert place.socket_directory == Path("/home/ada/.parley/postgres/socket")


@pytest.mark.parametrize("root", ["/home/" + "a" * 90, "/home/a,b"])
def test_a_socket_name_that_would_not_work_moves_to_the_runtime_directory(root: str) -> None:
    place = ServerDirectory.at(Path(root), runtime_root=Path("/tmp"))
    other = ServerDirectory.at(Path(root + "x"), runtime_root=Path("/tmp"))
    assert place.socket_directory.parent.parent == Path("/tmp")
    assert place.socket_directory != other.socket_directory


def test_an_empty_data_directory_has_no_version_yet(place: ServerDirectory) -> None:
    assert place.major_version() is None
    (place.data / "PG_VERSION").write_text("18\n")
    assert place.major_version() == 18


@pytest.mark.parametrize(("name", "text"), [("PG_VERSION", ""), ("base", "anything")])
def test_a_half_made_data_directory_is_reported(
    place: ServerDirectory, name: str, text: str
) -> None:
    (place.data / name).write_text(text)
    with pytest.raises(DirectoryUnusable) as refusal:
        place.major_version()
    assert refusal.value.directory == place.data


def test_a_directory_is_used_by_one_at_a_time(place: ServerDirectory) -> None:
    held = place.lock()
    with pytest.raises(DirectoryInUse):
        place.lock()
    os.close(held)
    os.close(place.lock())


def test_a_runtime_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    place = ServerDirectory.at(tmp_path / ("a" * 90), runtime_root=tmp_path)
    place.socket_directory.parent.symlink_to(tmp_path)
    with pytest.raises(DirectoryUnusable):
        place.prepare(None)


def test_a_password_is_chosen_once(place: ServerDirectory) -> None:
    place.make_password()
    first = place.password()
    place.make_password()
    assert (place.password(), len(first)) == (first, 43)


def test_a_lost_password_is_reported(place: ServerDirectory) -> None:
    with pytest.raises(DirectoryUnusable) as refusal:
        place.password()
    assert refusal.value.directory == place.password_file


def test_a_server_is_ready_when_its_own_lock_file_says_so(place: ServerDirectory) -> None:
    assert recorded_pid(place.data) is None
    assert not is_ready(place.data, 71)
    (place.data / "postmaster.pid").write_text(READY.replace("ready   ", "starting"))
    assert recorded_pid(place.data) == 71
    assert not is_ready(place.data, 71)
    (place.data / "postmaster.pid").write_text(READY)
    assert is_ready(place.data, 71)
    assert not is_ready(place.data, 72)


def test_a_process_that_is_no_server_serves_nothing(place: ServerDirectory) -> None:
    assert not serves(os.getpid(), place.data)
