"""The access log of the egress proxy: every request of a workspace, forwarded or refused."""

import logging
from dataclasses import dataclass
from typing import Protocol

from opentelemetry.metrics import Meter

from toolrunner.primitives.domain import WorkspaceId

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ProxyAccessRecord:
    """One request to the proxy.

    Attributes:
        workspace_id: The workspace that sent it.
        form: The kind of request: tunnel, plain or secured; empty if unreadable.
        host_port: The target, if it could be read.
        request: Method and path, without the query, which may contain secrets.
        outcome: `passed`, or the reason of the refusal.
        problem: The same as text.
        secret_name: The secret that was added, if any.
        address: The address that was connected to.
        sent_bytes: Bytes sent to the target.
        received_bytes: Bytes received from it.
        duration_s: The duration.
    """

    workspace_id: WorkspaceId
    form: str = ""
    host_port: str = ""
    request: str = ""
    outcome: str = "passed"
    problem: str = ""
    secret_name: str = ""
    address: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    duration_s: float = 0.0


class AccessLog(Protocol):
    """Records requests."""

    def note(self, record: ProxyAccessRecord) -> None:
        """Record a request that has ended."""
        ...


class LoggedAccess:
    """Writes each request to the log and to the metrics."""

    def __init__(self, meter: Meter) -> None:
        self._requests = meter.create_counter(
            "parley.egress.requests", description="Requests of workspaces, by what became of them."
        )
        self._bytes = meter.create_counter(
            "parley.egress.io", unit="By", description="Bytes that workspaces sent and received."
        )

    def note(self, record: ProxyAccessRecord) -> None:
        """Log and count it."""
        logger.info(
            "egress of workspace %s: %s %s to %s: %s%s%s (%s, %d bytes out, %d in, %.3f s)",
            record.workspace_id,
            record.form or "unreadable",
            record.request,
            record.host_port or "nowhere",
            record.outcome,
            f" with the secret {record.secret_name}" if record.secret_name else "",
            f": {record.problem}" if record.problem else "",
            record.address or "not connected",
            record.sent_bytes,
            record.received_bytes,
            record.duration_s,
        )
        has_secret = bool(record.secret_name)
        self._requests.add(1, {"outcome": record.outcome, "secret": has_secret})
        self._bytes.add(record.sent_bytes, {"direction": "sent"})
        self._bytes.add(record.received_bytes, {"direction": "received"})
