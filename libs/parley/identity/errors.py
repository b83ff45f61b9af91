"""Everything that can be wrong with an identity, as types.

    IdentityError
    ├── Refused                        a call that is not let in
    │   ├── Unauthenticated            the credential does not prove who calls
    │   └── Forbidden                  the caller is known and may not
    ├── RevocationsUnknown             no list of revoked tokens has arrived yet
    ├── MalformedApiKey
    ├── SigningKeyUnreadable
    ├── TrustFileUnreadable
    ├── UnknownKey                     a key to retire that the trust file does not hold
    └── CertificateError
        ├── CertificateAuthorityExists
        ├── CertificateUnreadable
        ├── ForeignCertificate
        └── InvalidCertificateName

No message repeats a credential.
"""

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from parley.settings import ConfigurationError


class RefusalReason(StrEnum):
    """Why a call was refused; stable, so clients and metrics may rely on it."""

    TOKEN_MISSING = "TOKEN_MISSING"
    TOKEN_MALFORMED = "TOKEN_MALFORMED"
    TOKEN_ALGORITHM = "TOKEN_ALGORITHM"
    TOKEN_KEY_UNKNOWN = "TOKEN_KEY_UNKNOWN"
    TOKEN_SIGNATURE = "TOKEN_SIGNATURE"
    TOKEN_ISSUER = "TOKEN_ISSUER"
    TOKEN_AUDIENCE = "TOKEN_AUDIENCE"
    TOKEN_EXPIRED = "TOKEN_EXPIRED"
    TOKEN_NOT_YET_VALID = "TOKEN_NOT_YET_VALID"
    TOKEN_REVOKED = "TOKEN_REVOKED"
    REVOCATIONS_UNKNOWN = "REVOCATIONS_UNKNOWN"
    PEER_MISMATCH = "PEER_MISMATCH"
    METHOD_UNDECLARED = "METHOD_UNDECLARED"
    CALLER_NOT_ALLOWED = "CALLER_NOT_ALLOWED"
    ROLE_NOT_ALLOWED = "ROLE_NOT_ALLOWED"
    SCOPE_MISSING = "SCOPE_MISSING"


REMEDIES: dict[RefusalReason, str] = {
    RefusalReason.TOKEN_MISSING: "send metadata 'authorization: Bearer TOKEN'",
    RefusalReason.TOKEN_MALFORMED: "the token is not one of Parley's; send it whole and unchanged",
    RefusalReason.TOKEN_ALGORITHM: "tokens are signed with EdDSA only",
    RefusalReason.TOKEN_KEY_UNKNOWN: "its key is not trusted here; add it to the trust file",
    RefusalReason.TOKEN_SIGNATURE: "the signature does not fit the token",
    RefusalReason.TOKEN_ISSUER: "the signing key does not belong to the service the token names",
    RefusalReason.TOKEN_AUDIENCE: "the token was issued for another service",
    RefusalReason.TOKEN_EXPIRED: "the token has expired; get a new one",
    RefusalReason.TOKEN_NOT_YET_VALID: "the token is from the future; compare the clocks",
    RefusalReason.TOKEN_REVOKED: "the token was revoked; issue a new one",
    RefusalReason.REVOCATIONS_UNKNOWN: "revoked tokens are not known here yet; try again shortly",
    RefusalReason.PEER_MISMATCH: "the connection's certificate is not that of the token's service",
    RefusalReason.METHOD_UNDECLARED: "the method declares no callers",
    RefusalReason.CALLER_NOT_ALLOWED: "the method does not accept this caller",
    RefusalReason.ROLE_NOT_ALLOWED: "the user's role does not allow this method",
    RefusalReason.SCOPE_MISSING: "the service token lacks the scope this method needs",
}


class IdentityError(Exception):
    """Base of the errors of this package."""


class Refused(IdentityError):
    """The call is not admitted.

    Attributes:
        reason: The stable code of the reason.
    """

    def __init__(self, reason: RefusalReason) -> None:
        super().__init__(REMEDIES[reason])
        self.reason = reason


class Unauthenticated(Refused):
    """The call has no valid credential.

    Attributes:
        time: The time of this process, if the caller can sign again with it; None otherwise.
    """

    def __init__(self, reason: RefusalReason, time: datetime | None = None) -> None:
        super().__init__(reason)
        self.time = time


class Forbidden(Refused):
    """The caller is authenticated and may not call this method.

    Attributes:
        method: The requested method, as "/pkg.Service/Method".
    """

    def __init__(self, reason: RefusalReason, method: str) -> None:
        super().__init__(reason)
        self.method = method


class RevocationsUnknown(IdentityError):
    """The list of revoked tokens has not arrived yet, so no service token can be accepted."""

    def __init__(self) -> None:
        super().__init__(REMEDIES[RefusalReason.REVOCATIONS_UNKNOWN])


class MalformedApiKey(IdentityError):
    """Text that cannot be an API key.

    Attributes:
        problem: What is wrong with it, without repeating it.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"not an API key: {problem}")
        self.problem = problem


class _FileError(IdentityError, ConfigurationError):
    """A file that is missing or cannot be used.

    Attributes:
        path: The file.
        problem: What is wrong with it.
    """

    what = "file"
    remedy = ""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{self.what} {path}: {problem}; {self.remedy}")
        self.path = path
        self.problem = problem


class SigningKeyUnreadable(_FileError):
    """A signing key file that is missing or is no Ed25519 key."""

    what = "signing key"
    remedy = "point the setting at a key made by Parley, or make a new one and trust it"


class TrustFileUnreadable(_FileError):
    """A trust file that is missing or malformed."""

    what = "trust file"
    remedy = "restore it, or write it anew with every service's public key"


class UnknownKey(IdentityError):
    """A key that the trust file does not hold.

    Attributes:
        kid: The key's id.
    """

    def __init__(self, kid: str) -> None:
        super().__init__(f"no key {kid} in the trust file; list the keys and choose one of them")
        self.kid = kid


class CertificateError(IdentityError):
    """Base of the errors of certificates."""


class CertificateAuthorityExists(CertificateError, _FileError):
    """The directory already holds an authority; a new one would invalidate all certificates."""

    what = "certificate authority"
    remedy = "load it, or choose an empty directory"


class CertificateUnreadable(CertificateError, _FileError):
    """A certificate or its key is missing, malformed, or the two do not match."""

    what = "certificate"
    remedy = "issue it again with the certificate authority"


class ForeignCertificate(CertificateError):
    """A certificate that was issued by another authority.

    Attributes:
        serial: Its serial number in hexadecimal.
    """

    def __init__(self, serial: str) -> None:
        super().__init__(
            f"certificate {serial} was issued by another authority; issue a new one with this one"
        )
        self.serial = serial


class InvalidCertificateName(CertificateError):
    """A name that is not valid in a certificate.

    Attributes:
        name: The name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is neither a host name nor an IP address; give one of these")
        self.name = name
