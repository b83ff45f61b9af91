import os
from pathlib import Path

import pytest

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home


def test_a_prepared_home_is_private(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.prepare()
    modes = [path.stat().st_mode & 0o777 for path in (home.root, home.keys, home.run)]
    assert modes == [0o700, 0o700, 0o700]


def test_an_open_directory_of_keys_is_closed(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.keys.mkdir(mode=0o755)
    home.prepare()
    assert home.keys.stat().st_mode & 0o777 == 0o700


def test_sockets_are_in_the_home_unless_their_paths_grow_too_long() -> None:
    near = Home(Path("/h"), Path("/tmp"))
    far = Home(Path("/" + "d" * 90), Path("/tmp"))
    assert near.socket("chatd-0") == Path("/h/run/chatd-0.sock")
    assert far.run.parent == Path("/tmp")
    assert len(os.fsencode(far.socket("mcpgateway-0"))) < 100


@pytest.mark.parametrize("name", ["a,b", "a%41", "a#b", "a b", "\u00e4"])
def test_sockets_are_elsewhere_when_no_address_can_name_the_home(name: str) -> None:
    home = Home(Path("/h") / name, Path("/tmp"))
    assert home.run.parent == Path("/tmp")


def test_two_deep_homes_have_two_socket_directories() -> None:
    first = Home(Path("/" + "a" * 90), Path("/tmp"))
    second = Home(Path("/" + "b" * 90), Path("/tmp"))
    assert first.run != second.run


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationProblem) as caught:
        Home.at(tmp_path / "file").prepare()
    assert caught.value.exit_code == 2


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationProblem):
        Home.at(tmp_path / "file" / "home").prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 4242, 4242)
    with pytest.raises(ConfigurationProblem, match="belongs to user 4242"):
        Home.at(tmp_path).check()


def test_a_link_in_the_place_of_the_socket_directory_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / ("d" * 90), tmp_path)
    home.run.symlink_to(tmp_path)
    with pytest.raises(ConfigurationProblem, match="not a directory"):
        home.check()


def test_removing_sockets_removes_the_directory_outside_the_home_too(tmp_path: Path) -> None:
    home = Home(tmp_path / ("d" * 90), tmp_path)
    home.prepare()
    home.socket("chatd-0").touch()
    home.remove_sockets()
    assert not home.run.exists()
