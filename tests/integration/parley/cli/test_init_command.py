from datetime import timedelta
from pathlib import Path

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.clock import FakeClock, SystemClock
from parley.identity import CertificateAuthority, CertificateFiles, ServiceName
from parley.secrets import Keyring

LOGIN_TOKEN = Path("gateway/login_token")


def init(home: Path, directory: Path, *options: str) -> int:
    arguments = ["init", str(directory), "--home", str(home), *options]
    return run(arguments, Invocation({}, "parley"))


def files(directory: Path) -> dict[Path, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory): path.read_bytes() for path in found}


def test_a_second_call_changes_nothing_but_the_login_token(tmp_path: Path) -> None:
    home, directory = tmp_path / "home", tmp_path / "secrets"
    assert init(home, directory) == 0
    before = files(directory)
    assert init(home, directory) == 0
    after = files(directory)
    assert before.pop(LOGIN_TOKEN) != after.pop(LOGIN_TOKEN)
    assert after == before


def test_only_the_owner_can_read_what_is_secret(tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    assert init(tmp_path / "home", directory) == 0
    open_to_others = [path for path in files(directory) if (directory / path).stat().st_mode & 0o77]
    assert open_to_others == [Path("postgres/password")]


def test_a_certificate_that_is_due_is_renewed(tmp_path: Path) -> None:
    home, directory = tmp_path / "home", tmp_path / "secrets"
    assert init(home, directory) == 0
    old = FakeClock(SystemClock().now() - timedelta(days=20))
    authority = CertificateAuthority.load(home / "keys" / "tls", clock=old)
    due = authority.issue(ServiceName.CHATD, lifetime=timedelta(days=21))
    due.write(home / "keys" / "tls" / "chatd")
    assert init(home, directory) == 0
    renewed = CertificateFiles.read(directory / "chatd" / "tls")
    assert renewed.authority_pem == due.authority_pem
    assert renewed.certificate_pem != due.certificate_pem


def test_a_rotation_is_handed_out_and_certificates_keep_both_authorities_meanwhile(
    tmp_path: Path,
) -> None:
    home, directory = tmp_path / "home", tmp_path / "secrets"
    assert init(home, directory) == 0
    old = FakeClock(SystemClock().now() - timedelta(days=20))
    authority = CertificateAuthority.load(home / "keys" / "tls", clock=old)
    authority.issue(ServiceName.CHATD, lifetime=timedelta(days=21)).write(
        home / "keys" / "tls" / "chatd"
    )
    assert run(["keys", "rotate", "--home", str(home)], Invocation({}, "parley")) == 0
    assert init(home, directory) == 0
    assert len(CertificateFiles.read(directory / "chatd" / "tls").authorities) == 2
    assert len(Keyring.load(directory / "chatd" / "master.keyring").keys) == 2


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("mysql://x@y/z", "--database is no PostgreSQL URL with a role"),
        ("postgresql://host/name", "--database is no PostgreSQL URL with a role"),
    ],
)
def test_a_database_that_cannot_be_meant_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, says: str
) -> None:
    assert init(tmp_path / "home", tmp_path / "secrets", "--database", option) == 2
    assert says in capsys.readouterr().err


def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secrets").write_text("a file")
    assert init(tmp_path / "home", tmp_path / "secrets") == 2
    assert f"{tmp_path}/secrets cannot be written" in capsys.readouterr().err
