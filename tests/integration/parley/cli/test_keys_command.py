from pathlib import Path

import pytest

from parley.cli.home.layout import Home
from parley.cli.home.lock import locked
from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.clock import SystemClock
from parley.identity import ServiceName, SigningKey, TrustFile
from parley.secrets import Keyring


def parley(home: Home, *arguments: str) -> int:
    return run([*arguments, "--home", str(home.root)], Invocation({}, "parley"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path)
    home.prepare()
    Keyring.generate().save(home.master_key_file)
    TrustFile(home.trust_file).add_key(ServiceName.CHATD, SigningKey.generate())
    return home


def test_a_new_master_key_encrypts_and_the_old_one_stays_until_it_is_removed(home: Home) -> None:
    (old,) = Keyring.load(home.master_key_file).keys

    assert parley(home, "keys", "rotate") == 0
    new, *others = Keyring.load(home.master_key_file).keys
    assert others == [old]

    assert parley(home, "keys", "forget") == 0
    assert Keyring.load(home.master_key_file) == Keyring((new,))
    assert Keyring.load(home.former_master_key_file) == Keyring((new, old))


def test_the_only_master_key_is_not_removed(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = Keyring.load(home.master_key_file)
    assert parley(home, "keys", "forget") == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert Keyring.load(home.master_key_file) == before
    assert not home.former_master_key_file.exists()


@pytest.mark.parametrize("command", ["rotate", "forget"])
def test_keys_of_a_running_stack_are_left_alone(
    home: Home, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = home.master_key_file.read_bytes()
    with locked(home, how_to_stop="parley down"):
        assert parley(home, "keys", command) == 1
    assert "parley down" in capsys.readouterr().err
    assert home.master_key_file.read_bytes() == before


def test_a_home_without_a_keyring_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.master_key_file.unlink()
    assert parley(home, "keys", "rotate") == 1
    assert str(home.master_key_file) in capsys.readouterr().err


def test_a_retired_signing_key_is_listed_with_its_end_and_then_removed(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    file = TrustFile(home.trust_file)
    (first,) = file.read()
    second = file.add_key(ServiceName.CHATD, SigningKey.generate())

    assert parley(home, "keys", "retire", first.kid, "--overlap", "0") == 0
    assert not file.read()[0].is_accepted(SystemClock().now())
    assert parley(home, "keys", "show") == 0
    (master,) = Keyring.load(home.master_key_file).keys
    shown = capsys.readouterr().out
    assert f"master {master.id}: encrypts" in shown
    assert f"chatd {first.kid}: trusted until " in shown
    assert f"chatd {second.kid}: trusted\n" in shown

    assert parley(home, "keys", "retire", second.kid) == 0
    assert [key.kid for key in file.read()] == [second.kid]


def test_a_signing_key_that_is_not_trusted_cannot_be_retired(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(home, "keys", "retire", "feed") == 1
    assert "no key feed" in capsys.readouterr().err
