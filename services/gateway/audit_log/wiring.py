"""Wiring of the audit log over the tables of this service."""

from dataclasses import dataclass

from gateway.audit_log.engine.head_signing import HeadSigner
from gateway.audit_log.engine.pruning import LogPruner, RetentionReport
from gateway.audit_log.engine.sign_in_metrics import SignInMetrics
from gateway.audit_log.engine.verifying import LogVerification
from gateway.audit_log.rpc.servicer import AuditLogServicer
from gateway.audit_log.store.appending import AuditLog
from gateway.audit_log.store.pruning import PruningStore
from gateway.audit_log.store.reading import AuditReader
from gateway.settings import GatewaySettings
from parley.audit_log import seal_key_of
from parley.identity import SigningKey
from parley.postgres import Database
from parley.process import Process


@dataclass(frozen=True, slots=True)
class AuditComponents:
    """The audit log of a process.

    Attributes:
        log: Appends to it.
        servicer: Serves it.
        signer: Signs its heads; None without a key.
        pruner: Prunes old entries; None without a key.
    """

    log: AuditLog
    servicer: AuditLogServicer
    signer: HeadSigner | None
    pruner: LogPruner | None


def open_audit_log(
    settings: GatewaySettings, database: Database, process: Process
) -> AuditComponents:
    """Return the audit log.

    Raises:
        SigningKeyUnreadable: The key cannot be read.
    """
    reader = AuditReader(database)
    key = None if settings.audit_key_file is None else SigningKey.load(settings.audit_key_file)
    heads_file = settings.audit_heads_file
    sign_ins = SignInMetrics(process.telemetry.meter)
    log = AuditLog(None if key is None else seal_key_of(key), sign_ins.count)
    verification = LogVerification(reader, key, heads_file)
    days, pruning = settings.audit_retention_days, PruningStore(database, log)
    retention = RetentionReport(pruning, heads_file, retention_days=days)
    servicer = AuditLogServicer(database, log, reader, verification, retention)
    if key is None or heads_file is None:
        return AuditComponents(log, servicer, None, None)
    clock = process.clock
    signer = HeadSigner(reader, key, heads_file, clock)
    pruner = LogPruner(pruning, reader, key, heads_file, retention_days=days, clock=clock)
    return AuditComponents(log, servicer, signer, pruner)
