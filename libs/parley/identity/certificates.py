"""Certificates of services: the three files, the names in them, and when to renew."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from parley.files import write_atomically
from parley.identity.caller import ServiceName
from parley.identity.errors import CertificateUnreadable

SERVICE_URI = "spiffe://parley/svc/"
CLIENT_URI = "spiffe://parley/client/"

AUTHORITY_FILE = "ca.pem"
CERTIFICATE_FILE = "certificate.pem"
KEY_FILE = "key.pem"

# A renewal replaces three files one by one; a reader that finds a mixed set reads again.
READ_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files one holder needs for mTLS: trust anchor, certificate and private key."""

    authority_pem: bytes
    certificate_pem: bytes
    key_pem: bytes = field(repr=False)

    @property
    def authorities(self) -> tuple[str, ...]:
        """The fingerprints of the authorities: two while one replaces the other."""
        return fingerprints_of(self.authority_pem)

    def write(self, directory: Path) -> None:
        """Write the three files, readable by their owner only."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(directory / KEY_FILE, self.key_pem)
        write_atomically(directory / CERTIFICATE_FILE, self.certificate_pem)
        write_atomically(directory / AUTHORITY_FILE, self.authority_pem)

    @classmethod
    def read(cls, directory: Path) -> "CertificateFiles":
        """Read the three files as one consistent set.

        Raises:
            CertificateUnreadable: One is missing or malformed, or they are not of one set.
        """
        path = directory / CERTIFICATE_FILE
        for _ in range(READ_ATTEMPTS):
            files = cls(
                authority_pem=read_file(directory / AUTHORITY_FILE),
                certificate_pem=read_file(path),
                key_pem=read_file(directory / KEY_FILE),
            )
            if _is_pair(files, path):
                return files
        raise CertificateUnreadable(path, f"does not belong to the key in {KEY_FILE}")


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The fields of a certificate, for display.

    Attributes:
        holder: The URI of the service or client it names; None for an authority.
        service: The service it names, if it is one of Parley's.
        names: Host names and addresses it is valid for.
        issued_at: Start of its validity.
        expires_at: End of its validity.
        renew_at: When two thirds of its lifetime are over and it should be replaced.
        serial: Serial number in hexadecimal.
        fingerprint: SHA-256 of the certificate in hexadecimal.
    """

    holder: str | None
    service: ServiceName | None
    names: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    renew_at: datetime
    serial: str
    fingerprint: str


def describe_certificate(certificate_pem: bytes) -> CertificateFacts:
    """Return the fields of a certificate.

    Raises:
        ValueError: It is not a PEM certificate.
    """
    certificate = x509.load_pem_x509_certificate(certificate_pem)
    names = _alternative_names(certificate)
    uris = tuple(names.get_values_for_type(x509.UniformResourceIdentifier))
    addresses = names.get_values_for_type(x509.IPAddress)
    starts, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return CertificateFacts(
        holder=uris[0] if uris else None,
        service=service_of_names(uris),
        names=(*names.get_values_for_type(x509.DNSName), *map(str, addresses)),
        issued_at=starts,
        expires_at=ends,
        renew_at=starts + (ends - starts) * 2 / 3,
        serial=f"{certificate.serial_number:x}",
        fingerprint=certificate.fingerprint(SHA256()).hex(),
    )


def fingerprints_of(certificates_pem: bytes) -> tuple[str, ...]:
    """Return the SHA-256 of each certificate in hexadecimal.

    Raises:
        ValueError: There is none.
    """
    found = x509.load_pem_x509_certificates(certificates_pem)
    return tuple(each.fingerprint(SHA256()).hex() for each in found)


def needs_renewal(certificate_pem: bytes, *, now: datetime) -> bool:
    """Return whether two thirds of the certificate's lifetime are over.

    Raises:
        ValueError: It is not a PEM certificate.
    """
    return now >= describe_certificate(certificate_pem).renew_at


def server_name(service: ServiceName) -> str:
    """Return the host name that every certificate of `service` contains.

    gRPC verifies a host name, never a URI; with this name a client accepts any replica.
    """
    return f"{service}.parley.internal"


def service_of_names(names: Iterable[str | bytes]) -> ServiceName | None:
    """Return the service that a certificate's alternative names contain, if there is exactly one.

    Takes them as bytes too, as gRPC's `x509_subject_alternative_name` returns them.
    """
    texts = (name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in names)
    found = {text.removeprefix(SERVICE_URI) for text in texts if text.startswith(SERVICE_URI)}
    if len(found) != 1:
        return None
    try:
        return ServiceName(found.pop())
    except ValueError:
        return None


def read_file(path: Path) -> bytes:
    """Return a file's contents.

    Raises:
        CertificateUnreadable: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateUnreadable(path, error.strerror or "cannot be read") from error


def _alternative_names(certificate: x509.Certificate) -> x509.SubjectAlternativeName:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return x509.SubjectAlternativeName([])
    return extension.value


def _is_pair(files: CertificateFiles, path: Path) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(files.certificate_pem)
        x509.load_pem_x509_certificate(files.authority_pem)
        key = load_pem_private_key(files.key_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        problem = "it, its authority or its key is not unencrypted PEM"
        raise CertificateUnreadable(path, problem) from error
    return certificate.public_key() == key.public_key()
