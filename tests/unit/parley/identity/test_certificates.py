from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from parley.clock import FakeClock
from parley.identity import (
    CertificateAuthority,
    CertificateAuthorityExists,
    CertificateFacts,
    CertificateFiles,
    CertificateUnreadable,
    ForeignCertificate,
    InvalidCertificateName,
    ServiceName,
    describe_certificate,
    needs_renewal,
    service_of_names,
)

MARGIN = timedelta(minutes=5)


def test_a_certificate_names_its_service_and_its_hosts(tmp_path: Path) -> None:
    clock = FakeClock()
    authority = CertificateAuthority.create(tmp_path, clock=clock)
    files = authority.issue(ServiceName.CHATD, ("chatd", "10.0.0.7", "::1"))
    certificate = x509.load_pem_x509_certificate(files.certificate_pem)
    start, end = clock.now() - MARGIN, clock.now() + timedelta(hours=24)

    assert describe_certificate(files.certificate_pem) == CertificateFacts(
        holder="spiffe://parley/svc/chatd",
        service=ServiceName.CHATD,
        names=("chatd.parley.internal", "chatd", "10.0.0.7", "::1"),
        issued_at=start,
        expires_at=end,
        renew_at=start + (end - start) * 2 / 3,
        serial=f"{certificate.serial_number:x}",
        fingerprint=certificate.fingerprint(SHA256()).hex(),
    )
    assert files.authority_pem == authority.certificate_pem


def test_the_authority_lives_ten_years_and_no_leaf_outlives_it(tmp_path: Path) -> None:
    clock = FakeClock()
    authority = CertificateAuthority.create(tmp_path, clock=clock)
    end = clock.now() + timedelta(days=3650)
    leaf = authority.issue(ServiceName.CHATD, lifetime=timedelta(days=10000))

    assert describe_certificate(authority.certificate_pem).expires_at == end
    assert describe_certificate(authority.certificate_pem).holder is None
    assert describe_certificate(leaf.certificate_pem).expires_at == end


def test_a_certificate_needs_renewal_after_two_thirds_of_its_life(tmp_path: Path) -> None:
    clock = FakeClock()
    authority = CertificateAuthority.create(tmp_path, clock=clock)
    files = authority.issue(ServiceName.CHATD)
    renew_at = describe_certificate(files.certificate_pem).renew_at

    assert not needs_renewal(files.certificate_pem, now=renew_at - timedelta(seconds=1))
    assert needs_renewal(files.certificate_pem, now=renew_at)


def test_renewal_keeps_the_authority_the_holder_and_the_names(tmp_path: Path) -> None:
    clock = FakeClock()
    old = CertificateAuthority.create(tmp_path, clock=clock).issue(ServiceName.CHATD, ("chatd",))
    clock.advance(20 * 3600)
    new = CertificateAuthority.load(tmp_path, clock=clock).renew(old)
    facts = describe_certificate(new.certificate_pem)

    assert new.authority_pem == old.authority_pem
    assert new.key_pem != old.key_pem
    assert (facts.service, facts.names) == (ServiceName.CHATD, ("chatd.parley.internal", "chatd"))
    assert facts.expires_at == clock.now() + timedelta(hours=24)


