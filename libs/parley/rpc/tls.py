"""Mutual TLS: credentials of servers and channels, and renewal of certificates at run time."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from parley.identity import CertificateFiles, CertificateUnreadable, ServiceName, service_of_names

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A directory with ca.pem, certificate.pem and key.pem, which may be renewed."""

    directory: Path

    def read(self) -> CertificateFiles:
        """Return the files as one set.

        Raises:
            CertificateUnreadable: One is missing or malformed, or they are not of one set.
        """
        return CertificateFiles.read(self.directory)

    def stamp(self) -> tuple[int, ...]:
        """Return a value that changes with a renewal."""
        stamps = (_changed_at(path) for path in sorted(self.directory.glob("*.pem")))
        return tuple(stamps)


def server_credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    """Return credentials that require a client certificate and follow the files.

    grpc fetches the configuration before each handshake, so that a renewed leaf is used for the
    next connection; open ones are not affected.

    Raises:
        CertificateUnreadable: The files cannot be used.
    """
    followed = _Followed(tls)
    return grpc.dynamic_ssl_server_credentials(
        followed.first, followed.renewed, require_client_authentication=True
    )


def channel_credentials(tls: TlsFiles) -> grpc.ChannelCredentials:
    """Return credentials of the files as they are now; a renewal needs a new channel.

    Raises:
        CertificateUnreadable: The files cannot be used.
    """
    files = tls.read()
    return grpc.ssl_channel_credentials(
        root_certificates=files.authority_pem,
        private_key=files.key_pem,
        certificate_chain=files.certificate_pem,
    )


def peer_service(context: Any) -> ServiceName | None:
    """Return the service named in the client's certificate, if any."""
    return service_of_names(context.auth_context().get("x509_subject_alternative_name", ()))


class _Followed:
    """Returns a new configuration to grpc when the files have changed."""

    def __init__(self, tls: TlsFiles) -> None:
        self._tls = tls
        self._stamp = tls.stamp()
        self.first = _configuration(tls.read())

    def renewed(self) -> Any:
        """Return the new configuration, or None to keep the last one."""
        stamp = self._tls.stamp()
        if stamp == self._stamp:
            return None
        try:
            configuration = _configuration(self._tls.read())
        except CertificateUnreadable as error:
            _LOGGER.warning("keeping the certificate in use: %s", error)
            return None
        self._stamp = stamp
        return configuration


def _configuration(files: CertificateFiles) -> Any:
    return grpc.ssl_server_certificate_configuration(
        [(files.key_pem, files.certificate_pem)], root_certificates=files.authority_pem
    )


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
