import fcntl
from pathlib import Path

import pytest

from parley.cli.home.layout import Home
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


def test_without_processes_each_call_is_one_stage_and_the_old_key_stays(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (old,) = Keyring.load(home.master_key_file).keys

    assert parley(home, "keys", "rotate", "--only", "master") == 0
    assert Keyring.load(home.master_key_file).keys[0] == old
    _, new = Keyring.load(home.master_key_file).keys
    assert "parley init DIRECTORY" in capsys.readouterr().out

    assert parley(home, "keys", "rotate") == 0
    assert Keyring.load(home.master_key_file).keys == (new, old)

    assert parley(home, "keys", "rotate") == 1
    assert "no process is known" in capsys.readouterr().err
    assert Keyring.load(home.master_key_file).keys == (new, old)
    assert parley(home, "keys", "status") == 0
    assert "A rotation is used; `parley" in capsys.readouterr().out


def test_two_commands_do_not_change_keys_at_once(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    before = home.master_key_file.read_bytes()
    with open(home.rotation_lock_file, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert parley(home, "keys", "rotate") == 1
    assert "another command changes the keys" in capsys.readouterr().err
    assert home.master_key_file.read_bytes() == before


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("chatd", "write SERVICE=ADDRESS"),
        ("postgres=tcp:127.0.0.1:1", "write SERVICE=ADDRESS"),
        ("chatd=127.0.0.1:1", "the address begins with unix:, tcp: or tls:"),
    ],
)
def test_a_process_that_cannot_be_asked_is_refused(
    home: Home, named: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(home, "keys", "rotate", "--process", named) == 2
    assert problem in capsys.readouterr().err
    assert len(Keyring.load(home.master_key_file).keys) == 1


def test_a_damaged_plan_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.rotation_file.write_text("{")
    assert parley(home, "keys", "rotate") == 1
    assert str(home.rotation_file) in capsys.readouterr().err


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
    assert parley(home, "keys", "status") == 0
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


def test_a_key_that_a_service_signs_with_cannot_be_retired(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    file, key = TrustFile(home.trust_file), SigningKey.generate()
    key.save(home.signing_key_file(ServiceName.GATEWAY))
    file.add_key(ServiceName.GATEWAY, key)

    assert parley(home, "keys", "retire", key.kid, "--overlap", "0") == 1
    assert "signs with" in capsys.readouterr().err
    assert all(each.is_accepted(SystemClock().now()) for each in file.read())
    assert parley(home, "keys", "status") == 0
    assert f"gateway {key.kid}: trusted, signs\n" in capsys.readouterr().out
