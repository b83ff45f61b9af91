from pathlib import Path

import pytest

from parley.cli.home.layout import Home
from parley.cli.invocation import Invocation
from parley.cli.keys.rotation import KeyKind, begin
from parley.cli.main import run
from parley.clock import SystemClock
from parley.identity import CertificateFiles, ServiceName, describe_certificate


def parley(home: Path, *arguments: str) -> int:
    return run([*arguments, "--home", str(home)], Invocation({}, "parley"))


def test_an_authority_issues_shows_and_renews(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    assert parley(tmp_path, "certs", "issue", "chatd", "--name", "chatd.internal") == 0
    assert parley(tmp_path, "certs", "issue", "batch-job") == 0
    files = CertificateFiles.read(tmp_path / "keys" / "tls" / "chatd")
    facts = describe_certificate(files.certificate_pem)
    assert (facts.service, facts.names) == (
        ServiceName.CHATD,
        ("chatd.parley.internal", "chatd.internal"),
    )
    capsys.readouterr()
    assert parley(tmp_path, "certs", "renew", "--all") == 0
    assert capsys.readouterr().out.count("renewed") == 2
    assert parley(tmp_path, "certs", "renew") == 0
    assert capsys.readouterr().out.count("not due") == 2
    assert parley(tmp_path, "certs", "show") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_an_authority_is_never_replaced(tmp_path: Path) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    before = (tmp_path / "keys" / "tls" / "ca.pem").read_bytes()
    assert parley(tmp_path, "certs", "init") == 1
    assert (tmp_path / "keys" / "tls" / "ca.pem").read_bytes() == before


def test_without_an_authority_the_remedy_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(tmp_path, "certs", "issue", "chatd") == 1
    assert "certs init" in capsys.readouterr().err


def test_a_name_that_no_certificate_can_hold_is_refused(tmp_path: Path) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    assert parley(tmp_path, "certs", "issue", "chatd", "--name", "not a host") == 1
    assert parley(tmp_path, "certs", "issue", "../escape") == 1


def test_a_client_has_no_host_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    assert parley(tmp_path, "certs", "issue", "batch-job", "--name", "batch.internal") == 2
    assert "leave --name out" in capsys.readouterr().err


def test_more_days_than_the_authority_has_are_refused(tmp_path: Path) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    assert parley(tmp_path, "certs", "issue", "chatd", "--days", "999999999") == 2


def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert parley(tmp_path, "certs", "init") == 0
    out = tmp_path / "file" / "certificates"
    assert parley(tmp_path, "certs", "issue", "chatd", "--out", str(out)) == 1
    assert capsys.readouterr().err.startswith(f"parley: {out} cannot be written (")


def test_a_broken_certificate_does_not_keep_others_from_being_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    for holder in ("chatd", "gateway"):
        assert parley(tmp_path, "certs", "issue", holder) == 0
    broken = tmp_path / "keys" / "tls" / "chatd"
    (broken / "key.pem").write_text("damaged")
    capsys.readouterr()
    assert parley(tmp_path, "certs", "renew", "--all") == 1
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{tmp_path / 'keys' / 'tls' / 'gateway'}: renewed")
    assert printed.err.startswith(f"{broken}: ")


def test_nothing_is_issued_while_the_authority_is_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parley(tmp_path, "certs", "init") == 0
    assert parley(tmp_path, "certs", "issue", "chatd") == 0
    home = Home.at(tmp_path)
    begin(home, (KeyKind.CERTIFICATES,), SystemClock().now())
    for words in (("issue", "gateway"), ("renew", "--all")):
        assert parley(tmp_path, "certs", *words) == 1
        assert "keys rotate" in capsys.readouterr().err
