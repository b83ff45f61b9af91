"""Identity of callers: tokens, keys, certificates, and the guard that admits or refuses calls."""

from parley.identity.api_keys import ApiKey
from parley.identity.authority import CertificateAuthority
from parley.identity.caller import ANONYMOUS, Caller, Role, ServiceName, User, UserId
from parley.identity.certificates import (
    CertificateFacts,
    CertificateFiles,
    describe_certificate,
    needs_renewal,
    server_name,
    service_of_names,
)
from parley.identity.errors import (
    CertificateAuthorityExists,
    CertificateError,
    CertificateUnreadable,
    Forbidden,
    ForeignCertificate,
    IdentityError,
    InvalidCertificateName,
    MalformedApiKey,
    RefusalReason,
    Refused,
    RevocationsUnknown,
    SigningKeyUnreadable,
    TrustFileUnreadable,
    Unauthenticated,
    UnknownKey,
)
from parley.identity.guard import Guard
from parley.identity.revocations import InMemoryRevocations, Revocations
from parley.identity.rules import AUDIENCES, CallerRule, rule_of
from parley.identity.tickets import TICKET_LIFETIME_S, AttachTicket, TicketIssuer, TicketReader
from parley.identity.tokens import (
    CALL_TOKEN_LIFETIME_S,
    Signer,
    SigningKey,
    followed_signing_key,
)
from parley.identity.trust import Trust, TrustedKey, TrustFile

__all__ = [
    "ANONYMOUS",
    "AUDIENCES",
    "CALL_TOKEN_LIFETIME_S",
    "TICKET_LIFETIME_S",
    "ApiKey",
    "AttachTicket",
    "Caller",
    "CallerRule",
    "CertificateAuthority",
    "CertificateAuthorityExists",
    "CertificateError",
    "CertificateFacts",
    "CertificateFiles",
    "CertificateUnreadable",
    "Forbidden",
    "ForeignCertificate",
    "Guard",
    "IdentityError",
    "InMemoryRevocations",
    "InvalidCertificateName",
    "MalformedApiKey",
    "RefusalReason",
    "Refused",
    "Revocations",
    "RevocationsUnknown",
    "Role",
    "ServiceName",
    "Signer",
    "SigningKey",
    "SigningKeyUnreadable",
    "TicketIssuer",
    "TicketReader",
    "Trust",
    "TrustFile",
    "TrustFileUnreadable",
    "TrustedKey",
    "Unauthenticated",
    "UnknownKey",
    "User",
    "UserId",
    "describe_certificate",
    "followed_signing_key",
    "needs_renewal",
    "rule_of",
    "server_name",
    "service_of_names",
]
