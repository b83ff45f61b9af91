"""The audit log: the events that services record, their chain, and its verification."""

from parley.audit_log.chain import (
    GENESIS,
    AuditEntry,
    address_digest,
    entry_hash,
    pseudonym_of,
    seal_of,
)
from parley.audit_log.event import AuditAction, AuditEvent, AuditOutcome
from parley.audit_log.heads import (
    SignedHead,
    append_head,
    read_heads,
    seal_key_of,
    sign_checkpoint,
    sign_head,
)
from parley.audit_log.verification import (
    AuditedLine,
    AuditProblem,
    AuditProblemKind,
    AuditVerification,
    AuditVerifier,
)

__all__ = [
    "GENESIS",
    "AuditAction",
    "AuditEntry",
    "AuditEvent",
    "AuditOutcome",
    "AuditProblem",
    "AuditProblemKind",
    "AuditVerification",
    "AuditVerifier",
    "AuditedLine",
    "SignedHead",
    "address_digest",
    "append_head",
    "entry_hash",
    "pseudonym_of",
    "read_heads",
    "seal_key_of",
    "seal_of",
    "sign_checkpoint",
    "sign_head",
]