def test_an_authority_renews_only_its_own(tmp_path: Path) -> None:
    clock = FakeClock()
    ours = CertificateAuthority.create(tmp_path / "ours", clock=clock)
    theirs = CertificateAuthority.create(tmp_path / "theirs", clock=clock)

    with pytest.raises(ForeignCertificate):
        ours.renew(theirs.issue(ServiceName.CHATD))


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path / "ca", clock=FakeClock())
    files = authority.issue(ServiceName.CHATD)
    files.write(tmp_path / "tls")

    assert CertificateFiles.read(tmp_path / "tls") == files
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*/*")} == {
        "ca.pem": 0o600,
        "ca-key.pem": 0o600,
        "certificate.pem": 0o600,
        "key.pem": 0o600,
    }
    assert files.key_pem.decode() not in repr(files)


def test_a_key_of_another_certificate_is_noticed(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path / "ca", clock=FakeClock())
    directory = tmp_path / "tls"
    authority.issue(ServiceName.CHATD).write(directory)
    (directory / "key.pem").write_bytes(authority.issue(ServiceName.CHATD).key_pem)

    with pytest.raises(CertificateUnreadable) as caught:
        CertificateFiles.read(directory)
    assert caught.value.path == directory / "certificate.pem"


@pytest.mark.parametrize("name", ["ca.pem", "certificate.pem", "key.pem"])
def test_missing_or_broken_files_are_refused(tmp_path: Path, name: str) -> None:
    authority = CertificateAuthority.create(tmp_path / "ca", clock=FakeClock())
    directory = tmp_path / "tls"
    authority.issue(ServiceName.CHATD).write(directory)

    (directory / name).write_text("broken")
    with pytest.raises(CertificateUnreadable):
        CertificateFiles.read(directory)
    (directory / name).unlink()
    with pytest.raises(CertificateUnreadable) as missing:
        CertificateFiles.read(directory)
    assert missing.value.path == directory / name


def test_an_authority_is_never_replaced(tmp_path: Path) -> None:
    CertificateAuthority.create(tmp_path, clock=FakeClock())

    with pytest.raises(CertificateAuthorityExists) as caught:
        CertificateAuthority.create(tmp_path, clock=FakeClock())
    assert caught.value.path == tmp_path


def test_an_interrupted_creation_is_made_good(tmp_path: Path) -> None:
    CertificateAuthority.create(tmp_path, clock=FakeClock())
    (tmp_path / "ca.pem").unlink()

    created = CertificateAuthority.create(tmp_path, clock=FakeClock())
    loaded = CertificateAuthority.load(tmp_path, clock=FakeClock())
    assert loaded.certificate_pem == created.certificate_pem


def test_an_authority_with_another_key_is_refused(tmp_path: Path) -> None:
    clock = FakeClock()
    CertificateAuthority.create(tmp_path / "one", clock=clock)
    CertificateAuthority.create(tmp_path / "two", clock=clock)
    other = (tmp_path / "two" / "ca-key.pem").read_bytes()
    (tmp_path / "one" / "ca-key.pem").write_bytes(other)

    with pytest.raises(CertificateUnreadable):
        CertificateAuthority.load(tmp_path / "one", clock=clock)
    with pytest.raises(CertificateUnreadable):
        CertificateAuthority.load(tmp_path / "none", clock=clock)


@pytest.mark.parametrize("name", ["", "a b", "spiffe://parley/svc/gateway", "-a", "a..b", "é"])
def test_a_name_that_is_no_host_is_refused(tmp_path: Path, name: str) -> None:
    authority = CertificateAuthority.create(tmp_path, clock=FakeClock())

    with pytest.raises(InvalidCertificateName) as caught:
        authority.issue(ServiceName.CHATD, (name,))
    assert caught.value.name == name


@pytest.mark.parametrize("name", ["", "a b", "../svc/gateway", "-a", "é"])
def test_a_client_name_that_is_no_word_is_refused(tmp_path: Path, name: str) -> None:
    authority = CertificateAuthority.create(tmp_path, clock=FakeClock())

    with pytest.raises(InvalidCertificateName):
        authority.issue_for_client(name)


def test_an_internal_callers_certificate_names_no_service(tmp_path: Path) -> None:
    authority = CertificateAuthority.create(tmp_path, clock=FakeClock())
    facts = describe_certificate(authority.issue_for_client("nightly").certificate_pem)

    assert (facts.holder, facts.service) == ("spiffe://parley/client/nightly", None)


def test_a_peers_service_is_read_from_its_names() -> None:
    assert service_of_names([b"chatd", b"spiffe://parley/svc/chatd"]) is ServiceName.CHATD
    assert service_of_names(["spiffe://parley/svc/gateway"]) is ServiceName.GATEWAY
    assert service_of_names([b"gateway", b"spiffe://parley/client/gateway", b"\xff"]) is None
    assert service_of_names([b"spiffe://parley/svc/root"]) is None
    assert service_of_names([b"spiffe://parley/svc/chatd", b"spiffe://parley/svc/gateway"]) is None
    assert service_of_names([]) is None
