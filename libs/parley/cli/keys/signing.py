"""Stages of a rotation: signing keys, and certificates of a new authority."""

import os
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from parley.cli.home.layout import Home
from parley.clock import Clock
from parley.files import write_atomically
from parley.identity import (
    CertificateAuthority,
    CertificateFiles,
    ServiceName,
    SigningKey,
    SigningKeyUnreadable,
    TrustFile,
)
from parley.identity.authority import AUTHORITY_KEY_FILE
from parley.identity.certificates import AUTHORITY_FILE, CERTIFICATE_FILE, fingerprints_of


def signing_key_ids(home: Home) -> dict[str, str]:
    """Return the id of the key that each service signs with."""
    files = {service.value: home.signing_key_file(service) for service in ServiceName}
    return {name: SigningKey.load(path).kid for name, path in files.items() if path.exists()}


def trust_new_keys(home: Home, old: Mapping[str, str]) -> None:
    """Make a new key for each service that signs with an old one, and trust it."""
    for service, kid in old.items():
        if SigningKey.load(home.signing_key_file(service)).kid == kid:
            key = _next_key(_next_file(home, service))
            TrustFile(home.trust_file).add_key(ServiceName(service), key)


def use_new_keys(home: Home, old: Mapping[str, str]) -> None:
    """Let services sign with their new keys."""
    for service, kid in old.items():
        path = home.signing_key_file(service)
        if SigningKey.load(path).kid == kid:
            os.replace(_next_file(home, service), path)


def retire_old_keys(
    home: Home, old: Mapping[str, str], ends: Mapping[str, datetime], now: datetime
) -> None:
    """Let the tokens of old keys be refused after a time.

    Args:
        home: The home.
        old: The keys by service.
        ends: Until when the key of a service is trusted.
        now: The time.
    """
    file = TrustFile(home.trust_file)
    open_ended = {key.kid for key in file.read() if key.retired_at is None}
    for service, kid in old.items():
        if kid in open_ended:
            file.retire_key(kid, now=now, overlap_s=(ends[service] - now).total_seconds())


def _next_key(path: Path) -> SigningKey:
    """Return the key that was made before an interruption, or make one."""
    try:
        return SigningKey.load(path)
    except SigningKeyUnreadable:
        key = SigningKey.generate()
        key.save(path)
        return key


def _next_file(home: Home, service: str) -> Path:
    return home.signing_key_file(service).with_suffix(".key.next")


def authority_of(home: Home) -> str:
    """Return the fingerprint of the certificate authority; empty if there is none."""
    path = home.tls / AUTHORITY_FILE
    return fingerprints_of(path.read_bytes())[0] if path.exists() else ""


def believe_both(home: Home, old: str, clock: Clock) -> None:
    """Make a new authority, and let every holder of a certificate believe it besides the old."""
    if authority_of(home) != old:
        return
    following = _next_directory(home)
    if not (following / AUTHORITY_FILE).exists():
        CertificateAuthority.create(following, clock=clock)
    both = (home.tls / AUTHORITY_FILE).read_bytes() + (following / AUTHORITY_FILE).read_bytes()
    for directory in issued(home):
        write_atomically(directory / AUTHORITY_FILE, both)


def use_new_authority(home: Home, old: str, clock: Clock) -> None:
    """Let the new authority take the place of the old one, and issue all certificates again."""
    if authority_of(home) == old:
        following = _next_directory(home)
        for name in (AUTHORITY_KEY_FILE, AUTHORITY_FILE):
            write_atomically(home.tls / name, (following / name).read_bytes())
    authority = CertificateAuthority.load(home.tls, clock=clock)
    for directory in issued(home):
        # After an interruption the key may already be the new one, and is not needed.
        files = CertificateFiles(
            authority_pem=(directory / AUTHORITY_FILE).read_bytes(),
            certificate_pem=(directory / CERTIFICATE_FILE).read_bytes(),
            key_pem=b"",
        )
        if not authority.has_signed(files.certificate_pem):
            authority.reissue(files).write(directory)


def believe_new_authority(home: Home) -> None:
    """Let no holder of a certificate believe the old authority."""
    pem = (home.tls / AUTHORITY_FILE).read_bytes()
    for directory in issued(home):
        write_atomically(directory / AUTHORITY_FILE, pem)
    shutil.rmtree(_next_directory(home), ignore_errors=True)


def issued(home: Home) -> list[Path]:
    """Return the directories of the certificates."""
    return sorted(path for path in home.tls.iterdir() if path.is_dir())


def _next_directory(home: Home) -> Path:
    return home.keys / "tls-next"
