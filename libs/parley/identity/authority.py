"""The installation's own certificate authority."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from parley.clock import Clock
from parley.files import write_atomically
from parley.identity.caller import ServiceName
from parley.identity.certificates import (
    AUTHORITY_FILE,
    CLIENT_URI,
    SERVICE_URI,
    CertificateFiles,
    describe_certificate,
    read_file,
    server_name,
)
from parley.identity.errors import (
    CertificateAuthorityExists,
    CertificateUnreadable,
    ForeignCertificate,
    InvalidCertificateName,
)

AUTHORITY_KEY_FILE = "ca-key.pem"
AUTHORITY_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(hours=24)

# Certificates become valid a little before they are issued, for machines with slow clocks.
BACKDATED = timedelta(minutes=5)

_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*", re.IGNORECASE)
_CLIENT_NAME = re.compile("[a-z0-9][a-z0-9._-]{0,62}", re.IGNORECASE)


class CertificateAuthority:
    """Signs the certificates of one installation.

    Keys are ECDSA P-256: gRPC's TLS does not accept Ed25519 certificates. Renewing a leaf does not
    change the authority, so peers need no new trust anchor.
    """

    def __init__(
        self, certificate: x509.Certificate, key: EllipticCurvePrivateKey, clock: Clock
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._clock = clock

    @property
    def certificate_pem(self) -> bytes:
        """The authority's own certificate, the trust anchor of every peer."""
        return self._certificate.public_bytes(Encoding.PEM)

    @classmethod
    def create(
        cls, directory: Path, *, clock: Clock, lifetime: timedelta = AUTHORITY_LIFETIME
    ) -> "CertificateAuthority":
        """Make a new authority in `directory`.

        Raises:
            CertificateAuthorityExists: There is one already.
        """
        # A key without a certificate is an interrupted creation that has signed nothing yet.
        if (directory / AUTHORITY_FILE).exists():
            raise CertificateAuthorityExists(directory, "there is one already")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = generate_private_key(SECP256R1())
        certificate = _self_signed(key, now=clock.now(), lifetime=lifetime)
        write_atomically(directory / AUTHORITY_KEY_FILE, _private_pem(key))
        pem = certificate.public_bytes(Encoding.PEM)
        write_atomically(directory / AUTHORITY_FILE, pem)
        return cls(certificate, key, clock)

    @classmethod
    def load(cls, directory: Path, *, clock: Clock) -> "CertificateAuthority":
        """Read the authority that `create` made.

        Raises:
            CertificateUnreadable: A file is missing, malformed or not of this authority.
        """
        path = directory / AUTHORITY_FILE
        certificate_pem = read_file(path)
        key_pem = read_file(directory / AUTHORITY_KEY_FILE)
        try:
            certificate = x509.load_pem_x509_certificate(certificate_pem)
            key = load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise CertificateUnreadable(path, "it or its key is not unencrypted PEM") from error
        if (
            not isinstance(key, EllipticCurvePrivateKey)
            or certificate.public_key() != key.public_key()
        ):
            problem = f"does not belong to the key in {AUTHORITY_KEY_FILE}"
            raise CertificateUnreadable(path, problem)
        return cls(certificate, key, clock)

    def issue(
        self,
        service: ServiceName,
        names: Iterable[str] = (),
        lifetime: timedelta = LEAF_LIFETIME,
    ) -> CertificateFiles:
        """Issue a new key and certificate for a service that answers on `names`.

        Args:
            service: The service that the certificate names.
            names: Further host names and IP addresses under which peers connect to it.
            lifetime: How long it is valid; at most until the authority expires.

        Raises:
            InvalidCertificateName: One of `names` is neither a host name nor an IP address.
        """
        every_name = dict.fromkeys((server_name(service), *names))
        return self._issue(f"{SERVICE_URI}{service}", every_name, lifetime)

    def issue_for_client(self, name: str, lifetime: timedelta = LEAF_LIFETIME) -> CertificateFiles:
        """Issue a certificate for an internal caller that is not a Parley service.

        Raises:
            InvalidCertificateName: `name` is not a plain word.
        """
        if not _CLIENT_NAME.fullmatch(name):
            raise InvalidCertificateName(name)
        return self._issue(f"{CLIENT_URI}{name}", (), lifetime)

    def renew(self, files: CertificateFiles) -> CertificateFiles:
        """Issue a new key and certificate with the same holder, names and lifetime.

        Raises:
            ForeignCertificate: The old certificate was not issued by this authority.
        """
        if not self.has_signed(files.certificate_pem):
            raise ForeignCertificate(describe_certificate(files.certificate_pem).serial)
        return replace(self.reissue(files), authority_pem=self.certificate_pem)

    def reissue(self, files: CertificateFiles) -> CertificateFiles:
        """Issue a new key and certificate in place of one that may be of a former authority.

        The holder believes the same authorities as before.

        Raises:
            ForeignCertificate: The old certificate names no holder.
        """
        old = describe_certificate(files.certificate_pem)
        if old.holder is None:
            raise ForeignCertificate(old.serial)
        lifetime = old.expires_at - old.issued_at - BACKDATED
        issued = self._issue(old.holder, old.names, lifetime)
        return replace(issued, authority_pem=files.authority_pem)

    def _issue(self, uri: str, names: Iterable[str], lifetime: timedelta) -> CertificateFiles:
        key = generate_private_key(SECP256R1())
        now = self._clock.now()
        alternatives = [x509.UniformResourceIdentifier(uri), *map(_general_name, names)]
        issuer_key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_named(uri.rpartition("/")[2]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(min(now + lifetime, self._certificate.not_valid_after_utc))
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer_key_id, critical=False)
            .sign(self._key, SHA256())
        )
        return CertificateFiles(
            authority_pem=self.certificate_pem,
            certificate_pem=certificate.public_bytes(Encoding.PEM),
            key_pem=_private_pem(key),
        )

    def has_signed(self, certificate_pem: bytes) -> bool:
        """Return whether a certificate was issued by this authority."""
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def _self_signed(
    key: EllipticCurvePrivateKey, *, now: datetime, lifetime: timedelta
) -> x509.Certificate:
    public: EllipticCurvePublicKey = key.public_key()
    name = _named("Parley certificate authority")
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CERTIFICATE_SIGNING, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, SHA256())
    )


_CERTIFICATE_SIGNING = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if len(name) > 253 or not _HOST_NAME.fullmatch(name):
        raise InvalidCertificateName(name)
    return x509.DNSName(name)


def _private_pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
