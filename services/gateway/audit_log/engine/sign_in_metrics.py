"""Counts sign-ins, as they are appended to the audit log."""

from typing import Final

from opentelemetry.metrics import Meter

from parley.audit_log import AuditAction, AuditEvent

SIGN_INS: Final = "gateway.sign_ins"


class SignInMetrics:
    """The number of sign-ins by method and outcome; refused ones with the reason."""

    def __init__(self, meter: Meter) -> None:
        self._sign_ins = meter.create_counter(
            SIGN_INS,
            unit="{sign_in}",
            description="Sign-ins by method, outcome and reason of the refusal.",
        )

    def count(self, event: AuditEvent) -> None:
        """Count an event if it is a sign-in."""
        if event.action in (AuditAction.SESSION_CREATED, AuditAction.SESSION_REFUSED):
            labels = {
                "method": event.details.get("method", ""),
                "outcome": event.outcome.value,
                "reason": event.details.get("reason", ""),
            }
            self._sign_ins.add(1, labels)
