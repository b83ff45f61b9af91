"""The steps of rotating the certificate authority; each can be repeated after an interruption.

The new authority is made beside the old one. First every holder trusts both, then the new one
issues all certificates, and finally the old one is no longer trusted.
"""

import shutil
from pathlib import Path

from parley.cli.home.layout import Home
from parley.clock import Clock
from parley.files import write_atomically
from parley.identity import CertificateAuthority, CertificateFiles
from parley.identity.authority import AUTHORITY_KEY_FILE
from parley.identity.certificates import AUTHORITY_FILE, CERTIFICATE_FILE, fingerprints_of


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
